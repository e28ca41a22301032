"""An explanation: of one's own answered attempt, once, outside any transaction."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.operations.explain_attempt import explain_attempt
from app.operations.submit_attempt import ModelBroke, submit_attempt
from hits.clock import FixedClock
from hits.errors import Refused
from hits.models import Attempt
from hits.predictions import Attribution, ModelUnavailable
from hits.states import AttemptState
from tests.app.conftest import RuleEngine
from tests.factories import NOON, make_assignment, make_attempt


@pytest.fixture
def engine() -> RuleEngine:
    return RuleEngine()


@pytest.fixture
def asked(session: Session, engine: RuleEngine) -> tuple[int, str]:
    """An assignment's row id and the public id of its one answered attempt."""
    assignment = make_assignment(session)
    session.commit()
    result = submit_attempt(session, engine, FixedClock(NOON), assignment.id, {"statement": "I am sad."})
    return assignment.id, result.public_id


def test_an_explanation_is_of_the_models_own_answer_and_kept(
    session: Session, engine: RuleEngine, asked: tuple[int, str]
) -> None:
    first = explain_attempt(session, engine, *asked)
    second = explain_attempt(session, engine, *asked)

    assert first.target == "negative"
    assert first == second
    assert engine.explained == ["I am sad."]


def test_no_transaction_is_open_while_it_is_made(
    session: Session, session_factory: sessionmaker[Session], asked: tuple[int, str]
) -> None:
    class Looking(RuleEngine):
        def explain(self, task_code: str, answer: object, target: str, **_: object) -> Attribution:
            with session_factory() as other:
                other.connection().exec_driver_sql("UPDATE attempt SET seconds = 7")
                other.commit()
            return RuleEngine().explain(task_code, {"statement": "I am sad."}, target)

    explain_attempt(session, Looking(), *asked)

    session.expire_all()
    assert session.query(Attempt).one().seconds == 7


@pytest.mark.parametrize(
    ("error", "kind"), [(ModelUnavailable("busy"), ModelUnavailable), (ValueError("broken"), ModelBroke)]
)
def test_a_failure_stores_nothing_and_may_be_tried_again(
    session: Session, engine: RuleEngine, asked: tuple[int, str], error: Exception, kind: type[Exception]
) -> None:
    engine.explain_error = error
    with pytest.raises(kind):
        explain_attempt(session, engine, *asked)
    assert session.query(Attempt).one().attribution is None

    engine.explain_error = None
    assert explain_attempt(session, engine, *asked).converged


def test_another_version_of_the_model_explains_nothing(
    session: Session, engine: RuleEngine, asked: tuple[int, str]
) -> None:
    engine.revision = "two"

    with pytest.raises(ModelUnavailable, match="Another model"):
        explain_attempt(session, engine, *asked)


def test_an_attempt_without_an_answer_or_of_somebody_else_is_refused(session: Session, engine: RuleEngine) -> None:
    assignment = make_assignment(session)
    silent = make_attempt(session, assignment=assignment, state=AttemptState.UNANSWERED)
    theirs = make_attempt(session, assignment=make_assignment(session, hit=assignment.hit))
    session.commit()

    for attempt in (silent, theirs):
        with pytest.raises(Refused):
            explain_attempt(session, engine, assignment.id, attempt.public_id)
    assert engine.explained == []
