"""What every page of the requester console stands on: who is signed in, calls by the API's rules, refusals in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from flask import Blueprint, session
from flask.typing import ResponseReturnValue

from app.marketplace import console, errors, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext, translated
from hits.marketplace.errors import MarketplaceError, NothingThere, OperatorError
from hits.marketplace.words import Words, words

requester = Blueprint("requester", __name__, url_prefix=sessions.CONSOLE_PATH)

_PREFIX: Final = "AWS.MechanicalTurk."
#: What the API's codes mean to somebody who clicks.
WORDS: Final[Mapping[str, Words]] = {
    "InvalidAssignmentState": words("It is reviewed already, or was approved by itself in the meantime."),
    "InvalidHITState": words("The HIT's state does not allow that now; load its page again to see how it stands."),
    "InsufficientFunds": words(
        "Your available balance is too low for that. Ask the operator for a top-up, then repeat."
    ),
    "DuplicateRequest": words("This form was sent before, and was carried out then."),
    "InvalidMaximumAssignmentsIncrease": words(
        "A HIT created with fewer than 10 places cannot be extended to 10 or more, "
        "since its fee would be another one. Create a new HIT for more."
    ),
    "QualificationTypeAlreadyExists": words("You have a qualification of this name already. Choose another name."),
    "InvalidQualificationRequestState": words("This request is decided already."),
    "InvalidQualificationState": words("The worker does not hold this qualification any more."),
    "InvalidQualificationTypeState": words("This qualification is not active."),
}


def me() -> str:
    """Return the signed-in requester's id."""
    return cast(str, session["requester_id"])


def call(operation: str, **params: Any) -> dict[str, Any]:
    """Carry out an operation of the API in the signed-in requester's name.

    Raises MarketplaceError.
    """
    return marketplace().call(me(), operation, params)


def code_of(error: MarketplaceError) -> str:
    """Return the TurkErrorCode of an error without its prefix, or nothing."""
    return (error.turk_code or "").removeprefix(_PREFIX)


def in_words(error: MarketplaceError) -> str:
    """Return what an error of the API means to somebody who clicks; what the API alone says is English."""
    return str(translated(WORDS.get(code_of(error), console.unstamped(error.message))))


def is_absent(error: MarketplaceError) -> bool:
    """Whether an error says that something does not exist, or is another requester's."""
    return code_of(error).endswith("DoesNotExist")


@requester.errorhandler(MarketplaceError)
def refused(error: MarketplaceError) -> ResponseReturnValue:
    """Show a refusal of the API as a page."""
    if is_absent(error):
        return errors.page(404, errors.WORDS[404])
    return errors.page(
        409, gettext("%(problem)s Nothing was changed.", problem=in_words(error)), words("This was not done")
    )


@requester.errorhandler(OperatorError)
def not_done(error: OperatorError) -> ResponseReturnValue:
    """Show a refusal of the engine as a page."""
    if isinstance(error, NothingThere):
        return errors.page(404, errors.WORDS[404])
    return errors.page(409, console.said(error), words("This was not done"))
