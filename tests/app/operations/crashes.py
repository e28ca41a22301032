"""Stands for kill -9 at a chosen commit of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event
from sqlalchemy.orm import Session


class Killed(BaseException):
    """Nothing after it runs."""


@contextmanager
def killed_at(session: Session, moment: str, number: int) -> Iterator[Counter[str]]:
    """Kill the run at its ``number``-th commit, ``before_commit`` or ``after_commit``; 0 only counts the commits."""
    count: Counter[str] = Counter()

    def strike(_session: Session) -> None:
        if _session.in_nested_transaction():
            return
        count["commits"] += 1
        if count["commits"] == number:
            raise Killed

    event.listen(session, moment, strike)
    try:
        yield count
    finally:
        event.remove(session, moment, strike)
