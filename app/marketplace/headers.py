"""Security headers of each answer: a strict policy, widened by name for the pages that hold or are a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from flask import Flask, g
from flask.wrappers import Response

from app.marketplace.content import content_policy
from app.marketplace.extensions import settings
from app.marketplace.settings import origin_text

# Windows that a page opens are sites of their own. This site's policy for openers keeps them from getting hold of it.
SANDBOX = "allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox allow-modals allow-same-origin"

#: How long a browser asks for the site by https only, once it has seen it so.
_YEAR_SECONDS: Final = 31_536_000


def allow_frame(url: str) -> None:
    """Let this answer's page hold a frame of the address's origin.

    The site's own origin is allowed too, since the frame ends on externalSubmit's answer page.
    """
    g.frame_origin = origin_text(url)


def allow_media(origins: Iterable[str]) -> None:
    """Let this answer's page show images, sounds and videos of these origins."""
    g.media_origins = tuple(origins)


def be_framed_by_this_site() -> None:
    """Let this answer be shown inside a frame of the site itself."""
    g.framed = True


def content_security_policy(*, frame_origin: str | None, framed: bool, media: Iterable[str] = ()) -> str:
    """Return the policy's text; `media` are origins of images, sounds and videos."""
    media = tuple(media)
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            " ".join(("img-src 'self' data:", *media)),
            *((" ".join(("media-src", *media)),) if media else ()),
            f"frame-src 'self' {frame_origin}" if frame_origin else "frame-src 'none'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'self'" if framed else "frame-ancestors 'none'",
        )
    )


def init_headers(app: Flask) -> None:
    """Set the headers on every answer of the app."""

    @app.after_request
    def set_headers(response: Response) -> Response:
        framed = g.get("framed", False)
        headers = response.headers
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "no-referrer"
        if settings().site.scheme == "https":
            headers["Strict-Transport-Security"] = f"max-age={_YEAR_SECONDS}"
        if response.mimetype == "text/html":
            headers["Cache-Control"] = "no-store"
        if g.get("content_page"):
            site_url, content_origin = settings().site_url, settings().content_origin
            headers["Content-Security-Policy"] = content_policy(origin_text(site_url), content_origin or "'none'")
            return response
        headers["Content-Security-Policy"] = content_security_policy(
            frame_origin=g.get("frame_origin"), framed=framed, media=g.get("media_origins", ())
        )
        headers["X-Frame-Options"] = "SAMEORIGIN" if framed else "DENY"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        return response
