"""Take over what the marketplace shows to be submitted. Its list is the truth; what was stored here was a claim."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.operations import approve
from app.settings import Settings
from hits import validations
from hits.attempts import progress
from hits.clock import Clock
from hits.models import Assignment, Attempt, Example, Hit, HitBatch
from hits.models.people import worker_for
from hits.mturk.client import AssignmentSeen, HitSeen, MTurk
from hits.mturk.errors import HitMissing, MTurkError, MTurkUnavailable
from hits.rejections import note_rejected
from hits.states import COLLECTED, AssignmentState, AttemptState, HitKind, HitState, Verdict
from qualification import grants, practice

log = logging.getLogger(__name__)

NEVER_OPENED = "submitted on the marketplace without opening our page"
NO_WORK = "submitted on the marketplace without any work on our page"
NOT_FINISHED = "submitted on the marketplace with tries left and without fooling the model"
NOT_ALL_JUDGED = "submitted on the marketplace before all statements were judged"
OTHER_WORKER = "the marketplace names another worker than our page was opened for"
REVIEWED = (AssignmentState.APPROVED, AssignmentState.REJECTED)
ON_THE_SITE = ("Assignable", "Unassignable")
OFF_THE_SITE = ("Reviewable", "Reviewing", "Disposed")
OTHER_HIT = "the marketplace names another HIT than our page was opened for"
#: Doubts about how much was done; what was done counts.
UNFINISHED = (NOT_FINISHED, NOT_ALL_JUDGED)


@dataclass
class Collected:
    """What one collection brought in; ``findings`` are HITs that could not be read, each with its cause."""

    submitted: int = 0
    examples: int = 0
    votes: int = 0
    to_review: int = 0
    closed: int = 0
    findings: list[str] = field(default_factory=list)


def collect(session: Session, mturk: MTurk, settings: Settings, clock: Clock) -> Collected:
    """Read the open HITs' assignments and store each in a transaction of its own; close what is done.

    A HIT is left out while its counters show no more submissions than were reviewed here; the marketplace's list of
    assignments is read for all others. Repeating it changes nothing. One HIT that can't be read becomes a finding and
    does not hold up the others. Raises MTurkUnavailable when the marketplace can't be reached at all.
    """
    found = Collected()
    open_hits = _open_hits(session, mturk.endpoint)
    # Without an open HIT nothing is asked of the marketplace, and nobody can submit what was saved here.
    there = {seen.hit_id: seen for seen in mturk.hits()} if open_hits else {}
    unread = []
    for hit_id, mturk_hit_id, reviewed in open_hits:
        hit = there.get(mturk_hit_id)
        if hit is not None and _nothing_new(hit, reviewed):
            continue
        try:
            assignments = list(mturk.assignments(mturk_hit_id))
            status = (hit or mturk.hit(mturk_hit_id)).status
        except MTurkUnavailable:
            raise
        except HitMissing:
            found.findings.append(
                f"HIT {mturk_hit_id} is not known to {mturk.endpoint} any more; it is closed with what was collected."
            )
            _close(session, hit_id)
            found.closed += 1
            continue
        except MTurkError as error:
            found.findings.append(f"HIT {mturk_hit_id}: {error}")
            unread.append(hit_id)
            continue
        for seen in assignments:
            _take_over(session, hit_id, seen, settings, clock.now(), found)
        if status != "Assignable" and _is_done(session, hit_id, len(assignments), status):
            _close(session, hit_id)
            found.closed += 1
    validations.release_unsubmitted(session, mturk.endpoint, clock.now(), unread=unread)
    session.commit()
    for finding in found.findings:
        log.warning("%s", finding)
    return found


def _open_hits(session: Session, endpoint: str) -> list[tuple[int, str, int]]:
    """Return row id, marketplace id and number of reviewed assignments of each open HIT."""
    reviewed = (
        select(func.count())
        .select_from(Assignment)
        .where(Assignment.hit_id == Hit.id, Assignment.state.in_(REVIEWED))
        .scalar_subquery()
    )
    rows = session.execute(
        select(Hit.id, Hit.mturk_hit_id, reviewed)
        .join(Hit.batch)
        .where(Hit.state == HitState.CREATED, HitBatch.endpoint == endpoint)
        .order_by(Hit.id)
    ).all()
    session.commit()
    return [(hit_id, mturk_hit_id, count) for hit_id, mturk_hit_id, count in rows if mturk_hit_id is not None]


def _nothing_new(seen: HitSeen, reviewed: int) -> bool:
    # An expired HIT has no places available, so that this counts too many submissions and the list is read.
    submitted = seen.max_assignments - seen.available - seen.pending
    return seen.status in ON_THE_SITE and submitted == reviewed


def _take_over(
    session: Session, hit_id: int, seen: AssignmentSeen, settings: Settings, now: datetime, found: Collected
) -> None:
    hit = session.execute(
        select(Hit).where(Hit.id == hit_id).with_for_update().execution_options(populate_existing=True)
    ).scalar_one()
    row = session.scalar(
        select(Assignment)
        .where(Assignment.mturk_assignment_id == seen.assignment_id)
        .execution_options(populate_existing=True)
    )
    if row is not None and row.worker.erased_at is not None:
        # Settled before the person was erased; the id in the marketplace's list must not come back.
        session.commit()
        return
    before = row.state if row is not None else None
    row = _matched(session, hit, row, seen, settings, now)
    if before not in COLLECTED:
        row.accepted_at = seen.accept_time
        row.submitted_at = seen.submit_time or now
        row.auto_approval_at = seen.auto_approval_time
        row.review_reason = row.review_reason or _doubt(session, hit, row, now)
        row.state = AssignmentState.SUBMITTED
        found.submitted += 1
        found.to_review += row.review_reason is not None
    if seen.status == "Rejected":
        note_rejected(session, row, seen.rejection_time or now)
    if seen.status == "Approved" and row.approved_at is None:
        approve.record_approval(session, row, seen.approval_time or now)
    if row.state is not AssignmentState.REJECTED and row.review_reason in (None, *UNFINISHED):
        found.examples += add_examples(session, hit, row, now)
        if hit.batch.kind is HitKind.VALIDATION:
            found.votes += validations.count_votes(session, row, now)
        if hit.batch.kind is HitKind.QUALIFICATION:
            grants.count_result(session, row.id, row.worker_id, months=settings.qualification_months, now=now)
    elif hit.batch.kind is HitKind.VALIDATION:
        validations.release(session, row)
    session.commit()


def _matched(
    session: Session, hit: Hit, row: Assignment | None, seen: AssignmentSeen, settings: Settings, now: datetime
) -> Assignment:
    """Return the assignment's row with the marketplace's worker and HIT; a claim that differs counts for nothing."""
    worker = worker_for(session, seen.worker_id, key=settings.pseudonym_key.get_secret_value(), now=now)
    if row is None:
        row = Assignment(
            mturk_assignment_id=seen.assignment_id,
            hit_id=hit.id,
            worker_id=worker.id,
            state=AssignmentState.OPENED,
            # The marketplace itself shows the HIT that pays a compensation, and only to its worker.
            review_reason=None if hit.batch.kind is HitKind.COMPENSATION else NEVER_OPENED,
        )
        session.add(row)
    elif row.worker_id != worker.id:
        row.worker_id, row.hit_id, row.review_reason = worker.id, hit.id, OTHER_WORKER
    elif row.hit_id != hit.id:
        row.hit_id, row.review_reason = hit.id, OTHER_HIT
    session.flush()
    return row


def _doubt(session: Session, hit: Hit, row: Assignment, now: datetime) -> str | None:
    """Return why a person must look before this is approved; None for work that was saved here or can stand so."""
    if row.state is AssignmentState.SAVED or hit.batch.kind is HitKind.COMPENSATION:
        return None
    # The page's last step was skipped, but what was done before is stored.
    if hit.batch.kind is HitKind.CREATION:
        stands = progress(session, row, now)
        # Without a model in the loop the text is the work, whatever became of the question to a model.
        if not (stands.unseen and stands.attempts) and not _answered(session, row):
            return NO_WORK
        return None if stands.can_submit else NOT_FINISHED
    if hit.batch.kind is HitKind.QUALIFICATION:
        return NO_WORK
    votes = validations.draft_votes(session, row)
    if not votes:
        return NO_WORK
    all_judged = all(item.id in votes for item in validations.items_for(session, row))
    return None if all_judged else NOT_ALL_JUDGED


def _answered(session: Session, row: Assignment) -> Sequence[Attempt]:
    """Return the worker's answered attempts at this HIT, also those from before a return."""
    return session.scalars(
        select(Attempt)
        .where(Attempt.hit_id == row.hit_id, Attempt.worker_id == row.worker_id)
        .where(Attempt.state == AttemptState.ANSWERED)
        .order_by(Attempt.id)
        .execution_options(populate_existing=True)
    ).all()


