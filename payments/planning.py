"""Planning: one row for each bonus that is owed, rows that follow what they were owed for, promises within budgets.

When to commit is the caller's business; each page of planning holds the lock on the budgets until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import Select, and_, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.models import Assignment, Attempt, Example, Hit, HitBatch, Vote, Worker
from hits.states import COLLECTED, AssignmentState, Moderation, Verdict
from payments import budgets, reservations
from payments.budgets import Limits
from payments.due import (
    PAYABLE,
    DueBonus,
    agreeing_readers,
    cleared,
    completed_streaks,
    due_bonuses,
    is_cleared,
    streak_subject,
    verified,
)
from payments.errors import OverBudget
from payments.fees import bonus_fee
from payments.ledger import record_promise, record_withdrawal
from payments.models import NOT_PROMISED, Payout, PayoutState
from payments.payouts import change, new_reference, new_token
from payments.rules import (
    COMPENSATION,
    DIFFICULT_EXAMPLE,
    FOOLING_STREAK,
    IN_WORST_CASE,
    VERIFIED_FOOLING_EXAMPLE,
    bonus_owed,
    difficulty_owed,
)

#: So many rows are planned in one transaction, so that nobody waits long for the budgets.
PAGE: Final = 200
#: States that are as good as planned for what a row is owed for.
_GOES_ON: Final = frozenset({PayoutState.PLANNED, PayoutState.APPROVED, PayoutState.FAILED})
_WAITING: Final = (PayoutState.NOT_SUBMITTED, PayoutState.NO_BUDGET, PayoutState.NEEDS_COMPENSATION)
_CAUSE_MAX_CHARACTERS: Final = 500
_REASON_MAX_CHARACTERS: Final = 500


def plan_bonuses(session: Session, now: datetime, due: Sequence[DueBonus] | None = None) -> list[Payout]:
    """Plan bonuses that are owed, all or those that are given, each once, and promise them; return the new rows.

    Two planners at once are safe: one waits for the other, and finds the rows there. Flushes, never commits.
    """
    due = due_bonuses(session) if due is None else due
    limits = budgets.locked_limits(session, now)
    return [payout for one in due if (payout := _plan(session, limits, one, now)) is not None]


def _plan(session: Session, limits: Limits, due: DueBonus, now: datetime) -> Payout | None:
    return plan_one(
        session,
        limits,
        rule=due.bonus.rule,
        subject=due.subject,
        example_id=None if due.example is None else due.example.id,
        assignment=due.assignment,
        batch=due.assignment.hit.batch,
        worker_id=due.assignment.worker_id,
        amount=due.bonus.amount,
        reason=due.bonus.reason,
        requested_by=None,
        now=now,
    )


def plan_one(
    session: Session,
    limits: Limits,
    *,
    rule: str,
    subject: str,
    example_id: int | None,
    assignment: Assignment | None,
    batch: HitBatch,
    worker_id: int,
    amount: Decimal,
    reason: str,
    requested_by: str | None,
    now: datetime,
) -> Payout | None:
    """Store one payout with its token and promise it; None if it is there already, and for somebody who was erased.

    Flushes, never commits.

    Without room in a budget or cap the row waits as ``no_budget``, promised to nobody.
    """
    if session.scalar(select(Worker.erased_at).where(Worker.id == worker_id)) is not None:
        # Nobody knows any more whom to pay.
        return None
    reference = new_reference()
    payout = Payout(
        reference=reference,
        rule=rule,
        subject=subject,
        example_id=example_id,
        round_id=batch.round_id,
        worker_id=worker_id,
        assignment_id=None if assignment is None else assignment.id,
        batch_id=batch.id,
        endpoint=batch.endpoint,
        amount=amount,
        reason=f"{reason[: _REASON_MAX_CHARACTERS - len(reference) - 1].rstrip()} {reference}",
        request_token=new_token(),
        state=PayoutState.NO_BUDGET,
        promise_number=0,
        requested_by=requested_by,
        planned_at=now,
    )
    try:
        with session.begin_nested():
            session.add(payout)
    except IntegrityError:
        there = select(Payout.id).where(Payout.rule == rule, Payout.subject == subject)
        if session.scalar(there) is None:
            raise
        # Another planner was faster; its row stands, with its promise.
        return None
    _promise(session, limits, payout, _by_assignment(payout, assignment), now)
    return payout


def _by_assignment(payout: Payout, assignment: Assignment | None) -> PayoutState:
    """Return what a payout waits for, going by the assignment that carries it."""
    if assignment is None:
        return PayoutState.NEEDS_COMPENSATION
    if payout.rule == COMPENSATION:
        # The marketplace pays bonuses on whatever was handed in, rejected work too.
        handed_in = assignment.state in COLLECTED
        return PayoutState.PLANNED if handed_in else PayoutState.NEEDS_COMPENSATION
    if assignment.state in PAYABLE:
        return PayoutState.PLANNED
    return PayoutState.NOT_DUE if assignment.state is AssignmentState.REJECTED else PayoutState.NOT_SUBMITTED


def _promise(session: Session, limits: Limits, payout: Payout, state: PayoutState, now: datetime) -> bool:
    """Keep the money and book the promise; tell whether budgets and caps had room. The row is this process's own."""
    cost = payout.amount + bonus_fee(payout.amount, on=now.date())
    try:
        budgets.keep_for(session, limits, payout, cost, in_worst_case=payout.rule in IN_WORST_CASE, now=now)
    except OverBudget as error:
        payout.state, payout.cause = PayoutState.NO_BUDGET, str(error)[:_CAUSE_MAX_CHARACTERS]
        session.flush()
        return False
    payout.state, payout.cause = state, None
    payout.promised_at = now
    payout.promise_number += 1
    session.flush()
    record_promise(session, payout, now)
    return True


