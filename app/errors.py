"""The only map from what went wrong to a status and to words: a page for people, JSON for a page's own script."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from flask import Flask, jsonify, render_template, request
from flask.typing import ResponseReturnValue
from flask_limiter.errors import RateLimitExceeded
from flask_wtf.csrf import CSRFError
from sqlalchemy.exc import DataError, OperationalError
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge, SecurityError

from app.extensions import db
from app.frames import FrameExpired, FrameRefused
from app.headers import is_hit_page
from app.tokens import TokenExpired, TokenInvalid
from hits import errors as hits_errors
from hits.predictions import ModelUnavailable
from payments.errors import InvalidMonth, PaymentsError
from qualification.errors import NotAdmitted

logger = logging.getLogger(__name__)

#: A larger request is no statement of a person; the largest field takes 4,000 characters.
MAX_BODY_BYTES = 64 * 1024
#: The rest of a refused body is read up to here, so that the answer arrives instead of a broken connection.
DRAIN_BYTES = 2 * 1024 * 1024


class AccessDenied(hits_errors.Refused):
    """A member of staff without the role that a page needs."""

    def __init__(self, role: str) -> None:
        super().__init__(f"Your account does not have the role {role!r}, so this page stays closed.")


@dataclass(frozen=True)
class Trouble:
    """One refusal in words. ``pay`` is for workers only."""

    status: int
    title: str
    what: str
    pay: str
    next: str


OPEN_AGAIN = "Open the HIT again from your list of HITs on the marketplace."
NOT_PAID_LESS = "Your pay is not affected, and no try was used."
GO_BACK = "Go back to the page you came from and go on from there."

#: By class, the nearest base class counts: status, title, what it means for pay, what to do next.
_DOMAIN: dict[type[Exception], tuple[int, str, str, str]] = {
    hits_errors.HitsError: (400, "This did not work", NOT_PAID_LESS, GO_BACK),
    hits_errors.NotFound: (404, "There is nothing here", "", OPEN_AGAIN),
    hits_errors.InvalidInput: (422, "This can't be used", NOT_PAID_LESS, GO_BACK),
    hits_errors.Refused: (409, "This is not possible", NOT_PAID_LESS, OPEN_AGAIN),
    hits_errors.WrongWorker: (403, "This is not your assignment", "", OPEN_AGAIN),
    hits_errors.ConsentMissing: (403, "You have not agreed yet", NOT_PAID_LESS, OPEN_AGAIN),
    hits_errors.NotWarned: (403, "You have not seen the warning yet", NOT_PAID_LESS, OPEN_AGAIN),
    hits_errors.DayIsFull: (
        409,
        "That was enough for today",
        "What you have done is kept. Hand it in, or return the HIT if you have done nothing in it yet.",
        OPEN_AGAIN,
    ),
    hits_errors.OwnExample: (403, "This statement is your own", NOT_PAID_LESS, OPEN_AGAIN),
    hits_errors.AlreadySubmitted: (
        409,
        "This HIT is already submitted",
        "You are paid for it once, as promised.",
        "You can go on with another HIT from your list.",
    ),
    NotAdmitted: (
        403,
        "This HIT is not open to you",
        "No try was used, and what you earned before is not affected.",
        "Return this HIT on the marketplace: that does not count against you here, and somebody else can do it.",
    ),
    ModelUnavailable: (
        503,
        "The model gave no answer",
        "No try was used. Submitting still pays.",
        "Ask again in a moment, or submit.",
    ),
    TokenInvalid: (403, "This form can't be accepted", "Nothing that you did before is lost.", OPEN_AGAIN),
    TokenExpired: (403, "This page is too old", "What you did before is stored.", OPEN_AGAIN),
    FrameRefused: (403, "This address can't be accepted", "No assignment was changed.", OPEN_AGAIN),
    FrameExpired: (
        403,
        "The time is over",
        "An assignment that was not submitted in time is not paid; it does not count against you here.",
        "You can accept another HIT from your list.",
    ),
    PaymentsError: (409, "This was not done", "", GO_BACK),
    InvalidMonth: (422, "This is not a month", "", GO_BACK),
    AccessDenied: (403, "Not for your account", "", "Ask the person who runs this service for the role."),
}
_HTTP: dict[int, tuple[str, str, str]] = {
    400: ("This request can't be read", "The request was not complete, so nothing was changed.", GO_BACK),
    404: ("There is nothing here", "No page has this address.", "Check that you copied all of it."),
    405: (
        "This address does not work that way",
        "The page was asked for in a way it does not know, so nothing was changed.",
        GO_BACK,
    ),
    413: (
        "This is too long",
        "More than 64 kB were sent, far more than a statement. Nothing was stored.",
        "Go back and shorten your text.",
    ),
    429: (
        "That was too fast",
        "More requests came than a person makes. This one was not carried out.",
        "Wait a minute, then go on.",
    ),
}
_BROKEN = Trouble(
    500,
    "Something went wrong here",
    "The service failed to answer. That is our fault, and it is written to our log.",
    "What you did before is stored. No try was used for an answer that you did not see.",
    "Wait a moment and load the page again.",
)
#: The database is there but can't write or can't be reached: a full disk, a lock that never came, a lost connection.
_NO_ROOM = Trouble(
    503,
    "This can't be stored at the moment",
    "Our database can't take it. That is our fault, and it is written to our log.",
    "What you did before is stored. Nothing is half done, and no try was used for this.",
    "Keep your text, wait a moment, and do it again.",
)
#: What no database keeps, in a place where no page's form has it: NUL in an address, a number of 30 digits.
_UNFIT = Trouble(
    422,
    "This can't be used",
    "The request holds a character or a number that can't be stored, so nothing was changed.",
    NOT_PAID_LESS,
    GO_BACK,
)


def trouble_of(error: Exception) -> Trouble:
    """Return the words for an error; any that is not known becomes a plain 500 without its details."""
    if isinstance(error, CSRFError):
        return Trouble(
            400,
            "This form is too old",
            "The form did not come from this site in this session, so nothing was changed.",
            "",
            "Go back, load the page again and repeat it.",
        )
    if isinstance(error, HTTPException):
        status = error.code or 500
        if status >= 500 and status != 503:
            return _BROKEN
        title, what, then = _HTTP.get(status, ("This did not work", "The request was refused.", GO_BACK))
        return Trouble(status, title, what, NOT_PAID_LESS if status in (413, 429) else "", then)
    if isinstance(error, OperationalError):
        return _NO_ROOM
    if isinstance(error, DataError):
        return _UNFIT
    for kind in type(error).__mro__:
        if kind in _DOMAIN:
            status, title, pay, then = _DOMAIN[kind]
            return Trouble(status, title, str(error), pay, then)
    return _BROKEN


def asked_by_script() -> bool:
    """Tell whether a page's own script asked (static/js/hit.js sets the header)."""
    return request.headers.get("X-Requested-With") == "fetch"


