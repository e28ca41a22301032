"""The second origin: a host name that serves HTMLQuestions to their frames, the scripts they ask for, and no more."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from flask import Blueprint, Flask, abort, g, redirect, request
from flask.typing import ResponseReturnValue
from flask.wrappers import Response

from app.marketplace.extensions import marketplace, settings
from hits.marketplace import crowd_elements
from hits.marketplace.errors import HitUnknown

content = Blueprint("content", __name__)
# What a requester's page loads in the place of Amazon's scripts.
SCRIPTS: Final = ("js/externalHIT_v1.js", "js/crowd_elements.js")
# Without an origin, and so without cookies and storage. What a page asks before it submits (confirm) must come back,
# and a site that it links to must open as a site of its own.
CONTENT_SANDBOX: Final = "allow-scripts allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox"
SUBMIT_PATH: Final = "/mturk/externalSubmit"
_SCRIPT: Final = re.compile(
    r"(?:https?:)?//(?:s3\.amazonaws\.com/mturk-public|mturk-public\.s3\.amazonaws\.com)/externalHIT_v1\.js"
)
_SUBMIT: Final = re.compile(r"(?:https?:)?//(?:www|workersandbox)\.mturk\.com/mturk/externalSubmit")


def at_home(page: str, *, site_url: str, content_origin: str) -> str:
    """Return a page with Amazon's own addresses, which answer no more, replaced by those of this marketplace.

    The scripts come from the page's own origin, so that it asks nothing of the site but to take its answers.
    """
    page = _SCRIPT.sub(f"{content_origin}/static/js/externalHIT_v1.js", page)
    page = crowd_elements.SCRIPT.sub(f"{content_origin}/static/js/crowd_elements.js", page)
    return _SUBMIT.sub(site_url + SUBMIT_PATH, page)


def content_policy(site_url: str, content_origin: str) -> str:
    """Return the policy of a requester's page: any script, no origin, forms to this marketplace only."""
    return "; ".join(
        (
            f"sandbox {CONTENT_SANDBOX}",
            "object-src 'none'",
            "base-uri 'none'",
            f"form-action {site_url} {content_origin}",
            f"frame-ancestors {site_url}",
        )
    )


def is_content_host() -> bool:
    """Return whether this request came under the second origin's host name."""
    origin = settings().content_origin
    if origin is None:
        return False
    host: str = request.environ.get("HTTP_HOST", "")
    return urlsplit(f"//{host}").hostname == urlsplit(origin).hostname


def _is_script() -> bool:
    return request.endpoint == "static" and (request.view_args or {}).get("filename") in SCRIPTS


@content.get("/hit-content/<entity:hit_id>")
def hit_content(hit_id: str) -> ResponseReturnValue:
    """Give a requester's HTML to whoever has its signed address; on the site's own host there is no such page."""
    if not is_content_host():
        abort(404)
    expires, signature = request.args.get("contentExpires", ""), request.args.get("contentSignature", "")
    try:
        page = marketplace().question_html(hit_id, expires, signature)
    except HitUnknown:
        return Response("This page is not open (any more). Load the HIT again.\n", 404, mimetype="text/plain")
    here = settings().content_origin or settings().site_url
    return Response(at_home(page, site_url=settings().site_url, content_origin=here), mimetype="text/html")


def init_content(app: Flask) -> None:
    """Serve the second origin: its pages are shut in, and everything else at its host name leads to the site."""
    app.register_blueprint(content)

    @app.before_request
    def only_content() -> ResponseReturnValue | None:
        if not is_content_host() or request.path == "/healthz":
            return None
        g.content_page = True
        if request.endpoint == "content.hit_content" or _is_script():
            return None
        if request.method in {"GET", "HEAD"}:
            return redirect(settings().site_url + request.full_path.rstrip("?"), 303)
        if request.path == SUBMIT_PATH:
            # A form with a relative address. The body goes along.
            return redirect(settings().site_url + SUBMIT_PATH, 307)
        return Response("There is nothing to post to at this host name.\n", 404, mimetype="text/plain")
