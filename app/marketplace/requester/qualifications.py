"""Qualification types, who holds them, and who asks for them."""

from __future__ import annotations

import re
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext
from app.marketplace.requester.console import call, in_words, me, requester
from hits.marketplace.answer_rows import answer_rows
from hits.marketplace.errors import MarketplaceError

PAGE_SIZE = 25
EXAMPLE = "A1B2C3D4E5F6G7"
_WORKER = re.compile("A[A-Z0-9]{1,63}")
_FIELDS = ("name", "description", "keywords", "status", "retry", "test", "minutes", "key", "auto", "auto_value")


@requester.get("/qualifications")
@sessions.for_requesters
def qualifications() -> ResponseReturnValue:
    """List the requester's qualification types, and what waits for a decision."""
    token = console.asked("after")
    params = {"NextToken": token} if token else {}
    page = call(
        "ListQualificationTypes", MustBeRequestable=False, MustBeOwnedByCaller=True, MaxResults=PAGE_SIZE, **params
    )
    found = page["QualificationTypes"]
    return render_template(
        "marketplace/requester/qualifications.html",
        types=found,
        more=page.get("NextToken") if len(found) == PAGE_SIZE else None,
        start=not token,
        requests=call("ListQualificationRequests", MaxResults=100)["QualificationRequests"],
        answer_rows=answer_rows,
    )


@requester.route("/qualifications/new", methods=["GET", "POST"])
@sessions.for_requesters
def new_qualification() -> ResponseReturnValue:
    """Create a qualification type."""
    if request.method == "POST":
        filled = {name: _filled(name) for name in _FIELDS}
        try:
            params = _params(filled)
            made = call("CreateQualificationType", Name=filled["name"], **params)["QualificationType"]
        except (MarketplaceError, ValueError) as refusal:
            return _form(filled, refusal)
        flash(gettext("The qualification “%(name)s” exists.", name=made["Name"]), "success")
        return redirect(url_for("requester.qualification", type_id=made["QualificationTypeId"]), 303)
    return _form({"status": "Active", "minutes": "30"})


@requester.route("/qualifications/<entity:type_id>/edit", methods=["GET", "POST"])
@sessions.for_requesters
def edit_qualification(type_id: str) -> ResponseReturnValue:
    """Change a qualification type; its name and keywords stay."""
    kind = _own(type_id)
    if request.method == "POST":
        filled = {name: _filled(name) for name in _FIELDS}
        try:
            params = _params(filled)
            params.pop("Keywords", None)
            call("UpdateQualificationType", QualificationTypeId=type_id, **params)
        except (MarketplaceError, ValueError) as refusal:
            return _form(filled, refusal, kind)
        flash(gettext("The qualification is changed."), "success")
        return redirect(url_for("requester.qualification", type_id=type_id), 303)
    seconds = kind.get("TestDurationInSeconds", 1800)
    return _form(
        {
            "description": kind["Description"],
            "status": kind["QualificationTypeStatus"],
            "retry": f"{kind['RetryDelayInSeconds'] / 3600:g}" if "RetryDelayInSeconds" in kind else "",
            "test": kind.get("Test", ""),
            "minutes": f"{seconds / 60:g}",
            "key": kind.get("AnswerKey", ""),
            "auto": "1" if kind.get("AutoGranted") else "",
            "auto_value": str(kind.get("AutoGrantedValue", 1)),
        },
        kind=kind,
    )


@requester.get("/qualifications/<entity:type_id>")
@sessions.for_requesters
def qualification(type_id: str) -> ResponseReturnValue:
    """Show one qualification type with its requests and holders."""
    return render_template(
        "marketplace/requester/qualification.html",
        type=_own(type_id),
        holders=marketplace().qualification_holders(me(), type_id, page=console.page_number()),
        requests=call("ListQualificationRequests", QualificationTypeId=type_id, MaxResults=100)[
            "QualificationRequests"
        ],
        answer_rows=answer_rows,
    )


@requester.post("/qualifications/<entity:type_id>/assign")
@sessions.for_requesters
def assign_qualification(type_id: str) -> ResponseReturnValue:
    """Grant a qualification to a worker, or change its value."""
    worker_id = console.typed("worker_id")
    try:
        value = _whole(gettext("The value"), console.typed("value"))
        if not _WORKER.fullmatch(worker_id):
            raise ValueError(gettext("Give a worker id, such as %(example)s.", example=EXAMPLE))
        call(
            "AssociateQualificationWithWorker",
            QualificationTypeId=type_id,
            WorkerId=worker_id,
            IntegerValue=value,
            SendNotification=request.form.get("tell") == "1",
        )
    except (MarketplaceError, ValueError) as refusal:
        flash(_words(refusal), "error")
    else:
        flash(
            gettext("%(worker)s has the qualification with the value %(value)d.", worker=worker_id, value=value),
            "success",
        )
    return redirect(url_for("requester.qualification", type_id=type_id), 303)


