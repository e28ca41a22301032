"""Closing takes what is on offer off the site, pays work in hand, and is finished whatever interrupts it."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.operations.close_round import IN_FLIGHT, close_round, finish_closing, plan_close
from app.operations.jobs_pass import jobs_pass
from app.operations.launch import launch_batch, plan_launch
from app.operations.move_round import open_round
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import Refused
from hits.models import Assignment, Hit, Round
from hits.rounds import moves_of
from hits.states import AssignmentState, HitState, RoundState
from payments.models import Reservation
from tests import factories as make
from tests.app.operations.conftest import CONTEXTS, TERMS, terms
from tests.app.operations.crashes import Killed, killed_at
from tests.app.operations.people import Crowd
from tests.market import Market, failing

ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
pytestmark = ON_SQLITE


def on_offer(market: Market) -> int:
    return sum(hit["HITStatus"] == "Assignable" for hit in market.hits())


def test_a_closed_round_offers_nothing_more_and_work_in_hand_is_paid(crowd: Crowd, hits: list[str]) -> None:
    session, market = crowd.session, crowd.market
    writer = market.person("writer0")
    assignment_id = crowd.open(writer, hits[0])
    assert plan_close(session, market.mturk.endpoint, crowd.clock, "sentiment", 1) == (3, 0)

    done = close_round(session, market.mturk, crowd.clock, "sentiment", 1, by="Ada")

    assert (done.expired, done.withdrawn, on_offer(market)) == (3, 0, 0)
    crowd.ask(assignment_id, "A treat, cold soup.", fools=True)
    crowd.save(assignment_id)
    market.submit(assignment_id)
    for _ in range(2):
        assert jobs_pass(session, market.mturk, crowd.settings, crowd.clock).findings == []
    assert session.scalars(select(Assignment.state)).one() is AssignmentState.APPROVED
    assert set(session.scalars(select(Hit.state))) == {HitState.CLOSED}
    assert [one.by for one in moves_of(session, 1)] == ["launch", "launch", "Ada"]
    again = close_round(session, market.mturk, crowd.clock, "sentiment", 1, by="Ada")
    assert (again.expired, again.withdrawn, again.findings) == (0, 0, [])
    with pytest.raises(Refused, match="is validating: no more HITs are created"):
        launch_batch(session, market.mturk, crowd.settings, crowd.clock, terms(name="more"), CONTEXTS)


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_a_close_that_is_killed_at_any_commit_is_finished_by_the_jobs(
    crowd: Crowd, hits: list[str], moment: str
) -> None:
    session, market = crowd.session, crowd.market
    for number in range(1, 9):
        with killed_at(session, moment, number) as count:
            try:
                close_round(session, market.mturk, crowd.clock, "sentiment", 1, by="Ada")
            except Killed:
                session.close()
        if count["commits"] < number:
            break
        open_again = session.scalars(select(Round.state)).one() is RoundState.VALIDATING
        session.commit()
        if number == 1 and moment == "after_commit":
            assert open_again
            assert on_offer(market) == 3

    finish_closing(session, market.mturk, crowd.clock)

    assert on_offer(market) == 0
    assert session.scalars(select(Round.state)).one() is RoundState.VALIDATING


def test_hits_behind_a_pilot_are_never_made_and_their_money_is_free_again(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    launch_batch(session, market.mturk, settings, clock, terms(hits=5, pilot=1), CONTEXTS)
    before = session.scalars(select(Reservation.released)).one()
    session.commit()

    done = close_round(session, market.mturk, clock, "sentiment", 1, by="Ada")

    assert (done.expired, done.withdrawn, len(market.hits())) == (1, 4, 1)
    jobs_pass(session, market.mturk, settings, clock)
    assert session.scalars(select(Reservation.released).execution_options(populate_existing=True)).one() > before
    session.commit()
    assert open_round(session, clock, "sentiment", 1, by="Ada")
    again = launch_batch(session, market.mturk, settings, clock, terms(hits=5, pilot=1), CONTEXTS)
    assert (again.created, again.existing) == (0, 1)
    plan = plan_launch(session, market.mturk, settings, clock, terms(hits=5, pilot=1), CONTEXTS)
    assert (plan.hits_now, plan.held_hits, plan.finished) == (0, 0, True)


def test_a_hit_whose_creation_was_lost_is_found_and_taken_off(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    market.after = failing("CreateHITWithHITType", times=10)
    with pytest.raises(Exception, match="can be run again"):
        launch_batch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    session.rollback()
    market.after = None
    assert on_offer(market) == 1

    done = close_round(session, market.mturk, clock, "sentiment", 1, by="Ada")

    assert (done.expired, done.withdrawn, on_offer(market)) == (1, 2, 0)


def test_a_hit_that_may_still_be_coming_is_waited_for(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    market.before = failing("CreateHITWithHITType", times=10)
    with pytest.raises(Exception, match="can be run again"):
        launch_batch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    session.rollback()
    market.before = None

    done = close_round(session, market.mturk, clock, "sentiment", 1, by="Ada")
    assert (done.withdrawn, len(done.findings)) == (2, 1)
    clock.advance(IN_FLIGHT)

    assert finish_closing(session, market.mturk, clock).withdrawn == 1
    assert set(session.scalars(select(Hit.state))) == {HitState.CLOSED}


def test_a_launch_that_is_going_on_stops_when_its_round_is_closed(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    def close(done: int, _total: int) -> None:
        if done == 1:
            close_round(session, market.mturk, clock, "sentiment", 1, by="Ada")

    with pytest.raises(Refused, match="is validating: no more HITs are created"):
        launch_batch(session, market.mturk, settings, clock, TERMS, CONTEXTS, on_created=close)

    assert (len(market.hits()), on_offer(market)) == (1, 0)


def test_a_hit_that_the_marketplace_does_not_expire_keeps_no_other_one_on_offer(
    session: Session, market: Market, clock: FixedClock, hits: list[str]
) -> None:
    market.before = failing("UpdateExpirationForHIT", 400, "RequestError", times=1)

    done = close_round(session, market.mturk, clock, "sentiment", 1, by="Ada")

    assert (done.expired, on_offer(market), len(done.findings)) == (2, 1, 1)
    named = [f"HIT {one} is still on offer: The marketplace refused" for one in hits]
    assert done.findings[0].startswith(tuple(named))
    assert finish_closing(session, market.mturk, clock).expired == 1
    assert on_offer(market) == 0


def test_a_draft_has_nothing_to_close(session: Session, market: Market, clock: FixedClock) -> None:
    make.make_round(session, state=RoundState.DRAFT)
    session.commit()

    with pytest.raises(Refused, match="nothing is on offer"):
        close_round(session, market.mturk, clock, "sentiment", 1, by="Ada")
