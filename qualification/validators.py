"""The qualification of the expert validators: one type per marketplace, granted by a requester."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from hits.models.people import worker_for
from hits.mturk.client import MTurk, Requirement

DESCRIPTION = (
    "You judge statements that other people wrote. Granted by the requester to people who know the task's rules."
)
#: Held with at least this value.
MINIMUM = 1


@dataclass(frozen=True)
class Validator:
    """A person who holds the qualification, by pseudonym."""

    pseudonym: str
    value: int
    granted_at: datetime


def validator_type(mturk: MTurk, name: str) -> str:
    """Return the id of the validators' qualification type, created when this marketplace has none of that name."""
    return mturk.find_or_create_qualification(name, DESCRIPTION)


def validator_requirement(qualification_type_id: str, minimum: int | None = None) -> Requirement:
    """Return what a validation HIT asks for: others neither see nor preview it, as its items are not for everyone.

    ``minimum`` is the value that is asked for where any holder is not enough, as for breaking ties.
    """
    return Requirement(qualification_type_id, minimum or MINIMUM, "DiscoverPreviewAndAccept")


def validators(session: Session, mturk: MTurk, name: str, *, pseudonym_key: str, now: datetime) -> Iterator[Validator]:
    """Yield the validators. Their rows are created on first sight; the caller commits."""
    for grant in mturk.holders(validator_type(mturk, name)):
        worker = worker_for(session, grant.worker_id, key=pseudonym_key, now=now)
        yield Validator(worker.pseudonym, grant.value, grant.granted_at)
