"""The factories build rows that the database accepts on both kinds of database."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.models import Example, Vote
from hits.states import AttemptState, Verdict
from tests import factories


def test_a_vote_brings_everything_it_stands_on(session: Session) -> None:
    example = factories.make_example(session)

    factories.make_vote(session, example=example)
    factories.make_vote(session, example=example, label=None, flag_reason="not a sentence")
    session.commit()

    assert session.scalar(select(func.count()).select_from(Vote)) == 2
    assert session.scalars(select(Example)).one().verdict is Verdict.PENDING


def test_a_failed_attempt_uses_no_try(session: Session) -> None:
    attempt = factories.make_attempt(session, state=AttemptState.UNANSWERED, failure="the model is not available")

    assert attempt.try_number is None
    assert attempt.fooled is None
