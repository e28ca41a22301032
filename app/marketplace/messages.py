"""A worker's inbox: what requesters wrote, and what was decided about qualifications."""

from __future__ import annotations

from typing import cast

from flask import Blueprint, redirect, render_template, session, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import sessions
from app.marketplace.extensions import marketplace

messages = Blueprint("messages", __name__)


@messages.get("/messages")
@sessions.for_workers
def inbox() -> ResponseReturnValue:
    """Show a worker's messages, newest first."""
    return render_template("marketplace/messages.html", messages=marketplace().messages(_me()))


@messages.post("/messages/read")
@sessions.for_workers
def mark_read() -> ResponseReturnValue:
    """Mark all of them as read."""
    marketplace().mark_messages_read(_me())
    return redirect(url_for("messages.inbox"), 303)


def _me() -> str:
    return cast(str, session["worker_id"])
