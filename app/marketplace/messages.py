"""A worker's messages: what requesters and the operator wrote, and what the worker wrote to requesters."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from flask import Blueprint, redirect, render_template, session, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import sessions
from app.marketplace.extensions import marketplace
from app.marketplace.worker import page_number

messages = Blueprint("messages", __name__)
PAGE_SIZE = 25


@messages.app_context_processor
def unread_count() -> dict[str, Callable[[], int]]:
    """Give the navigation the number of a worker's unread messages, when it asks."""
    return {"unread_messages": lambda: marketplace().unread_messages(_me())}


@messages.get("/messages")
@sessions.for_workers
def inbox() -> ResponseReturnValue:
    """Show a page of a worker's messages, newest first."""
    found = marketplace().messages(_me(), page=page_number(), page_size=PAGE_SIZE)
    return render_template("marketplace/messages.html", found=found)


@messages.get("/messages/sent")
@sessions.for_workers
def sent() -> ResponseReturnValue:
    """Show a page of what the worker wrote to requesters, with the replies."""
    found = marketplace().sent_messages(_me(), page=page_number(), page_size=PAGE_SIZE)
    return render_template("marketplace/messages_sent.html", found=found)


@messages.post("/messages/read")
@sessions.for_workers
def mark_read() -> ResponseReturnValue:
    """Mark all of them as read."""
    marketplace().mark_messages_read(_me())
    return redirect(url_for("messages.inbox"), 303)


def _me() -> str:
    return cast(str, session["worker_id"])
