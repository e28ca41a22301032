"""A quiz on our page from drawing to scoring, and what counts once the marketplace has shown it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.jobs_pass import jobs_pass
from app.operations.score_quiz import draw_quiz, score_quiz
from app.settings import Settings
from hits import attempts
from hits.clock import FixedClock
from hits.errors import AlreadySubmitted, WrongWorker
from hits.models import Worker
from hits.states import AssignmentState
from payments.models import LedgerTransaction, TransactionKind
from qualification.errors import QuizNotOpen
from qualification.models import GrantState, QualificationGrant, QuizResult
from tests.app.operations.crashes import Killed, killed_at
from tests.app.operations.people import Crowd, assignment_row, hit_row
from tests.app.operations.quizzes import launched, take
from tests.market import Market
from tests.qualification.quiz_hits import answers


def work(crowd: Crowd) -> str:
    """One pass of the jobs, which must find nothing wrong."""
    report = jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    assert report.findings == []
    return str(report)


def holders(crowd: Crowd) -> dict[str, int]:
    """Who holds the writers' qualification on the marketplace."""
    type_id = crowd.market.mturk.find_qualification("dynahit sentiment writer") or ""
    return {grant.worker_id: grant.value for grant in crowd.market.mturk.holders(type_id)}


def test_who_passes_is_paid_and_qualified_once_the_marketplace_has_shown_it(crowd: Crowd) -> None:
    ada = crowd.market.person("ada")
    first, _ = launched(crowd)
    assignment_id = take(crowd, ada, first, submit=False)
    assert work(crowd) == "nothing new"
    assert holders(crowd) == {}

    crowd.market.submit(assignment_id)

    assert "1 qualifications granted" in work(crowd)
    assert work(crowd) == "nothing new"
    assert holders(crowd) == {ada: 1}
    row = assignment_row(crowd.session, assignment_id)
    assert row.state is AssignmentState.APPROVED
    booked = select(LedgerTransaction.reference).where(LedgerTransaction.kind == TransactionKind.REWARD)
    assert list(crowd.session.scalars(booked)) == [assignment_id]
    grant = crowd.session.scalars(select(QualificationGrant)).one()
    assert grant.reason == "Passed the quiz, version 1, with 7 of 7 right."
    assert grant.expires_at is not None


def test_who_fails_is_paid_and_takes_other_questions_a_day_later(crowd: Crowd) -> None:
    ada = crowd.market.person("ada")
    first, second = launched(crowd)
    take(crowd, ada, first, right=5)
    work(crowd)
    assert holders(crowd) == {}
    assignment_id = crowd.open(ada, second)
    row = assignment_row(crowd.session, assignment_id)
    with pytest.raises(QuizNotOpen, match="too soon"):
        draw_quiz(crowd.session, crowd.settings, crowd.clock, row.id)
    crowd.session.rollback()

    crowd.market.engine.return_assignment(ada, assignment_id)
    crowd.clock.advance(timedelta(hours=24))
    take(crowd, ada, second, right=6)
    work(crowd)

    assert holders(crowd) == {ada: 1}
    results = crowd.session.scalars(select(QuizResult).order_by(QuizResult.number)).all()
    assert [(one.number, one.passed) for one in results] == [(1, False), (2, True)]
    assert not set(results[0].items) & set(results[1].items)


def test_a_quiz_that_was_answered_under_another_workers_name_earns_nothing_for_anybody(crowd: Crowd) -> None:
    ada, mallory = crowd.market.person("ada"), crowd.market.person("mallory")
    first, _ = launched(crowd)
    # Mallory holds the place, and the frame's address claims to be Ada's.
    assignment_id = crowd.open(mallory, first, as_worker=ada)
    row = assignment_row(crowd.session, assignment_id)
    score_quiz(
        crowd.session, crowd.clock, row.id, answers(draw_quiz(crowd.session, crowd.settings, crowd.clock, row.id))
    )
    crowd.market.submit(assignment_id)

    jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    assert holders(crowd) == {}
    assert crowd.session.scalars(select(QualificationGrant)).all() == []
    assert assignment_row(crowd.session, assignment_id).review_reason is not None


