"""Tokens of pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.marketplace.errors import MarketplaceError
from hits.marketplace.paging import after, page, page_size


def token_after(*key: int) -> str:
    answer: dict[str, Any] = page("ListHITs", "HITs", [key], lambda row: {"key": row}, lambda row: row)
    return str(answer["NextToken"])


@given(st.lists(st.integers(-(2**61), 2**61), min_size=2, max_size=2))
def test_a_token_gives_its_key_back_within_255_characters(key: list[int]) -> None:
    token = token_after(*key)

    assert after({"NextToken": token}, "ListHITs", parts=2) == tuple(key)
    assert len(token) <= 255


@given(st.text(min_size=1, max_size=255))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(MarketplaceError, match="NextToken"):
        after({"NextToken": text}, "ListHITs")


def test_a_token_belongs_to_its_operation_and_shape() -> None:
    for operation, parts in (("ListBonusPayments", 1), ("ListHITs", 2)):
        with pytest.raises(MarketplaceError):
            after({"NextToken": token_after(7)}, operation, parts=parts)


def test_an_empty_page_has_no_token() -> None:
    assert page("ListHITs", "HITs", [], lambda row: row, lambda row: row) == {"NumResults": 0, "HITs": []}


def test_pages_have_ten_rows_unless_asked() -> None:
    assert page_size({}) == 10
    assert page_size({"MaxResults": 100}) == 100
