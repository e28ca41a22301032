"""One numbered page of a query, for the lists of both consoles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Select

from hits.marketplace.console_views import Page
from hits.marketplace.pages import counted, existing, number_of_pages
from hits.marketplace.transactions import Transaction

Entry = TypeVar("Entry")


def page_of(
    transaction: Transaction, query: Select[*tuple[Any, ...]], view: Callable[..., Entry], *, page: int, page_size: int
) -> Page[Entry]:
    """Return a page of an ordered query, each row put through `view`; the page nearest to the one asked for."""
    count = counted(transaction.session, query, page=page, page_size=page_size)
    pages = number_of_pages(count.total, page_size)
    page = existing(page, pages)
    rows = transaction.session.execute(query.limit(page_size).offset((page - 1) * page_size))
    return Page(tuple(view(*row) for row in rows), page, pages, count.total, count.has_more)
