"""Writes of one process that arrive together go to the disk together: one commit, then everybody's answer.

Waiting for the disk is most of what a write costs. Nobody waits for company: whoever comes while nobody is writing
writes at once, and what arrives meanwhile is the next commit. No answer is given before its commit.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from sqlalchemy.orm import Session

from hits.marketplace.database import Store

MOST_TOGETHER: Final = 32
Result = TypeVar("Result")


@dataclass
class _Job(Generic[Result]):
    """One caller's write: what it does, how it ended, and the bell for the caller."""

    work: Callable[[Session], Result]
    bell: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    result: Result | None = None
    error: BaseException | None = None


class Commits:
    """The writes of one process that wait for each other."""

    def __init__(self, store: Store, finish: Callable[[Session, Iterable[Any]], None]) -> None:
        """`finish` comes before each commit, with the results of the writes that go into it."""
        self._store = store
        self._finish = finish
        self._mutex = threading.Lock()
        self._waiting: dict[str, deque[_Job[Any]]] = {}

    def run(self, queue: str, work: Callable[[Session], Result]) -> Result:
        """Carry out a write, alone or together with others of its queue, and return its result once it is stored.

        Each has a session of its own and fails alone: what it did is taken back, and it raises here.
        """
        job = _Job(work)
        with self._mutex:
            others = self._waiting.get(queue)
            if others is None:
                self._waiting[queue] = deque()
                job.leads = True
            else:
                others.append(job)
        if not job.leads:
            job.bell.wait()
        if job.leads:
            self._lead(queue, job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]

    def _lead(self, queue: str, own: _Job[Any]) -> None:
        with self._mutex:
            others = self._waiting[queue]
            batch = [own, *(others.popleft() for _ in range(min(len(others), MOST_TOGETHER - 1)))]
        try:
            self._commit(batch)
        finally:
            with self._mutex:
                if others:
                    following = others.popleft()
                    following.leads = True
                    following.bell.set()
                else:
                    del self._waiting[queue]
            for job in batch[1:]:
                job.bell.set()

    def _commit(self, batch: list[_Job[Any]]) -> None:
        try:
            with self._store.session(writes=True) as session:
                if len(batch) == 1:
                    batch[0].result = batch[0].work(session)
                else:
                    for job in batch:
                        self._attempt(session, job)
                self._finish(session, [job.result for job in batch if job.error is None])
        except BaseException as error:
            # Nothing of the batch is stored, and those that had gone well so far must not answer as if it were.
            for job in batch:
                job.error = job.error or error
            if not isinstance(error, Exception):
                raise

    def _attempt(self, session: Session, job: _Job[Any]) -> None:
        inner = Session(session.connection(), expire_on_commit=False, join_transaction_mode="create_savepoint")
        try:
            with inner, inner.begin():
                job.result = job.work(inner)
        except Exception as error:  # it is raised again where the caller waits
            job.error = error
