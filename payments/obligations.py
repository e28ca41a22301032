"""Owing people money for any reason: the one way by which other parts of dynahit plan a payout."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from hits.models import Assignment, Hit
from hits.money import ZERO, display, usd
from hits.states import AssignmentState
from payments import budgets, planning
from payments.errors import InvalidObligation
from payments.models import Payout
from payments.rules import COMPENSATION, compensation

_RULE: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SUBJECT: Final = re.compile(r"[a-z][a-z0-9_:.-]{0,79}")
#: The reference and a space still fit behind it.
_LONGEST_REASON: Final = 480
#: Of reward and of bonus.
_MOST: Final = Decimal("10000.00")


def owe(
    session: Session,
    *,
    rule: str,
    subject: str,
    round_id: int | None,
    worker_id: int,
    assignment_id: int,
    amount: Decimal,
    reason: str,
    now: datetime,
    requested_by: str | None = None,
) -> Payout | None:
    """Plan a bonus on an assignment, once for each rule and subject; return the new row, None if it is there already.

    ``reason`` is the sentence that worker and finance read; the reference is put behind it. ``round_id`` may be left
    None: the assignment's batch knows its round. The bonus is paid once the assignment is submitted; work that was
    rejected earns none (None), except compensation. Without room in a budget or cap the row waits as ``no_budget``.
    ``requested_by`` names the member of staff who asked, who can't approve it. Raises InvalidObligation. Flushes, never
    commits.
    """
    amount = _checked(rule, subject, amount, reason)
    if session.scalar(select(Payout.id).where(Payout.rule == rule, Payout.subject == subject)) is not None:
        return None
    assignment = session.get(Assignment, assignment_id)
    if assignment is None or assignment.worker_id != worker_id:
        raise InvalidObligation(
            f"Assignment id {assignment_id} is not one of this worker's, so that {rule} can't be paid on it."
        )
    batch = session.get_one(Hit, assignment.hit_id).batch
    if round_id is not None and round_id != batch.round_id:
        raise InvalidObligation(f"Assignment id {assignment_id} belongs to round id {batch.round_id}, not {round_id}.")
    if assignment.state is AssignmentState.REJECTED and rule != COMPENSATION:
        return None
    return planning.plan_one(
        session,
        budgets.locked_limits(session, now),
        rule=rule,
        subject=subject,
        example_id=None,
        assignment=assignment,
        batch=batch,
        worker_id=worker_id,
        amount=amount,
        reason=reason.strip(),
        requested_by=requested_by,
        now=now,
    )


def owe_compensation(
    session: Session,
    *,
    worker_id: int,
    hit: Hit,
    assignment: Assignment | None,
    amount: Decimal,
    cause: str,
    now: datetime,
    requested_by: str,
) -> Payout | None:
    """Owe somebody who could not hand in work through our fault; None if that is owed for this HIT already.

    ``assignment`` is None for somebody whose page was never opened here. Once for each worker and HIT, however the work
    is named and however often it was accepted. Who handed the work in after all gets a bonus, everybody else a HIT of
    their own. Raises InvalidObligation.
    """
    bonus = compensation(usd(amount), cause)
    subject = f"hit:{hit.id}:worker:{worker_id}"
    _checked(bonus.rule, subject, bonus.amount, bonus.reason)
    # Once it was owed by assignment, or by batch where there was none.
    earlier = select(Payout.id).where(
        Payout.rule == bonus.rule,
        Payout.worker_id == worker_id,
        or_(
            Payout.subject.in_((subject, f"batch:{hit.batch_id}:worker:{worker_id}")),
            Payout.assignment_id.in_(select(Assignment.id).where(Assignment.hit_id == hit.id)),
        ),
    )
    if session.scalar(earlier.limit(1)) is not None:
        return None
    return planning.plan_one(
        session,
        budgets.locked_limits(session, now),
        rule=bonus.rule,
        subject=subject,
        example_id=None,
        assignment=assignment,
        batch=hit.batch,
        worker_id=worker_id,
        amount=bonus.amount,
        reason=bonus.reason,
        requested_by=requested_by,
        now=now,
    )


def withdraw(session: Session, *, rule: str, subject: str, now: datetime, cause: str) -> bool:
    """Take back what is owed by a rule for a subject and not paid yet; tell whether there was something to take back.

    ``cause`` says why, and keeps the row from being promised again. Flushes, never commits.
    """
    payout = session.scalar(
        select(Payout)
        .where(Payout.rule == rule, Payout.subject == subject)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return payout is not None and planning.withdraw(session, payout, now, cause)


def _checked(rule: str, subject: str, amount: Decimal, reason: str) -> Decimal:
    amount = usd(amount)
    if amount <= ZERO or amount > _MOST:
        raise InvalidObligation(
            f"A payout of {display(amount)} can't be owed; it must be from $0.01 to {display(_MOST)}."
        )
    if not _RULE.fullmatch(rule) or not _SUBJECT.fullmatch(subject):
        raise InvalidObligation(
            f"{rule!r} for {subject!r} is no rule and subject, such as wage_topup for assignment:7."
        )
    if not 1 <= len(reason.strip()) <= _LONGEST_REASON:
        raise InvalidObligation(
            f"The reason has {len(reason.strip())} characters; 1 to {_LONGEST_REASON} are possible. Say what it is for."
        )
    return amount
