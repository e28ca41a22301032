"""A marketplace in memory, and one on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hits.marketplace.market import Market


@pytest.fixture
def market() -> Iterator[Market]:
    """A marketplace in memory."""
    opened = Market()
    yield opened
    opened.engine.close()


@pytest.fixture
def stored_market(database_url: str) -> Iterator[Market]:
    """A marketplace on a file of SQLite, and on PostgreSQL."""
    opened = Market(database_url)
    yield opened
    opened.engine.close()
