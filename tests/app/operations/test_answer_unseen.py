"""Texts that were handed in without a model are answered later, and nothing is lost for their writers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sqlalchemy import select

from app.operations.answer_unseen import answer_unseen, waiting_unseen
from app.operations.approve import approve_submitted
from app.operations.collect import collect
from app.operations.freeze import missing_to_freeze
from app.operations.jobs_pass import jobs_pass
from app.operations.round_arms import leave_out_unanswered
from app.operations.submit_attempt import UNSEEN_SECONDS, submit_attempt
from hits.arms import Arm, set_arms
from hits.models import Attempt, Example, Round
from hits.predictions import ModelUnavailable, Prediction
from hits.states import AssignmentState, AttemptState, Verdict
from inference.errors import NothingToRead
from tests.app.conftest import RuleEngine
from tests.app.operations.people import Crowd, assignment_row

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

CONTROL = Arm("control", 1, model_in_loop=False)


def handed_in(crowd: Crowd, mturk_hit_id: str, engine: RuleEngine, *, saved: bool = True) -> str:
    """A writer without a model hands in a text that fools it where the goal is not "positive"."""
    session = crowd.session
    if session.query(Round).one().arms_version is None:
        set_arms(session, session.query(Round).one(), [CONTROL], seed=0, by="ada", now=crowd.clock.now())
        session.commit()
    assignment_id = crowd.open(crowd.market.person("writer"), mturk_hit_id)
    row = assignment_row(session, assignment_id)
    result = submit_attempt(session, engine, crowd.clock, row.id, {"statement": "The good old queue again."})
    assert result.failure is None
    if saved:
        crowd.save(assignment_id)
    crowd.market.submit(assignment_id)
    return assignment_id


class Slow(RuleEngine):
    """An engine that reads ahead, and that hangs or is still being loaded."""

    def __init__(self, *, loading: bool = False) -> None:
        super().__init__()
        self.loading = loading
        self.waited: list[float | None] = []

    def ask_ahead(self, task_code: str, fields: Mapping[str, str], *, key: str) -> Slow:
        if self.loading:
            raise ModelUnavailable("It is being loaded.")
        return self

    def answer(self, seconds: float | None = None) -> Prediction:
        self.waited.append(seconds)
        if seconds is not None:
            raise ModelUnavailable("It took too long.")
        return RuleEngine().predict("sentiment", {"statement": "late"})

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        self.waited.append(None)
        return super().predict(task_code, fields, key=key)

    def drop(self) -> None:
        pass


@pytest.mark.parametrize(("loading", "waited"), [(False, [UNSEEN_SECONDS]), (True, [])])
def test_a_writer_without_a_model_does_not_wait_for_one_that_hangs_or_is_loaded_and_the_jobs_do(
    crowd: Crowd, hits: list[str], loading: bool, waited: list[float]
) -> None:
    engine = Slow(loading=loading)
    handed_in(crowd, hits[0], engine)
    assert engine.waited == waited

    assert answer_unseen(crowd.session, engine, crowd.clock).answered == 1
    assert engine.waited == [*waited, None]


def test_a_text_whose_model_failed_is_approved_and_becomes_an_example_once_a_model_has_answered(
    crowd: Crowd, hits: list[str]
) -> None:
    engine = RuleEngine(error=ModelUnavailable("broken"))
    session, mturk = crowd.session, crowd.market.mturk
    assignment_id = handed_in(crowd, hits[0], engine)
    collect(session, mturk, crowd.settings, crowd.clock)
    approve_submitted(session, mturk, crowd.clock)
    still = answer_unseen(session, engine, crowd.clock)

    assert assignment_row(session, assignment_id).state is AssignmentState.APPROVED
    assert assignment_row(session, assignment_id).review_reason is None
    assert still.findings == ["1 text waits for a model, written without one in the loop: broken"]
    assert session.query(Example).count() == 0

    engine.error = None
    report = jobs_pass(session, mturk, crowd.settings, crowd.clock, model=lambda: engine)
    again = answer_unseen(session, engine, crowd.clock)

    assert (report.asked, report.findings) == (1, [])
    assert again.answered == 0
    example = session.scalars(select(Example)).one()
    assert example.model_label == "positive"
    assert example.verdict is (Verdict.PENDING if example.fooled else Verdict.NOT_VALIDATED)


def test_a_text_submitted_past_the_last_page_is_work_whatever_the_model_did(crowd: Crowd, hits: list[str]) -> None:
    assignment_id = handed_in(crowd, hits[0], RuleEngine(error=ModelUnavailable("broken")), saved=False)
    found = collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    assert found.to_review == 0
    assert assignment_row(crowd.session, assignment_id).review_reason is None


def test_a_text_that_no_model_can_read_is_not_asked_about_again(crowd: Crowd, hits: list[str]) -> None:
    engine = RuleEngine(error=NothingToRead())
    handed_in(crowd, hits[0], engine)

    assert crowd.session.scalars(select(Attempt.state)).one() is AttemptState.UNANSWERED
    assert waiting_unseen(crowd.session, crowd.clock.now()) == []


def test_what_no_model_will_ever_answer_stands_in_the_way_of_freezing_until_it_is_left_out(
    crowd: Crowd, hits: list[str]
) -> None:
    handed_in(crowd, hits[0], RuleEngine(error=ModelUnavailable("broken")))
    round_ = crowd.session.query(Round).one()
    words = "1 text written unseen that no model has answered"

    assert any(words in one for one in missing_to_freeze(crowd.session, round_))
    assert leave_out_unanswered(crowd.session, crowd.clock, "sentiment", 1, by="ada") == 1
    assert leave_out_unanswered(crowd.session, crowd.clock, "sentiment", 1, by="ada") == 0
    assert not any(words in one for one in missing_to_freeze(crowd.session, round_))


def test_nobody_else_s_unanswered_texts_are_asked_about(crowd: Crowd, hits: list[str]) -> None:
    assignment_id = crowd.open(crowd.market.person("writer"), hits[0])
    row = assignment_row(crowd.session, assignment_id)
    engine = RuleEngine(error=ModelUnavailable("broken"))
    submit_attempt(crowd.session, engine, crowd.clock, row.id, {"statement": "The good old queue again."})
    engine.error = None

    assert waiting_unseen(crowd.session, crowd.clock.now()) == []
    assert answer_unseen(crowd.session, engine, crowd.clock).answered == 0
