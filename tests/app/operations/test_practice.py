"""From a novice's first HIT to the reviewer's words on the writer's messages, each told once, paid whatever is said."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry
from app.operations.approve import approve_submitted
from app.operations.collect import collect
from app.operations.launch import launch_batch
from app.operations.practice import MESSAGE_CHARACTERS, grade_practice, tell_writers, words_for
from app.settings import Settings
from hits import validations
from hits.clock import FixedClock
from hits.errors import NotFound, Refused
from hits.models import Example, Round
from hits.mturk.errors import MTurkUnavailable
from hits.states import PracticeState
from qualification.grants import level_of
from qualification.limits_models import PracticeGrade
from qualification.models import Level
from tests.app.operations.conftest import CONTEXTS, terms
from tests.app.operations.people import Crowd
from tests.market import Market, failing

#: What the marketplace is told does not hang on our database.
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
TEXTS = {"The soup came cold.": False, "The waiter sang the whole bill.": True}


@pytest.fixture
def practised(session: Session, market: Market, settings: Settings, clock: FixedClock, crowd: Crowd) -> str:
    """The worker id of a novice whose first HIT, with two examples, is collected."""
    launch_batch(session, market.mturk, settings, clock, terms(practice=2), CONTEXTS)
    ada = market.person("ada")
    hit = min(hit["HITId"] for hit in market.hits())
    crowd.write(ada, hit, TEXTS)
    collect(session, market.mturk, settings, clock)
    return ada


def names(session: Session) -> list[str]:
    found = [example.attempt.public_id for example in session.scalars(select(Example).order_by(Example.id))]
    session.commit()
    return found


def messages(market: Market, worker_id: str) -> list[str]:
    return [one.text for one in market.engine.messages(worker_id).messages]


@ON_SQLITE
def test_the_first_examples_wait_and_are_drawn_by_nobody(session: Session, practised: str, clock: FixedClock) -> None:
    assert {example.practice_state for example in session.scalars(select(Example))} == {PracticeState.WAITING}
    assert validations.shortages(session, session.scalars(select(Round)).one(), clock.now()) == []


def test_passing_reaches_the_writer_in_words_and_raises_the_level(
    session: Session, practised: str, market: Market, clock: FixedClock
) -> None:
    first, second = names(session)
    grade_practice(session, clock, first, passed=True, words="Clear and short.", by="robin")
    # Nobody is written to whose work was not reviewed, as the marketplace would refuse it.
    assert tell_writers(session, market.mturk, clock) == 0
    assert "NotifyWorkers" not in market.calls
    approve_submitted(session, market.mturk, clock)

    assert tell_writers(session, market.mturk, clock) == 1
    grade_practice(session, clock, second, passed=True, words="Sound as well.", by="robin")
    assert tell_writers(session, market.mturk, clock) == 1
    assert tell_writers(session, market.mturk, clock) == 0

    told = messages(market, practised)
    assert len(told) == 2
    assert "Passed: Clear and short." in "".join(told)
    assert "Passed: Sound as well." in "".join(told)
    writer = session.scalars(select(Example)).first()
    assert writer is not None
    assert level_of(session, writer.writer_id, "sentiment") is Level.WRITER
    entries = session.scalars(select(AuditEntry).where(AuditEntry.action == "practice.pass")).all()
    assert [entry.staff_name for entry in entries] == ["robin", "robin"]


@ON_SQLITE
def test_several_grades_are_one_message(session: Session, practised: str, market: Market, clock: FixedClock) -> None:
    for number, name in enumerate(names(session)):
        grade_practice(session, clock, name, passed=bool(number), words=f"Words {number}.", by="robin")
    approve_submitted(session, market.mturk, clock)

    assert tell_writers(session, market.mturk, clock) == 1

    [text] = messages(market, practised)
    assert text.index("Not passed: Words 0.") < text.index("Passed: Words 1.")
    assert "Your pay does not hang on this." in text


@ON_SQLITE
def test_a_marketplace_that_is_away_is_asked_again_later(
    session: Session, practised: str, market: Market, clock: FixedClock
) -> None:
    [name, _] = names(session)
    grade_practice(session, clock, name, passed=True, words="Clear.", by="robin")
    approve_submitted(session, market.mturk, clock)
    market.before = failing("NotifyWorkers")
    with pytest.raises(MTurkUnavailable):
        tell_writers(session, market.mturk, clock)
    session.rollback()
    soft = b'{"NotifyWorkersFailureStatuses": [{"NotifyWorkersFailureCode": "SoftFailure", "WorkerId": "A1"}]}'
    market.before = lambda operation: (200, {}, soft) if operation == "NotifyWorkers" else None
    assert tell_writers(session, market.mturk, clock) == 0
    market.before = None

    assert tell_writers(session, market.mturk, clock) == 1
    assert len(messages(market, practised)) == 1


@ON_SQLITE
def test_a_refusal_for_good_is_not_asked_again(
    session: Session, practised: str, market: Market, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    [name, _] = names(session)
    grade_practice(session, clock, name, passed=True, words="Clear.", by="robin")
    approve_submitted(session, market.mturk, clock)
    hard = b'{"NotifyWorkersFailureStatuses": [{"NotifyWorkersFailureCode": "HardFailure", "WorkerId": "A1"}]}'
    market.before = lambda operation: (200, {}, hard) if operation == "NotifyWorkers" else None

    with caplog.at_level("INFO"):
        assert tell_writers(session, market.mturk, clock) == 0
    market.calls.clear()
    assert tell_writers(session, market.mturk, clock) == 0

    assert "NotifyWorkers" not in market.calls
    assert "their next page has it" in caplog.text
    assert practised not in caplog.text


def test_a_name_that_nobody_has_is_not_found(session: Session, clock: FixedClock) -> None:
    with pytest.raises(NotFound):
        grade_practice(session, clock, "nothing", passed=True, words="Clear.", by="robin")


def test_a_message_is_never_longer_than_the_marketplace_takes() -> None:
    grades = [PracticeGrade(passed=True, words="long " * 400) for _ in range(5)]

    subject, text = words_for("sentiment", grades)

    assert len(subject) <= 200
    assert len(text) <= MESSAGE_CHARACTERS
    assert text.endswith("The next HIT that you open shows it again.")


def test_two_reviewers_in_the_same_moment_make_one_grade(
    session: Session, session_factory: sessionmaker[Session], practised: str, clock: FixedClock
) -> None:
    [name, _] = names(session)
    together = threading.Barrier(2)
    outcomes: list[str] = []

    def grade(passed: bool) -> None:
        with session_factory() as own:
            together.wait(20)
            try:
                grade_practice(own, clock, name, passed=passed, words="Words.", by="robin")
                outcomes.append("graded")
            except Refused:
                outcomes.append("refused")

    threads = [threading.Thread(target=grade, args=(passed,)) for passed in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(outcomes) == ["graded", "refused"]
    assert len(session.scalars(select(PracticeGrade)).all()) == 1
