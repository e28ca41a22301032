"""The status of a HIT as it follows from its counters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hits.marketplace.lifecycle import dispose, refresh_status, take_place
from hits.marketplace.tables import AssignmentRow, HitRow
from hits.marketplace.transactions import Transaction
from tests.hits.marketplace.market import Market


def hit(status: str = "Assignable", *, places: int = 3, expired: bool = False, **counters: int) -> HitRow:
    counted = {"pending": 0, "submitted": 0, "completed": 0, **counters}
    return HitRow(
        hit_id="3H",
        hit_type_id="3T",
        status=status,
        max_assignments=places,
        is_expired=expired,
        reward_cents=30,
        fee_cents=6,
        **counted,
    )


@pytest.fixture
def transaction(market: Market) -> Iterator[Transaction]:
    with market.engine.store.session(writes=False) as session:
        yield Transaction(session, market.clock.now(), market.settings)


@pytest.mark.parametrize(
    ("row", "status", "available", "held"),
    [
        (hit(), "Assignable", 3, 108),
        (hit(pending=3), "Unassignable", 0, 108),
        (hit(pending=1, submitted=2), "Unassignable", 0, 108),
        (hit(submitted=3), "Reviewable", 0, 108),
        (hit(completed=3), "Reviewable", 0, 0),
        (hit(pending=1, expired=True), "Unassignable", 0, 36),
        (hit(expired=True), "Reviewable", 0, 0),
        (hit("Reviewing", submitted=3), "Reviewing", 0, 108),
        (hit("Reviewing", places=4, submitted=3), "Assignable", 1, 144),
        (hit("Disposed", completed=1), "Disposed", 0, 0),
    ],
)
def test_status_places_and_hold_follow_from_the_counters(
    transaction: Transaction, row: HitRow, status: str, available: int, held: int
) -> None:
    refresh_status(transaction, row)

    assert (row.status, row.available, row.held_cents) == (status, available, held)


def test_the_last_place_makes_a_hit_unassignable(transaction: Transaction) -> None:
    row = hit(places=1)

    take_place(transaction, row, AssignmentRow(assignment_id="3A"))

    assert (row.status, row.pending, row.available) == ("Unassignable", 1, 0)


def test_a_disposed_hit_stays_disposed(transaction: Transaction) -> None:
    row = hit("Reviewable", completed=1)
    dispose(transaction, row)

    refresh_status(transaction, row)

    assert (row.status, row.available) == ("Disposed", 0)