def withdraw(session: Session, payout: Payout, now: datetime, cause: str) -> bool:
    """Take back a promise that is not with the marketplace; tell whether there was one. Flushes, never commits."""
    if payout.state not in (*_GOES_ON, PayoutState.HELD, *_WAITING):
        return False
    promised = payout.state is not PayoutState.NO_BUDGET
    payout.state, payout.cause = PayoutState.NOT_DUE, cause[:_CAUSE_MAX_CHARACTERS]
    session.flush()
    if promised:
        _withdraw(session, payout, now)
    return True


def _withdraw(session: Session, payout: Payout, now: datetime) -> None:
    reservation = reservations.locked(session, payout.batch_id)
    if reservation is not None:
        reservations.give_back(reservation, payout)
    # An approval was for the promise that is withdrawn.
    payout.approved_by = payout.approved_at = None
    session.flush()
    record_withdrawal(session, payout, now)


def follow(session: Session, now: datetime) -> int:
    """Let unpaid rows follow what they were owed for, and return how many changed. Flushes, never commits.

    A new flag holds a row, a dismissed one frees it, an example that no longer earns the bonus or work that was
    rejected withdraws the promise, work that comes in and room in a budget let it go on. A promise stays where only
    the bad faith of a reader took the verdict away.
    """
    rows = session.scalars(_to_follow()).all()
    if not rows:
        return 0
    limits = budgets.locked_limits(session, now)
    return sum(_follow_one(session, limits, payout, now) for payout in rows)


