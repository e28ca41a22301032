"""Runs one blocking function on a bounded queue in several lanes, with deadlines, and replaces lanes that hang."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hits.errors import HitsError
from inference.errors import BadModelAnswer, CallerGone, ModelFailed, ModelNotLoaded, ModelQueueFull, ModelTimeout

T = TypeVar("T")
R = TypeVar("R")

HUNG_AFTER = 0.9
"""A lane counts as hung once it has worked on one batch for this part of the deadline."""
LONGEST_REASON = 200
LOOKS_EVERY_SECONDS = 0.1
"""How often somebody who waits is looked for, where that can be told."""
MAX_ABANDONED = 8
"""A hung lane can't be ended from outside, so it keeps its memory; past this many the pool waits for one to return."""


@dataclass(eq=False)
class _Request(Generic[T, R]):
    item: T
    done: threading.Event = field(default_factory=threading.Event)
    given_up: bool = False
    answer: R | None = None
    error: Exception | None = None


@dataclass(eq=False)
class _Lane:
    busy_since: float | None = None


@dataclass(frozen=True)
class LaneCounts:
    """What a pool did so far: ``left`` callers went away, ``stuck`` lanes were abandoned and have not come back."""

    waiting: int
    answered: int
    failed: int
    timed_out: int
    left: int
    refused: int
    abandoned: int
    stuck: int


class Pending(Generic[T, R]):
    """An item that stands in the queue or is being answered."""

    def __init__(self, lanes: Lanes[T, R], request: _Request[T, R]) -> None:
        self._lanes = lanes
        self._request = request

    def answer(self, seconds: float | None = None, gone: Callable[[], bool] | None = None) -> R:
        """Return the answer, waiting from now on at most the given seconds (else the pool's); raises as Lanes.ask."""
        return self._lanes.wait_for(self._request, self._lanes.seconds if seconds is None else seconds, gone)

    def drop(self) -> None:
        """Let it go: nobody will ask for the answer any more. Without effect on one that has been given or let go."""
        self._lanes.drop(self._request)


