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
from tests.app.four_tasks import PASSAGE, creation_hit, fooling_example
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
        def explain(self, task_code: str, fields: object, target: str, **_: object) -> Attribution:
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


class Watching(RuleEngine):
    """Keeps what it was asked to explain, as one of its own members if one is named."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[tuple[str, object, object]] = []

    def explain(self, task_code: str, fields: object, target: str, **options: object) -> Attribution:
        self.wanted.append((target, options["model"], options["method"]))
        model = options["model"]
        model_id, revision = model if isinstance(model, tuple) else ("rule", "one")
        return Attribution(model_id, revision, "rule", 1, target, (), 0.0, True, 0.0)


def test_the_goal_is_explained_on_request_and_kept_beside_the_answer(session: Session, asked: tuple[int, str]) -> None:
    engine = Watching()
    attempt = session.query(Attempt).one()
    attempt.goal_label = "neutral"
    session.commit()

    said = explain_attempt(session, engine, *asked, method="leave-one-word-out")
    meant = explain_attempt(session, engine, *asked, of_goal=True)
    explain_attempt(session, engine, *asked, of_goal=True)

    assert (said.target, meant.target) == ("negative", "neutral")
    assert engine.wanted == [("negative", None, "leave-one-word-out"), ("neutral", None, None)]


def test_of_a_marked_answer_the_places_of_both_answers_are_explained(session: Session) -> None:
    engine = Watching()
    example = fooling_example(session, creation_hit(session, "qa"))
    attempt = example.attempt
    attempt.model_id, attempt.model_revision = "rule", "one"
    session.commit()

    for of_goal in (False, True):
        explain_attempt(session, engine, attempt.assignment_id, attempt.public_id, of_goal=of_goal)

    at = PASSAGE.index("stone")
    assert [target for target, _, _ in engine.wanted] == ["4-14", f"{at}-{at + 5}"]


def test_of_an_ensemble_the_member_that_was_shown_is_explained(session: Session, asked: tuple[int, str]) -> None:
    engine = Watching()
    attempt = session.query(Attempt).one()
    attempt.model_id, attempt.model_revision = "second", "2"
    attempt.members = [{"model_id": "first", "revision": "1"}, {"model_id": "second", "revision": "2"}]
    session.commit()

    explain_attempt(session, engine, *asked)

    assert engine.wanted == [("negative", ("second", "2"), None)]


def test_the_log_of_a_failed_explanation_is_without_the_writers_text(
    session: Session, engine: RuleEngine, asked: tuple[int, str], caplog: pytest.LogCaptureFixture
) -> None:
    engine.explain_error = ValueError("no word in 'I am sad.'")
    with pytest.raises(ModelBroke):
        explain_attempt(session, engine, *asked)

    assert "ValueError" in caplog.text
    assert "sad" not in caplog.text
