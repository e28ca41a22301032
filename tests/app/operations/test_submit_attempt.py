"""One question to the model, killed at every step, and what is left to go on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session, sessionmaker

from app.operations.submit_attempt import ModelBroke, own_attempt, reading_ahead, register_model, submit_attempt
from hits.attempts import INTERRUPTED_AFTER, progress
from hits.clock import FixedClock
from hits.errors import AlreadySubmitted, InvalidAnswer, InvalidInput, Refused
from hits.models import Assignment, Attempt, ModelVersion
from hits.predictions import MemberAnswer, ModelUnavailable, Prediction
from hits.states import AssignmentState, AttemptState
from hits.tasks.sentiment import TASK
from inference.errors import ModelNotLoaded, NothingToRead
from inference.target import ModelCard
from tests.app.conftest import RuleEngine
from tests.factories import NOON, make_assignment, make_attempt

TEXT = {"statement": "I am sad."}


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


@pytest.fixture
def engine() -> RuleEngine:
    return RuleEngine()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def assignment_id(session: Session) -> int:
    made = make_assignment(session)
    session.commit()
    return made.id


def test_an_answer_is_stored_with_its_model(
    session: Session, engine: RuleEngine, clock: FixedClock, assignment_id: int
) -> None:
    result = submit_attempt(session, engine, clock, assignment_id, TEXT)

    attempt = session.query(Attempt).one()
    assert (result.public_id, result.failure) == (attempt.public_id, None)
    assert (attempt.state, attempt.predicted_label, attempt.fooled) == (AttemptState.ANSWERED, "negative", False)
    assert (attempt.model_id, attempt.model_revision, attempt.latency_ms) == ("rule", "one", 1.5)
    assert session.query(ModelVersion).one().first_seen_at == clock.now()


def test_a_model_version_is_registered_once(
    session: Session, engine: RuleEngine, clock: FixedClock, assignment_id: int
) -> None:
    submit_attempt(session, engine, clock, assignment_id, TEXT)
    submit_attempt(session, engine, clock, assignment_id, {"statement": "I am sadder."})
    engine.revision = "two"
    submit_attempt(session, engine, clock, assignment_id, {"statement": "I am saddest."})

    assert [one.revision for one in session.query(ModelVersion).order_by(ModelVersion.id)] == ["one", "two"]


def test_a_version_that_another_process_registers_in_the_same_moment_is_taken(
    session: Session, session_factory: sessionmaker[Session], engine: RuleEngine, clock: FixedClock
) -> None:
    prediction = engine.predict("sentiment", TEXT)
    with session_factory() as other:
        register_model(other, TASK, prediction, clock)
        other.commit()

    register_model(session, TASK, prediction, clock)
    session.commit()

    assert session.query(ModelVersion).count() == 1


@pytest.mark.parametrize("commits", [1, 2])
def test_a_kill_at_either_commit_leaves_a_state_to_go_on_from(
    session_factory: sessionmaker[Session], session: Session, clock: FixedClock, assignment_id: int, commits: int
) -> None:
    """Before the first commit nothing happened; after it the try is held, and given back when nobody answers."""
    engine = RuleEngine()
    with session_factory() as doomed:
        kill_at(doomed, commits)
        with pytest.raises(Killed):
            submit_attempt(doomed, engine, clock, assignment_id, TEXT)
        doomed.rollback()
    assert session.query(Attempt).count() == commits - 1

    session.rollback()
    clock.advance(INTERRUPTED_AFTER)
    assignment = session.get_one(Assignment, assignment_id)
    assert progress(session, assignment, clock.now()).tries_used == 0
    result = submit_attempt(session, engine, clock, assignment_id, TEXT)

    attempt = session.query(Attempt).one()
    assert (result.public_id, attempt.state, attempt.try_number) == (attempt.public_id, AttemptState.ANSWERED, 1)


def kill_at(session: Session, commits: int) -> None:
    real: Callable[[], None] = session.commit
    seen = [0]

    def commit() -> None:
        seen[0] += 1
        if seen[0] == commits:
            raise Killed
        real()

    session.commit = commit  # type: ignore[method-assign]


def test_a_kill_between_asking_and_storing_asks_once_more_under_the_same_try(
    session_factory: sessionmaker[Session], session: Session, engine: RuleEngine, clock: FixedClock, assignment_id: int
) -> None:
    def die(text: str) -> None:
        raise Killed

    engine.before_answer = die
    with session_factory() as doomed, pytest.raises(Killed):
        submit_attempt(doomed, engine, clock, assignment_id, TEXT)
    engine.before_answer = lambda text: None

    submit_attempt(session, engine, clock, assignment_id, TEXT)

    assert [one.try_number for one in session.query(Attempt)] == [1]


@pytest.mark.parametrize(
    ("error", "kind"), [(ModelUnavailable("down"), ModelUnavailable), (RuntimeError("broken"), ModelBroke)]
)
def test_a_failure_gives_the_try_back_and_says_why(
    session: Session, engine: RuleEngine, clock: FixedClock, assignment_id: int, error: Exception, kind: type[Exception]
) -> None:
    engine.error = error

    result = submit_attempt(session, engine, clock, assignment_id, TEXT)

    attempt = session.query(Attempt).one()
    assert isinstance(result.failure, kind)
    assert (attempt.state, attempt.try_number) == (AttemptState.UNANSWERED, None)
    assert attempt.failure == f"{type(error).__name__}: {error}"


def test_a_text_with_nothing_to_read_gives_the_try_back(
    session: Session, engine: RuleEngine, clock: FixedClock, assignment_id: int
) -> None:
    engine.error = NothingToRead()

    with pytest.raises(InvalidInput):
        submit_attempt(session, engine, clock, assignment_id, TEXT)

    assert session.query(Attempt).one().try_number is None


@pytest.mark.parametrize("raw", [{}, {"statement": ""}, {"statement": 7}, {"statement": None}, {"other": "x"}])
def test_a_refused_answer_asks_nothing(
    session: Session, engine: RuleEngine, clock: FixedClock, assignment_id: int, raw: dict[str, object]
) -> None:
    with pytest.raises(InvalidAnswer):
        submit_attempt(session, engine, clock, assignment_id, raw)

    assert engine.asked == []


def test_a_saved_assignment_asks_nothing(session: Session, engine: RuleEngine, clock: FixedClock) -> None:
    made = make_assignment(session, state=AssignmentState.SAVED)
    session.commit()

    with pytest.raises(AlreadySubmitted):
        submit_attempt(session, engine, clock, made.id, TEXT)

    assert engine.asked == []


def test_an_answer_that_comes_after_the_try_was_given_back_does_not_count(
    session: Session, engine: RuleEngine, clock: FixedClock, assignment_id: int, session_factory: sessionmaker[Session]
) -> None:
    def slow(text: str) -> None:
        clock.advance(INTERRUPTED_AFTER + timedelta(seconds=1))
        with session_factory() as other:
            submit_attempt(other, RuleEngine(), clock, assignment_id, {"statement": "I am sad, asked elsewhere."})

    engine.before_answer = slow
    result = submit_attempt(session, engine, clock, assignment_id, TEXT)

    assert isinstance(result.failure, ModelUnavailable)
    tries = {one.answer["statement"]: one.try_number for one in session.query(Attempt).populate_existing()}
    assert tries == {"I am sad.": None, "I am sad, asked elsewhere.": 1}


def test_only_ones_own_attempts_are_found(session: Session, assignment_id: int) -> None:
    mine = make_attempt(session, assignment=session.get_one(Assignment, assignment_id))
    theirs = make_attempt(session, assignment=make_assignment(session, hit=mine.hit))

    assert own_attempt(session, assignment_id, mine.public_id) is mine
    with pytest.raises(Refused):
        own_attempt(session, assignment_id, theirs.public_id)
    with pytest.raises(Refused):
        own_attempt(session, assignment_id, "nothing")


class Knowing(RuleEngine):
    """An engine that knows the card of its model, and asks two more of an ensemble."""

    def card(self, task_code: str, model_id: str) -> ModelCard | None:
        if model_id != "rule":
            return None
        return ModelCard(
            "rule", "one", ("positive", "negative", "neutral"), {"POS": "positive"}, "ab" * 32, "MIT", 22_000_000_000, 7
        )

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        said = super().predict(task_code, fields, key=key)
        members = tuple(MemberAnswer(name, "9", said.label, said.probabilities) for name in ("rule", "other"))
        return replace(said, members=members, policy="mean")


def test_what_the_engine_knows_of_a_version_is_registered_and_every_member_is(
    session: Session, clock: FixedClock, assignment_id: int
) -> None:
    submit_attempt(session, Knowing(), clock, assignment_id, TEXT)

    rows = session.query(ModelVersion).order_by(ModelVersion.id).all()
    assert [(one.model_id, one.revision) for one in rows] == [("rule", "one"), ("rule", "9"), ("other", "9")]
    known, *others = rows
    assert (known.labels, known.label_map) == (["positive", "negative", "neutral"], {"POS": "positive"})
    assert (known.weights_sha256, known.licence, known.parameters, known.seed) == ("ab" * 32, "MIT", 22_000_000_000, 7)
    assert {(one.weights_sha256, one.licence, one.parameters, one.seed) for one in others} == {(None,) * 4}


def test_an_attempt_is_asked_under_its_own_key(session: Session, clock: FixedClock, assignment_id: int) -> None:
    keys: list[str] = []

    class Listening(RuleEngine):
        def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
            keys.append(key)
            return super().predict(task_code, fields, key=key)

    result = submit_attempt(session, Listening(), clock, assignment_id, TEXT)

    assert keys == [result.public_id]


class Ahead(RuleEngine):
    """An engine that begins to answer at once and tells what became of it."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.refusal: Exception | None = None

    def ask_ahead(self, task_code: str, fields: Mapping[str, str], *, key: str) -> Ahead:
        self.told.append("asked")
        if self.refusal is not None:
            raise self.refusal
        self.said = super().predict(task_code, fields, key=key)
        return self

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        self.told.append("asked in the ordinary way")
        return super().predict(task_code, fields, key=key)

    def answer(self, seconds: float | None = None) -> Prediction:
        self.told.append("waited for")
        if self.error is not None:
            raise self.error
        return self.said

    def drop(self) -> None:
        self.told.append("dropped")


