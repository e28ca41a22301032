"""What the requester decides about single examples: flags, overrides, retractions; each with a reason and a record."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from hits import validations
from hits.clock import Clock
from hits.errors import NotFound
from hits.models import Attempt, Example
from hits.states import Verdict


def override_example(
    session: Session, clock: Clock, public_id: str, *, label: str | None, reason: str, by: str
) -> Verdict:
    """Let a label stand above the votes, or None for an example that is out; return the verdict. Commits.

    Raises NotFound, InvalidInput, Refused (an open or upheld flag, a retracted example).
    """
    example = _locked(session, public_id)
    before = example.verdict.value
    outcome = validations.override(session, example, label=label, reason=reason, now=clock.now())
    _note(session, clock, "example.override", public_id, by, label=label, reason=reason.strip(), before=before)
    session.commit()
    return outcome.verdict


def lift_override(session: Session, clock: Clock, public_id: str, *, by: str) -> Verdict:
    """Let the votes count again and return the verdict. Commits. Raises NotFound, Refused if nobody overrode them."""
    example = _locked(session, public_id)
    validations.lift_override(session, example, clock.now())
    _note(session, clock, "example.override_lifted", public_id, by, verdict=example.verdict.value)
    verdict = example.verdict
    session.commit()
    return verdict


def retract_example(session: Session, clock: Clock, public_id: str, *, reason: str, by: str) -> bool:
    """Take an example out of the data for good; False when it was out already. Commits. Raises NotFound, InvalidInput.

    What was verified before was earned: the writer's bonus stays owed.
    """
    example = _locked(session, public_id)
    fresh = example.retracted_at is None
    validations.retract(session, example, reason=reason, now=clock.now())
    if fresh:
        _note(session, clock, "example.retract", public_id, by, reason=reason.strip(), verdict=example.verdict.value)
    session.commit()
    return fresh


def _locked(session: Session, public_id: str) -> Example:
    wanted = select(Example.id).join(Example.attempt).where(Attempt.public_id == public_id)
    found = validations.locked_examples(session, session.scalars(wanted).all())
    if not found:
        session.rollback()
        raise NotFound(f"There is no example {public_id[:60]!r}. `dynahit export` names them as id.")
    return found[0]


def _note(session: Session, clock: Clock, action: str, public_id: str, by: str, **detail: object) -> None:
    session.add(AuditEntry(at=clock.now(), staff_name=by, action=action, subject=f"example {public_id}", detail=detail))
