"""What of a file of contexts is new to a round, and storing that with whose texts they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from hits.contexts.files import ContextsFile
from hits.duplicates import Known, Seen, text_of
from hits.errors import InvalidInput, NotFound
from hits.models import Context, ContextUpload, RetiredContext, Round, UploadedContext
from hits.tasks import digest_of

#: Rows of one statement.
_CHUNK: Final = 1000
#: How much of a digest names a context on the command line, at least.
NAME_CHARACTERS: Final = 8
SOURCE_CHARACTERS, LICENCE_CHARACTERS, REASON_CHARACTERS = 500, 200, 500


@dataclass(frozen=True)
class Repeat:
    """A line that repeats another context: ``of`` says which, ``similarity`` is 1 for the same words."""

    line: int
    of: str
    similarity: float


@dataclass(frozen=True)
class Sorted:
    """A file's lines: new ones, and those that repeat one of the file or the round, or one of another round."""

    new: tuple[tuple[int, dict[str, str]], ...]
    repeats: tuple[Repeat, ...]
    near: tuple[Repeat, ...]
    elsewhere: tuple[Repeat, ...]


def sort_out(
    given: ContextsFile,
    mine: Iterable[tuple[str, Mapping[str, str]]],
    others: Iterable[tuple[str, Mapping[str, str]]],
    *,
    keep_near: bool = False,
    new_only: bool = False,
    advance: Callable[[int], None] = lambda count: None,
) -> Sorted:
    """Return what of a file is new. ``mine`` and ``others`` are (name, fields) of the round's and of other contexts.

    Lines that nearly repeat one of the file or the round are left out unless ``keep_near``; those that repeat one of
    another round are kept unless ``new_only``. ``advance`` is told how many contexts were looked at.
    """
    here, there = Seen(), Seen()
    for seen, known in ((here, mine), (there, others)):
        for name, fields in known:
            seen.add(Known.of(text_of(fields)), name)
            advance(1)
    new, repeats, near, elsewhere = [], [], [], []
    for line, fields in given.lines:
        advance(1)
        text = Known.of(text_of(fields))
        if (same := here.same(text)) is not None:
            repeats.append(Repeat(line, same, 1.0))
            continue
        if (found := here.near(text)) is not None:
            near.append(Repeat(line, found[0], found[1]))
            if not keep_near:
                continue
        if (outside := _elsewhere(there, text)) is not None:
            elsewhere.append(Repeat(line, outside[0], outside[1]))
            if new_only:
                continue
        here.add(text, f"line {line}")
        new.append((line, fields))
    return Sorted(tuple(new), tuple(repeats), tuple(near), tuple(elsewhere))


def store(
    session: Session,
    round_: Round,
    given: ContextsFile,
    found: Sorted,
    *,
    file_name: str,
    source: str,
    licence: str,
    by: str,
    now: datetime,
) -> ContextUpload:
    """Store what is new with where it is from. Flushes, never commits. Raises InvalidInput for an empty source."""
    upload = ContextUpload(
        round_id=round_.id,
        file_name=file_name[-200:],
        file_sha256=given.sha256,
        source=_words("source", source, SOURCE_CHARACTERS),
        licence=_words("licence", licence, LICENCE_CHARACTERS),
        added=len(found.new),
        repeats=len(found.repeats),
        near=len(found.near),
        elsewhere=len(found.elsewhere),
        by=by[:80],
        at=now,
    )
    session.add(upload)
    session.flush()
    for start in range(0, len(found.new), _CHUNK):
        part = found.new[start : start + _CHUNK]
        rows = [
            {"round_id": round_.id, "fields": fields, "digest": digest_of(fields), "created_at": now}
            for _, fields in part
        ]
        ids = session.scalars(insert(Context).returning(Context.id, sort_by_parameter_order=True), rows).all()
        session.execute(
            insert(UploadedContext),
            [
                {"context_id": context_id, "upload_id": upload.id, "line": line}
                for context_id, (line, _) in zip(ids, part, strict=True)
            ],
        )
    return upload


def retire(session: Session, round_: Round, names: Iterable[str], *, reason: str, by: str, now: datetime) -> list[str]:
    """Let no further HIT have these contexts; return which were not retired before. Flushes, never commits.

    Raises NotFound and InvalidInput; then nothing is changed.
    """
    words = _words("reason", reason, REASON_CHARACTERS)
    rows = {row.id: row for row in (named(session, round_, name) for name in names)}.values()
    fresh = [row for row in rows if session.get(RetiredContext, row.id) is None]
    session.add_all(RetiredContext(context_id=row.id, reason=words, by=by[:80], at=now) for row in fresh)
    session.flush()
    return [row.digest for row in fresh]


def take_back(session: Session, round_: Round, names: Iterable[str]) -> list[str]:
    """Let HITs have retired contexts again; return which were retired. Flushes, never commits. Raises as retire."""
    rows = {row.id: row for row in (named(session, round_, name) for name in names)}.values()
    back = [row for row in rows if session.get(RetiredContext, row.id) is not None]
    session.execute(delete(RetiredContext).where(RetiredContext.context_id.in_([row.id for row in back])))
    return [row.digest for row in back]


def named(session: Session, round_: Round, name: str) -> Context:
    """Return the round's context whose digest begins so. Raises NotFound, and InvalidInput when there are several."""
    if len(name) < NAME_CHARACTERS or not (name.isascii() and name.isalnum()):
        raise InvalidInput(
            f"{name!r} names no context: give the first {NAME_CHARACTERS} characters or more of what `dynahit contexts"
            " list` shows."
        )
    found = session.scalars(
        select(Context).where(Context.round_id == round_.id, Context.digest.startswith(name.lower())).limit(2)
    ).all()
    if not found:
        raise NotFound(
            f"Round {round_.number} of the {round_.task_code} task has no context {name!r}. `dynahit contexts list"
            f" {round_.task_code} --round {round_.number}` shows them."
        )
    if len(found) > 1:
        raise InvalidInput(f"{name!r} stands for several contexts; give more of its characters.")
    return found[0]


def _elsewhere(there: Seen, text: Known) -> tuple[Any, float] | None:
    same = there.same(text)
    return (same, 1.0) if same is not None else there.near(text)


def _words(what: str, written: str, most: int) -> str:
    words = " ".join(written.split())
    if not words or len(words) > most or not words.isprintable():
        raise InvalidInput(f"The {what} is {written[:60]!r}; say it in 1 to {most} characters. Nothing was stored.")
    return words
