"""Approve submitted work and book its reward: the base pay never waits for a verdict."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.clock import Clock
from hits.models import Assignment, Hit, HitBatch
from hits.mturk.client import MTurk
from hits.mturk.errors import AssignmentMissing, InvalidAssignmentState, MTurkError, MTurkUnavailable
from hits.rejections import note_approved, note_rejected
from hits.states import AssignmentState
from payments import ledger
from payments.rules import base_reward

log = logging.getLogger(__name__)


@dataclass
class Approvals:
    """What one pass approved; ``findings`` are assignments that could not be, each with its cause."""

    approved: int = 0
    findings: list[str] = field(default_factory=list)


def approve_submitted(session: Session, mturk: MTurk, clock: Clock) -> Approvals:
    """Approve every submitted assignment that needs no review, and book each reward with it.

    "Already approved" is success. What the marketplace does not show as submitted yet, or refuses, becomes a finding
    and is tried again by the next pass. Raises MTurkUnavailable when it can't be reached.
    """
    done = Approvals()
    waiting = session.execute(
        select(Assignment.id, Assignment.mturk_assignment_id, HitBatch)
        .select_from(Assignment)
        .join(Assignment.hit)
        .join(Hit.batch)
        .where(Assignment.state == AssignmentState.SUBMITTED, Assignment.review_reason.is_(None))
        .where(HitBatch.endpoint == mturk.endpoint)
        .order_by(Assignment.id)
    ).all()
    told = [(assignment_id, name, base_reward(batch).reason) for assignment_id, name, batch in waiting]
    session.commit()
    for assignment_id, mturk_assignment_id, reason in told:
        try:
            moment, rejected = _approved(mturk, mturk_assignment_id, reason, clock.now())
        except MTurkUnavailable:
            raise
        except (AssignmentMissing, InvalidAssignmentState) as error:
            done.findings.append(
                f"Assignment {mturk_assignment_id} is not submitted yet for the marketplace ({error.message});"
                " the next pass tries again."
            )
            continue
        except MTurkError as error:
            done.findings.append(f"Assignment {mturk_assignment_id}: {error}")
            continue
        row = session.get_one(Assignment, assignment_id, populate_existing=True, with_for_update=True)
        if rejected:
            note_rejected(session, row, moment)
        elif row.approved_at is None:
            record_approval(session, row, moment)
            done.approved += 1
        session.commit()
    for finding in done.findings:
        log.warning("%s", finding)
    return done


def record_approval(session: Session, assignment: Assignment, now: datetime) -> None:
    """Note that the marketplace has approved, and so paid, the assignment; the reward is booked in the same
    transaction, which the caller commits."""
    assignment.state = AssignmentState.APPROVED
    assignment.approved_at = now
    note_approved(session, assignment, now)
    session.flush()
    ledger.record_reward(session, assignment, now)


def _approved(mturk: MTurk, mturk_assignment_id: str, reason: str, now: datetime) -> tuple[datetime, bool]:
    """Approve, telling the worker why, and return when that was, and whether it is shown as rejected instead."""
    try:
        mturk.approve(mturk_assignment_id, reason)
    except InvalidAssignmentState:
        # Approved before (by us, in a pass that was interrupted, or by itself), rejected, or not submitted yet.
        seen = mturk.assignment(mturk_assignment_id)
        if seen.status == "Approved":
            return seen.approval_time or now, False
        if seen.status == "Rejected":
            return seen.rejection_time or now, True
        raise
    return now, False
