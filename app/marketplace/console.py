"""What both consoles share: typed text, numbered pages, and forms that do what they say once."""

from __future__ import annotations

import re
import secrets
from typing import Final

from flask import request

from app.marketplace.languages import translated
from hits.marketplace.errors import OperatorError

#: The milliseconds that the API puts after its own messages.
_STAMP: Final = re.compile(r"\s*\(\d{10,}\)$")


def new_token() -> str:
    """Return a one-time token for a form, so that sending it twice does its work once."""
    return secrets.token_urlsafe(24)


def given_token() -> str:
    """Return the one-time token that this form came with."""
    return request.form.get("token", "")


def typed(name: str) -> str:
    """Return what was typed into a field, without what no database takes."""
    return request.form.get(name, "").replace("\x00", "").replace("\r\n", "\n").strip()


def whole_number(name: str, least: int, most: int) -> int | None:
    """Return the number that was typed into a field, None for anything that is none from `least` to `most`."""
    text = typed(name)
    # Python refuses to read a number of thousands of digits.
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        return None
    number = int(text)
    return number if least <= number <= most else None


def asked(name: str, most: int = 200) -> str:
    """Return a value of the address's query."""
    return request.args.get(name, "").replace("\x00", "").strip()[:most]


def page_number() -> int:
    """Return the page that the address asks for, 1 for anything that is no page."""
    wanted = request.args.get("page", "")
    return max(1, int(wanted)) if wanted.isascii() and wanted.isdigit() and len(wanted) < 8 else 1


def unstamped(message: str) -> str:
    """Return a message of the API without the time that it ends in."""
    return _STAMP.sub("", message)


def said(refusal: OperatorError) -> str:
    """Return a refusal of the engine in the language of the page."""
    return str(translated(refusal.args[0])) if refusal.args else str(refusal)
