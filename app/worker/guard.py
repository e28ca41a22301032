"""Who is behind a request of a HIT page: the frame's address when it opens, the form's token from then on."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import cast

from flask import g, request
from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session, contains_eager, joinedload

from app.care.gate import after_opening, before_opening, require_care
from app.extensions import db
from app.frames import Frame, read_frame
from app.services import services
from app.tokens import Claim
from hits.attempts import open_assignment
from hits.errors import NotFound, WrongWorker
from hits.models import Assignment, Hit, HitBatch, Worker
from hits.models.people import worker_for
from hits.states import HitKind
from qualification.admission import Phase, check_admission
from qualification.errors import NotAdmitted

log = logging.getLogger(__name__)

#: Built once: every question to the model begins with it.
_CLAIMED = (
    select(Assignment)
    .join(Assignment.hit)
    .join(Assignment.worker)
    .options(
        contains_eager(Assignment.worker),
        contains_eager(Assignment.hit).options(
            joinedload(Hit.batch).joinedload(HitBatch.round), joinedload(Hit.context)
        ),
    )
    .where(
        Assignment.mturk_assignment_id == bindparam("of_assignment"),
        Worker.mturk_worker_id == bindparam("of_worker"),
        Hit.reference == bindparam("of_hit"),
    )
)


def hit_page_guard() -> None:
    """Keep what the request may speak for. Raises what read_frame and Tokens.read raise; nothing is stored here."""
    known = services()
    if request.method == "POST":
        claim = known.tokens.read(request.form.get("token", ""))
        g.claim = claim
        g.limited_assignment = claim.assignment_id
    else:
        frame = read_frame(request.args, known.settings, known.clock.now())
        g.frame = frame
        g.limited_assignment = frame.assignment_id


def current_frame() -> Frame:
    """Return the frame that the guard has read."""
    return cast(Frame, g.frame)


def hit_of(reference: str, kind: HitKind) -> Hit:
    """Return the HIT of a page's address. Raises NotFound, also for a HIT of the other kind."""
    hit = db.session.scalar(select(Hit).where(Hit.reference == reference))
    if hit is None or hit.batch.kind is not kind:
        raise NotFound("This HIT is not one of ours, or it was taken back. You can return it without harm.")
    return hit


def opened_assignment(hit: Hit) -> Assignment:
    """Return the assignment that the frame claims, stored on first sight; the caller commits.

    Raises WrongWorker for an address that joins another HIT's id to this page, and what open_assignment raises.
    Raises NotAdmitted for somebody who may not work on the HIT, of whom nothing is stored then.
    ConsentWanted and WarningWanted, which it raises too, are answered by the pages that stand before the work.
    """
    known = services()
    frame = current_frame()
    # Between its creation on the marketplace and the storing of its id, a HIT's id is not known here yet.
    if hit.mturk_hit_id is not None and frame.hit_id != hit.mturk_hit_id:
        raise WrongWorker
    session = db.session()
    text = before_opening(session, known, hit, frame)
    if text is not None:
        key = known.settings.pseudonym_key.get_secret_value()
        worker = worker_for(session, frame.worker_id, key=key, now=known.clock.now())
        _admit(session, hit, worker, "load")
    assignment = open_assignment(
        session,
        hit,
        mturk_assignment_id=frame.assignment_id or "",
        mturk_worker_id=frame.worker_id,
        pseudonym_key=known.settings.pseudonym_key.get_secret_value(),
        deadline=frame.deadline,
        now=known.clock.now(),
    )
    if text is not None:
        assignment.consent_text_id = text.id
    after_opening(assignment)
    return assignment


def admit(assignment: Assignment) -> None:
    """Raise NotAdmitted when the worker may not begin with the HIT, whatever the page that was opened says."""
    _admit(db.session(), assignment.hit, assignment.worker, "submit")


def _admit(session: Session, hit: Hit, worker: Worker, phase: Phase) -> None:
    try:
        check_admission(session, hit, worker, services().clock.now(), phase=phase)
    except NotAdmitted as error:
        log.info("%s is not admitted to HIT %s on %s: %s", worker.pseudonym, hit.mturk_hit_id, phase, error)
        raise


def claimed_assignment(kind: HitKind) -> Assignment:
    """Return the assignment that the form's token stands for. Raises WrongWorker if it is not stored so.

    Raises ConsentMissing and NotWarned for a form that was sent past the pages before the work.
    """
    assignment = assignment_of_claim()
    if assignment.hit.batch.kind is not kind:
        raise WrongWorker
    require_care(assignment)
    return assignment


def current_claim() -> Claim:
    """Return what the form's token says, as the guard has read it."""
    return cast(Claim, g.claim)


def assignment_of_claim() -> Assignment:
    """Return the assignment of the form's token, whatever its kind and whatever the worker still has to be asked."""
    claim = current_claim()
    assignment = db.session.scalar(
        _CLAIMED,
        {"of_assignment": claim.assignment_id, "of_worker": claim.worker_id, "of_hit": claim.hit_reference},
    )
    if assignment is None:
        raise WrongWorker
    return assignment


def token_for(assignment: Assignment) -> str:
    """Return a token for the forms of this assignment's page."""
    known = services()
    claim = Claim(assignment.mturk_assignment_id, assignment.worker.mturk_worker_id, assignment.hit.reference)
    limit = known.clock.now() + timedelta(seconds=assignment.hit.batch.assignment_seconds)
    return known.tokens.issue(claim, valid_until=assignment.deadline_at or limit)
