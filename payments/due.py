"""What the rules owe and nobody has planned yet, found by whole pages. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased, contains_eager, selectinload

from hits.models import Assignment, Attempt, Example, GoldItem, Hit, HitBatch, Lease, Vote, Worker
from hits.money import ZERO
from hits.states import AssignmentState, HitKind, HitState, Moderation, Verdict
from payments.models import Payout
from payments.rules import (
    DIFFICULT_EXAMPLE,
    FOOLING_STREAK,
    GOLD_ACCURACY,
    VALIDATION_BATCH,
    VERIFIED_FOOLING_EXAMPLE,
    Bonus,
    Extras,
    ReaderTerms,
    bonus_owed,
    difficulty_owed,
    gold_bonus,
    streak_owed,
    streaks_completed,
    validation_bonus,
)

#: The base work of these was taken. Rejected work earns no bonus.
PAYABLE: Final = (AssignmentState.SUBMITTED, AssignmentState.APPROVED)
_ROWS_AT_ONCE: Final = 200
_COLLECTED: Final = (*PAYABLE, AssignmentState.REJECTED)


@dataclass(frozen=True)
class DueBonus:
    """A bonus that is owed and the assignment that it can be attached to; ``example`` is None for a reader's."""

    example: Example | None
    assignment: Assignment
    bonus: Bonus
    #: With the rule, what it is owed for: once for each.
    subject: str


#: Some of what a source finds, and where its next page begins; None behind its last one.
_Page = tuple[list[DueBonus], int | None]


def due_pages(session: Session, size: int) -> Iterator[list[DueBonus]]:
    """Yield the bonuses that are owed and not planned yet: for examples, streaks, then readers'; at most ``size`` each.

    Owed to writers: the model was fooled, the readers agree with the writer's label, nothing is under moderation, and
    the writer's assignment was submitted and not rejected. Readers are owed by what their votes were counted for. Each
    page goes on behind the one before, so that what was planned or earns nothing is not looked through again.
    """
    for source in (_verified_due, _difficult_due, _streaks_due, _judged_hits_due, _gold_due):
        after: int | None = 0
        while after is not None:
            found, after = source(session, size, after)
            if found:
                yield found


def due_bonuses(session: Session, *, limit: int | None = None) -> list[DueBonus]:
    """Return the bonuses that are owed and not planned yet, in the order of due_pages; at most ``limit``."""
    return list(islice(chain.from_iterable(due_pages(session, limit or _ROWS_AT_ONCE)), limit))


def _verified_due(session: Session, size: int, after: int) -> _Page:
    statement = _payable(VERIFIED_FOOLING_EXAMPLE, _readers()).where(HitBatch.bonus > ZERO, Example.id > after)
    rows = session.execute(statement.limit(size)).all()
    found = []
    for example, assignment, readers in rows:
        bonus = bonus_owed(example, assignment.hit.batch, readers=readers)
        if bonus is not None:
            found.append(DueBonus(example, assignment, bonus, subject_of(example)))
    return found, rows[-1][0].id if len(rows) == size else None


def _difficult_due(session: Session, size: int, after: int) -> _Page:
    asked = HitBatch.extras["sure_percent"].as_integer()
    rows = session.execute(
        _payable(DIFFICULT_EXAMPLE)
        .where(HitBatch.extras.is_not(None), asked > 0, Example.id > after)
        .where(or_(Attempt.confidence.is_(None), Attempt.confidence * 1000 + 1 >= asked * 10))
        .limit(size)
    ).all()
    found = []
    for example, assignment in rows:
        bonus = difficulty_owed(example, assignment.hit.batch)
        if bonus is not None:
            found.append(DueBonus(example, assignment, bonus, subject_of(example)))
    return found, rows[-1][0].id if len(rows) == size else None


