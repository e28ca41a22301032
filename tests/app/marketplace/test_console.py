"""What both consoles share."""

from __future__ import annotations

import pytest
from flask import Flask

from app.marketplace import console


@pytest.mark.parametrize(
    ("query", "page"), [("", 1), ("page=3", 3), ("page=0", 1), ("page=-1", 1), ("page=²", 1), ("page=" + "9" * 9, 1)]
)
def test_a_page_is_a_number_or_the_first(app: Flask, query: str, page: int) -> None:
    with app.test_request_context(f"/?{query}"):
        assert console.page_number() == page


def test_typed_text_has_no_nul_and_plain_line_ends(app: Flask) -> None:
    with app.test_request_context("/?q=%00a+b%20", method="POST", data={"words": " a\x00\r\nb "}):
        assert console.typed("words") == "a\nb"
        assert console.asked("q") == "a b"
        assert console.typed("none") == console.given_token() == ""


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("50", 50), ("007", 7), *((text, None) for text in ("0", "51", "-1", "", "²", "000150000", "1" * 5000))],
)
def test_a_whole_number_is_within_its_bounds_or_none(app: Flask, text: str, number: int | None) -> None:
    with app.test_request_context("/", method="POST", data={"count": text}):
        assert console.whole_number("count", 1, 50) == number


def test_tokens_differ_and_fit_the_apis_limit() -> None:
    made = {console.new_token() for _ in range(50)}

    assert len(made) == 50
    assert all(16 <= len(token) <= 64 for token in made)


def test_the_stamp_of_a_message_goes() -> None:
    assert console.unstamped("Not now. (1700000000000)") == "Not now."
    assert console.unstamped("At most (10) of them") == "At most (10) of them"
