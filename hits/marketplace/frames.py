"""The address of a requester's page in the worker site's frame, and its signature."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

NO_ASSIGNMENT: Final = "ASSIGNMENT_ID_NOT_AVAILABLE"


def content_url(origin: str, secret: str, *, hit_id: str, until: datetime) -> str:
    """Return the address at which the HTML of a HIT is served until a time to whoever has the address."""
    expires = int(until.timestamp())
    signature = content_signature(secret, hit_id=hit_id, expires=str(expires))
    query = urlencode({"contentExpires": expires, "contentSignature": signature})
    return f"{origin}/hit-content/{hit_id}?{query}"


def content_signature(secret: str, *, hit_id: str, expires: str) -> str:
    """Return the signature of an address of HTML."""
    return hmac.new(secret.encode(), f"content\n{hit_id}\n{expires}".encode(), hashlib.sha256).hexdigest()


def preview_url(external_url: str, *, hit_id: str) -> str:
    """Return the frame's address for a preview."""
    return _with_parameters(external_url, {"assignmentId": NO_ASSIGNMENT, "hitId": hit_id})


def assignment_url(
    external_url: str,
    *,
    assignment_id: str,
    hit_id: str,
    worker_id: str,
    turk_submit_to: str,
    deadline: datetime,
    frame_secret: str | None,
) -> str:
    """Return the frame's address for an accepted assignment, signed if there is a secret."""
    parameters = {
        "assignmentId": assignment_id,
        "hitId": hit_id,
        "workerId": worker_id,
        "turkSubmitTo": turk_submit_to,
    }
    if frame_secret is not None:
        expires = int(deadline.timestamp())
        parameters["frameExpires"] = str(expires)
        parameters["frameSignature"] = frame_signature(
            frame_secret, assignment_id=assignment_id, worker_id=worker_id, hit_id=hit_id, expires=expires
        )
    return _with_parameters(external_url, parameters)


def frame_signature(secret: str, *, assignment_id: str, worker_id: str, hit_id: str, expires: int) -> str:
    """Return the hexadecimal HMAC-SHA256 that binds a frame to its assignment, worker, HIT and deadline."""
    message = f"v1\n{assignment_id}\n{worker_id}\n{hit_id}\n{expires}"
    return hmac.new(secret.encode(), message.encode(), hashlib.sha256).hexdigest()


def _with_parameters(url: str, parameters: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    query = "&".join(part for part in (parts.query, urlencode(parameters)) if part)
    return urlunsplit(parts._replace(query=query))