def _streaks_due(session: Session, size: int, after: int) -> _Page:
    """All of one batch."""
    batch = session.scalar(
        select(HitBatch)
        .where(HitBatch.kind == HitKind.CREATION, HitBatch.extras.is_not(None), HitBatch.id > after)
        .where(HitBatch.extras["streak_length"].as_integer() > 0)
        .order_by(HitBatch.id)
        .limit(1)
    )
    if batch is None:
        return [], None
    found: list[DueBonus] = []
    for worker_id in _writers_with_more(session, batch):
        planned = _planned_streaks(session, batch, worker_id)
        for number, assignment, example in completed_streaks(session, batch, worker_id):
            bonus = streak_owed(batch, number)
            subject = streak_subject(batch.id, worker_id, number)
            if bonus is not None and subject not in planned:
                found.append(DueBonus(example, assignment, bonus, subject))
    return found, batch.id


def _judged_hits_due(session: Session, size: int, after: int) -> _Page:
    """A HIT of which items were left unjudged earns none, also one that a person has approved after all.

    An item that was stopped by a flag, or taken out, is not asked for.
    """
    judged = (
        select(func.count())
        .select_from(Vote)
        .where(Vote.assignment_id == Assignment.id, Vote.counted_at.is_not(None))
        .correlate(Assignment)
        .scalar_subquery()
    )
    of_item = or_(Vote.example_id == Lease.example_id, Vote.gold_item_id == Lease.gold_item_id)
    asked_for = and_(Example.moderation.is_(None), Example.verdict != Verdict.FLAGGED, Example.retracted_at.is_(None))
    unjudged = (
        select(Lease.id)
        .outerjoin(Example, Example.id == Lease.example_id)
        .where(Lease.assignment_id == Assignment.id, or_(Lease.example_id.is_(None), asked_for))
        .where(~exists().where(Vote.validator_id == Lease.validator_id, of_item).correlate(Lease))
        .correlate(Assignment)
    )
    planned = exists().where(Payout.assignment_id == Assignment.id, Payout.rule == VALIDATION_BATCH)
    rows = session.execute(
        select(Assignment, judged)
        .join(Hit, Hit.id == Assignment.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .join(Worker, Worker.id == Assignment.worker_id)
        .where(HitBatch.kind == HitKind.VALIDATION, HitBatch.extras["hit_bonus"].as_string().is_not(None))
        .where(Assignment.state.in_(PAYABLE), Assignment.review_reason.is_(None), Worker.erased_at.is_(None))
        .where(judged > 0, ~unjudged.exists(), ~planned, Assignment.id > after)
        .options(contains_eager(Assignment.hit).contains_eager(Hit.batch), contains_eager(Assignment.worker))
        .order_by(Assignment.id)
        .limit(size)
    ).all()
    found = []
    for assignment, count in rows:
        bonus = validation_bonus(count, ReaderTerms.of(assignment.hit.batch).hit_bonus)
        if bonus is not None:
            found.append(DueBonus(None, assignment, bonus, f"validation:{assignment.id}"))
    return found, rows[-1][0].id if len(rows) == size else None


def _gold_due(session: Session, size: int, after: int) -> _Page:
    """All of one batch: once for each reader, when nothing of it is open, on the reader's last assignment of it."""
    open_hit = exists().where(Hit.batch_id == HitBatch.id, Hit.state != HitState.CLOSED).correlate(HitBatch)
    batch = session.scalar(
        select(HitBatch)
        .where(HitBatch.kind == HitKind.VALIDATION, HitBatch.extras["gold_percent"].as_integer() > 0)
        .where(HitBatch.id > after, ~open_hit)
        .order_by(HitBatch.id)
        .limit(1)
    )
    if batch is None:
        return [], None
    planned = exists().where(
        Payout.rule == GOLD_ACCURACY, Payout.batch_id == HitBatch.id, Payout.worker_id == Vote.validator_id
    )
    terms = ReaderTerms.of(batch)
    found = []
    rows = session.execute(gold_judged().where(HitBatch.id == batch.id, ~planned)).all()
    for _, validator_id, assignment_id, right, gold in rows:
        bonus = gold_bonus(right, gold, terms.gold_percent, terms.gold_bonus)
        if bonus is not None:
            subject = f"gold:{batch.round_id}:{validator_id}:{batch.id}"
            found.append(DueBonus(None, session.get_one(Assignment, assignment_id), bonus, subject))
    return found, batch.id


def gold_judged() -> Select[int, int, int, int, int]:
    """Return the statement of what each reader made of the gold items of a batch that pays for them.

    Columns: batch, reader, the reader's last assignment in it, items judged rightly, items judged. Counted are votes of
    work that was not rejected, of nobody who was erased.
    """
    return (
        select(
            HitBatch.id,
            Vote.validator_id,
            func.max(Assignment.id),
            func.count().filter(Vote.label == GoldItem.label),
            func.count(),
        )
        .select_from(Vote)
        .join(GoldItem, GoldItem.id == Vote.gold_item_id)
        .join(Assignment, Assignment.id == Vote.assignment_id)
        .join(Hit, Hit.id == Assignment.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .join(Worker, Worker.id == Vote.validator_id)
        .where(HitBatch.kind == HitKind.VALIDATION, HitBatch.extras["gold_percent"].as_integer() > 0)
        .where(Vote.counted_at.is_not(None), Assignment.worker_id == Vote.validator_id)
        .where(Assignment.state.in_(PAYABLE), Worker.erased_at.is_(None))
        .group_by(HitBatch.id, Vote.validator_id)
        .order_by(HitBatch.id, Vote.validator_id)
    )


def subject_of(example: Example) -> str:
    """Return what a bonus for one example is owed for."""
    return f"example:{example.id}"


def streak_subject(batch_id: int, worker_id: int, number: int) -> str:
    """Return what a writer's ``number``-th streak in a batch is owed as."""
    return f"streak:{batch_id}:{worker_id}:{number}"


def verified() -> Select[Any]:
    """Return the statement of the examples that fooled the model and were given the writer's label."""
    return select(Example).where(
        Example.fooled.is_(True),
        Example.verdict == Verdict.VALID_AND_MODEL_WRONG,
        Example.final_label == Example.goal_label,
    )


def cleared() -> ColumnElement[bool]:
    """Return the condition that nothing of an example is under moderation."""
    return or_(Example.moderation.is_(None), Example.moderation == Moderation.DISMISSED)


def is_cleared(example: Example) -> bool:
    """Tell whether nothing of an example is under moderation."""
    return example.moderation not in (Moderation.OPEN, Moderation.UPHELD)


def agreeing_readers(session: Session, example: Example) -> int:
    """Return how many counted votes gave the writer's label."""
    counted = (Vote.example_id == example.id, Vote.counted_at.is_not(None), Vote.label == example.goal_label)
    return session.scalar(select(func.count()).select_from(Vote).where(*counted)) or 0


def _can_be_paid() -> ColumnElement[bool]:
    """Return the condition that the writer was not erased: nobody knows any more whom to pay."""
    return Example.writer_id.not_in(select(Worker.id).where(Worker.erased_at.is_not(None)))


def _readers() -> Any:
    return (
        select(func.count())
        .select_from(Vote)
        .where(Vote.example_id == Example.id, Vote.counted_at.is_not(None), Vote.label == Example.goal_label)
        .correlate(Example)
        .scalar_subquery()
    )


def _payable(rule: str, *more: Any) -> Select[Any]:
    """Return the statement of verified, cleared examples whose bonus by ``rule`` nobody has planned.

    Each with the writer's assignment of that HIT which was sent in and not rejected: a writer may have returned the
    HIT after the attempt and finished it in a second assignment.
    """
    sent_in = aliased(Assignment)
    mine = (
        select(func.min(sent_in.id))
        .where(sent_in.hit_id == Attempt.hit_id, sent_in.worker_id == Attempt.worker_id, sent_in.state.in_(PAYABLE))
        .correlate(Attempt)
    )
    its_own = mine.where(sent_in.id == Attempt.assignment_id)
    assignment_id = func.coalesce(its_own.scalar_subquery(), mine.scalar_subquery())
    planned = exists().where(Payout.example_id == Example.id, Payout.rule == rule)
    return (
        verified()
        .with_only_columns(Example, Assignment, *more)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Assignment, Assignment.id == assignment_id)
        .join(Hit, Hit.id == Assignment.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .where(cleared(), ~planned, _can_be_paid())
        .options(
            contains_eager(Example.attempt),
            selectinload(Example.round),
            contains_eager(Assignment.hit).contains_eager(Hit.batch),
            selectinload(Assignment.worker),
        )
        .order_by(Example.id)
    )


def _writers_with_more(session: Session, batch: HitBatch) -> Sequence[int]:
    """Return the writers with enough verified examples in a batch for one more streak than they were given."""
    length = Extras.of(batch).streak_length
    given = (
        select(func.count())
        .select_from(Payout)
        .where(Payout.batch_id == batch.id, Payout.worker_id == Example.writer_id, Payout.rule == FOOLING_STREAK)
        .correlate(Example)
        .scalar_subquery()
    )
    statement = (
        verified()
        .with_only_columns(Example.writer_id)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Hit, Hit.id == Attempt.hit_id)
        .where(Hit.batch_id == batch.id, _can_be_paid())
        .group_by(Example.writer_id)
        .having(func.count() >= length * (given + 1))
        .order_by(Example.writer_id)
    )
    return session.scalars(statement).all()


def _planned_streaks(session: Session, batch: HitBatch, worker_id: int) -> set[str]:
    mine = (Payout.batch_id == batch.id, Payout.worker_id == worker_id, Payout.rule == FOOLING_STREAK)
    return set(session.scalars(select(Payout.subject).where(*mine)))


def completed_streaks(session: Session, batch: HitBatch, worker_id: int) -> Iterator[tuple[int, Assignment, Example]]:
    """Yield each streak of a writer in a batch with its number, the assignment and the example that completed it."""
    rows = session.execute(
        select(Assignment, Example)
        .join(Hit, Hit.id == Assignment.hit_id)
        .outerjoin(Attempt, and_(Attempt.hit_id == Assignment.hit_id, Attempt.worker_id == Assignment.worker_id))
        .outerjoin(Example, and_(Example.attempt_id == Attempt.id, Example.fooled.is_(True)))
        .where(Hit.batch_id == batch.id, Assignment.worker_id == worker_id, Assignment.state.in_(_COLLECTED))
        .order_by(Assignment.submitted_at, Assignment.id, Example.id)
    ).all()
    hits: dict[int, tuple[Assignment, list[Example]]] = {}
    for assignment, example in rows:
        hits.setdefault(assignment.id, (assignment, []))[1].extend([example] if example is not None else [])
    order = list(hits.values())
    outcomes = [_outcome(assignment, examples) for assignment, examples in order]
    for number, place in enumerate(streaks_completed(outcomes, Extras.of(batch).streak_length), start=1):
        assignment, examples = order[place]
        yield number, assignment, next(one for one in examples if _is_verified(one))


def _outcome(assignment: Assignment, examples: Sequence[Example]) -> bool | None:
    if assignment.state is AssignmentState.REJECTED:
        return False
    if any(_is_verified(one) for one in examples):
        return True
    undecided = (Verdict.NOT_VALIDATED, Verdict.PENDING, Verdict.FLAGGED)
    return None if any(one.verdict in undecided or one.moderation is Moderation.OPEN for one in examples) else False


def _is_verified(example: Example) -> bool:
    return (
        example.fooled
        and example.verdict is Verdict.VALID_AND_MODEL_WRONG
        and example.final_label == example.goal_label
        and is_cleared(example)
    )
