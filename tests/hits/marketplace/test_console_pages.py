"""Long lists are counted as far as their reader looks, and no further."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event, func, insert, select

from hits.marketplace import pages
from hits.marketplace.console_pages import page_of
from hits.marketplace.tables import AccountEntryRow
from hits.marketplace.transactions import Transaction
from tests.hits.marketplace.market import Market


def fill(market: Market, number: int) -> None:
    """Write lines of an account until there are so many."""
    with market.engine.store.session(writes=True) as session:
        count = session.scalar(select(func.count()).select_from(AccountEntryRow)) or 0
        line = {"requester_id": market.requester_id, "at": market.clock.now(), "kind": "hold", "note": ""}
        session.execute(insert(AccountEntryRow), [line] * (number - count))


@pytest.mark.parametrize(
    ("rows", "page", "expected"),
    [
        (20, 1, (1, 2, 20, False)),
        (21, 1, (1, 2, 20, True)),
        (60, 1, (1, 2, 20, True)),
        (60, 2, (2, 3, 30, True)),
        (60, 3, (3, 4, 40, True)),
        (60, 5, (5, 6, 60, False)),
        (60, 6, (6, 6, 60, False)),
        (60, 99, (6, 6, 60, False)),
        (61, 6, (6, 7, 61, False)),
    ],
)
def test_a_list_is_counted_to_a_limit_and_a_page_beyond_the_one_that_is_read(
    stored_market: Market, monkeypatch: pytest.MonkeyPatch, rows: int, page: int, expected: tuple[int, int, int, bool]
) -> None:
    monkeypatch.setattr(pages, "COUNTED", 20)
    fill(stored_market, rows)

    with stored_market.engine.store.session(writes=False) as session:
        transaction = Transaction(session, stored_market.clock.now(), stored_market.settings)
        query = select(AccountEntryRow).order_by(AccountEntryRow.seq.desc())
        found = page_of(transaction, query, lambda row: row.seq, page=page, page_size=10)

    assert (found.page, found.pages, found.total, found.has_more) == expected
    assert len(found.entries) == min(10, rows - (found.page - 1) * 10)


def test_every_row_of_a_long_list_can_be_reached_by_the_next_page(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "COUNTED", 20)
    fill(market, 173)
    found = market.engine.account_lines(market.requester_id)
    seen = len(found.entries)

    while found.page < found.pages:
        found = market.engine.account_lines(market.requester_id, page=found.page + 1)
        seen += len(found.entries)

    assert (seen, found.total, found.has_more) == (173, 173, False)


def test_no_more_rows_are_counted_than_the_limit_and_one(market: Market) -> None:
    fill(market, 3 * pages.COUNTED)
    steps: list[int] = []
    connection_of: list[Any] = []

    def watch(connection: Any, _record: object, _proxy: object) -> None:
        connection_of.append(connection)
        connection.set_progress_handler(lambda: steps.append(1), 1000)

    event.listen(market.engine.store.engine, "checkout", watch)
    market.engine.account_lines(market.requester_id)
    long = len(steps)
    for connection in connection_of:
        connection.set_progress_handler(None, 0)
    event.remove(market.engine.store.engine, "checkout", watch)

    # SQLite takes some ten steps of its machine for a row; all rows would be three times as many.
    assert 0 < long < 20 * pages.COUNTED / 1000
