"""What the next jobs pass would pay for, without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.operations.stop_rules import about_to_stop
from app.operations.validation_hits import groups_due, reader_terms
from app.settings import Settings
from hits.clock import Clock
from hits.models import Assignment, Hit, HitBatch, Round
from hits.money import ZERO, usd
from hits.mturk.client import MTurk
from hits.states import HitState
from payments.fees import for_masters, reward_fee, worst_case


@dataclass(frozen=True)
class JobsPlan:
    """What a pass would do by what is submitted now; the costs hold rewards and fees.

    Approving moves money that was put on hold when the HIT was created; opening a validation HIT puts new money on
    hold. ``validation_bonuses`` are what readers can earn besides at most, with fees. ``to_review`` waits for a person
    and is not approved.
    """

    approvals: int
    approval_cost: Decimal
    to_review: int
    validation_hits: int
    validation_places: int
    validation_cost: Decimal
    validation_bonuses: Decimal
    balance: Decimal
    #: Rounds of which a stop rule is fulfilled, in words: their writing HITs are taken off the site.
    stopping: tuple[str, ...] = ()


def plan_jobs(session: Session, mturk: MTurk, settings: Settings, clock: Clock) -> JobsPlan:
    """Return what the next pass would pay for. Changes nothing. Raises MTurkUnavailable.

    Statements that the pass would only collect are not in the plan's validation HITs: those open in a later pass.
    """
    today = clock.now().date()
    open_hits = session.execute(
        select(Hit.mturk_hit_id, Hit.max_assignments, HitBatch.reward, HitBatch.requirements)
        .join(Hit.batch)
        .where(Hit.state == HitState.CREATED, HitBatch.endpoint == mturk.endpoint)
    ).all()
    session.rollback()
    approvals = to_review = 0
    approval_cost = ZERO
    for mturk_hit_id, max_assignments, reward, requirements in open_hits:
        submitted = [seen for seen in mturk.assignments(mturk_hit_id or "") if seen.status == "Submitted"]
        for seen in submitted:
            if _is_doubtful(session, seen.assignment_id):
                to_review += 1
            else:
                approvals += 1
                masters = for_masters(requirements)
                approval_cost += reward + reward_fee(reward, max_assignments, on=today, masters=masters)
    groups = places = 0
    cost = bonuses = ZERO
    for round_id, due in groups_due(session, settings, clock.now()):
        terms = reader_terms(settings, with_gold=session.get_one(Round, round_id).gold_items > 0)
        for group in due:
            further = terms.most(group.wanted)
            worst = worst_case(1, group.wanted, usd(settings.validation_reward), ZERO, on=today, further=further)
            groups, places = groups + 1, places + group.wanted
            cost, bonuses = cost + worst.hold, bonuses + worst.bonuses + worst.bonus_fees
    stopping = tuple(about_to_stop(session, clock.now()))
    return JobsPlan(approvals, approval_cost, to_review, groups, places, cost, bonuses, mturk.balance(), stopping)


def _is_doubtful(session: Session, mturk_assignment_id: str) -> bool:
    row = session.scalar(select(Assignment).where(Assignment.mturk_assignment_id == mturk_assignment_id))
    doubtful = row is None or row.review_reason is not None
    session.rollback()
    return doubtful
