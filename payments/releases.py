"""Giving back what was set aside and can't be needed any more, batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.orm import Session, joinedload

from hits.arms import Arm
from hits.attempts import UNREADABLE
from hits.models import ArmAssignment, Assignment, Attempt, Example, Hit, HitBatch, Round
from hits.money import ZERO
from hits.states import AssignmentState, AttemptState, HitKind, HitState, Moderation, Verdict
from payments import budgets, reservations
from payments.fees import bonus_fee, for_masters, reward_fee
from payments.models import Payout, PayoutState, Reservation
from payments.rules import FOOLING_STREAK, IN_WORST_CASE, VERIFIED_FOOLING_EXAMPLE, Extras, ReaderTerms

#: So long a rejection can be undone, and the work be paid after all.
UNDO: Final = timedelta(days=30)


@dataclass
class _Open:
    """What can still come of a batch whose HITs are closed."""

    #: Handed in and not approved yet, or rejected so lately that it can be undone.
    unpaid: int = 0
    #: Examples that fooled the model and are not decided, or decided and not planned; texts without an answer yet.
    undecided: int = 0
    #: Examples whose votes are not all there; texts without an answer yet.
    unvalidated: int = 0
    #: Payouts by the batch's own terms that are not promised now and may be again.
    unpromised: int = 0
    most_assignments: int = 1

    @property
    def nothing(self) -> bool:
        return not (self.unpaid or self.undecided or self.unvalidated or self.unpromised)


def all_closed(session: Session) -> list[int]:
    """Return the batches whose HITs are all closed and that may have money set aside."""
    return [row.batch_id for row in _all_closed(session)]


def release_unused(session: Session, now: datetime, planned: Collection[int] | None = None) -> int:
    """Give back what the batches whose HITs are all closed can't need any more; return for how many. Flushes only.

    It is done once when the last HIT of a batch is closed, and again when nothing more can come of it. ``planned`` are
    those that were closed before it was looked up what they owe: some bonuses are owed by closed batches only, so that
    one which was closed meanwhile keeps its money until its bonuses are planned. None means all of them.
    """
    waiting = [row for row in _all_closed(session) if planned is None or row.batch_id in planned]
    if not waiting:
        return 0
    open_ = _open(session, [row.batch_id for row in waiting], now)
    due = [row.batch_id for row in waiting if open_[row.batch_id].nothing or not row.released]
    if not due:
        return 0
    budgets.locked_limits(session, now)
    return sum(_release_one(session, batch_id, open_[batch_id], now) for batch_id in due)


def _all_closed(session: Session) -> Sequence[Any]:
    return session.execute(
        select(Reservation.batch_id, Reservation.released)
        .where(Reservation.closed_at.is_(None))
        .where(~select(Hit.id).where(Hit.batch_id == Reservation.batch_id, Hit.state != HitState.CLOSED).exists())
        .order_by(Reservation.batch_id)
    ).all()


def _release_one(session: Session, batch_id: int, still: _Open, now: datetime) -> bool:
    reservation = reservations.locked(session, batch_id)
    if reservation is None:
        return False
    batch = session.get_one(HitBatch, batch_id)
    rewards, bonuses, validation = needed(batch, still, reservation)
    amounts = {
        "rewards": max(reservation.free - rewards, ZERO),
        "bonuses": max(reservation.bonuses - bonuses, ZERO),
        "validation": max(reservation.validation - validation, ZERO),
    }
    budgets.release(session, reservation, **amounts, now=now)
    if still.nothing and not reservation.promised:
        reservation.closed_at = now
        session.flush()
    return bool(sum(amounts.values()))


def needed(batch: HitBatch, still: _Open, reservation: Reservation) -> tuple[Decimal, Decimal, Decimal]:
    """Return what a batch can still cost in rewards, bonuses and validation, fees included."""
    on = batch.created_at.date()
    masters = for_masters(batch.requirements)
    reward = batch.reward + reward_fee(batch.reward, still.most_assignments, on=on, masters=masters)
    rewards = still.unpaid * reward
    extras, readers = Extras.of(batch), ReaderTerms.of(batch)
    amounts = (batch.bonus, extras.sure_bonus, readers.hit_bonus, readers.gold_bonus)
    each = sum((amount + bonus_fee(amount, on=on) for amount in amounts), ZERO)
    possible = still.undecided + still.unpromised
    if batch.kind is HitKind.VALIDATION:
        # Readers earn theirs by the work itself: what is not counted yet, or counts again once a rejection is undone.
        possible += still.unpaid
    bonuses = possible * each
    if extras.streak_bonus and possible:
        # A streak may be completed by any of them, so that all that is left for streaks stays.
        bonuses = reservation.bonuses
    validation = still.unvalidated * reservation.validation_each
    return rewards, bonuses, validation


def _open(session: Session, batch_ids: Iterable[int], now: datetime) -> Mapping[int, _Open]:
    found = {batch_id: _Open() for batch_id in batch_ids}
    for start in range(0, len(found), 500):
        part = list(found)[start : start + 500]
        for batch_id, most in _most_assignments(session, part):
            found[batch_id].most_assignments = most
        for batch_id, unpaid in _unpaid(session, part, now):
            found[batch_id].unpaid = unpaid
        for batch_id, undecided, unvalidated in _undecided(session, part):
            found[batch_id].undecided, found[batch_id].unvalidated = undecided or 0, unvalidated or 0
        for batch_id in _unanswered(session, part):
            found[batch_id].undecided += 1
            found[batch_id].unvalidated += 1
        for batch_id, unpromised in _unpromised(session, part):
            found[batch_id].unpromised = unpromised
    return found


def _most_assignments(session: Session, batch_ids: list[int]) -> Iterable[Any]:
    return session.execute(
        select(Hit.batch_id, func.max(Hit.max_assignments)).where(Hit.batch_id.in_(batch_ids)).group_by(Hit.batch_id)
    ).all()


def _unpaid(session: Session, batch_ids: list[int], now: datetime) -> Iterable[Any]:
    lately = and_(Assignment.state == AssignmentState.REJECTED, Assignment.rejected_at > now - UNDO)
    return session.execute(
        select(Hit.batch_id, func.count())
        .select_from(Assignment)
        .join(Hit, Hit.id == Assignment.hit_id)
        .where(Hit.batch_id.in_(batch_ids), or_(Assignment.state == AssignmentState.SUBMITTED, lately))
        .group_by(Hit.batch_id)
    ).all()


def _undecided(session: Session, batch_ids: list[int]) -> Iterable[Any]:
    under_way = or_(
        Example.verdict.in_((Verdict.PENDING, Verdict.FLAGGED)),
        and_(Example.fooled.is_(True), Example.verdict == Verdict.NOT_VALIDATED),
        Example.moderation == Moderation.OPEN,
    )
    planned = select(Payout.id).where(Payout.example_id == Example.id, Payout.rule == VERIFIED_FOOLING_EXAMPLE).exists()
    not_planned = and_(Example.verdict == Verdict.VALID_AND_MODEL_WRONG, Example.fooled.is_(True), ~planned)
    return session.execute(
        select(
            Hit.batch_id,
            func.sum(case((and_(Example.fooled.is_(True), or_(under_way, not_planned)), 1), else_=0)),
            func.sum(case((under_way, 1), else_=0)),
        )
        .select_from(Example)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Hit, Hit.id == Attempt.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .where(Hit.batch_id.in_(batch_ids), HitBatch.kind == HitKind.CREATION, Example.retracted_at.is_(None))
        .group_by(Hit.batch_id)
    ).all()


def _unanswered(session: Session, batch_ids: list[int]) -> Iterable[int]:
    """Return the batch of each text that was handed in unseen and that no model has answered: it may fool one yet."""
    counts = (AssignmentState.SUBMITTED, AssignmentState.APPROVED)
    of_writer = (Assignment.hit_id == Attempt.hit_id, Assignment.worker_id == Attempt.worker_id)
    rows = session.execute(
        select(Hit.batch_id, ArmAssignment)
        .select_from(Attempt)
        .join(Hit, Hit.id == Attempt.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .join(Round, Round.id == HitBatch.round_id)
        .join(ArmAssignment, (ArmAssignment.round_id == Round.id) & (ArmAssignment.worker_id == Attempt.worker_id))
        .options(joinedload(ArmAssignment.plan))
        .where(Hit.batch_id.in_(batch_ids), Round.frozen_at.is_(None))
        .where(Attempt.state.in_((AttemptState.ASKING, AttemptState.UNANSWERED)))
        .where(Attempt.failure.is_(None) | Attempt.failure.not_like(f"{UNREADABLE}%"))
        .where(select(Assignment.id).where(*of_writer, Assignment.state.in_(counts)).exists())
    ).all()
    return [
        batch_id
        for batch_id, drawn in rows
        if not next(Arm.of(one).model_in_loop for one in drawn.plan.arms if one["name"] == drawn.arm)
    ]


def _unpromised(session: Session, batch_ids: list[int]) -> Iterable[Any]:
    return session.execute(
        select(Payout.batch_id, func.count())
        .where(Payout.batch_id.in_(batch_ids), Payout.rule.in_(IN_WORST_CASE), Payout.rule != FOOLING_STREAK)
        .where(Payout.state == PayoutState.NO_BUDGET)
        .group_by(Payout.batch_id)
    ).all()
