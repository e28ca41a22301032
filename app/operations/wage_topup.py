"""Pay what a batch's work fell short of its stated wage as bonuses, each assignment once and only upwards."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from hits.clock import Clock
from hits.errors import InvalidInput, NotFound
from hits.models import Assignment, Hit, HitBatch
from hits.money import ZERO, display
from hits.states import AssignmentState
from payments.fees import bonus_fee
from payments.models import Payout
from payments.obligations import owe
from payments.rules import WAGE_TOPUP, wage_topup
from qualification.wages import Wage, batch_wage

MOST_HOURLY = Decimal("1000.00")


@dataclass(frozen=True)
class TopUp:
    """What one assignment lacks, and the sentence that says so. ``seconds`` are those that count."""

    assignment_id: int
    mturk_assignment_id: str
    pseudonym: str
    seconds: int
    amount: Decimal
    reason: str


@dataclass(frozen=True)
class TopUpPlan:
    """What a top-up would pay; ``before`` counts assignments that were topped up earlier and stay as they are."""

    batch_id: int
    hourly: Decimal
    wage: Wage
    rows: tuple[TopUp, ...]
    fees: Decimal
    before: int
    not_approved: int

    @property
    def total(self) -> Decimal:
        """What workers would get, without the marketplace's fees."""
        return sum((row.amount for row in self.rows), ZERO)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON types; amounts are strings of dollars."""
        return {
            "batch": self.batch_id,
            "hourly": str(self.hourly),
            "stated": str(self.wage.stated),
            "median": _text(self.wage.median),
            "mean": _text(self.wage.mean),
            "left_open": self.wage.left_open,
            "topped_up_before": self.before,
            "not_approved_yet": self.not_approved,
            "total": str(self.total),
            "fees": str(self.fees),
            "rows": [
                {
                    "assignment": row.mturk_assignment_id,
                    "worker": row.pseudonym,
                    "seconds": row.seconds,
                    "amount": str(row.amount),
                }
                for row in self.rows
            ],
        }


def plan_topup(session: Session, clock: Clock, batch_id: int, *, hourly: Decimal | None = None) -> TopUpPlan:
    """Return what would bring a batch's approved work to its stated wage, or to ``hourly`` dollars. Reads only.

    Raises NotFound, and InvalidInput for a wage that is none.
    """
    plan = _plan(session, clock, batch_id, hourly)
    session.rollback()
    return plan


def pay_topup(
    session: Session, clock: Clock, batch_id: int, *, hourly: Decimal | None = None, by: str | None = None
) -> TopUpPlan:
    """Plan the missing pay as bonuses and return what was planned; `dynahit payments settle` pays them. Commits.

    An assignment that was topped up before is left out, so that doing it again owes nothing twice. Raises what
    plan_topup raises.
    """
    # Of two at once the second waits here and finds what the first has planned.
    session.execute(select(HitBatch.id).where(HitBatch.id == batch_id).with_for_update(key_share=True))
    plan = _plan(session, clock, batch_id, hourly)
    planned = []
    for row in plan.rows:
        assignment = session.get_one(Assignment, row.assignment_id)
        payout = owe(
            session,
            rule=WAGE_TOPUP,
            subject=f"assignment:{row.assignment_id}",
            round_id=assignment.hit.batch.round_id,
            worker_id=assignment.worker_id,
            assignment_id=row.assignment_id,
            amount=row.amount,
            reason=row.reason,
            now=clock.now(),
            requested_by=by,
        )
        if payout is not None:
            planned.append(row)
    session.commit()
    return TopUpPlan(plan.batch_id, plan.hourly, plan.wage, tuple(planned), plan.fees, plan.before, plan.not_approved)


def _plan(session: Session, clock: Clock, batch_id: int, hourly: Decimal | None) -> TopUpPlan:
    batch = session.get(HitBatch, batch_id)
    if batch is None:
        raise NotFound(f"There is no batch {batch_id}. `dynahit hits status` lists them.")
    if hourly is not None and not ZERO < hourly <= MOST_HOURLY:
        raise InvalidInput(f"{display(hourly)} an hour can't be paid; give from $0.01 to {display(MOST_HOURLY)}.")
    wage = batch_wage(session, batch)
    target = hourly if hourly is not None else wage.stated
    work = {
        row.id: row
        for row in session.scalars(
            select(Assignment)
            .join(Assignment.hit)
            .where(Hit.batch_id == batch_id)
            .options(selectinload(Assignment.worker))
        )
    }
    before = set(session.scalars(select(Payout.subject).where(Payout.rule == WAGE_TOPUP, Payout.batch_id == batch_id)))
    rows, not_approved = [], 0
    for one in wage.worked:
        bonus = wage_topup(one.counted, batch.reward, target)
        assignment = work[one.assignment_id]
        if bonus is None or assignment.state is AssignmentState.REJECTED or f"assignment:{one.assignment_id}" in before:
            continue
        if assignment.state is not AssignmentState.APPROVED:
            not_approved += 1
            continue
        rows.append(
            TopUp(
                one.assignment_id,
                assignment.mturk_assignment_id,
                assignment.worker.pseudonym,
                one.counted,
                bonus.amount,
                bonus.reason,
            )
        )
    today = clock.now().date()
    fees = sum((bonus_fee(row.amount, on=today) for row in rows), ZERO)
    return TopUpPlan(batch_id, target, wage, tuple(rows), fees, len(before), not_approved)


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)
