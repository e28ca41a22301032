"""Workers as a requester knows them: messages and blocks, and disputes about rejections."""

from __future__ import annotations

import re

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext, translated
from app.marketplace.requester.console import call, in_words, me, requester
from hits.marketplace.answer_rows import answer_rows
from hits.marketplace.disputes import MOST_WORDS, STATES
from hits.marketplace.errors import MarketplaceError, MessageUnfit, OperatorError

PAGE_SIZE = 25
LONGEST_REASON = 1024
EXAMPLE = "A1B2C3D4E5F6G7"
_WORKER = re.compile("A[A-Z0-9]{1,63}")


@requester.get("/messages")
@sessions.for_requesters
def messages() -> ResponseReturnValue:
    """Show what workers and the operator wrote, all or what is unanswered."""
    unanswered = console.asked("unanswered") == "1"
    found = marketplace().requester_messages(
        me(), unanswered_only=unanswered, page=console.page_number(), page_size=PAGE_SIZE
    )
    return render_template("marketplace/requester/messages.html", found=found, unanswered=unanswered)


@requester.post("/messages/<entity:message_id>/reply")
@sessions.for_requesters
def reply(message_id: str) -> ResponseReturnValue:
    """Answer a worker."""
    try:
        marketplace().reply_to_worker(me(), message_id, console.typed("words"))
    except MessageUnfit as refusal:
        flash(translated(refusal.message), "error")
    else:
        flash(gettext("Your reply is in the worker's messages."), "success")
    return redirect(url_for("requester.messages"), 303)


@requester.get("/blocks")
@sessions.for_requesters
def blocks() -> ResponseReturnValue:
    """List the workers whose work this requester does not take."""
    token = console.asked("after")
    page = call("ListWorkerBlocks", MaxResults=PAGE_SIZE, **({"NextToken": token} if token else {}))
    more = page.get("NextToken") if len(page["WorkerBlocks"]) == PAGE_SIZE else None
    return render_template("marketplace/requester/blocks.html", blocks=page["WorkerBlocks"], more=more, start=not token)


@requester.post("/blocks")
@sessions.for_requesters
def block() -> ResponseReturnValue:
    """Block a worker."""
    worker_id, words = console.typed("worker_id"), console.typed("words")
    if not _WORKER.fullmatch(worker_id) or not 0 < len(words) <= LONGEST_REASON:
        said = gettext("Give a worker id, such as %(example)s, and a reason for your own record.", example=EXAMPLE)
        flash(said, "error")
    else:
        try:
            call("CreateWorkerBlock", WorkerId=worker_id, Reason=words)
        except MarketplaceError as error:
            flash(in_words(error), "error")
        else:
            said = gettext(
                "%(worker)s can no longer accept your HITs. What they have handed in waits for you.", worker=worker_id
            )
            flash(said, "success")
    return redirect(url_for("requester.blocks"), 303)


@requester.post("/blocks/<entity:worker_id>/end")
@sessions.for_requesters
def unblock(worker_id: str) -> ResponseReturnValue:
    """Take work from a worker again."""
    call("DeleteWorkerBlock", WorkerId=worker_id)
    flash(gettext("%(worker)s can accept your HITs again.", worker=worker_id), "success")
    return redirect(url_for("requester.blocks"), 303)


@requester.get("/disputes")
@sessions.for_requesters
def disputes() -> ResponseReturnValue:
    """List the disputes about this requester's rejections."""
    state = console.asked("state")
    state = state if state in STATES else "Open"
    found = marketplace().disputes(state=state, requester_id=me(), page=console.page_number())
    return render_template("marketplace/requester/disputes.html", disputes=found, state=state, states=STATES)


@requester.route("/disputes/<entity:dispute_id>", methods=["GET", "POST"])
@sessions.for_requesters
def dispute(dispute_id: str) -> ResponseReturnValue:
    """Show one dispute, and take this side's words."""
    found, error = marketplace().dispute(dispute_id, requester_id=me()), ""
    if request.method == "POST":
        try:
            marketplace().reply_to_dispute(me(), dispute_id, console.typed("words"))
        except OperatorError as refusal:
            error = console.said(refusal)
        else:
            flash(gettext("Your words are with the dispute; the operator reads them."), "success")
            return redirect(url_for("requester.dispute", dispute_id=dispute_id), 303)
    return render_template(
        "marketplace/requester/dispute.html",
        dispute=found,
        rows=answer_rows(found.answer) if found.answer else [],
        words=console.typed("words") or found.reply or "",
        error=error,
        most_words=MOST_WORDS,
    ), (422 if error else 200)
