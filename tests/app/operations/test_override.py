"""Overrides and retractions: once, with a reason, recorded."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.override import lift_override, override_example, retract_example
from hits import validations
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound, Refused
from hits.models import Example
from hits.states import Verdict
from tests.factories import make_example, make_vote


@pytest.fixture
def example(session: Session, clock: FixedClock) -> Example:
    found = make_example(session)
    for _ in range(2):
        make_vote(session, example=found, label="positive")
    validations.decide(session, found, clock.now())
    session.commit()
    return found


def deeds(session: Session) -> list[tuple[str, str]]:
    return [(one.action, one.detail.get("reason", "")) for one in session.scalars(select(AuditEntry))]


def test_an_override_and_its_lifting_are_recorded(session: Session, clock: FixedClock, example: Example) -> None:
    name = example.attempt.public_id

    said = override_example(session, clock, name, label="negative", reason=" Irony. ", by="ada")
    assert said is Verdict.VALID_AND_MODEL_WRONG
    assert lift_override(session, clock, name, by="ada") is Verdict.VALID_AND_MODEL_RIGHT

    assert deeds(session) == [("example.override", "Irony."), ("example.override_lifted", "")]
    assert session.scalars(select(AuditEntry.subject)).first() == f"example {name}"


def test_a_retraction_is_recorded_once(session: Session, clock: FixedClock, example: Example) -> None:
    name = example.attempt.public_id

    assert retract_example(session, clock, name, reason="The writer asked.", by="ada")
    assert not retract_example(session, clock, name, reason="again", by="ada")

    assert deeds(session) == [("example.retract", "The writer asked.")]
    with pytest.raises(Refused, match="retracted"):
        override_example(session, clock, name, label="negative", reason="Irony.", by="ada")


def test_what_is_refused_changes_and_records_nothing(session: Session, clock: FixedClock, example: Example) -> None:
    name = example.attempt.public_id
    with pytest.raises(NotFound, match="'nothing'"):
        override_example(session, clock, "nothing", label=None, reason="x", by="ada")
    with pytest.raises(InvalidInput, match="angry"):
        override_example(session, clock, name, label="angry", reason="x", by="ada")
    session.rollback()
    with pytest.raises(InvalidInput, match="empty"):
        retract_example(session, clock, name, reason=" ", by="ada")
    session.rollback()
    with pytest.raises(Refused, match="Nobody has overridden"):
        lift_override(session, clock, name, by="ada")
    session.rollback()

    assert deeds(session) == []
    session.refresh(example)
    assert (example.overridden_at, example.retracted_at) == (None, None)
