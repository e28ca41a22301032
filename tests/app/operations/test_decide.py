"""Counted votes decide; drafts and too few votes don't."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from app.operations.decide import decide_pending
from hits.clock import FixedClock
from hits.models import Example
from hits.states import Moderation, Verdict
from tests.factories import make_example, make_vote


def verdict_of(session: Session, example: Example) -> Verdict:
    session.refresh(example)
    return example.verdict


def test_two_agreeing_votes_decide_and_one_does_not(session: Session, clock: FixedClock) -> None:
    example = make_example(session)
    make_vote(session, example=example)
    session.commit()
    assert decide_pending(session, clock) == 0
    assert verdict_of(session, example) is Verdict.PENDING

    make_vote(session, example=example)
    session.commit()

    assert decide_pending(session, clock) == 1
    assert verdict_of(session, example) is Verdict.VALID_AND_MODEL_WRONG
    assert example.decided_at == clock.now()
    assert decide_pending(session, clock) == 0


def test_a_flag_waits_for_the_requester(session: Session, clock: FixedClock) -> None:
    example = make_example(session)
    make_vote(session, example=example, label=None, flag_reason="It names a private person.")
    session.commit()

    assert decide_pending(session, clock) == 1
    assert verdict_of(session, example) is Verdict.FLAGGED


def test_a_flag_counted_while_another_process_decided_stops_the_bonus(session: Session, clock: FixedClock) -> None:
    example = make_example(session)
    counted_at = clock.now()
    for _ in range(2):
        make_vote(session, example=example, counted_at=counted_at)
    session.commit()
    clock.advance(timedelta(seconds=2))
    decide_pending(session, clock)
    # Its transaction began before the decision and ended after it.
    make_vote(session, example=example, label=None, flag_reason="It names a private person.", counted_at=counted_at)
    session.commit()

    assert decide_pending(session, clock) == 1
    assert verdict_of(session, example) is Verdict.FLAGGED
    assert decide_pending(session, clock) == 0


def test_a_dismissed_flag_is_not_looked_at_again(session: Session, clock: FixedClock) -> None:
    example = make_example(session, moderation=Moderation.DISMISSED)
    for _ in range(2):
        make_vote(session, example=example)
    make_vote(session, example=example, label=None, flag_reason="It names a private person.")
    session.commit()

    assert decide_pending(session, clock) == 1
    assert verdict_of(session, example) is Verdict.VALID_AND_MODEL_WRONG
    assert decide_pending(session, clock) == 0


def test_drafts_decide_nothing(session: Session, clock: FixedClock) -> None:
    example = make_example(session)
    for _ in range(2):
        make_vote(session, example=example, counted_at=None)
    session.commit()

    assert decide_pending(session, clock) == 0
    assert verdict_of(session, example) is Verdict.PENDING
