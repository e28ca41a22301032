"""Numbered pages."""

from __future__ import annotations

import pytest

from hits.marketplace import pages


@pytest.mark.parametrize(("total", "expected"), [(0, 1), (1, 1), (25, 1), (26, 2), (50, 2), (51, 3)])
def test_rows_fill_pages(total: int, expected: int) -> None:
    assert pages.number_of_pages(total, 25) == expected


@pytest.mark.parametrize(("page", "expected"), [(-3, 1), (0, 1), (1, 1), (3, 3), (4, 3), (10**30, 3)])
def test_a_page_outside_of_the_list_is_its_nearest_one(page: int, expected: int) -> None:
    assert pages.existing(page, 3) == expected


def test_a_page_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="page_size=0"):
        pages.number_of_pages(5, 0)
