"""Qualifications on the worker site: what one holds, asking for more, taking tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import forms, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.headers import allow_media
from app.marketplace.languages import gettext, translated
from hits.marketplace import errors as refusals
from hits.marketplace.views import QualificationRequestView

qualifications = Blueprint("qualifications", __name__)


@qualifications.get("/qualifications")
@sessions.for_workers
def index() -> ResponseReturnValue:
    """List what the worker has and asked for, and what can be asked for."""
    query = request.args.get("q", "").strip()[:200]
    mine = marketplace().worker_qualifications(_me())
    known = {one.qualification_type_id for one in mine}
    offered = [
        one
        for one in marketplace().requestable_qualifications(_me(), query)
        if one.can_request and one.qualification_type_id not in known
    ]
    return render_template(
        "marketplace/qualifications.html",
        mine=[one for one in mine if one.requester_id is not None],
        system=[one for one in mine if one.requester_id is None],
        offered=offered,
        query=query,
    )


@qualifications.get("/qualifications/<entity:type_id>")
@sessions.for_workers
def show(type_id: str) -> ResponseReturnValue:
    """Show one qualification, what the worker has of it, and whether it can be asked for."""
    one = marketplace().worker_qualification(_me(), type_id)
    return render_template("marketplace/qualification.html", one=one)


@qualifications.post("/qualifications/<entity:type_id>/request")
@sessions.for_workers
def ask(type_id: str) -> ResponseReturnValue:
    """Ask for a qualification: it is granted, waits, or its test begins."""
    try:
        made = marketplace().request_qualification(_me(), type_id)
    except refusals.QualificationUnknown:
        raise
    except refusals.SiteError as refusal:
        flash(translated(refusal.message), "warning")
        return redirect(url_for("qualifications.show", type_id=type_id), 303)
    if made.form is not None:
        return redirect(url_for("qualifications.take", request_id=made.request_id), 303)
    return _decided(made)


@qualifications.route("/qualification-requests/<entity:request_id>", methods=["GET", "POST"])
@sessions.for_workers
def take(request_id: str) -> ResponseReturnValue:
    """Show a test and take its answers; what is over leads to the qualification's page."""
    asked = marketplace().qualification_request(_me(), request_id)
    if request.method == "GET":
        if asked.form is None:
            return redirect(url_for("qualifications.show", type_id=asked.qualification_type_id), 303)
        return _test_page(asked)
    filled = request.form.to_dict(flat=False)
    try:
        return _decided(marketplace().submit_qualification_test(_me(), request_id, filled))
    except refusals.FormIncomplete as refusal:
        return _test_page(asked, filled, refusal.problems), 422
    except refusals.TestOver as refusal:
        flash(translated(refusal.message), "warning")
        return redirect(url_for("qualifications.show", type_id=asked.qualification_type_id), 303)


def _me() -> str:
    return cast(str, session["worker_id"])


def _decided(made: QualificationRequestView) -> ResponseReturnValue:
    if made.state == "Granted":
        flash(
            gettext(
                "You now have the qualification “%(name)s”. Your value is %(value)d.", name=made.name, value=made.value
            ),
            "success",
        )
    else:
        flash(
            gettext("You asked for the qualification “%(name)s”. The requester decides about it.", name=made.name),
            "success",
        )
    return redirect(url_for("qualifications.show", type_id=made.qualification_type_id), 303)


def _test_page(
    asked: QualificationRequestView,
    filled: Mapping[str, list[str]] | None = None,
    problems: Mapping[str, str] | None = None,
) -> str:
    if asked.form is None or asked.deadline is None:
        raise refusals.TestOver(asked.state)
    allow_media(forms.media_origins(asked.form))
    seconds = (asked.deadline - marketplace().clock.now()).total_seconds()
    return render_template(
        "marketplace/qualification_test.html",
        asked=asked,
        form=forms.shown(asked.form, filled, problems),
        seconds_left=max(0, int(seconds)),
    )
