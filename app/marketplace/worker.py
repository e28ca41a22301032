"""The worker site: join, sign in, find HITs, work on them, see what was paid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import cast, get_args

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext

from app.marketplace import errors, forms, sessions
from app.marketplace.extensions import failed, limiter, marketplace, settings, sign_in_limit
from app.marketplace.headers import SANDBOX, allow_frame, allow_media
from app.marketplace.languages import translated
from app.marketplace.settings import origin, origin_text
from hits.marketplace import errors as refusals
from hits.marketplace import passwords
from hits.marketplace.forms import QuestionForm
from hits.marketplace.listing import Sort
from hits.marketplace.views import AssignmentView
from hits.marketplace.workers import key_of

worker = Blueprint("worker", __name__)
PAGE_SIZE = 25
_ENTITY = re.compile("[A-Z0-9]{1,64}")
SORTS: tuple[Sort, ...] = get_args(Sort)


def _me() -> str:
    return cast(str, session["worker_id"])


def _user_name_key() -> str:
    return "worker " + key_of(request.form.get("user_name", ""))


@worker.get("/")
def home() -> ResponseReturnValue:
    """Lead to the list, or to sign-in."""
    return redirect(url_for("worker.hits" if sessions.worker_id() else "worker.sign_in"), 303)


@worker.route("/sign-in", methods=["GET", "POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed)
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=_user_name_key)
def sign_in() -> ResponseReturnValue:
    """Sign a worker in; failures are limited by address and by user name."""
    user_name, error = request.form.get("user_name", ""), ""
    if request.method == "POST":
        try:
            account = marketplace().authenticate_worker(user_name, request.form.get("password", ""))
        except refusals.NotSignedIn as refusal:
            error = refusal.message
        else:
            sessions.sign_in_worker(account)
            return redirect(sessions.safe_next(url_for("worker.hits")), 303)
    return render_template("marketplace/sign_in.html", user_name=user_name, error=error), 422 if error else 200


@worker.post("/sign-out")
def sign_out() -> ResponseReturnValue:
    """End the worker's session."""
    sessions.sign_out()
    flash(gettext("You are signed out."), "success")
    return redirect(url_for("worker.sign_in"), 303)


