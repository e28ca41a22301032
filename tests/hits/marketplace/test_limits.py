"""The documented limits at their edges."""

from __future__ import annotations

from typing import Any

import pytest

from hits.marketplace.errors import MarketplaceError
from hits.marketplace.limits import BYTES, LENGTHS, NUMBERS, amount_cents, check_limits


def refuses(params: dict[str, Any]) -> bool:
    try:
        check_limits(params)
    except MarketplaceError as error:
        return error.type == "RequestError"
    return False


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_inclusive_at_both_ends(name: str) -> None:
    least, most = NUMBERS[name]

    assert not refuses({name: least})
    assert not refuses({name: most})
    assert refuses({name: least - 1})
    assert refuses({name: most + 1})


@pytest.mark.parametrize("name", LENGTHS)
def test_texts_are_counted_in_characters(name: str) -> None:
    assert not refuses({name: "ü" * LENGTHS[name]})
    assert refuses({name: "ü" * (LENGTHS[name] + 1)})


@pytest.mark.parametrize("name", BYTES)
def test_documents_are_counted_in_bytes(name: str) -> None:
    assert not refuses({name: "x" * 65535})
    assert refuses({name: "ü" * 32768})


@pytest.mark.parametrize("character", ["\x00", "\x08", "\x0b", "\x1f", "\x7f", "\ufffe"])
def test_control_characters_are_refused_and_line_breaks_are_not(character: str) -> None:
    assert refuses({"RequesterFeedback": f"a{character}b"})
    assert not refuses({"RequesterFeedback": "a\tb\r\nc"})


def test_amounts() -> None:
    assert amount_cents("Reward", "0") == 0
    assert amount_cents("Reward", "0.3") == 30
    assert amount_cents("Reward", "100000.") == 10_000_000
    for text in ("100000.01", "9" * 40, "9" * 100_000):
        with pytest.raises(MarketplaceError, match="of Reward must be between"):
            amount_cents("Reward", text)
    with pytest.raises(MarketplaceError):
        amount_cents("BonusAmount", "0.00", least=1)