def test_a_submission_past_our_page_waits_for_a_person(crowd: Crowd) -> None:
    first, _ = launched(crowd)
    ada = crowd.market.person("ada")
    assignment_id = crowd.open(ada, first)
    draw_quiz(crowd.session, crowd.settings, crowd.clock, assignment_row(crowd.session, assignment_id).id)
    crowd.market.submit(assignment_id)

    jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    row = assignment_row(crowd.session, assignment_id)
    assert (row.state, row.review_reason) == (
        AssignmentState.SUBMITTED,
        "submitted on the marketplace without any work on our page",
    )
    assert holders(crowd) == {}


def test_answers_that_are_sent_again_change_nothing(crowd: Crowd) -> None:
    first, _ = launched(crowd)
    assignment_id = take(crowd, crowd.market.person("ada"), first, right=2)
    row = assignment_row(crowd.session, assignment_id)
    result = crowd.session.scalars(select(QuizResult)).one()

    with pytest.raises(AlreadySubmitted):
        score_quiz(crowd.session, crowd.clock, row.id, answers(result, 7))
    crowd.session.rollback()
    work(crowd)

    crowd.session.refresh(result)
    assert (result.score, result.passed) == (2, False)


def test_one_assignment_can_not_be_opened_by_two_people(crowd: Crowd) -> None:
    first, _ = launched(crowd)
    ada, bea = crowd.market.person("ada"), crowd.market.person("bea")
    assignment_id = crowd.open(ada, first)

    with pytest.raises(WrongWorker):
        attempts.open_assignment(
            crowd.session,
            hit_row(crowd.session, first),
            mturk_assignment_id=assignment_id,
            mturk_worker_id=bea,
            pseudonym_key="x",
            deadline=None,
            now=crowd.clock.now(),
        )
    crowd.session.rollback()
    assert len(crowd.session.scalars(select(Worker)).all()) == 1


def test_drawing_commits(crowd: Crowd, session: Session) -> None:
    first, _ = launched(crowd)
    row = assignment_row(session, crowd.open(crowd.market.person("ada"), first))

    result = draw_quiz(session, crowd.settings, crowd.clock, row.id)
    session.rollback()

    assert session.scalars(select(QuizResult.id)).one() == result.id


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_wherever_the_jobs_are_killed_one_grant_comes_of_one_quiz(
    session: Session, session_factory: sessionmaker[Session], settings: Settings, clock: FixedClock, moment: str
) -> None:
    """Every commit of a pass in turn, each on a marketplace of its own; expiry and its killing after that."""
    number = 0
    killed = True
    while killed:
        number += 1
        market = Market(clock, endpoint=f"http://127.0.0.1:{9000 + number}")
        crowd = Crowd(session, market, settings, clock)
        ada = market.person("ada")
        first, _ = launched(crowd, name=str(number))
        assignment_id = take(crowd, ada, first)
        killed = run_killed(crowd, session_factory, moment, number)
        work(crowd)
        assert holders(crowd) == {ada: 1}, number
        of_ada = select(QualificationGrant).where(QualificationGrant.endpoint == market.mturk.endpoint)
        assert [grant.state for grant in session.scalars(of_ada)] == [GrantState.GRANTED], number
        booked = select(LedgerTransaction.id).where(
            LedgerTransaction.kind == TransactionKind.REWARD, LedgerTransaction.reference == assignment_id
        )
        assert len(session.scalars(booked).all()) == 1, number

        clock.advance(timedelta(days=366))
        run_killed(crowd, session_factory, moment, number)
        jobs_pass(session, market.mturk, settings, clock)
        assert holders(crowd) == {}, number
        assert [grant.state for grant in session.scalars(of_ada)] == [GrantState.ENDED], number
    assert number > 8


def run_killed(crowd: Crowd, sessions: sessionmaker[Session], moment: str, number: int) -> bool:
    """Kill a pass at its commit of this number; False when it has no so many."""
    crowd.session.commit()
    try:
        with sessions() as session, killed_at(session, moment, number):
            jobs_pass(session, crowd.market.mturk, crowd.settings, crowd.clock)
    except Killed:
        return True
    finally:
        crowd.session.expire_all()
    return False