def test_a_model_reads_while_the_question_is_stored_and_is_waited_for_after_that(
    session: Session, clock: FixedClock, assignment_id: int
) -> None:
    engine = Ahead()
    event.listen(session, "after_commit", lambda _: engine.told.append("stored"))

    result = submit_attempt(session, engine, clock, assignment_id, TEXT)

    assert result.failure is None
    assert engine.told[:3] == ["asked", "stored", "waited for"]


def test_a_question_that_can_not_be_stored_lets_the_model_go(
    session: Session, clock: FixedClock, assignment_id: int
) -> None:
    engine = Ahead()

    def full(_: Session) -> None:
        raise OSError("the disk is full")

    event.listen(session, "before_commit", full)
    with pytest.raises(OSError, match="full"):
        submit_attempt(session, engine, clock, assignment_id, TEXT)

    assert engine.told == ["asked", "dropped"]
    session.rollback()
    assert session.query(Attempt).count() == 0


def test_a_model_reads_while_it_is_found_out_whether_it_may_be_asked(
    session: Session, clock: FixedClock, assignment_id: int
) -> None:
    engine = Ahead()
    with reading_ahead(engine, session.get_one(Assignment, assignment_id), TEXT) as ahead:
        assert engine.told == ["asked"]
        result = submit_attempt(session, engine, clock, assignment_id, TEXT, ahead=ahead)

    assert ahead is not None
    assert result.public_id == ahead.public_id == session.query(Attempt).one().public_id
    assert engine.told == ["asked", "waited for", "dropped"]


