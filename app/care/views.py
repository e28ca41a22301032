"""The pages before the work: what people agree to, and the warning of a task with disturbing texts."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from flask import Blueprint, Flask, redirect, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from app import limits
from app.care import gate
from app.care.texts import blocks
from app.extensions import db, limiter
from app.headers import is_hit_page
from app.services import services
from app.tokens import Claim
from app.worker.guard import assignment_of_claim, current_claim, current_frame, token_for
from hits.attempts import check_ids
from hits.consent import agree, require_consent
from hits.errors import DayIsFull, Refused, WrongWorker
from hits.exposure import shown_today
from hits.models import ConsentText, Hit
from hits.states import HitKind
from hits.tasks import task

bp = Blueprint("care", __name__, url_prefix="/care")


@bp.post("/consent")
@limiter.limit(limits.CARE)
def consent() -> ResponseReturnValue:
    """Store that the worker agrees, and lead to the page that was opened."""
    known = services()
    claim = current_claim()
    check_ids(claim.assignment_id, claim.worker_id)
    back = _way_back(claim)
    hit = _hit_of(claim)
    text = gate.consent_text(db.session(), known, hit)
    key = known.settings.pseudonym_key.get_secret_value()
    version = request.form.get("version", "")
    agree(db.session(), claim.worker_id, text, version, key=key, now=known.clock.now())
    db.session.commit()
    return redirect(back, 303)


@bp.post("/decline")
@limiter.limit(limits.CARE)
def decline() -> ResponseReturnValue:
    """Tell the worker how to return the HIT; nothing was stored, and nothing is."""
    return render_template("care/declined.html", hit=_hit_of(current_claim()), contact=services().settings.contact)


@bp.post("/warning")
@limiter.limit(limits.CARE)
def warning() -> ResponseReturnValue:
    """Note that the worker goes on behind the warning, and lead to the page that was opened."""
    known = services()
    back = _way_back(current_claim())
    assignment = assignment_of_claim()
    require_consent(assignment)
    if shown_today(db.session(), assignment.worker_id, known.clock.now()) >= known.settings.exposure_cap:
        raise DayIsFull(known.settings.exposure_cap)
    gate.go_on(assignment, known.clock.now())
    db.session.commit()
    return redirect(back, 303)


def consent_page(wanted: gate.ConsentWanted) -> ResponseReturnValue:
    """Show what the worker is asked to agree to, in the place of the HIT's page."""
    known = services()
    db.session.commit()
    frame, hit = current_frame(), wanted.hit
    claim = Claim(frame.assignment_id or "", frame.worker_id, hit.reference)
    limit = known.clock.now() + timedelta(seconds=hit.batch.assignment_seconds)
    return render_template(
        "care/consent.html",
        **text_fields(wanted.text),
        hit=hit,
        batch=hit.batch,
        token=known.tokens.issue(claim, valid_until=frame.deadline or limit),
        back=request.full_path,
    )


def warning_page(wanted: gate.WarningWanted) -> ResponseReturnValue:
    """Show the task's warning in the place of the HIT's page."""
    known = services()
    assignment = wanted.assignment
    shown = shown_today(db.session(), assignment.worker_id, known.clock.now())
    db.session.commit()
    return render_template(
        "care/warning.html",
        batch=assignment.hit.batch,
        judging=assignment.hit.batch.kind is HitKind.VALIDATION,
        spec=task(assignment.hit.batch.round.task_code),
        token=token_for(assignment),
        back=request.full_path,
        shown=shown,
        cap=known.settings.exposure_cap,
        support_line=known.settings.support_line,
    )


def text_fields(text: ConsentText) -> dict[str, object]:
    """Return what the pages show of a version."""
    return {
        "text": text,
        "blocks": blocks(text.body),
        "contact": services().settings.contact,
    }


def init_care(app: Flask) -> None:
    """Let the pages before the work answer for the work's pages."""
    app.register_error_handler(gate.ConsentWanted, consent_page)
    app.register_error_handler(gate.WarningWanted, warning_page)


def _hit_of(claim: Claim) -> Hit:
    hit = db.session.scalar(select(Hit).where(Hit.reference == claim.hit_reference))
    if hit is None:
        raise WrongWorker
    return hit


def _way_back(claim: Claim) -> str:
    """Return the address of the page that was opened, if it is one of this claim's."""
    back = request.form.get("back", "")
    parts = urlsplit(back)
    query = parse_qs(parts.query)
    own = not parts.scheme and not parts.netloc and is_hit_page(parts.path) and "\\" not in back
    if (
        not own
        or parts.path.rpartition("/")[2] != claim.hit_reference
        or query.get("assignmentId") != [claim.assignment_id]
        or query.get("workerId") != [claim.worker_id]
    ):
        raise Refused("The page that this form came from is not one of this HIT. Nothing was stored.")
    return back