@worker.route("/join", methods=["GET", "POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed)
def join() -> ResponseReturnValue:
    """Create an account from an invitation, and sign in."""
    code, user_name = request.values.get("code", "").strip(), request.form.get("user_name", "").strip()
    email, found = request.form.get("email", "").strip(), dict[str, str]()
    if request.method == "POST":
        try:
            account = marketplace().register_worker(
                code, user_name, request.form.get("password", ""), email=email or None
            )
        except (refusals.InvitationUnknown, refusals.InvitationUsed) as refusal:
            found["code"] = refusal.message
        except (refusals.UserNameTaken, refusals.UserNameUnfit) as refusal:
            found["user_name"] = refusal.message
        except refusals.PasswordUnfit as refusal:
            found["password"] = refusal.message
        except refusals.AddressUnfit as refusal:
            found["email"] = refusal.message
        else:
            sessions.sign_in_worker(account)
            flash(gettext("Your account is ready. You are signed in."), "success")
            return redirect(url_for("worker.hits"), 303)
    return (
        render_template(
            "marketplace/join.html",
            code=code,
            user_name=user_name,
            email=email,
            errors=found,
            least=passwords.LEAST_LENGTH,
        ),
        422 if found else 200,
    )


@worker.get("/hits")
@sessions.for_workers
def hits() -> ResponseReturnValue:
    """List the kinds of HIT this worker may see; the choices stay in the address."""
    query, wanted = request.args.get("q", "").strip()[:200], request.args.get("sort", "")
    sort: Sort = next((sort for sort in SORTS if sort == wanted), "reward")
    qualified_only = request.args.get("qualified") == "1"
    found = marketplace().hit_groups(
        _me(), sort=sort, query=query, qualified_only=qualified_only, page=page_number(), page_size=PAGE_SIZE
    )
    chosen = {"q": query or None, "sort": sort, "qualified": "1" if qualified_only else None}
    return render_template(
        "marketplace/hits.html",
        found=found,
        query=query,
        sort=sort,
        qualified_only=qualified_only,
        chosen=chosen,
    )


@worker.get("/hits/<entity:hit_id>")
def preview(hit_id: str) -> ResponseReturnValue:
    """Show a HIT before it is accepted; signing in is not needed to look."""
    hit = marketplace().preview(sessions.worker_id(), hit_id)
    refusal = None if hit.frame_url is None else _frame(hit.frame_url)
    return refusal or render_template(
        "marketplace/preview.html",
        hit=hit,
        form=_shown(hit.form) if hit.form is not None else None,
        sandbox=SANDBOX,
        worker_id=sessions.worker_id(),
    )


@worker.get("/mturk/preview")
@worker.get("/mturk/previewandaccept")
@worker.get("/projects/<entity:group_id>/tasks")
@worker.get("/projects/<entity:group_id>/tasks/accept_random")
def preview_group(group_id: str = "") -> ResponseReturnValue:
    """Lead from the id of a HIT group or HIT type, as MTurk's own addresses carry it, to the preview of a HIT.

    Those that accept on MTurk lead to the preview too: a link must not take a HIT in somebody's name.
    """
    group_id = group_id or request.args.get("groupId", "")
    if not _ENTITY.fullmatch(group_id):
        raise refusals.HitUnknown
    held = marketplace().held(_me()) if sessions.worker_id() else []
    mine = next((work.assignment_id for work in held if work.hit_group_id == group_id), None)
    try:
        hit_id = marketplace().hit_of_group(sessions.worker_id(), group_id)
    except refusals.HitNotAvailable as refusal:
        if mine is None:
            raise refusals.HitGroupEmpty from refusal
        return redirect(url_for("worker.assignment", assignment_id=mine), 303)
    return redirect(url_for("worker.preview", hit_id=hit_id), 303)


@worker.post("/hits/<entity:hit_id>/accept")
@sessions.for_workers
def accept(hit_id: str) -> ResponseReturnValue:
    """Take a place of a HIT and begin; if it is gone, show the next one of the group that the form names."""
    try:
        work = marketplace().accept(_me(), hit_id)
    except (refusals.HitNotAvailable, refusals.AlreadyWorkedOn):
        group_id = request.form.get("group_id", "")
        if not _ENTITY.fullmatch(group_id):
            raise
        return _next_preview(group_id)
    return redirect(url_for("worker.assignment", assignment_id=work.assignment_id), 303)


@worker.post("/groups/<entity:group_id>/accept")
@sessions.for_workers
def accept_next(group_id: str) -> ResponseReturnValue:
    """Take a place of the next HIT of the same kind."""
    try:
        work = marketplace().accept_next(_me(), group_id)
    except refusals.HitGroupEmpty as refusal:
        flash(translated(refusal.message), "info")
        return redirect(url_for("worker.hits"), 303)
    return redirect(url_for("worker.assignment", assignment_id=work.assignment_id), 303)


@worker.get("/work")
@sessions.for_workers
def work() -> ResponseReturnValue:
    """List what the worker holds."""
    return render_template("marketplace/work.html", held=marketplace().held(_me()), now=marketplace().clock.now())


@worker.get("/work/<entity:assignment_id>")
@sessions.for_workers
def assignment(assignment_id: str) -> ResponseReturnValue:
    """Show a held assignment's frame or form; a submitted one leads to its receipt."""
    work = marketplace().assignment(_me(), assignment_id)
    if work.form is not None:
        return _form_page(work, _shown(work.form))
    if work.frame_url is None:
        if work.state in {"Submitted", "Approved", "Rejected"}:
            return redirect(url_for("worker.submitted", assignment_id=assignment_id), 303)
        if work.state == "Accepted":
            raise refusals.HitNotShown
        raise refusals.AssignmentNotHeld(work.state)
    refusal = _frame(work.frame_url)
    return refusal or render_template(
        "marketplace/assignment.html",
        work=work,
        seconds_left=_seconds_until(work.deadline),
        sandbox=SANDBOX,
        frame_origin=origin_text(work.frame_url),
    )


@worker.post("/work/<entity:assignment_id>")
@sessions.for_workers
def submit_form(assignment_id: str) -> ResponseReturnValue:
    """Store the answers to a HIT that is a form; what does not fit is said above its field."""
    filled = request.form.to_dict(flat=False)
    try:
        marketplace().submit_form(_me(), assignment_id, filled)
    except refusals.FormIncomplete as refusal:
        work = marketplace().assignment(_me(), assignment_id)
        if work.form is None:
            raise refusals.AssignmentNotHeld(work.state) from refusal
        return _form_page(work, _shown(work.form, filled, refusal.problems)), 422
    except refusals.AlreadySubmitted as refusal:
        flash(translated(refusal.message), "info")
    return redirect(url_for("worker.submitted", assignment_id=assignment_id), 303)


@worker.route("/work/<entity:assignment_id>/return", methods=["GET", "POST"])
@sessions.for_workers
def return_assignment(assignment_id: str) -> ResponseReturnValue:
    """Ask, then give a held assignment back."""
    work = marketplace().assignment(_me(), assignment_id)
    if request.method == "POST":
        marketplace().return_assignment(_me(), assignment_id, _reason())
        flash(gettext("You returned “%(title)s”.", title=work.title), "success")
        return redirect(url_for("worker.hits"), 303)
    if work.state != "Accepted":
        raise refusals.AssignmentNotHeld(work.state)
    return render_template("marketplace/return_assignment.html", work=work)


@worker.get("/work/<entity:assignment_id>/submitted")
@sessions.for_workers
def submitted(assignment_id: str) -> ResponseReturnValue:
    """Show the receipt of a submission, and what to do next."""
    entry = marketplace().work_entry(_me(), assignment_id)
    work = marketplace().assignment(_me(), assignment_id)
    return render_template("marketplace/submitted.html", entry=entry, work=work)


@worker.get("/profile")
@sessions.for_workers
def profile() -> ResponseReturnValue:
    """Show the worker's own account."""
    return render_template("marketplace/profile.html", account=marketplace().worker(_me()))


def page_number() -> int:
    """Return the wanted page of a list from the address; the first one if that is no number."""
    text = request.args.get("page", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1


def _next_preview(group_id: str) -> ResponseReturnValue:
    try:
        hit_id = marketplace().hit_of_group(_me(), group_id)
    except (refusals.HitNotAvailable, refusals.HitUnknown):
        flash(translated(refusals.HitGroupEmpty().message), "info")
        return redirect(url_for("worker.hits"), 303)
    flash(gettext("That HIT is taken. This is the next one of the same kind."), "info")
    return redirect(url_for("worker.preview", hit_id=hit_id), 303)


def _reason() -> str:
    # PostgreSQL keeps no NUL, and a typed reason needs none.
    return request.form.get("reason", "").replace("\x00", "").strip()[:1000]


def _seconds_until(deadline: datetime) -> int:
    return max(0, int((deadline - marketplace().clock.now()).total_seconds()))


def _shown(
    form: QuestionForm, filled: dict[str, list[str]] | None = None, problems: Mapping[str, str] | None = None
) -> forms.Shown:
    """Return a form for this answer's page, whose policy lets its media in."""
    allow_media(forms.media_origins(form))
    return forms.shown(form, filled, problems)


def _form_page(work: AssignmentView, form: forms.Shown) -> str:
    return render_template(
        "marketplace/form_assignment.html", work=work, form=form, seconds_left=_seconds_until(work.deadline)
    )


def _frame(url: str) -> ResponseReturnValue | None:
    """Widen this answer's policy for the frame; refuse content that would run as this site."""
    if origin(url) in {origin(settings().site_url), origin(request.host_url)}:
        return errors.page(
            502,
            gettext(
                "The requester's page for this HIT lies on this site's own address, where it could act in your name. "
                "It was not opened. Return the HIT, or choose another one."
            ),
            gettext("This HIT cannot be shown safely"),
        )
    allow_frame(url)
    return None
