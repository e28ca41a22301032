"""The address by which the marketplace opens a HIT page in its frame: what it claims, and whether that can be so."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from app.settings import Settings
from hits.errors import Refused

PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"


class FrameRefused(Refused):
    """An address that the marketplace did not make."""


class FrameExpired(Refused):
    """The address of an assignment whose time is over."""

    def __init__(self) -> None:
        super().__init__("The time for this assignment is over, so this page can't be opened any more.")


@dataclass(frozen=True)
class Frame:
    """What the address of a HIT page says. A preview has no assignment; ``deadline`` is known when it was signed."""

    assignment_id: str | None
    hit_id: str
    worker_id: str
    deadline: datetime | None

    @property
    def is_preview(self) -> bool:
        return self.assignment_id is None


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address in lower case, with the scheme's own port left out."""
    parts = urlsplit(url.strip())
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port not in (None, usual) else "")


def submit_address(settings: Settings) -> str:
    """Return where an assignment is submitted: always the configured worker site, never what a page's address says."""
    return f"{origin_of(settings.worker_site_url)}/mturk/externalSubmit"


def read_frame(query: Mapping[str, str], settings: Settings, now: datetime) -> Frame:
    """Return what the address claims. An address without an assignment is a preview.

    Raises FrameRefused for a foreign worker site, missing ids or a wrong signature, FrameExpired for a late one.
    """
    assignment_id = query.get("assignmentId", "")
    hit_id = query.get("hitId", "")
    worker_id = query.get("workerId", "")
    if assignment_id in ("", PREVIEW):
        return Frame(None, hit_id, "", None)
    submit_to = query.get("turkSubmitTo", "")
    if submit_to and not _is_origin(submit_to, settings.worker_site_url):
        raise FrameRefused(
            f"This page was opened from {submit_to[:200]!r}, but this HIT belongs to "
            f"{origin_of(settings.worker_site_url)}. Nothing was stored."
        )
    if not worker_id or not hit_id:
        raise FrameRefused("This page's address names no worker or no HIT. Nothing was stored.")
    return Frame(assignment_id, hit_id, worker_id, _checked_deadline(query, settings, now))


def signature(secret: str, *, assignment_id: str, worker_id: str, hit_id: str, expires: str) -> str:
    """Return the signature that the marketplace puts into the address of an accepted HIT."""
    message = f"v1\n{assignment_id}\n{worker_id}\n{hit_id}\n{expires}"
    return hmac.new(secret.encode(), message.encode(), hashlib.sha256).hexdigest()


def _checked_deadline(query: Mapping[str, str], settings: Settings, now: datetime) -> datetime | None:
    if settings.frame_secret is None:
        return None
    expires = query.get("frameExpires", "")
    right = signature(
        settings.frame_secret.get_secret_value(),
        assignment_id=query["assignmentId"],
        worker_id=query["workerId"],
        hit_id=query["hitId"],
        expires=expires,
    )
    given = query.get("frameSignature", "")
    if not (expires.isascii() and expires.isdigit()) or not hmac.compare_digest(right.encode(), given.encode()):
        raise FrameRefused(
            "The marketplace did not make this page's address: its signature does not fit the assignment and the "
            "worker. Nothing was stored."
        )
    deadline = datetime.fromtimestamp(int(expires), tz=UTC)
    if now >= deadline:
        raise FrameExpired
    return deadline


def _is_origin(url: str, site: str) -> bool:
    try:
        return origin_of(url) == origin_of(site) and urlsplit(url).path in ("", "/")
    except ValueError:
        return False
