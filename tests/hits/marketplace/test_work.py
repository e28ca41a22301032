"""Workers accepting and returning, one after the other and all at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import Connection, Engine, func, select, text, update

from hits.marketplace.errors import (
    AlreadyWorkedOn,
    AssignmentNotHeld,
    AssignmentUnknown,
    HitGroupEmpty,
    HitNotAvailable,
    HitUnknown,
    OperatorError,
    SiteError,
    WorkerUnknown,
)
from hits.marketplace.frames import frame_signature
from hits.marketplace.tables import HitRow
from tests.hits.marketplace.market import Market


def test_an_accepted_assignment_carries_a_signed_frame() -> None:
    market = Market(frame_secret="between us")
    hit_id, worker_id = market.create_hit(), market.worker()

    view = market.engine.accept(worker_id, hit_id)

    assert view.state == "Accepted"
    assert view.deadline == market.clock.now().replace(minute=10)
    assert view.frame_url is not None
    query = {name: values[0] for name, values in parse_qs(urlsplit(view.frame_url).query).items()}
    expires = int(view.deadline.timestamp())
    assert query == {
        "batch": "1",
        "round": "1",
        "assignmentId": view.assignment_id,
        "hitId": hit_id,
        "workerId": worker_id,
        "turkSubmitTo": "http://127.0.0.1:8000",
        "frameExpires": str(expires),
        "frameSignature": frame_signature(
            "between us", assignment_id=view.assignment_id, worker_id=worker_id, hit_id=hit_id, expires=expires
        ),
    }


def test_accepting_what_one_holds_gives_the_same_assignment(market: Market) -> None:
    hit_id, worker_id = market.create_hit(MaxAssignments=2), market.worker()

    assert market.engine.accept(worker_id, hit_id) == market.engine.accept(worker_id, hit_id)

    assert market.counters(hit_id) == ("Assignable", 1, 1, 0)


def test_a_worker_does_a_hit_once(market: Market) -> None:
    hit_id, worker_id = market.create_hit(MaxAssignments=2), market.worker()
    market.submitted(hit_id, worker_id)

    with pytest.raises(AlreadyWorkedOn):
        market.engine.accept(worker_id, hit_id)
    with pytest.raises(HitGroupEmpty):
        market.engine.accept_next(worker_id, market.hit(hit_id)["HITGroupId"])


def test_a_returned_place_is_free_for_all_and_under_a_new_id(market: Market) -> None:
    hit_id, worker_id = market.create_hit(), market.worker()
    first = market.accepted(hit_id, worker_id)

    market.engine.return_assignment(worker_id, first, "too\x00 hard")

    assert market.counters(hit_id) == ("Assignable", 1, 0, 0)
    assert market.accepted(hit_id, worker_id) != first


def test_what_cannot_be_accepted(market: Market) -> None:
    worker_id = market.worker()
    full, expired, disposed = market.create_hit(), market.create_hit(LifetimeInSeconds=30), market.create_hit()
    market.client.approve_assignment(AssignmentId=market.submitted(disposed))
    market.client.delete_hit(HITId=disposed)
    market.accepted(full)
    market.clock.advance(seconds=30)

    expectations: list[tuple[str, str, type[SiteError]]] = [
        (worker_id, full, HitNotAvailable),
        (worker_id, expired, HitNotAvailable),
        (worker_id, disposed, HitUnknown),
        (worker_id, "3NOTHERE", HitUnknown),
        ("A1NOBODY", full, WorkerUnknown),
    ]
    for who, hit_id, error in expectations:
        with pytest.raises(error):
            market.engine.accept(who, hit_id)


def test_what_cannot_be_returned(market: Market) -> None:
    hit_id, worker_id = market.create_hit(MaxAssignments=3), market.worker()
    assignment_id = market.accepted(hit_id, worker_id)

    with pytest.raises(AssignmentUnknown):
        market.engine.return_assignment(market.worker(), assignment_id)
    with pytest.raises(AssignmentUnknown):
        market.engine.return_assignment(worker_id, "3NOTHERE")
    market.engine.return_assignment(worker_id, assignment_id)
    with pytest.raises(AssignmentNotHeld, match="it was returned"):
        market.engine.return_assignment(worker_id, assignment_id)


def test_accept_next_takes_the_oldest_hit_left(market: Market) -> None:
    hits = [market.create_hit() for _ in range(3)]
    group, first, second = market.hit(hits[0])["HITGroupId"], market.worker(), market.worker()

    taken = [market.engine.accept_next(worker_id, group).hit_id for worker_id in (first, second, first)]

    assert taken == hits
    with pytest.raises(HitGroupEmpty):
        market.engine.accept_next(second, group)
    with pytest.raises(HitGroupEmpty):
        market.engine.accept_next(second, "3NOTHERE")


def test_eight_workers_share_five_places(stored_market: Market) -> None:
    hit_id = stored_market.create_hit(MaxAssignments=5)
    workers = [stored_market.worker() for _ in range(8)]

    outcomes = all_at_once([lambda w=w: stored_market.engine.accept(w, hit_id) for w in workers])

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AssignmentView"] * 5 + ["HitNotAvailable"] * 3
    assert stored_market.counters(hit_id) == ("Unassignable", 0, 5, 0)


def test_one_worker_in_eight_tabs_gets_one_place(stored_market: Market) -> None:
    hit_id, worker_id = stored_market.create_hit(MaxAssignments=9), stored_market.worker()

    outcomes = all_at_once([lambda: stored_market.engine.accept(worker_id, hit_id)] * 8)

    assert len({outcome.assignment_id for outcome in outcomes}) == 1  # type: ignore[attr-defined]
    assert stored_market.counters(hit_id) == ("Assignable", 8, 1, 0)


def test_eight_workers_asking_for_the_next_hit_get_one_each(stored_market: Market) -> None:
    hits = [stored_market.create_hit() for _ in range(8)]
    group = stored_market.hit(hits[0])["HITGroupId"]
    workers = [stored_market.worker() for _ in range(8)]

    outcomes = all_at_once([lambda w=w: stored_market.engine.accept_next(w, group) for w in workers])

    assert {outcome.hit_id for outcome in outcomes} == set(hits)  # type: ignore[attr-defined]


def test_a_submission_that_arrives_eight_times_counts_once(stored_market: Market) -> None:
    hit_id = stored_market.create_hit()
    assignment_id = stored_market.accepted(hit_id)

    outcomes = all_at_once([lambda: stored_market.engine.external_submit(assignment_id, {"a": ["1"]})] * 8)

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AlreadySubmitted"] * 7 + ["Receipt"]
    assert stored_market.counters(hit_id) == ("Reviewable", 0, 0, 0)


@pytest.mark.postgresql
def test_who_waits_for_the_next_hit_holds_none_that_were_taken(stored_market: Market) -> None:
    if stored_market.engine.store.writes_one_at_a_time:
        pytest.skip("SQLite locks no rows")
    hits = [stored_market.create_hit() for _ in range(2)]
    group, worker_id = stored_market.hit(hits[0])["HITGroupId"], stored_market.worker()
    database = stored_market.engine.store.engine
    take = update(HitRow).values(status="Unassignable", pending=1)

    with ThreadPoolExecutor(1) as pool, database.connect() as one, database.connect() as two:
        one.execute(take.where(HitRow.hit_id == hits[0]))
        two.execute(take.where(HitRow.hit_id == hits[1]))
        outcome = pool.submit(stored_market.engine.accept_next, worker_id, group)
        wait_until_blocked_by(database, backend(one))
        one.commit()
        wait_until_blocked_by(database, backend(two))
        with database.begin() as free:
            lock = select(HitRow.hit_id).where(HitRow.hit_id == hits[0]).with_for_update(nowait=True)
            assert free.scalar(lock) == hits[0]
        two.commit()
        with pytest.raises(HitGroupEmpty):
            outcome.result()


def backend(connection: Connection) -> int:
    return int(connection.scalar(select(func.pg_backend_pid())) or 0)


def wait_until_blocked_by(database: Engine, holder: int) -> None:
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE :holder = ANY(pg_blocking_pids(pid))")
    deadline = time.monotonic() + 10
    while True:
        with database.connect() as connection:
            if connection.scalar(waiting, {"holder": holder}):
                return
        assert time.monotonic() < deadline, "nobody waits"
        time.sleep(0.01)


def all_at_once(calls: list[Callable[[], object]]) -> list[object]:
    """Run every call in a thread of its own, started together; a refusal is its result."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return call()
        except (OperatorError, SiteError) as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
