"""Security headers of every answer: HIT pages may be framed by the worker site, everything else by nobody."""

from __future__ import annotations

from flask import Flask, Response, request

from app.frames import origin_of
from app.settings import Settings


def content_policy(*, frame_ancestors: str, form_action: str) -> str:
    """Return the policy's text: only our own files, no inline script or style."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            # The style sheet draws its small icons from data addresses.
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            f"form-action {form_action}",
            f"frame-ancestors {frame_ancestors}",
        )
    )


def is_hit_page(path: str) -> bool:
    """Tell whether an address belongs to the pages that the worker site frames, errors among them included."""
    return path.startswith(("/work/", "/validate/", "/care/", "/quiz/"))


def init_headers(app: Flask, settings: Settings) -> None:
    """Set the headers on every answer of the app."""
    site = origin_of(settings.worker_site_url)
    framed = content_policy(frame_ancestors=site, form_action=f"'self' {site}")
    alone = content_policy(frame_ancestors="'none'", form_action="'self'")

    @app.after_request
    def set_headers(response: Response) -> Response:
        hit_page = is_hit_page(request.path)
        response.headers["Content-Security-Policy"] = framed if hit_page else alone
        if not hit_page:
            response.headers["X-Frame-Options"] = "DENY"
            response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        # Files of ours are asked about again each time, so that an upgrade shows at once.
        response.headers["Cache-Control"] = "no-cache" if request.endpoint == "static" else "no-store"
        return response
