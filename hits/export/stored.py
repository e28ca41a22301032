"""Examples with all that is known about them, read a page at a time: a few statements for each, however many rows."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.models import ArmAssignment, Assignment, Attempt, Context, Example, Round, Vote, Worker
from hits.models.people import is_unknown
from hits.states import AttemptState, Split, Verdict

PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class StoredVote:
    """A counted vote; ``validator`` is the person's pseudonym here, None where it is not known."""

    validator: str | None
    label: str | None
    flag_reason: str | None
    details: dict[str, str] | None
    correction: dict[str, str] | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class StoredExample:
    """An example as the tables hold it, people by the pseudonyms that they have here (None: not known).

    ``model`` and ``fooled`` are None of an imported example whose model's answer was not published.
    """

    id: int
    public_id: str
    round: int
    context: dict[str, str]
    answer: dict[str, str]
    goal_label: str
    final_label: str | None
    verdict: Verdict
    overridden: bool
    split: Split | None
    fooled: bool | None
    model: dict[str, Any] | None
    answer_f1: float | None
    attribution: dict[str, Any] | None
    goal_attribution: dict[str, Any] | None
    tries: int | None
    seconds: int | None
    why: str
    writer: str | None
    asked_at: datetime
    origin: str | None
    published: dict[str, Any] | None
    votes: tuple[StoredVote, ...]
    #: The conditions under which it was written (hits.arms); None in a round without arms.
    arm: str | None = None


@dataclass(frozen=True)
class Order:
    """The ids of a round's examples in the one order that does not depend on the database: by a hash of their names."""

    ids: Sequence[int]

    def pages(self, size: int = PAGE) -> Iterator[Sequence[int]]:
        """Yield the ids, some at a time."""
        for start in range(0, len(self.ids), size):
            yield self.ids[start : start + size]


def id_pages(session: Session, round_id: int, size: int = 5000) -> Iterator[list[tuple[int, str]]]:
    """Yield (id, name) of a round's examples that were not retracted, by id, some at a time.

    Each page is a statement of its own, so that the caller may end the transaction between two.
    """
    after = 0
    of_round = (
        select(Example.id, Attempt.public_id)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .where(Example.round_id == round_id, Example.retracted_at.is_(None))
        .order_by(Example.id)
        .limit(size)
    )
    while page := session.execute(of_round.where(Example.id > after)).all():
        yield [(row[0], row[1]) for row in page]
        after = page[-1][0]


def order_of(pairs: Iterator[list[tuple[int, str]]]) -> Order:
    """Return the examples in their one order; it takes some fifty bytes for each."""
    import numpy as np

    ids, first, second = array("q"), array("Q"), array("Q")
    for page in pairs:
        for example_id, public_id in page:
            digest = hashlib.sha256(public_id.encode()).digest()
            ids.append(example_id)
            first.append(int.from_bytes(digest[:8], "big"))
            second.append(int.from_bytes(digest[8:16], "big"))
    ranked = np.lexsort((np.array(second, dtype=np.uint64), np.array(first, dtype=np.uint64)))
    return Order(array("q", np.array(ids, dtype=np.int64)[ranked].tobytes()))


def stored_examples(session: Session, ids: Sequence[int]) -> list[StoredExample]:
    """Return the examples of these ids, in this order. Reads only, in three statements."""
    wanted = list(ids)
    rows = session.execute(
        select(
            Example.id,
            Attempt.public_id,
            Round.number,
            Round.origin,
            Context.fields,
            Example.goal_label,
            Example.final_label,
            Example.verdict,
            Example.overridden_at,
            Example.split,
            Example.fooled,
            Example.origin.label("example_origin"),
            Example.published,
            Worker.mturk_worker_id,
            Worker.pseudonym,
            Assignment.why,
            Attempt.hit_id,
            Attempt.worker_id,
            ArmAssignment.arm,
            *(getattr(Attempt, name) for name in _OF_ATTEMPT),
        )
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Round, Round.id == Example.round_id)
        .join(Context, Context.id == Example.context_id)
        .join(Worker, Worker.id == Example.writer_id)
        .join(Assignment, Assignment.id == Attempt.assignment_id)
        .outerjoin(
            ArmAssignment,
            (ArmAssignment.round_id == Example.round_id) & (ArmAssignment.worker_id == Example.writer_id),
        )
        .where(Example.id.in_(wanted))
    ).all()
    votes = _votes(session, wanted)
    later = _later_remarks(session, {row.hit_id for row in rows if not row.why and not row.origin})
    found = {row.id: _stored(row, votes[row.id], row.why or later.get((row.hit_id, row.worker_id), "")) for row in rows}
    return [found[one] for one in wanted]


