"""Counted votes decide, also those that are collected after the verdict."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from app.operations.decide import decide_pending
from hits.clock import FixedClock
from hits.states import Verdict
from tests import factories


def test_two_agreeing_votes_decide_and_a_second_pass_changes_nothing(session: Session, clock: FixedClock) -> None:
    example = factories.make_example(session)
    for _ in range(2):
        factories.make_vote(session, example=example)

    assert [decide_pending(session, clock), decide_pending(session, clock)] == [1, 0]
    session.refresh(example)
    assert (example.verdict, example.final_label) == (Verdict.VALID_AND_MODEL_WRONG, "negative")


def test_a_flag_that_is_collected_after_the_verdict_stops_the_example(session: Session, clock: FixedClock) -> None:
    example = factories.make_example(session)
    for _ in range(2):
        factories.make_vote(session, example=example)
    decide_pending(session, clock)
    clock.advance(timedelta(minutes=5))
    factories.make_vote(
        session, example=example, label=None, flag_reason="It names a private person.", counted_at=clock.now()
    )

    assert decide_pending(session, clock) == 1
    session.refresh(example)
    assert example.verdict is Verdict.FLAGGED


def test_a_draft_decides_nothing(session: Session, clock: FixedClock) -> None:
    example = factories.make_example(session)
    for _ in range(2):
        factories.make_vote(session, example=example, counted_at=None)

    assert decide_pending(session, clock) == 0
    session.refresh(example)
    assert example.verdict is Verdict.PENDING
