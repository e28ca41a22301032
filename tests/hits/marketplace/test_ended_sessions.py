"""Sessions that are over stay over for as long as a cookie of theirs could be accepted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from hits.marketplace.console_views import Actor
from hits.marketplace.ended_sessions import LONGEST_KEY, new_key
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import EndedSessionRow
from tests.hits.marketplace.people import KEY, PASSWORD, house
from tests.hits.marketplace.test_work import all_at_once

LIFE = timedelta(days=8)


def remembered(engine: Marketplace) -> list[str]:
    with engine.store.session(writes=False) as session:
        return sorted(session.scalars(select(EndedSessionRow.session_key)))


def test_one_session_ends_and_the_others_go_on(database_url: str) -> None:
    with house(database_url) as opened:
        engine, worker_id = opened.engine, opened.worker("ada", None)
        requester_id = engine.create_requester("Lab", email="lab@example.org", password=PASSWORD).requester_id
        operator = engine.add_operator("olga", PASSWORD, by=Actor.command_line("root"))
        keys = [new_key() for _ in range(4)]

        for key in keys[:3]:
            engine.end_session(key, life=LIFE)
            engine.end_session(key, life=LIFE)

        assert engine.worker_in_session(worker_id, 0, keys[0]) is None
        assert engine.requester_in_session(requester_id, 0, keys[1]) is None
        assert engine.operator_in_session(operator.operator_id, operator.password_set_at, keys[2]) is None
        assert engine.worker_in_session(worker_id, 0, keys[3]) is not None
        assert engine.requester_in_session(requester_id, 0, keys[3]) is not None
        assert engine.operator_in_session(operator.operator_id, operator.password_set_at, keys[3]) == operator


def test_a_session_that_many_end_at_once_is_over(database_url: str) -> None:
    with house(database_url) as opened:
        worker_id = opened.worker("ada", None)

        results = all_at_once([lambda: opened.engine.end_session(KEY, life=LIFE)] * 4)

        assert results == [None] * 4
        assert opened.engine.worker_in_session(worker_id, 0, KEY) is None


def test_what_no_cookie_can_bring_back_is_forgotten() -> None:
    with house() as opened:
        engine, worker_id = opened.engine, opened.worker("ada", None)
        engine.signing_clock = opened.clock
        engine.end_session("first", life=LIFE)
        opened.clock.advance(LIFE - timedelta(seconds=1))
        engine.end_session("second", life=LIFE)
        assert remembered(engine) == ["first", "second"]
        assert engine.worker_in_session(worker_id, 0, "first") is None

        opened.clock.advance(seconds=1)
        engine.end_session("third", life=LIFE)

        assert remembered(engine) == ["second", "third"]


def test_a_clock_that_was_moved_ahead_forgets_no_session() -> None:
    settings = replace(MarketplaceSettings.for_tests(), movable_clock=True)
    engine = Marketplace("sqlite://", settings=settings)
    worker_id = engine.register_worker(engine.create_invitation(), "ada", PASSWORD).worker_id
    engine.end_session("copied", life=LIFE)

    engine.advance_clock(2 * LIFE)
    engine.end_session("another", life=LIFE)

    assert engine.worker_in_session(worker_id, 0, "copied") is None
    engine.close()


@pytest.mark.parametrize("key", ["", "x" * (LONGEST_KEY + 1)])
def test_a_key_that_no_session_began_with_is_no_session(key: str) -> None:
    with house() as opened:
        worker_id = opened.worker("ada", None)

        assert opened.engine.worker_in_session(worker_id, 0, key) is None


def test_keys_are_new_each_time_and_fit_in_the_table() -> None:
    keys = {new_key() for _ in range(100)}

    assert len(keys) == 100
    assert all(20 < len(key) <= LONGEST_KEY for key in keys)
