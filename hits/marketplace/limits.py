"""The documented limits that the service model does not carry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hits.marketplace.errors import (
    INVALID_PARAMETER_VALUE,
    PARAMETER_OUT_OF_RANGE,
    REQUEST_ERROR,
    MarketplaceError,
)
from hits.marketplace.money import to_cents, wire

# Name of the parameter, least, most; sources in docs/marketplace-choices.md.
NUMBERS: Final = {
    "MaxAssignments": (1, 1_000_000_000),
    "NumberOfAdditionalAssignments": (1, 1_000_000_000),
    "AssignmentDurationInSeconds": (30, 31_536_000),
    "LifetimeInSeconds": (30, 31_536_000),
    "AutoApprovalDelayInSeconds": (0, 2_592_000),
    "RetryDelayInSeconds": (0, 315_360_000),
    "TestDurationInSeconds": (1, 31_536_000),
}
LENGTHS: Final = {
    "Title": 128,
    "Description": 2000,
    "Keywords": 1000,
    "RequesterAnnotation": 255,
    "RequesterFeedback": 1024,
    "Name": 200,
    "Reason": 4096,
    "Query": 1000,
    "Subject": 200,
    "MessageText": 4096,
}
BYTES: Final = {"Question": 65535, "Test": 65535, "AnswerKey": 65535}
LARGEST_AMOUNT_CENTS: Final = 10_000_000
_LONGEST_AMOUNT: Final = 40
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_TEXTS = (*LENGTHS, *BYTES, "UniqueRequestToken")


def check_limits(params: Mapping[str, Any]) -> None:
    """Check every parameter that a limit is written down for.

    Raises MarketplaceError (RequestError) with AWS.ParameterOutOfRange or InvalidParameterValue.
    """
    for name, (least, most) in NUMBERS.items():
        if name in params and not least <= params[name] <= most:
            raise _out_of_range(f"The value {params[name]} of {name} must be between {least} and {most}.")
    for name, most in LENGTHS.items():
        if name in params and len(params[name]) > most:
            raise _out_of_range(f"{name} has {len(params[name])} characters; at most {most} are allowed.")
    for name, most in BYTES.items():
        if name in params and len(params[name].encode()) > most:
            raise _out_of_range(f"{name} has {len(params[name].encode())} bytes; at most {most} are allowed.")
    for name in _TEXTS:
        if name in params and _CONTROL.search(params[name]):
            raise _invalid(f"{name} contains control characters.")
    for name in ("Title", "Description", "Name"):
        if name in params and not params[name].strip():
            raise _invalid(f"{name} must not be empty.")


def amount_cents(name: str, text: str, *, least: int = 0) -> int:
    """Return the cents of a Reward or BonusAmount.

    Raises MarketplaceError (RequestError) if it is out of range.
    """
    if len(text) <= _LONGEST_AMOUNT and least <= (cents := to_cents(text)) <= LARGEST_AMOUNT_CENTS:
        return cents
    raise _out_of_range(
        f"The value {text[:_LONGEST_AMOUNT]} of {name} must be between {wire(least)} and {wire(LARGEST_AMOUNT_CENTS)}."
    )


def _out_of_range(reason: str) -> MarketplaceError:
    return MarketplaceError(REQUEST_ERROR, reason, PARAMETER_OUT_OF_RANGE.code)


def _invalid(reason: str) -> MarketplaceError:
    return MarketplaceError(REQUEST_ERROR, reason, INVALID_PARAMETER_VALUE.code)
