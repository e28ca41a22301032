"""Numbered pages of what people read; the API's own pages go by token, see `paging`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, func, literal, select
from sqlalchemy.orm import Session

#: So many rows of a list are counted; of what is beyond, no more than a reader's next page needs.
COUNTED: Final = 10_000


@dataclass(frozen=True)
class Count:
    """How many rows a list has, or the least number of them if there are more."""

    total: int
    has_more: bool


def counted(session: Session, query: Select[*tuple[Any, ...]], *, page: int, page_size: int) -> Count:
    """Count the rows of a query as far as it takes to show a page of it, and that there is a next one."""
    most = max(COUNTED, (max(page, 1) + 1) * page_size)
    rows = query.order_by(None).with_only_columns(literal(1), maintain_column_froms=True).limit(most + 1)
    found = session.scalar(select(func.count()).select_from(rows.subquery())) or 0
    return Count(min(found, most), has_more=found > most)


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
