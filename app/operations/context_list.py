"""A round's contexts and what became of them, for the command and for whoever asks from Python. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.clock import Clock
from hits.contexts import Candidate, usage_of
from hits.contexts.uploads import NAME_CHARACTERS
from hits.db import only_reads
from hits.export import find_round
from hits.models import Context, ContextUpload, UploadedContext


@dataclass(frozen=True)
class ListedContext:
    """One context; ``upload`` and ``line`` say where it is from, None of one from a launch's own file."""

    digest: str
    fields: Mapping[str, str]
    known: Candidate
    upload: int | None
    line: int | None

    @property
    def name(self) -> str:
        """What commands take for it."""
        return self.digest[:NAME_CHARACTERS]


@dataclass(frozen=True)
class ListedUpload:
    """A file that was stored in the round."""

    id: int
    file_name: str
    file_sha256: str
    source: str
    licence: str
    added: int


@dataclass(frozen=True)
class RoundContexts:
    """A round's contexts in the order in which they came; ``scored_by`` is the model that was asked last."""

    task_code: str
    number: int
    contexts: tuple[ListedContext, ...]
    uploads: tuple[ListedUpload, ...]
    scored_by: tuple[str, str] | None

    def as_json(self) -> dict[str, Any]:
        """Return them as `dynahit contexts list --json` prints them."""
        return {
            "task": self.task_code,
            "round": self.number,
            "uploads": [asdict(one) for one in self.uploads],
            "scored_by": list(self.scored_by) if self.scored_by is not None else None,
            "contexts": [
                {
                    "context": one.name,
                    "digest": one.digest,
                    "fields": dict(one.fields),
                    **asdict(one.known),
                    "upload": one.upload,
                    "line": one.line,
                }
                for one in self.contexts
            ],
        }


def contexts_listed(session: Session, clock: Clock, task_code: str, number: int) -> RoundContexts:
    """Return a round's contexts. Raises NotFound with the rounds that there are."""
    only_reads(session)
    round_ = find_round(session, task_code, number)
    usage = usage_of(session, round_.id, clock.now())
    rows = session.execute(
        select(Context.digest, Context.fields, UploadedContext.upload_id, UploadedContext.line)
        .outerjoin(UploadedContext, UploadedContext.context_id == Context.id)
        .where(Context.round_id == round_.id)
        .order_by(Context.id)
    ).all()
    uploads = session.scalars(
        select(ContextUpload).where(ContextUpload.round_id == round_.id).order_by(ContextUpload.id)
    ).all()
    found = RoundContexts(
        task_code,
        number,
        tuple(ListedContext(row.digest, row.fields, usage.candidates[row.digest], row[2], row[3]) for row in rows),
        tuple(
            ListedUpload(one.id, one.file_name, one.file_sha256, one.source, one.licence, one.added) for one in uploads
        ),
        usage.scored_by,
    )
    session.rollback()
    return found