def answer(trouble: Trouble) -> ResponseReturnValue:
    """Return the page, or the JSON form, of one refusal."""
    if asked_by_script() or request.path in ("/healthz", "/readyz"):
        fields = {"title": trouble.title, "what": trouble.what, "pay": trouble.pay, "next": trouble.next}
        return jsonify(error=fields), trouble.status
    framed = is_hit_page(request.path)
    if not framed:
        # Staff have no HIT to open again, and no pay that hangs on it.
        trouble = replace(trouble, pay="", next=GO_BACK if trouble.next == OPEN_AGAIN else trouble.next)
    return render_template("errors/trouble.html", trouble=trouble, framed=framed), trouble.status


def init_errors(app: Flask) -> None:
    """Register the answers to everything that can go wrong."""
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["MAX_FORM_MEMORY_SIZE"] = MAX_BODY_BYTES

    @app.errorhandler(PaymentsError)
    @app.errorhandler(hits_errors.HitsError)
    @app.errorhandler(DataError)
    def refused(error: hits_errors.HitsError | PaymentsError | DataError) -> ResponseReturnValue:
        db.session.rollback()
        return answer(trouble_of(error))

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> ResponseReturnValue:
        if error.code is not None and error.code < 400:
            return error
        if isinstance(error, SecurityError):
            # A request for another host has no addresses that a page could be built with.
            text = "This service does not answer under this name. Use the address that you were given.\n"
            return app.response_class(text, 400, mimetype="text/plain")
        db.session.rollback()
        if isinstance(error, RequestEntityTooLarge):
            _drain()
        response = app.make_response(answer(trouble_of(error)))
        if isinstance(error, RateLimitExceeded):
            response.headers["Retry-After"] = "60"
        return response

    @app.errorhandler(Exception)
    def broken(error: Exception) -> ResponseReturnValue:
        trace = hits_errors.trace_of(error)
        logger.error("%s %s failed: %s", request.method, request.endpoint, trace)  # its words may quote a worker
        db.session.rollback()
        return answer(trouble_of(error))


def _drain() -> None:
    body = request.environ["wsgi.input"]
    announced = min(request.content_length or 0, DRAIN_BYTES)
    while announced > 0 and (part := body.read(min(announced, MAX_BODY_BYTES))):
        announced -= len(part)
