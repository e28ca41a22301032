"""Makes identifiers in MTurk's forms; all are random and unguessable."""

from __future__ import annotations

import secrets
import string
from typing import Final

_ALPHABET: Final = string.ascii_uppercase + string.digits
_BASE32: Final = string.ascii_uppercase + "234567"


def new_entity_id() -> str:
    """Return an id of a HIT, HIT type, HIT group, assignment or qualification type: 3 and 29 characters."""
    return "3" + _random(_ALPHABET, 29)


def new_customer_id() -> str:
    """Return an id of a worker or requester: A and 13 characters."""
    return "A" + _random(_ALPHABET, 13)


def new_access_key_id() -> str:
    """Return an access key id in AWS' form."""
    return "AKIA" + _random(_BASE32, 16)


def new_secret() -> str:
    """Return a secret of 40 characters."""
    return _random(string.ascii_letters + string.digits, 40)


def new_invitation_code() -> str:
    """Return a code that a person can type: four groups of four characters, none easily mistaken for another."""
    return "-".join(_random("ABCDEFGHJKMNPQRSTUVWXYZ23456789", 4) for _ in range(4))


def _random(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))
