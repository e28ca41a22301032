"""Writes that go to the disk together: each fails alone, all are stored or none, and nobody is left waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.orm import Session

from hits.marketplace.commits import MOST_TOGETHER, Commits
from hits.marketplace.database import Store, upgrade
from hits.marketplace.tables import ClockRow

TIMEOUT = 30


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    upgrade(database_url)
    opened = Store(database_url)
    yield opened
    opened.close()


class Writers:
    """Writers of one queue, of whom the first holds the others up until it is let go."""

    def __init__(self, store: Store, finish: Callable[[Session, Iterable[Any]], None] = lambda session, results: None):
        self.store = store
        self.commits = Commits(store, finish)
        self.first_is_in = threading.Event()
        self.let_go = threading.Event()
        self.begun = 0
        event.listen(store.engine, "commit", self._count)
        self.stored = 0

    def _count(self, _connection: object) -> None:
        self.stored += 1

    def first(self, session: Session) -> int:
        self.first_is_in.set()
        assert self.let_go.wait(TIMEOUT)
        return self.add(0)(session)

    def add(self, number: int, *, fails: bool = False) -> Callable[[Session], int]:
        def work(session: Session) -> int:
            session.add(ClockRow(clock_id=number, offset_microseconds=0))
            session.flush()
            if fails:
                raise LookupError(number)
            return number

        return work

    def run(self, works: list[Callable[[Session], int]]) -> list[int | BaseException]:
        with ThreadPoolExecutor(len(works) + 1) as pool:
            leader = pool.submit(self.commits.run, "q", self.first)
            assert self.first_is_in.wait(TIMEOUT)
            others = [pool.submit(self.commits.run, "q", work) for work in works]
            while len(self.commits._waiting["q"]) < len(works):
                threading.Event().wait(0.01)
            self.let_go.set()
            return [outcome(future) for future in (leader, *others)]

    def numbers(self) -> set[int]:
        with self.store.session(writes=False) as session:
            return set(session.scalars(select(ClockRow.clock_id)))


def outcome(future: Future[int]) -> int | BaseException:
    return future.exception(TIMEOUT) or future.result()


def test_what_arrives_while_one_is_written_is_one_commit(store: Store) -> None:
    writers = Writers(store)

    outcomes = writers.run([writers.add(number) for number in range(1, 9)])

    assert outcomes == list(range(9))
    assert writers.stored == 2
    assert writers.numbers() == set(range(9))
    assert writers.commits._waiting == {}


def test_more_than_fit_into_a_commit_go_into_the_next(store: Store) -> None:
    writers = Writers(store)

    outcomes = writers.run([writers.add(number) for number in range(1, MOST_TOGETHER + 3)])

    assert outcomes == list(range(MOST_TOGETHER + 3))
    assert writers.stored == 3


def test_one_that_fails_is_taken_back_alone(store: Store) -> None:
    writers = Writers(store)

    outcomes = writers.run([writers.add(1), writers.add(2, fails=True), writers.add(1), writers.add(3)])

    assert [type(one).__name__ for one in outcomes] == ["int", "int", "LookupError", "IntegrityError", "int"]
    assert writers.numbers() == {0, 1, 3}


def test_a_commit_that_fails_is_told_to_all_of_it(store: Store) -> None:
    def finish(session: Session, results: Iterable[Any]) -> None:
        if 2 in results:
            raise ConnectionError("gone")

    writers = Writers(store, finish)

    outcomes = writers.run([writers.add(1), writers.add(2), writers.add(3, fails=True)])

    assert [type(one).__name__ for one in outcomes] == ["int", "ConnectionError", "ConnectionError", "LookupError"]
    assert writers.numbers() == {0}
    assert writers.commits.run("q", writers.add(5)) == 5


def test_queues_do_not_wait_for_each_other(store: Store) -> None:
    if store.writes_one_at_a_time:
        pytest.skip("SQLite has one queue for all")
    writers = Writers(store)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(writers.commits.run, "one", writers.first)
        assert writers.first_is_in.wait(TIMEOUT)

        assert writers.commits.run("another", writers.add(7)) == 7

        assert not held.done()
        writers.let_go.set()
        assert held.result(TIMEOUT) == 0


def test_each_write_sees_those_before_it(store: Store) -> None:
    writers = Writers(store)

    def count(session: Session) -> int:
        return session.scalar(select(func.count()).select_from(ClockRow)) or 0

    assert writers.run([writers.add(1), count, writers.add(2), count])[2::2] == [2, 3]
