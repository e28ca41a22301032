"""Signed links that are sent to people: each for one purpose, for some hours, and dead once what it was for is done."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

from hits.marketplace.errors import LinkUnfit
from hits.marketplace.transactions import Transaction


def token(transaction: Transaction, purpose: str, subject: str, *, state: str, life: timedelta, **more: str) -> str:
    """Return the token of a link about `subject`.

    `state` is what must still be so when the link is used, such as the password that it replaces: only a digest of it
    goes into the token. `more` can be read by whoever has the link.
    """
    expires = int((transaction.now + life).timestamp())
    content = {**more, "subject": subject, "expires": expires, "state": _digest(transaction, purpose, state)}
    return str(_serializer(transaction, purpose).dumps(content))


def content(transaction: Transaction, purpose: str, token: str) -> dict[str, Any]:
    """Return what a token says; what it was made for must be checked with `still_holds`.

    Raises LinkUnfit for one that was not made here for this purpose, or whose time is over.
    """
    try:
        found: dict[str, Any] = _serializer(transaction, purpose).loads(token)
    except (BadData, UnicodeError) as error:
        raise LinkUnfit from error
    if found["expires"] <= transaction.now.timestamp():
        raise LinkUnfit
    return found


def still_holds(transaction: Transaction, purpose: str, content: dict[str, Any], state: str) -> bool:
    """Tell whether everything is as it was when the link was made."""
    return hmac.compare_digest(content["state"], _digest(transaction, purpose, state))


def _digest(transaction: Transaction, purpose: str, state: str) -> str:
    return hmac.new(
        transaction.settings.secret_key.encode(), f"link state\n{purpose}\n{state}".encode(), hashlib.sha256
    ).hexdigest()[:32]


def _serializer(transaction: Transaction, purpose: str) -> URLSafeSerializer:
    return URLSafeSerializer(
        transaction.settings.secret_key,
        salt=f"marketplace link {purpose} v1",
        signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
    )
