"""Pages of a listing by key: a token names the last row that was sent, so that it survives a restart."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from hits.marketplace.errors import invalid_parameter

DEFAULT_SIZE: Final = 10
Row = TypeVar("Row")


def page_size(params: Mapping[str, Any]) -> int:
    """Return the wanted number of rows."""
    return int(params.get("MaxResults", DEFAULT_SIZE))


def after(params: Mapping[str, Any], operation: str, parts: int = 1) -> tuple[int, ...] | None:
    """Return the key of the last row that the caller has seen, or None at the start.

    Raises MarketplaceError for a token that this operation did not give out.
    """
    token = params.get("NextToken")
    if token is None:
        return None
    try:
        content = json.loads(base64.urlsafe_b64decode(token.encode("ascii")))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise invalid_parameter("NextToken", token) from error
    fits = isinstance(content, list) and len(content) == parts + 1 and content[0] == operation
    if not fits or not all(type(part) is int and -(2**62) < part < 2**62 for part in content[1:]):
        raise invalid_parameter("NextToken", token)
    return tuple(content[1:])


def page(
    operation: str,
    name: str,
    rows: Sequence[Row],
    form: Callable[[Row], dict[str, Any]],
    key: Callable[[Row], tuple[int, ...]],
) -> dict[str, Any]:
    """Return one page as MTurk does: NextToken comes with every page that has rows, the last one too."""
    result: dict[str, Any] = {"NumResults": len(rows), name: [form(row) for row in rows]}
    if rows:
        content = json.dumps([operation, *key(rows[-1])], separators=(",", ":"))
        result["NextToken"] = base64.urlsafe_b64encode(content.encode("ascii")).decode("ascii")
    return result
