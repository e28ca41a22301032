"""The Requester API's door: any POST with X-Amz-Target, and every other POST to /."""

from __future__ import annotations

from flask import Flask, request
from flask.wrappers import Response
from werkzeug.exceptions import RequestEntityTooLarge

from app.marketplace import no_auth
from app.marketplace.extensions import marketplace
from hits.marketplace import wire


def answer() -> Response:
    """Answer one API request; the signature is checked against the requesters' access keys."""
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        # What is cut off here is over the API's own limit as well, and gets the same answer.
        body = b" " * (wire.LARGEST_BODY + 1)
    engine, headers = marketplace(), dict(request.headers)
    # The signature covers the address as it was sent, before any decoding.
    path = request.environ.get("RAW_URI", request.path).partition("?")[0]
    query = request.query_string.decode("latin-1")
    status, answer_headers, answer_body = wire.handle(
        engine,
        request.method,
        headers,
        body,
        authenticate=lambda: (
            no_auth.requester_id() or engine.authenticate_request(request.method, path, query, headers, body)
        ),
    )
    return Response(answer_body, status, answer_headers)


def init_api(app: Flask) -> None:
    """Catch API requests before sessions and form checks see them; they carry their own signature."""

    @app.before_request
    def to_the_api() -> Response | None:
        if request.method == "POST" and ("X-Amz-Target" in request.headers or request.path == "/"):
            return answer()
        return None
