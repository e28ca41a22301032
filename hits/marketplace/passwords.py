"""Stores passwords as scrypt hashes and checks them in a time that tells nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final

from hits.marketplace.errors import PasswordUnfit, PasswordWrong

LEAST_LENGTH: Final = 8
MOST_LENGTH: Final = 256
_R: Final = 8
_P: Final = 1


def check(password: str) -> None:
    """Raise PasswordUnfit for a password that is too short or too long."""
    if not LEAST_LENGTH <= len(password) <= MOST_LENGTH:
        raise PasswordUnfit(LEAST_LENGTH, MOST_LENGTH)


def hashed(password: str, *, n: int) -> str:
    """Return "scrypt$n$salt$hash" for a new password."""
    salt = secrets.token_bytes(16)
    return f"scrypt${n}${_text(salt)}${_text(_derive(password, salt, n))}"


def matches(password: str, stored: str | None, *, n: int) -> bool:
    """Tell whether a password is the stored one; without a stored one the same work is done for nothing."""
    if stored is None:
        _derive(password, bytes(16), n)
        return False
    _scheme, cost, salt, expected = stored.split("$")
    derived = _derive(password, base64.b64decode(salt), int(cost))
    return hmac.compare_digest(derived, base64.b64decode(expected))


def check_present(password: str, stored: str | None, *, n: int) -> None:
    """Raise PasswordWrong unless a password is the stored one, which is asked for before a change that matters."""
    if not matches(password, stored, n=n):
        raise PasswordWrong


def _derive(password: str, salt: bytes, n: int) -> bytes:
    material = password[: MOST_LENGTH + 1].encode("utf-8", "surrogatepass")
    return hashlib.scrypt(material, salt=salt, n=n, r=_R, p=_P, maxmem=256 * n * _R + 2**20, dklen=32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
