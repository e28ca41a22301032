"""The one table that knows a worker's marketplace id; everything else knows the pseudonym."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import secrets
from datetime import datetime

from sqlalchemy import CheckConstraint, String, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from hits.db import Base, UtcDateTime


class Worker(Base):
    """A person who writes or validates."""

    __tablename__ = "worker"
    __table_args__ = (CheckConstraint("erased_at IS NULL OR mturk_worker_id LIKE 'erased-%'", name="erased_has_no_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    mturk_worker_id: Mapped[str] = mapped_column(String(64), unique=True)
    pseudonym: Mapped[str] = mapped_column(String(32), unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: When the person was erased; ``mturk_worker_id`` is a made-up one from then on.
    erased_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    def __repr__(self) -> str:
        return f"<Worker {self.pseudonym}>"


def pseudonym_of(mturk_worker_id: str, key: str) -> str:
    """Return the stable pseudonym of a worker: a keyed HMAC, so that nobody without the key can enumerate ids."""
    digest = hmac.new(key.encode(), mturk_worker_id.encode(), hashlib.sha256).hexdigest()
    return f"w-{digest[:16]}"


def worker_for(session: Session, mturk_worker_id: str, *, key: str, now: datetime) -> Worker:
    """Return the worker's row, created on first sight. Flushes, never commits.

    Who comes back after being erased is somebody new, with another pseudonym than the one that the books know.
    """
    worker = session.scalar(select(Worker).where(Worker.mturk_worker_id == mturk_worker_id))
    if worker is None:
        worker = Worker(
            mturk_worker_id=mturk_worker_id, pseudonym=_free_pseudonym(session, mturk_worker_id, key), created_at=now
        )
        session.add(worker)
        session.flush()
    return worker


def _free_pseudonym(session: Session, mturk_worker_id: str, key: str) -> str:
    for number in itertools.count(1):
        pseudonym = pseudonym_of(mturk_worker_id if number == 1 else f"{mturk_worker_id} {number}", key)
        if session.scalar(select(Worker.id).where(Worker.pseudonym == pseudonym)) is None:
            break
    return pseudonym


#: Begins the made-up ids of people of a published data set; no marketplace gives out such ids.
_IMPORTED = "import:"
_UNKNOWN = f"{_IMPORTED}unknown:"
#: Begins what stands in the place of an id that was erased.
_ERASED = "erased-"


def imported_id(source: str, name: str) -> str:
    """Return the id of a person who is called ``name`` in a published data set."""
    return f"{_IMPORTED}{source}:{name}"


def unknown_id(number: int) -> str:
    """Return the id of somebody whom a published data set does not tell apart from others."""
    return f"{_UNKNOWN}{number}"


def erased_id() -> str:
    """Return an id in the place of one that was erased."""
    return f"{_ERASED}{secrets.token_hex(16)}"


def is_erased(mturk_worker_id: str) -> bool:
    """Tell whether the id stands in the place of one that was erased."""
    return mturk_worker_id.startswith(_ERASED)


def is_unknown(mturk_worker_id: str) -> bool:
    """Tell whether the id stands for somebody who is not known, so that equal ones need not be the same person."""
    return mturk_worker_id.startswith(_UNKNOWN)