def test_a_reading_of_which_no_new_attempt_comes_is_dropped(
    session: Session, clock: FixedClock, assignment_id: int
) -> None:
    engine = Ahead()
    engine.error = ModelNotLoaded("It was stopped.")
    first = submit_attempt(session, engine, clock, assignment_id, TEXT)
    engine.told, engine.error = [], None

    with reading_ahead(engine, session.get_one(Assignment, assignment_id), TEXT) as ahead:
        again = submit_attempt(session, engine, clock, assignment_id, TEXT, ahead=ahead)

    assert again.public_id == first.public_id
    assert engine.told == ["asked", "dropped", "asked", "waited for", "dropped"]


def test_a_reading_ahead_ends_with_a_refusal(session: Session, assignment_id: int) -> None:
    engine = Ahead()

    with (
        pytest.raises(Refused),
        reading_ahead(engine, session.get_one(Assignment, assignment_id), TEXT),
    ):
        raise Refused("not admitted")

    assert engine.told == ["asked", "dropped"]


@pytest.mark.parametrize("raw", [{}, {"statement": ""}, {"statement": "x" * 5000}])
def test_an_answer_that_can_not_be_sent_is_not_read_ahead(
    session: Session, assignment_id: int, raw: dict[str, str]
) -> None:
    engine = Ahead()

    with reading_ahead(engine, session.get_one(Assignment, assignment_id), raw) as ahead:
        assert ahead is None

    assert engine.told == []


