"""Pseudonyms are stable, keyed, and tell nothing; a worker's row is made once."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.models import Worker
from hits.models.people import erased_id, is_erased, pseudonym_of, worker_for


def test_a_pseudonym_depends_on_the_worker_and_the_key_only() -> None:
    assert pseudonym_of("A1", "key") == pseudonym_of("A1", "key")
    assert len({pseudonym_of(worker, key) for worker in ("A1", "A2") for key in ("key", "other")}) == 4
    assert pseudonym_of("A1", "key").startswith("w-")
    assert "A1" not in pseudonym_of("A1", "key")


def test_a_worker_is_stored_on_first_sight_only(session: Session, clock: FixedClock) -> None:
    first = worker_for(session, "A1", key="key", now=clock.now())
    again = worker_for(session, "A1", key="key", now=clock.now())
    other = worker_for(session, "A2", key="key", now=clock.now())

    assert first is again
    assert other.pseudonym != first.pseudonym
    assert session.scalar(select(func.count()).select_from(Worker)) == 2


def test_a_workers_repr_shows_the_pseudonym_only(session: Session, clock: FixedClock) -> None:
    worker = worker_for(session, "ASECRET", key="key", now=clock.now())

    assert repr(worker) == f"<Worker {worker.pseudonym}>"
    assert "ASECRET" not in repr(worker)


def test_an_erased_id_is_no_workers_and_never_the_same() -> None:
    made = {erased_id() for _ in range(50)}

    assert len(made) == 50
    assert all(is_erased(one) for one in made)
    assert not is_erased("AERASED1")
