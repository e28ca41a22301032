"""The queue in front of a model: batches, deadlines, hung lanes, failing items."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from hits.errors import InvalidInput
from hits.predictions import ModelUnavailable
from inference.errors import BadModelAnswer, CallerGone, ModelFailed, ModelNotLoaded, ModelQueueFull, ModelTimeout
from inference.lanes import MAX_ABANDONED, Lanes

Run = Callable[[Sequence[int]], Sequence[int]]
Make = Callable[..., Lanes[int, int]]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Lanes[int, int]] = []

    def build(
        run: Run, *, lanes: int = 1, queue_limit: int = 8, batch_limit: int = 4, seconds: float = 2.0
    ) -> Lanes[int, int]:
        pool = Lanes[int, int](
            "test", run, lanes=lanes, queue_limit=queue_limit, batch_limit=batch_limit, seconds=seconds
        )
        pool.start()
        made.append(pool)
        return pool

    yield build
    for pool in made:
        pool.stop()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.002)


def test_every_item_gets_its_own_answer_whatever_the_batches(make: Make) -> None:
    pool = make(lambda items: [item * 10 for item in items], lanes=3, queue_limit=200)

    with ThreadPoolExecutor(16) as people:
        answers = list(people.map(pool.ask, range(200)))

    assert answers == [item * 10 for item in range(200)]
    assert pool.counts().answered == 200


def test_what_arrives_meanwhile_is_the_next_batch(make: Make) -> None:
    go = threading.Event()
    batches: list[list[int]] = []

    def run(items: Sequence[int]) -> Sequence[int]:
        batches.append(list(items))
        go.wait(5)
        return items

    pool = make(run)
    with ThreadPoolExecutor(8) as people:
        first = people.submit(pool.ask, 0)
        until(lambda: batches == [[0]])
        rest = [people.submit(pool.ask, item) for item in range(1, 6)]
        until(lambda: pool.counts().waiting == 5)
        go.set()
        assert [future.result() for future in [first, *rest]] == [0, 1, 2, 3, 4, 5]

    assert [len(batch) for batch in batches] == [1, 4, 1]


def test_a_full_queue_refuses_and_says_so(make: Make) -> None:
    go = threading.Event()
    started = threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        started.set()
        go.wait(5)
        return items

    pool = make(run, queue_limit=2, batch_limit=1)
    with ThreadPoolExecutor(4) as people:
        held = [people.submit(pool.ask, 0)]
        started.wait(5)
        held += [people.submit(pool.ask, item) for item in (1, 2)]
        until(lambda: pool.counts().waiting == 2)
        with pytest.raises(ModelQueueFull, match="2 texts"):
            pool.ask(3)
        go.set()
        assert [future.result() for future in held] == [0, 1, 2]

    assert pool.counts().refused == 1


def test_a_raising_model_is_a_typed_error_with_its_cause_and_the_lane_goes_on(make: Make) -> None:
    def run(items: Sequence[int]) -> Sequence[int]:
        if 13 in items:
            raise RuntimeError("out of luck")
        return items

    pool = make(run)

    with pytest.raises(ModelFailed, match="RuntimeError: out of luck") as caught:
        pool.ask(13)

    assert isinstance(caught.value, ModelUnavailable)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert pool.ask(7) == 7


def test_one_bad_item_spoils_no_other_of_its_batch(make: Make) -> None:
    go, started = threading.Event(), threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        started.set()
        go.wait(5)
        if 13 in items:
            raise RuntimeError("out of luck")
        return items

    pool = make(run, batch_limit=8)
    with ThreadPoolExecutor(8) as people:
        futures = {0: people.submit(pool.ask, 0)}
        started.wait(5)
        futures |= {item: people.submit(pool.ask, item) for item in (1, 2, 13, 4)}
        until(lambda: pool.counts().waiting == 4)
        go.set()
        assert [futures[item].result() for item in (1, 2, 4)] == [1, 2, 4]
        with pytest.raises(ModelFailed):
            futures[13].result()


def test_the_callers_own_mistakes_keep_their_type(make: Make) -> None:
    def run(items: Sequence[int]) -> Sequence[int]:
        raise InvalidInput("no words")

    with pytest.raises(InvalidInput, match="no words"):
        make(run).ask(1)


def test_too_few_answers_are_an_error_and_not_shifted_to_others(make: Make) -> None:
    with pytest.raises(BadModelAnswer, match="0 answers to 1"):
        make(lambda items: items[1:]).ask(1)


def test_a_hung_lane_times_out_is_replaced_and_counted(make: Make) -> None:
    release = threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        if 13 in items:
            release.wait(10)
        return items

    pool = make(run, seconds=0.1)
    started = time.monotonic()
    with pytest.raises(ModelTimeout, match=r"0\.1 s"):
        pool.ask(13)

    assert time.monotonic() - started < 5
    assert pool.ask(7, seconds=2) == 7
    assert pool.counts().abandoned == 1
    assert pool.counts().stuck == 1
    release.set()
    until(lambda: pool.counts().stuck == 0)
    assert pool.ask(8, seconds=2) == 8


def test_a_late_answer_is_dropped_and_never_given_to_the_next_caller(make: Make) -> None:
    go = threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        if items[0] == 1:
            go.wait(5)
        return [item * 10 for item in items]

    pool = make(run, seconds=5)
    with pytest.raises(ModelTimeout):
        pool.ask(1, seconds=0.05)
    with ThreadPoolExecutor(1) as people:
        second = people.submit(pool.ask, 2)
        until(lambda: pool.counts().waiting == 1)
        go.set()
        assert second.result() == 20

    assert pool.counts().answered == 1


def test_a_caller_who_gave_up_is_not_computed_any_more(make: Make) -> None:
    go = threading.Event()
    seen: list[int] = []

    def run(items: Sequence[int]) -> Sequence[int]:
        seen.extend(items)
        go.wait(5)
        return items

    pool = make(run, batch_limit=1, seconds=5)
    with ThreadPoolExecutor(1) as people:
        first = people.submit(pool.ask, 1)
        until(lambda: seen == [1])
        with pytest.raises(ModelTimeout):
            pool.ask(2, seconds=0.05)
        go.set()
        assert first.result() == 1

    assert pool.ask(3) == 3
    assert seen == [1, 3]


def test_a_caller_who_has_left_is_not_waited_for(make: Make) -> None:
    go = threading.Event()
    left = threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        left.set()
        go.wait(5)
        return items

    pool = make(run, batch_limit=1, seconds=10)
    started = time.monotonic()
    with pytest.raises(CallerGone):
        pool.ask(1, gone=left.is_set)

    assert time.monotonic() - started < 5
    assert (pool.counts().left, pool.counts().timed_out) == (1, 0)
    go.set()
    assert pool.ask(2, gone=lambda: False) == 2


def test_with_somebody_looked_for_the_deadline_still_holds(make: Make) -> None:
    go = threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        go.wait(5)
        return items

    pool = make(run)
    with pytest.raises(ModelTimeout):
        pool.ask(1, seconds=0.15, gone=lambda: False)
    go.set()


def test_a_long_reason_is_cut_to_one_line(make: Make) -> None:
    def run(items: Sequence[int]) -> Sequence[int]:
        raise RuntimeError("x" * 5000 + "\nsecond line")

    with pytest.raises(ModelFailed) as caught:
        make(run).ask(1)

    assert len(str(caught.value)) < 400


def test_a_model_that_always_hangs_eats_no_more_threads_until_it_comes_back(make: Make) -> None:
    release = threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        release.wait(30)
        return items

    pool = make(run, seconds=0.02)
    for _ in range(MAX_ABANDONED + 1):
        with pytest.raises(ModelTimeout):
            pool.ask(1)

    assert pool.hangs()
    with pytest.raises(ModelNotLoaded, match="hangs"):
        pool.ask(1)
    assert pool.counts().stuck == MAX_ABANDONED + 1
    release.set()
    until(lambda: pool.counts().stuck == 0)
    assert not pool.hangs()
    assert pool.ask(2, seconds=2) == 2


def test_stopping_answers_those_who_wait(make: Make) -> None:
    release = threading.Event()
    started = threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        started.set()
        release.wait(5)
        return items

    pool = make(run, batch_limit=1)
    with ThreadPoolExecutor(2) as people:
        busy = people.submit(pool.ask, 1)
        started.wait(5)
        waiting = people.submit(pool.ask, 2)
        until(lambda: pool.counts().waiting == 1)
        pool.stop()
        with pytest.raises(ModelNotLoaded, match="stopped"):
            waiting.result()
        release.set()
        assert busy.result() == 1
    with pytest.raises(ModelNotLoaded):
        pool.ask(3)


def test_an_item_put_ahead_is_answered_meanwhile_and_a_dropped_one_is_not_computed(make: Make) -> None:
    seen: list[int] = []
    busy = threading.Event()

    def run(items: Sequence[int]) -> Sequence[int]:
        busy.wait(2)
        seen.extend(items)
        return [item * 2 for item in items]

    pool = make(run, batch_limit=1)
    first = pool.put(1)
    until(lambda: pool.counts().waiting == 0)
    second, third = pool.put(2), pool.put(3)
    second.drop()
    busy.set()

    assert (first.answer(), third.answer()) == (2, 6)
    for one in (first, second, third):
        one.drop()
    assert seen == [1, 3]
    assert pool.counts().left == 1