def test_nothing_is_read_ahead_where_it_depends_on_the_arm(session: Session, assignment_id: int) -> None:
    engine = Ahead()
    assignment = session.get_one(Assignment, assignment_id)
    assignment.hit.batch.round.arms_version = 1

    with reading_ahead(engine, assignment, TEXT) as ahead:
        assert ahead is None

    assert engine.told == []


def test_a_model_that_can_not_begin_at_once_is_asked_in_the_ordinary_way(
    session: Session, clock: FixedClock, assignment_id: int
) -> None:
    engine = Ahead()
    engine.refusal = ModelNotLoaded("It is being loaded.")

    result = submit_attempt(session, engine, clock, assignment_id, TEXT)

    assert result.failure is None
    assert engine.told == ["asked", "asked in the ordinary way"]


def test_a_model_asked_ahead_that_fails_takes_no_try(session: Session, clock: FixedClock, assignment_id: int) -> None:
    engine = Ahead()
    engine.error = ModelNotLoaded("It was stopped.")

    result = submit_attempt(session, engine, clock, assignment_id, TEXT)

    assert result.failure is engine.error
    assert session.query(Attempt).one().try_number is None


def test_a_model_whose_answer_can_not_be_stored_is_not_registered_and_takes_no_try(
    session: Session, clock: FixedClock, assignment_id: int
) -> None:
    result = submit_attempt(session, RuleEngine(revision="9" * 500), clock, assignment_id, TEXT)

    assert isinstance(result.failure, ModelBroke)
    assert session.query(ModelVersion).count() == 0
    assert session.query(Attempt).one().try_number is None


def test_the_licences_of_many_members_are_cut_to_what_the_registry_keeps(
    session: Session, clock: FixedClock, assignment_id: int
) -> None:
    class Many(RuleEngine):
        def card(self, task_code: str, model_id: str) -> ModelCard | None:
            return ModelCard("rule", "one", ("positive", "negative", "neutral"), licence="a licence; " * 40)

    submit_attempt(session, Many(), clock, assignment_id, TEXT)

    assert len(str(session.query(ModelVersion).one().licence)) == 200


@pytest.mark.parametrize("odd", [{"I am sad.": 1.0}, {"negative": 2.0, "I am sad.": -1.0, "neutral": 0.0}])
def test_no_line_of_the_log_holds_the_writers_text(
    session: Session,
    engine: RuleEngine,
    clock: FixedClock,
    assignment_id: int,
    caplog: pytest.LogCaptureFixture,
    odd: Mapping[str, float],
) -> None:
    engine.error = RuntimeError("can't encode 'I am sad.'")
    engine.error.__cause__ = KeyError("I am sad.")
    submit_attempt(session, engine, clock, assignment_id, TEXT)
    assert "RuntimeError" in caplog.text
    assert "KeyError" in caplog.text

    engine.error, engine.probabilities = None, odd
    submit_attempt(session, engine, clock, assignment_id, TEXT)

    assert len(caplog.records) == 2
    assert "sad" not in caplog.text