_OF_ATTEMPT: Final = (
    "answer",
    "state",
    "try_number",
    "seconds",
    "asked_at",
    "model_id",
    "model_revision",
    "predicted_label",
    "probabilities",
    "predicted_answer",
    "confidence",
    "truncated",
    "characters_read",
    "policy",
    "members",
    "answer_f1",
    "attribution",
    "goal_attribution",
)


def _stored(row: Any, votes: list[StoredVote], why: str) -> StoredExample:
    answered = row.state is AttemptState.ANSWERED
    model = {
        "id": row.model_id,
        "revision": row.model_revision,
        "label": row.predicted_label,
        "probabilities": row.probabilities,
        "answer": row.predicted_answer,
        "confidence": row.confidence,
        "truncated": row.truncated,
        "characters_read": row.characters_read,
        "policy": row.policy,
        "members": row.members,
    }
    imported = row.example_origin is not None
    return StoredExample(
        id=row.id,
        public_id=row.public_id,
        round=row.number,
        context=row.fields,
        answer=row.answer,
        goal_label=row.goal_label,
        final_label=row.final_label,
        verdict=row.verdict,
        overridden=row.overridden_at is not None,
        split=row.split,
        fooled=row.fooled if answered else None,
        model=model if answered else None,
        answer_f1=row.answer_f1,
        attribution=row.attribution,
        goal_attribution=row.goal_attribution,
        tries=None if imported else row.try_number,
        seconds=None if imported else row.seconds,
        why=(row.published or {}).get("why", "") if imported else why,
        writer=None if is_unknown(row.mturk_worker_id) else row.pseudonym,
        asked_at=row.asked_at,
        origin=row.example_origin,
        published=row.published,
        votes=tuple(votes),
        arm=row.arm,
    )


def _votes(session: Session, ids: Sequence[int]) -> defaultdict[int, list[StoredVote]]:
    found: defaultdict[int, list[StoredVote]] = defaultdict(list)
    rows = session.execute(
        select(
            Vote.example_id,
            Worker.mturk_worker_id,
            Worker.pseudonym,
            Vote.label,
            Vote.flag_reason,
            Vote.details,
            Vote.correction,
            Vote.seconds,
        )
        .join(Worker, Worker.id == Vote.validator_id)
        .where(Vote.example_id.in_(ids), Vote.counted_at.is_not(None))
        .order_by(Vote.created_at, Vote.id)
    )
    for row in rows:
        validator = None if is_unknown(row.mturk_worker_id) else row.pseudonym
        found[row.example_id].append(
            StoredVote(validator, row.label, row.flag_reason, row.details, row.correction, row.seconds)
        )
    return found


def _later_remarks(session: Session, hit_ids: set[int]) -> dict[tuple[int, int], str]:
    """Return the writers' remarks by HIT and writer: a HIT that was returned may have been finished later."""
    rows = session.execute(
        select(Assignment.hit_id, Assignment.worker_id, Assignment.why)
        .where(Assignment.hit_id.in_(hit_ids), Assignment.why != "")
        .order_by(Assignment.id)
    )
    return {(row[0], row[1]): row[2] for row in rows}


#: What of an example a frozen round keeps, and its manifest hashes. A writer's remark is theirs: it goes with them when
#: they are erased. Nor is where the database put the row a part of the data.
HASHED: Final = tuple(field.name for field in fields(StoredExample) if field.name not in ("id", "why", "arm"))


def hashed(stored: StoredExample) -> dict[str, Any]:
    """Return what the manifest's hash is over. An arm is there only where there is one, as before there were any."""
    found = {name: getattr(stored, name) for name in HASHED}
    return found if stored.arm is None else found | {"arm": stored.arm}
