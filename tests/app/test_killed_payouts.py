"""``kill -9`` of processes that pay hundreds of bonuses, while the marketplace fails at random: no cent differs."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter

import pytest
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from hits.db import Base, engine_for
from tests import factories
from tests.app import killed_payouts
from tests.market import Market

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.app.killed_payouts"])
#: A machine that is too slow for this has other troubles.
DEADLINE = 900.0


def faultless(tmp_path_factory: pytest.TempPathFactory, count: int) -> dict[str, object]:
    """How it ends when nobody is killed and nothing fails."""
    market = Market(FixedClock(factories.NOON), balance="1000.00")
    work = killed_payouts.submitted(market, count)
    url = f"sqlite:///{tmp_path_factory.mktemp('faultless') / 'books.db'}"
    engine = engine_for(url)
    Base.metadata.create_all(engine)
    sessions = sessionmaker(engine, expire_on_commit=False)
    try:
        with killed_payouts.failing_market(market, 0, Counter()) as endpoint:
            killed_payouts.owe_for(sessions, endpoint, work)
            killed_payouts.pay(url, endpoint)
        return killed_payouts.end_state(sessions, market)
    finally:
        engine.dispose()
        market.engine.close()


def pay_and_kill(database_url: str, endpoint: str, seed: int, *, most_kills: int) -> int:
    """Let two processes pay at once, kill both at random moments, begin again; return how often that was."""
    chance = random.Random(seed)
    until = time.monotonic() + DEADLINE
    kills = 0
    while time.monotonic() < until:
        lives = [_processes.Process(target=killed_payouts.pay, args=(database_url, endpoint)) for _ in range(2)]
        for life in lives:
            life.start()
        if kills < most_kills:
            lives[0].join(chance.uniform(0.05, 0.8))
            for life in lives:
                if life.is_alive() and life.pid is not None:
                    os.kill(life.pid, signal.SIGKILL)
                    kills += 1
        for life in lives:
            life.join(DEADLINE)
        if all(life.exitcode == 0 for life in lives):
            return kills
        assert {life.exitcode for life in lives} <= {0, -signal.SIGKILL, killed_payouts.LOCKED_OUT}
    raise AssertionError("the bonuses were not paid in time")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_hundreds_of_bonuses_are_paid_once_each_whoever_is_killed(
    session_factory: sessionmaker[Session], database_url: str, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    expected = faultless(tmp_path_factory, 300)
    market = Market(FixedClock(factories.NOON), balance="1000.00")
    work = killed_payouts.submitted(market, 300)
    calls: Counter[str] = Counter()

    with killed_payouts.failing_market(market, seed, calls) as endpoint:
        killed_payouts.owe_for(session_factory, endpoint, work)
        kills = pay_and_kill(database_url, endpoint, seed, most_kills=40)

    found = killed_payouts.end_state(session_factory, market)
    assert found == expected
    assert found["paid to"] == 300
    assert kills >= 10, "the processes were too quick to be killed"
    assert calls["SendBonus error after"] > 5
    assert calls["SendBonus cut after"] > 3
    market.engine.close()