@requester.route("/qualifications/<entity:type_id>/revoke/<entity:worker_id>", methods=["GET", "POST"])
@sessions.for_requesters
def revoke_qualification(type_id: str, worker_id: str) -> ResponseReturnValue:
    """Ask for a reason, then take a qualification back."""
    kind = _own(type_id)
    if request.method == "POST":
        call(
            "DisassociateQualificationFromWorker",
            QualificationTypeId=type_id,
            WorkerId=worker_id,
            **_reason(),
        )
        flash(gettext("%(worker)s does not have the qualification any more.", worker=worker_id), "success")
        return redirect(url_for("requester.qualification", type_id=type_id), 303)
    return render_template("marketplace/requester/revoke_qualification.html", type=kind, worker_id=worker_id)


@requester.route("/qualifications/<entity:type_id>/delete", methods=["GET", "POST"])
@sessions.for_requesters
def delete_qualification(type_id: str) -> ResponseReturnValue:
    """Ask, then delete a qualification type with the HIT types that require it."""
    kind = _own(type_id)
    if request.method == "POST":
        call("DeleteQualificationType", QualificationTypeId=type_id)
        flash(gettext("The qualification “%(name)s” is deleted.", name=kind["Name"]), "success")
        return redirect(url_for("requester.qualifications"), 303)
    return render_template("marketplace/requester/delete_qualification.html", type=kind)


@requester.post("/qualification-requests/<entity:request_id>")
@sessions.for_requesters
def decide_request(request_id: str) -> ResponseReturnValue:
    """Grant or decline what a worker asked for."""
    try:
        if request.form.get("action") == "grant":
            value = _whole(gettext("The value"), console.typed("value") or "1")
            call("AcceptQualificationRequest", QualificationRequestId=request_id, IntegerValue=value)
            flash(gettext("The qualification is granted; the worker was told."), "success")
        else:
            call("RejectQualificationRequest", QualificationRequestId=request_id, **_reason())
            flash(gettext("The request is declined; the worker was told."), "success")
    except ValueError as refusal:
        flash(str(refusal), "error")
    return redirect(sessions.safe_next(url_for("requester.qualifications")), 303)


def _own(type_id: str) -> dict[str, Any]:
    # GetQualificationType answers for anybody's type; this list is of the requester's own only.
    marketplace().qualification_holders(me(), type_id)
    kind: dict[str, Any] = call("GetQualificationType", QualificationTypeId=type_id)["QualificationType"]
    return kind


def _form(
    filled: dict[str, str], refusal: Exception | None = None, kind: dict[str, Any] | None = None
) -> ResponseReturnValue:
    error = _words(refusal) if refusal is not None else ""
    return render_template("marketplace/requester/qualification_form.html", filled=filled, error=error, type=kind), (
        422 if error else 200
    )


def _filled(name: str) -> str:
    return console.typed(name)


def _params(filled: dict[str, str]) -> dict[str, Any]:
    """Return the parameters that create and update share.

    Raises ValueError for a number that is none.
    """
    params: dict[str, Any] = {
        "Description": filled["description"],
        "QualificationTypeStatus": "Inactive" if filled["status"] == "Inactive" else "Active",
        "AutoGranted": filled["auto"] == "1",
    }
    if filled["keywords"]:
        params["Keywords"] = filled["keywords"]
    if filled["retry"]:
        params["RetryDelayInSeconds"] = round(_number(gettext("The time before another try"), filled["retry"]) * 3600)
    if filled["test"]:
        params["Test"] = filled["test"]
        params["TestDurationInSeconds"] = round(_number(gettext("The time for the test"), filled["minutes"]) * 60)
        if filled["key"]:
            params["AnswerKey"] = filled["key"]
    if filled["auto"] == "1":
        params["AutoGrantedValue"] = _whole(gettext("The value"), filled["auto_value"] or "1")
    return params


def _reason() -> dict[str, str]:
    words = console.typed("words")[:1024]
    return {"Reason": words} if words else {}


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        raise ValueError(gettext("%(name)s is a whole number, not “%(text)s”.", name=name, text=text[:40]))
    return int(text)


def _number(name: str, text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text, re.ASCII):
        raise ValueError(gettext("%(name)s is a number such as 1 or 0.5, not “%(text)s”.", name=name, text=text[:40]))
    return float(text)


def _words(refusal: Exception) -> str:
    return in_words(refusal) if isinstance(refusal, MarketplaceError) else str(refusal)