def add_examples(session: Session, hit: Hit, row: Assignment, now: datetime) -> int:
    """Make examples of the answered texts of a collected assignment that are none yet; return how many. Flushes."""
    if hit.batch.kind is not HitKind.CREATION or hit.context_id is None:
        return 0
    attempts = _answered(session, row)
    known = set(
        session.scalars(select(Example.attempt_id).where(Example.attempt_id.in_([attempt.id for attempt in attempts])))
    )
    fresh = [attempt for attempt in attempts if attempt.id not in known]
    round_ = hit.batch.round
    examples = []
    for attempt in fresh:
        validated = attempt.fooled or validations.selected(round_, attempt.public_id)
        examples.append(
            Example(
                attempt_id=attempt.id,
                round_id=round_.id,
                context_id=hit.context_id,
                writer_id=row.worker_id,
                goal_label=attempt.goal_label,
                model_label=attempt.predicted_label,
                fooled=attempt.fooled,
                verdict=Verdict.PENDING if validated else Verdict.NOT_VALIDATED,
                votes_wanted=round_.agreeing_votes if validated else 0,
                collected_at=now,
            )
        )
    session.add_all(examples)
    session.flush()
    practice.begin(session, hit.batch, examples)
    return len(fresh)


def _is_done(session: Session, hit_id: int, seen: int, status: str) -> bool:
    """Tell whether nothing more can come: all places used, or the HIT off the site, and everything reviewed here."""
    hit = session.get_one(Hit, hit_id, populate_existing=True)
    reviewed = session.scalar(
        select(func.count()).select_from(Assignment).where(Assignment.hit_id == hit_id, Assignment.state.in_(REVIEWED))
    )
    done = (reviewed or 0) >= seen and (seen >= hit.max_assignments or status in OFF_THE_SITE)
    session.commit()
    return done


def _close(session: Session, hit_id: int) -> None:
    session.get_one(Hit, hit_id, populate_existing=True).state = HitState.CLOSED
    session.commit()
