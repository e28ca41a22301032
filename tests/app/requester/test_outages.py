"""What the model left unanswered is counted per round and day, with the latest reason."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from app.requester.outages import Outage, outage
from hits.states import AttemptState
from tests.factories import NOON, make_assignment, make_attempt, make_batch, make_hit, make_round


def test_unanswered_questions_of_the_last_day_are_counted(session: Session) -> None:
    round_ = make_round(session)
    assignment = make_assignment(session, hit=make_hit(session, batch=make_batch(session, round=round_)))
    make_attempt(session, assignment=assignment, asked_at=NOON)
    for hours, failure in ((30, "older"), (3, "first"), (1, "latest")):
        make_attempt(
            session,
            assignment=assignment,
            state=AttemptState.UNANSWERED,
            failure=failure,
            asked_at=NOON - timedelta(hours=hours),
        )

    assert outage(session, round_, NOON) == Outage(2, 3, NOON - timedelta(hours=1), "latest")


def test_a_model_that_answers_is_no_outage_whatever_another_rounds_does(session: Session) -> None:
    round_, other = make_round(session), make_round(session, number=2)
    assignment = make_assignment(session, hit=make_hit(session, batch=make_batch(session, round=other)))
    make_attempt(session, assignment=assignment, state=AttemptState.UNANSWERED, failure="x", asked_at=NOON)

    assert outage(session, round_, NOON) is None
    assert outage(session, other, NOON + timedelta(hours=25)) is None
