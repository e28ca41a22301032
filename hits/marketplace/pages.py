"""Numbered pages of what people read; the API's own pages go by token, see `paging`."""

from __future__ import annotations


def number_of_pages(total: int, page_size: int) -> int:
    """Return how many pages so many rows fill; nothing fills one page.

    Raises ValueError for a page of no rows.
    """
    if page_size < 1:
        raise ValueError(f"A page has at least one row, got page_size={page_size}.")
    return max(1, -(-total // page_size))


def existing(page: int, pages: int) -> int:
    """Return the page nearest to the wanted one, counted from 1, since a list can shrink while it is read."""
    return min(max(page, 1), pages)
