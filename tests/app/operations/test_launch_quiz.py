"""Quizzes are launched once, with their cost said before; published forms are read back."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.operations import launch_quiz as operation
from app.operations.jobs_pass import jobs_pass
from app.operations.launch import NotEnoughMoney, WageBelowFloor
from app.operations.launch_quiz import (
    QuizNotPublished,
    launch_quiz,
    plan_quiz,
    publish_quiz,
    quiz_standings,
)
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound
from hits.models import Hit, HitBatch, Round
from hits.money import MoneyError
from hits.mturk.errors import MTurkUnavailable
from hits.states import HitKind
from payments.budgets import set_budget
from payments.errors import OverBudget
from payments.models import BudgetScope
from qualification.models import QuizBatch, QuizForm, QuizVersion
from qualification.quizzes import quiz_for
from tests.app.operations.people import Crowd
from tests.app.operations.quizzes import launched, quiz_terms, take
from tests.market import Market, failing
from tests.qualification.quiz_hits import ON_SQLITE

pytestmark = ON_SQLITE


def test_a_plan_says_what_it_costs_and_changes_nothing(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    market.calls.clear()

    plan = plan_quiz(session, market.mturk, settings, clock, quiz_terms())

    # Two tries of twenty people: 40 rewards of $0.50 and, from ten places on, 40 % fee.
    assert (plan.worst.rewards, plan.worst.reward_fees) == (Decimal("20.00"), Decimal("8.00"))
    assert (plan.kind, plan.version, plan.is_new_version) == ("writer:sentiment", 1, True)
    assert plan.as_json()["cost"]["worst_case"] == "28.00"
    assert plan.as_json()["right_answers_needed"] == 6
    assert plan.hourly_wage == Decimal("3.75")
    assert market.calls == ["GetAccountBalance"]
    for table in (HitBatch, QuizVersion, Round):
        assert session.scalar(select(func.count()).select_from(table)) == 0


def test_a_launch_makes_one_hit_for_each_try_and_again_makes_none(crowd: Crowd) -> None:
    hits = launched(crowd)

    assert len(hits) == quiz_for("sentiment", "writer").tries == 2
    shown = crowd.market.hits()[0]
    assert shown["MaxAssignments"] == 20
    assert "/quiz/" in shown["Question"]
    batch = crowd.session.scalars(select(HitBatch)).one()
    assert (batch.kind, batch.bonus, batch.reward) == (HitKind.QUALIFICATION, Decimal("0.00"), Decimal("0.50"))
    assert crowd.session.scalars(select(QuizBatch)).one().batch_id == batch.id
    assert crowd.market.mturk.find_qualification("dynahit sentiment writer") is not None

    result = launch_quiz(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, quiz_terms())

    assert (result.batch_id, result.created, result.existing) == (batch.id, 0, 2)
    assert len(crowd.market.hits()) == 2
    assert launched(crowd, name="second")
    assert crowd.session.scalar(select(func.count()).select_from(QuizVersion)) == 1


def test_a_launch_that_was_cut_off_goes_on(
    crowd: Crowd, session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    market.after = failing("CreateHITWithHITType", times=2)
    with pytest.raises(MTurkUnavailable):
        launch_quiz(session, market.mturk, settings, clock, quiz_terms())

    result = launch_quiz(session, market.mturk, settings, clock, quiz_terms())

    assert len(market.hits()) == 2
    assert session.scalar(select(func.count()).select_from(Hit)) == 2
    assert result.batch_id == session.scalars(select(HitBatch.id)).one()


def test_a_changed_quiz_is_launched_as_the_next_version(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    launched(crowd)
    changed = dataclasses.replace(quiz_for("sentiment", "writer"), needed=7)
    monkeypatch.setattr(operation, "quiz_for", lambda task_code, audience: changed)

    plan = plan_quiz(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, quiz_terms())
    assert (plan.version, plan.is_new_version, plan.finished) == (2, True, False)
    launched(crowd)

    assert [one.number for one in crowd.session.scalars(select(QuizVersion).order_by(QuizVersion.number))] == [1, 2]


def test_too_little_money_launches_nothing(session: Session, settings: Settings, clock: FixedClock) -> None:
    poor = Market(clock, balance="27.99")

    with pytest.raises(NotEnoughMoney, match=r"\$0\.01 are missing"):
        launch_quiz(session, poor.mturk, settings, clock, quiz_terms())

    assert poor.hits() == []
    assert session.scalar(select(func.count()).select_from(HitBatch)) == 0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"reward": Decimal("0.00")}, InvalidInput, "at least"),
        ({"reward": Decimal("0.005")}, MoneyError, "fraction of a cent"),
        ({"places": 0}, InvalidInput, "places is 0"),
        ({"places": 1001}, InvalidInput, "1,001"),
        ({"minutes": 61}, InvalidInput, "only 60"),
        ({"lifetime_hours": 0}, InvalidInput, "lifetime hours is 0"),
    ],
)
def test_terms_that_can_not_be_offered_are_refused(
    changes: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        quiz_terms(**changes)


@pytest.mark.parametrize(("task_code", "audience"), [("poetry", "writer"), ("nli", "readers")])
def test_a_quiz_that_there_is_not_is_refused_by_name(
    session: Session, market: Market, settings: Settings, clock: FixedClock, task_code: str, audience: str
) -> None:
    with pytest.raises(NotFound, match=f"{task_code if task_code == 'poetry' else audience}"):
        plan_quiz(session, market.mturk, settings, clock, quiz_terms(task_code=task_code, quiz_for=audience))


def test_the_title_warns_and_fits(session: Session, market: Market, settings: Settings, clock: FixedClock) -> None:
    for code in ("hate", "nli", "qa", "sentiment"):
        for audience in ("writer", "validator"):
            plan = plan_quiz(session, market.mturk, settings, clock, quiz_terms(task_code=code, quiz_for=audience))
            assert len(plan.title) <= 128
            assert ("hateful language" in plan.title) is (code == "hate")


def test_less_than_the_wage_floor_needs_a_reason(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    floored = settings.model_copy(update={"wage_floor": Decimal("12.00")})

    with pytest.raises(WageBelowFloor, match=r"\$3\.75 an hour.*\$1\.60"):
        launch_quiz(session, market.mturk, floored, clock, quiz_terms())
    assert market.hits() == []

    launch_quiz(session, market.mturk, floored, clock, quiz_terms(wage_reason="A pilot with volunteers."))
    assert session.scalars(select(HitBatch.wage_reason)).one() == "A pilot with volunteers."
    assert plan_quiz(session, market.mturk, floored, clock, quiz_terms()).finished


def test_a_budget_without_room_launches_nothing(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    set_budget(session, BudgetScope.ROUND, "sentiment/1", Decimal("27.99"), now=clock.now())
    session.commit()

    assert plan_quiz(session, market.mturk, settings, clock, quiz_terms()).over_budget is not None
    with pytest.raises(OverBudget):
        launch_quiz(session, market.mturk, settings, clock, quiz_terms())
    assert market.hits() == []
    assert session.scalar(select(func.count()).select_from(HitBatch)) == 0

    set_budget(session, BudgetScope.ROUND, "sentiment/1", Decimal("28.00"), now=clock.now())
    session.commit()
    assert launch_quiz(session, market.mturk, settings, clock, quiz_terms()).created == 2


def test_a_published_quiz_stands_on_the_type_and_again_changes_nothing(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    done = publish_quiz(session, market.mturk, settings, clock, "hate", "validator")

    type_id = market.mturk.find_qualification(done.qualification) or ""
    form, key = market.mturk.quiz(type_id)
    assert "Before you begin" in form
    assert "This task is about hateful language" in form
    assert "AnswerKey" in key
    assert not any(item.feedback in form for item in quiz_for("hate", "validator").items)
    assert (done.changed, done.version, done.questions) == (True, 1, 7)

    market.calls.clear()
    assert publish_quiz(session, market.mturk, settings, clock, "hate", "validator").changed is False
    assert "UpdateQualificationType" not in market.calls
    assert session.scalar(select(func.count()).select_from(QuizForm)) == 1


def test_the_key_is_not_shown_to_other_requesters_or_workers(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    done = publish_quiz(session, market.mturk, settings, clock, "nli", "writer")
    type_id = market.mturk.find_qualification(done.qualification) or ""
    other = market.engine.create_requester("Somebody else").requester_id
    seen = market.engine.call(other, "GetQualificationType", {"QualificationTypeId": type_id})["QualificationType"]
    assert "AnswerKey" not in seen

    view = market.engine.request_qualification(market.person("ada"), type_id)
    shown = repr(view)
    assert not any(item.feedback in shown for item in quiz_for("nli", "writer").items)
    assert "AnswerScore" not in shown


def test_a_form_that_the_marketplace_changed_does_not_count_as_published(
    session: Session, market: Market, settings: Settings, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(market.mturk, "put_quiz", lambda *_, **__: None)

    with pytest.raises(QuizNotPublished, match="dynahit nli writer"):
        publish_quiz(session, market.mturk, settings, clock, "nli", "writer")

    assert session.scalars(select(QuizForm)).one().published_at is None


def test_standings_count_tries_and_passes_that_the_marketplace_has_shown(crowd: Crowd) -> None:
    assert quiz_standings(crowd.session) == []
    first, _ = launched(crowd)
    take(crowd, crowd.market.person("ada"), first)
    take(crowd, crowd.market.person("bea"), first, right=3)
    take(crowd, crowd.market.person("cleo"), first, submit=False)
    jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    crowd.clock.advance(timedelta(minutes=1))

    [one] = quiz_standings(crowd.session)

    assert one.as_json() == {
        "quiz": "writer:sentiment",
        "version": 1,
        "current": True,
        "accepted": True,
        "tries": 2,
        "passed": 1,
        "published": False,
    }
