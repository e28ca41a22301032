"""What every page of the operator console stands on: who is signed in, how lately, and refusals in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Final, ParamSpec, cast

from flask import Blueprint, flash, redirect, request, session, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, errors, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext
from hits.marketplace.console_views import Actor
from hits.marketplace.errors import NothingThere, OperatorError
from hits.marketplace.words import words

P = ParamSpec("P")
operator = Blueprint("operator", __name__, url_prefix=sessions.OPERATOR_PATH)
#: How long a password counts for what moves money or closes accounts, and for everything else.
FRESH: Final = timedelta(minutes=15)
LONGEST_SESSION: Final = timedelta(hours=12)


def by() -> Actor:
    """Return the signed-in operator, for the audit log."""
    return Actor.operator(cast(str, session["name"]))


def is_fresh() -> bool:
    """Whether the password was given within the last 15 minutes."""
    return _age() < FRESH


def freshly(view: Callable[P, ResponseReturnValue]) -> Callable[P, ResponseReturnValue]:
    """Let a page open for a signed-in operator who gave the password lately; ask for it again otherwise."""

    @wraps(view)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> ResponseReturnValue:
        if is_fresh():
            return view(*args, **kwargs)
        if request.method != "GET":
            said = gettext("Your password has to be given again before that. Nothing was changed; send the form again.")
            flash(said, "info")
        return redirect(url_for("operator.confirm_password", next=request.full_path.rstrip("?")), 303)

    return sessions.for_operators(guarded)


@operator.before_request
def check_account() -> ResponseReturnValue | None:
    """End a session that is old or was ended, or whose account was closed or got another password since it began."""
    operator_id = sessions.operator_id()
    if operator_id is None:
        return None
    began = datetime.fromisoformat(session["password_set_at"])
    account = marketplace().operator_in_session(operator_id, began, session.get("key", ""))
    if account is not None and _age() < LONGEST_SESSION:
        return None
    session.clear()
    said = gettext(
        "You have been signed out: the session was ended or too old, the password was changed, or the account closed."
    )
    flash(said, "info")
    return redirect(url_for("operator.sign_in"), 303)


@operator.errorhandler(OperatorError)
def refused(error: OperatorError) -> ResponseReturnValue:
    """Show a refusal of the engine as a page."""
    if isinstance(error, NothingThere):
        return errors.page(404, errors.WORDS[404])
    return errors.page(409, console.said(error), words("This was not done"))


def _age() -> timedelta:
    return timedelta(seconds=marketplace().clock.now().timestamp() - session.get("signed_in_at", 0))
