"""Pay people whom no bonus can reach: owe it, then offer each a HIT that nobody else can take."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.create_hits import create_hits, new_reference, new_token, unfinished_batches
from app.settings import Settings
from hits.clock import Clock
from hits.errors import NotFound, Refused
from hits.models import Assignment, Hit, HitBatch, Worker
from hits.money import ZERO
from hits.mturk.client import MTurk, Requirement
from hits.mturk.errors import MTurkError, MTurkUnavailable
from hits.states import COLLECTED, HitKind, HitState
from payments import compensations, obligations, rules
from payments.errors import OverBudget
from payments.fees import bonus_fee
from payments.models import Payout, PayoutState
from qualification.requirements import as_json

LIFETIME: Final = timedelta(days=30)
TITLE: Final = "Payment that we owe you"


@dataclass(frozen=True)
class CompensationPlan:
    """What owing somebody for work that could not be handed in would do."""

    worker: str
    round: str
    amount: Decimal
    fee: Decimal
    reason: str
    by_bonus: bool


@dataclass
class Compensated:
    """What offering the HITs did; ``findings`` are payouts that could not be offered one, each with its cause."""

    offered: int = 0
    findings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Whom:
    worker: Worker
    hit: Hit
    assignment: Assignment | None

    @property
    def batch(self) -> HitBatch:
        return self.hit.batch


def plan_compensation(
    session: Session, clock: Clock, who: str, amount: Decimal | None, cause: str, *, hit_id: str | None = None
) -> CompensationPlan:
    """Return what owe_compensation would do. Changes nothing. Raises as it."""
    whom = _whom(session, who, hit_id)
    dollars = whom.batch.reward if amount is None else amount
    bonus = rules.compensation(dollars, cause)
    plan = CompensationPlan(
        worker=whom.worker.pseudonym,
        round=f"{whom.batch.round.task_code}/{whom.batch.round.number}",
        amount=bonus.amount,
        fee=bonus_fee(bonus.amount, on=clock.now().date()),
        reason=bonus.reason,
        by_bonus=whom.assignment is not None and whom.assignment.state in COLLECTED,
    )
    session.rollback()
    return plan


def owe_compensation(
    session: Session,
    clock: Clock,
    who: str,
    amount: Decimal | None,
    cause: str,
    *,
    by: str,
    hit_id: str | None = None,
) -> Payout:
    """Owe somebody for work that could not be handed in through our fault, once, and keep who said so.

    ``who`` is the marketplace's id of the assignment, or with ``hit_id`` a pseudonym or worker id. Without an amount it
    is the reward of the HIT. Raises NotFound, Refused when it is owed already, InvalidObligation.
    """
    whom = _whom(session, who, hit_id)
    payout = obligations.owe_compensation(
        session,
        worker_id=whom.worker.id,
        hit=whom.hit,
        assignment=whom.assignment,
        amount=whom.batch.reward if amount is None else amount,
        cause=cause,
        now=clock.now(),
        requested_by=by,
    )
    if payout is None:
        session.rollback()
        raise Refused("This person is compensated for this HIT already. `dynahit payments status` shows what is owed.")
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by,
            action="compensation.owe",
            subject=f"payout {payout.reference}",
            detail={"worker": whom.worker.pseudonym, "amount": str(payout.amount), "cause": cause},
        )
    )
    session.commit()
    return payout


def offer_compensations(session: Session, mturk: MTurk, settings: Settings, clock: Clock) -> Compensated:
    """Offer each worker who waits for it a HIT that pays; HITs that a crash left half-made come first.

    Raises MTurkUnavailable; what was offered by then is stored, and the next run goes on behind it.
    """
    done = Compensated()
    unfinished = list(unfinished_batches(session, mturk.endpoint, HitKind.COMPENSATION))
    waiting = [payout.id for payout in compensations.due_compensations(session, mturk.endpoint)]
    session.commit()
    for batch_id in unfinished:
        done.offered += create_hits(session, mturk, settings, clock, batch_id)
    for payout_id in waiting:
        try:
            stored = _store(session, mturk, clock.now(), payout_id)
            if stored is not None:
                done.offered += create_hits(session, mturk, settings, clock, stored)
        except MTurkUnavailable:
            raise
        except (MTurkError, OverBudget) as error:
            session.rollback()
            done.findings.append(f"A compensation could not be offered: {error}")
    return done


def _store(session: Session, mturk: MTurk, now: datetime, payout_id: int) -> int | None:
    """Commit the batch and HIT that pay a payout, with the money for them; return the batch's id."""
    payout = session.get_one(Payout, payout_id, populate_existing=True)
    reference, worker_id, round_id = payout.reference, payout.worker.mturk_worker_id, payout.round_id
    amount, description = payout.amount, compensations.words(payout)
    session.commit()
    # Found again by its name and granted again after a crash: both are the same as once.
    type_id = mturk.find_or_create_qualification(
        f"dynahit payment {reference}", "Held by the one worker to whom this payment is owed."
    )
    mturk.grant(type_id, worker_id)
    before = session.scalars(select(HitBatch.id).where(HitBatch.key.startswith(f"compensation:{reference}:"))).all()
    batch = HitBatch(
        round_id=round_id,
        kind=HitKind.COMPENSATION,
        key=f"compensation:{reference}:{len(before) + 1}",
        endpoint=mturk.endpoint,
        title=TITLE,
        description=description,
        keywords="payment",
        reward=amount,
        bonus=ZERO,
        minutes=1,
        assignment_seconds=24 * 3600,
        auto_approval_seconds=3600,
        lifetime_seconds=int(LIFETIME.total_seconds()),
        requirements=[as_json(Requirement(type_id))],
        created_at=now,
    )
    hit = Hit(
        position=1,
        reference=new_reference(),
        request_token=new_token(),
        state=HitState.PLANNED,
        max_assignments=1,
    )
    if compensations.offer(session, payout_id, batch, hit, now) is None:
        session.rollback()
        return None
    batch_id = batch.id
    session.commit()
    return batch_id


def waiting_compensations(session: Session) -> int:
    """Return how many payouts wait for a HIT of their own or for its worker. Reads only."""
    states = (PayoutState.NEEDS_COMPENSATION, PayoutState.COMPENSATING)
    count = len(session.scalars(select(Payout.id).where(Payout.state.in_(states))).all())
    session.rollback()
    return count


def _whom(session: Session, who: str, hit_id: str | None) -> _Whom:
    if hit_id is None:
        assignment = session.scalar(select(Assignment).where(Assignment.mturk_assignment_id == who))
        if assignment is None:
            raise NotFound(
                f"No assignment {who!r} was ever opened here. Say who and on which HIT instead: WORKER --hit HIT."
            )
        return _Whom(assignment.worker, assignment.hit, assignment)
    hit = session.scalar(select(Hit).where(Hit.mturk_hit_id == hit_id))
    if hit is None:
        raise NotFound(f"There is no HIT {hit_id!r} of ours. `dynahit hits status` lists the batches.")
    worker = session.scalar(select(Worker).where(or_(Worker.pseudonym == who, Worker.mturk_worker_id == who)))
    if worker is None:
        raise NotFound("This worker is not known here. Write the pseudonym or the worker id.")
    mine = (Assignment.hit_id == hit.id, Assignment.worker_id == worker.id)
    assignment = session.scalar(select(Assignment).where(*mine).order_by(Assignment.id.desc()).limit(1))
    return _Whom(worker, hit, assignment)
