"""What the database itself refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError, StatementError

from hits.marketplace.tables import AssignmentRow, HitRow, RequesterRow
from tests.hits.marketplace.market import Market


def test_an_account_cannot_be_overdrawn(stored_market: Market) -> None:
    for values in ({"spent_cents": 100_001}, {"held_cents": -1}):
        with (
            pytest.raises(IntegrityError),
            stored_market.engine.store.session(writes=True) as session,
        ):
            session.execute(update(RequesterRow).values(**values))


def test_a_hit_cannot_be_overfull(stored_market: Market) -> None:
    stored_market.create_hit()

    for values in ({"pending": 2}, {"pending": -1}):
        with (
            pytest.raises(IntegrityError),
            stored_market.engine.store.session(writes=True) as session,
        ):
            session.execute(update(HitRow).values(**values))


def test_a_worker_cannot_hold_two_places_of_a_hit(stored_market: Market) -> None:
    hit_id, worker_id = stored_market.create_hit(MaxAssignments=3), stored_market.worker()
    returned = stored_market.accepted(hit_id, worker_id)
    stored_market.engine.return_assignment(worker_id, returned)
    stored_market.accepted(hit_id, worker_id)

    with pytest.raises(IntegrityError), stored_market.engine.store.session(writes=True) as session:
        session.execute(update(AssignmentRow).where(AssignmentRow.assignment_id == returned).values(state="Submitted"))


def test_times_come_back_aware_and_in_utc_and_naive_ones_are_refused(stored_market: Market) -> None:
    stored_market.create_hit()
    moment = datetime(2026, 12, 1, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=9)))

    with stored_market.engine.store.session(writes=True) as session:
        session.execute(update(HitRow).values(expires_at=moment))
    with stored_market.engine.store.session(writes=False) as session:
        found = session.scalars(select(HitRow.expires_at)).one()

    assert found == moment
    assert found.tzinfo == UTC
    with pytest.raises(StatementError), stored_market.engine.store.session(writes=True) as session:
        session.execute(update(HitRow).values(expires_at=datetime(2026, 12, 1)))
