"""One numbered page of a query, for the lists of both consoles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Select, func, select

from hits.marketplace.console_views import Page
from hits.marketplace.pages import existing, number_of_pages
from hits.marketplace.transactions import Transaction

Entry = TypeVar("Entry")


def page_of(
    transaction: Transaction, query: Select[*tuple[Any, ...]], view: Callable[..., Entry], *, page: int, page_size: int
) -> Page[Entry]:
    """Return a page of an ordered query, each row put through `view`; the page nearest to the one asked for."""
    total = transaction.session.scalar(select(func.count()).select_from(query.order_by(None).subquery())) or 0
    pages = number_of_pages(total, page_size)
    page = existing(page, pages)
    rows = transaction.session.execute(query.limit(page_size).offset((page - 1) * page_size))
    return Page(tuple(view(*row) for row in rows), page, pages, total)
