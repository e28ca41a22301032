"""How refusals look: one page in plain words with the way on, and the status that fits."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Flask, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_wtf.csrf import CSRFError
from werkzeug.exceptions import HTTPException

from app.marketplace import sessions
from app.marketplace.languages import translated
from hits.marketplace import errors as refusals
from hits.marketplace.views import MissingQualification
from hits.marketplace.words import Words, words

STATUS: dict[type[refusals.SiteError], int] = {
    refusals.NotQualified: 403,
    refusals.BlockedByRequester: 403,
    refusals.HitUnknown: 404,
    refusals.AssignmentUnknown: 404,
    refusals.HitGroupEmpty: 404,
    refusals.HitNotAvailable: 410,
    refusals.HitNotShown: 501,
    refusals.ElementsMissing: 501,
    refusals.AssignmentReturned: 410,
    refusals.TooLate: 410,
    refusals.AlreadyWorkedOn: 409,
    refusals.AlreadySubmitted: 409,
    refusals.AssignmentNotHeld: 409,
    refusals.AnswerTooLarge: 413,
    refusals.QualificationUnknown: 404,
    refusals.QualificationRequestUnknown: 404,
    refusals.QualificationNotRequestable: 409,
    refusals.AlreadyQualified: 409,
    refusals.AlreadyRequested: 409,
    refusals.RetryTooSoon: 409,
    refusals.NoRetry: 409,
    refusals.TestOver: 410,
    refusals.LinkUnfit: 410,
    refusals.AddressTaken: 409,
    refusals.AccountDisabled: 403,
    refusals.MailsAskedTooOften: 429,
    refusals.DisputeNotPossible: 409,
    refusals.AlreadyDisputed: 409,
}
TITLES: dict[int, Words] = {
    403: words("You do not qualify"),
    404: words("Not found"),
    405: words("This address does not work that way"),
    409: words("This has been done already"),
    410: words("This is no longer possible"),
    413: words("Too large"),
    429: words("Too many attempts"),
    500: words("Something went wrong here"),
    501: words("This HIT cannot be shown here"),
}
WORDS: dict[int, Words] = {
    404: words("There is nothing at this address. Check that you copied all of it, or go on from the start."),
    405: words("The page was asked for in a way it does not know. Nothing was changed."),
    413: words("What was sent is too large. Nothing was stored."),
    429: words("There were too many attempts in a short time. Nothing was changed. Wait a minute and try again."),
    500: words("The site failed to answer. What you had submitted before is stored. Wait a moment and try again."),
}


def status_of(refusal: refusals.SiteError) -> int:
    """Return the HTTP status of a refusal; 400 if it has none of its own."""
    return next((STATUS[kind] for kind in type(refusal).__mro__ if kind in STATUS), 400)


def page(status: int, text: str, title: str = "", missing: Sequence[MissingQualification] = ()) -> ResponseReturnValue:
    """Return the page of one refusal; it links the qualifications that are missing."""
    title = title or TITLES.get(status, words("This did not work"))
    # "requester" or "operator", whose pages have another frame; "" is the worker site.
    console = next((one for one in ("requester", "operator") if request.path.startswith(f"/{one}")), "")
    # A page that says that the store does not answer must not ask it for the number of new messages.
    quiet = {"unread_messages": lambda: 0} if status >= 500 else {}
    content = render_template(
        "marketplace/refusal.html", title=title, text=text, console=console, missing=missing, **quiet
    )
    return content, status


def init_errors(app: Flask) -> None:
    """Register the pages for refusals, failures and forged forms."""

    @app.errorhandler(refusals.SiteError)
    def refused(refusal: refusals.SiteError) -> ResponseReturnValue:
        missing = refusal.missing if isinstance(refusal, refusals.NotQualified) else ()
        title = (
            words("This requester takes no work from you") if isinstance(refusal, refusals.BlockedByRequester) else ""
        )
        return page(status_of(refusal), refusal.message, title, missing)

    @app.errorhandler(refusals.WorkerUnknown)
    def gone(refusal: refusals.WorkerUnknown) -> ResponseReturnValue:
        if sessions.worker_id() is None:
            # In a console it is another account's page that asked.
            return page(404, WORDS[404])
        # The cookie outlived the account, and would lead every page here again.
        sessions.sign_out()
        flash(translated(refusal.message), "warning")
        return redirect(url_for("worker.sign_in"), 303)

    @app.errorhandler(CSRFError)
    def forged(error: CSRFError) -> ResponseReturnValue:
        return page(
            400,
            words(
                "This form was too old or did not come from this site, so nothing was changed. "
                "Go back, load the page again and repeat."
            ),
            words("The form could not be checked"),
        )

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> ResponseReturnValue:
        status = error.code or 500
        if status < 400:
            return error
        return page(status, WORDS.get(status, words("The request could not be understood. Nothing was changed.")))