class Lanes(Generic[T, R]):
    """A bounded queue drained by threads: a batch is whatever arrived while the last one ran, so nobody waits for it.

    ``run`` gets up to ``batch_limit`` items and returns as many answers. When it raises, the items are run one by one,
    so that one bad item spoils no other.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[Sequence[T]], Sequence[R]],
        *,
        lanes: int,
        queue_limit: int,
        batch_limit: int,
        seconds: float,
    ) -> None:
        self.name = name
        self.seconds = seconds
        self._run = run
        self._wanted = lanes
        self._queue_limit = queue_limit
        self._batch_limit = batch_limit
        self._changed = threading.Condition()
        self._waiting: deque[_Request[T, R]] = deque()
        self._lanes: set[_Lane] = set()
        self._stuck: set[_Lane] = set()
        self._stopped = True
        self._counts = {"answered": 0, "failed": 0, "timed_out": 0, "left": 0, "refused": 0, "abandoned": 0}

    def start(self) -> None:
        """Start the threads; without effect when they run."""
        with self._changed:
            self._stopped = False
            self._fill_up()

    def stop(self) -> None:
        """Let the lanes end after their current batch; whoever waits gets ModelNotLoaded."""
        with self._changed:
            self._stopped = True
            for request in self._waiting:
                request.error = ModelNotLoaded(
                    "The model was stopped. Ask again once the service runs; no try was used."
                )
                request.done.set()
            self._waiting.clear()
            self._lanes.clear()
            self._changed.notify_all()

    def ask(self, item: T, *, seconds: float | None = None, gone: Callable[[], bool] | None = None) -> R:
        """Return the answer to the item, waiting at most the given seconds (else the pool's).

        ``gone`` tells whether whoever wants the answer has left; it is asked now and then. Raises ModelQueueFull,
        ModelTimeout, CallerGone, ModelFailed, ModelNotLoaded when the pool doesn't run, and whatever error of the
        package's own tree ``run`` raised.
        """
        return self.put(item).answer(self.seconds if seconds is None else seconds, gone)

    def put(self, item: T) -> Pending[T, R]:
        """Put the item into the queue and return at once; whoever did must ask for the answer, or drop it.

        Raises ModelQueueFull, and ModelNotLoaded when the pool doesn't run.
        """
        request: _Request[T, R] = _Request(item)
        with self._changed:
            self._replace_hung()
            if self._stopped:
                raise ModelNotLoaded(f"The model's {self.name} lanes don't run. No try was used.")
            if not self._lanes:
                raise ModelNotLoaded(f"The model hangs ({len(self._stuck)} {self.name} lanes). No try was used.")
            if len(self._waiting) >= self._queue_limit:
                self._counts["refused"] += 1
                raise ModelQueueFull(self._queue_limit)
            self._waiting.append(request)
            self._changed.notify()
        return Pending(self, request)

    def drop(self, request: _Request[T, R]) -> None:
        """Let a request go that nobody waits for any more; without effect on one that is answered or let go."""
        with self._changed:
            if not request.done.is_set() and not request.given_up:
                self._give_up(request)
                self._counts["left"] += 1

    def wait_for(self, request: _Request[T, R], seconds: float, gone: Callable[[], bool] | None) -> R:
        """Return the answer to a request in the queue; as ask."""
        left = self._wait(request, seconds, gone)
        with self._changed:
            if not request.done.is_set():
                self._give_up(request)
                if left:
                    self._counts["left"] += 1
                    raise CallerGone
                self._counts["timed_out"] += 1
                self._replace_hung()
                raise ModelTimeout(seconds)
        if request.error is not None:
            raise request.error
        return request.answer  # type: ignore[return-value]  # set before done, and None may be an answer

    def _give_up(self, request: _Request[T, R]) -> None:
        request.given_up = True
        if request in self._waiting:
            self._waiting.remove(request)

    def _wait(self, request: _Request[T, R], seconds: float, gone: Callable[[], bool] | None) -> bool:
        """Wait for the answer or the deadline; tell whether whoever asked has left before."""
        if gone is None:
            request.done.wait(seconds)
            return False
        deadline = time.monotonic() + seconds
        while not request.done.wait(min(LOOKS_EVERY_SECONDS, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            if gone():
                return True
        return False

    def counts(self) -> LaneCounts:
        """Return what happened so far."""
        with self._changed:
            return LaneCounts(waiting=len(self._waiting), stuck=len(self._stuck), **self._counts)

    def hangs(self) -> bool:
        """Tell whether every lane hangs and no more are started; it ends when one of them comes back."""
        with self._changed:
            return not self._stopped and not self._lanes

    def _fill_up(self) -> None:
        while len(self._lanes) < self._wanted and len(self._stuck) <= MAX_ABANDONED:
            lane = _Lane()
            self._lanes.add(lane)
            name = f"model-{self.name}-{len(self._lanes)}"
            threading.Thread(target=self._work, args=(lane,), name=name, daemon=True).start()

    def _replace_hung(self) -> None:
        now = time.monotonic()
        for lane in list(self._lanes):
            if lane.busy_since is None or now - lane.busy_since < HUNG_AFTER * self.seconds:
                continue
            self._lanes.discard(lane)
            self._stuck.add(lane)
            self._counts["abandoned"] += 1
        if not self._stopped:
            self._fill_up()

    def _work(self, lane: _Lane) -> None:
        while True:
            with self._changed:
                while not self._waiting and lane in self._lanes:
                    self._changed.wait()
                if lane not in self._lanes:
                    self._stuck.discard(lane)
                    if not self._stopped:
                        self._fill_up()
                    return
                batch = [self._waiting.popleft() for _ in range(min(self._batch_limit, len(self._waiting)))]
                lane.busy_since = time.monotonic()
            outcomes = self._outcomes([request.item for request in batch])
            with self._changed:
                lane.busy_since = None
                for request, outcome in zip(batch, outcomes, strict=True):
                    if request.given_up:
                        continue
                    if isinstance(outcome, Exception):
                        request.error = outcome
                        self._counts["failed"] += 1
                    else:
                        request.answer = outcome
                        self._counts["answered"] += 1
                    request.done.set()

    def _outcomes(self, items: Sequence[T]) -> list[R | Exception]:
        try:
            answers = list(self._run(items))
            if len(answers) != len(items):
                raise BadModelAnswer(f"it gave {len(answers)} answers to {len(items)} texts")
        except Exception as error:
            if len(items) > 1:
                return [outcome for item in items for outcome in self._outcomes([item])]
            return [_typed(error)]
        return [*answers]


def _typed(error: Exception) -> Exception:
    if isinstance(error, HitsError):
        return error
    # Messages of the compute library run over pages; the chained cause has them whole.
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    failure = ModelFailed(said if len(said) <= LONGEST_REASON else f"{said[:LONGEST_REASON]}…")
    failure.__cause__ = error
    return failure