def _to_follow() -> Select[Payout]:
    earns = Payout.example_id.in_(verified().where(cleared()).with_only_columns(Example.id))
    payable = Payout.assignment_id.in_(select(Assignment.id).where(Assignment.state.in_(PAYABLE)))
    by_example = Payout.example_id.is_not(None)
    by_assignment = and_(Payout.example_id.is_(None), Payout.rule != COMPENSATION)
    going_on = Payout.state.in_((PayoutState.PLANNED, PayoutState.APPROVED, PayoutState.FAILED))
    off = Payout.state == PayoutState.NOT_DUE
    return (
        select(Payout)
        .where(
            or_(
                Payout.state.in_((PayoutState.HELD, PayoutState.NO_BUDGET, PayoutState.NOT_SUBMITTED)),
                and_(going_on, or_(and_(by_example, ~earns), and_(Payout.rule != COMPENSATION, ~payable))),
                and_(going_on, Payout.rule == FOOLING_STREAK),
                and_(off, by_example, earns, payable),
                and_(off, by_assignment, payable, Payout.cause.is_(None)),
            )
        )
        .order_by(Payout.id)
    )


def _follow_one(session: Session, limits: Limits, payout: Payout, now: datetime) -> bool:
    wanted, before = wanted_state(session, payout), payout.state
    if wanted is before or (wanted is PayoutState.PLANNED and before in _GOES_ON):
        return False
    if before in NOT_PROMISED and wanted in NOT_PROMISED:
        return False
    # The state is part of the condition: a row that another process has claimed meanwhile is left alone.
    if not change(session, payout.id, {before}, state=before):
        return False
    session.refresh(payout)
    if before in NOT_PROMISED:
        return _promise(session, limits, payout, wanted, now)
    if wanted is PayoutState.NOT_DUE:
        payout.state, payout.cause = wanted, None
        _withdraw(session, payout, now)
        return True
    if wanted is PayoutState.PLANNED and payout.approved_by is not None:
        wanted = PayoutState.APPROVED
    payout.state, payout.cause = wanted, None
    session.flush()
    return True


def wanted_state(session: Session, payout: Payout) -> PayoutState:
    """Return the state that a row should have, going by what it is owed for. Changes nothing."""
    example = payout.example
    if example is None:
        return _by_assignment(payout, payout.assignment)
    if example.verdict is Verdict.FLAGGED or example.moderation is Moderation.OPEN:
        # A promise that was withdrawn or not given is given only once the example is clear.
        return PayoutState.NOT_DUE if payout.state in NOT_PROMISED else PayoutState.HELD
    if payout.assignment is None or payout.assignment.state not in PAYABLE or not is_cleared(example):
        return PayoutState.NOT_DUE
    earned = _is_earned(session, payout, example) or _is_kept(session, payout, example)
    return PayoutState.PLANNED if earned else PayoutState.NOT_DUE


def _is_kept(session: Session, payout: Payout, example: Example) -> bool:
    """Tell whether a promise stays although it is not earned any more: readers' votes were withdrawn since.

    Their bad faith is not the writer's. What the requester decides about the example stands above it.
    """
    if payout.state in NOT_PROMISED or example.overridden_at is not None:
        return False
    withdrawn = select(Vote.id).where(Vote.counted_before <= payout.promised_at)
    if payout.rule == FOOLING_STREAK:
        # Any example of the streak.
        of_writer = (Example.writer_id == payout.worker_id, Hit.batch_id == payout.batch_id)
        withdrawn = withdrawn.join(Vote.example).join(Example.attempt).join(Attempt.hit).where(*of_writer)
    else:
        withdrawn = withdrawn.where(Vote.example_id == example.id)
    return session.scalar(withdrawn.limit(1)) is not None


def _is_earned(session: Session, payout: Payout, example: Example) -> bool:
    batch = session.get_one(HitBatch, payout.batch_id)
    if payout.rule == VERIFIED_FOOLING_EXAMPLE:
        return bonus_owed(example, batch, readers=agreeing_readers(session, example)) is not None
    if payout.rule == DIFFICULT_EXAMPLE:
        return difficulty_owed(example, batch) is not None
    if payout.rule == FOOLING_STREAK:
        return payout.subject in {
            streak_subject(batch.id, payout.worker_id, number)
            for number, _, _ in completed_streaks(session, batch, payout.worker_id)
        }
    # Owed by another rule for the work on this example: its assignment decides, and the rule withdraws it.
    return True
