"""A fulfilled rule closes the round in the next pass, says why, and nothing more is on offer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry
from app.operations.jobs_pass import jobs_pass
from app.operations.jobs_plan import plan_jobs
from app.operations.launch import launch_batch
from app.operations.stop_rules import set_rules, spent_of, stop_rounds
from hits.errors import Refused
from hits.models import Round
from hits.rounds import StopRules, moves_of, rules_of
from hits.states import RoundState
from tests.app.operations.conftest import CONTEXTS, terms
from tests.app.operations.people import Crowd

ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
pytestmark = ON_SQLITE


def state_of(session: Session) -> RoundState:
    return session.scalars(select(Round.state)).one()


def test_a_rule_that_is_fulfilled_closes_the_round_and_takes_its_hits_off(crowd: Crowd, hits: list[str]) -> None:
    session, market, clock = crowd.session, crowd.market, crowd.clock
    wanted = StopRules(at=clock.now() + timedelta(hours=1))
    assert set_rules(session, clock, "sentiment", 1, lambda _: wanted, by="Ada") == wanted
    assert not jobs_pass(session, market.mturk, crowd.settings, clock).stopped
    assert state_of(session) is RoundState.COLLECTING
    clock.advance(timedelta(hours=1))
    planned = plan_jobs(session, market.mturk, crowd.settings, clock).stopping
    assert planned[0].startswith("round 1 of sentiment: 20")

    report = jobs_pass(session, market.mturk, crowd.settings, clock)

    assert (report.stopped, report.taken_off) == (1, 3)
    assert report.findings[0].startswith("round 1 of sentiment stopped: 20")
    assert state_of(session) is RoundState.VALIDATING
    assert [hit["HITStatus"] for hit in market.hits() if hit["HITStatus"] == "Assignable"] == []
    last = moves_of(session, 1)[-1]
    assert (last.by, last.to_state, last.note[:2]) == ("stop rule date", RoundState.VALIDATING, "20")
    entries = session.scalars(select(AuditEntry).order_by(AuditEntry.id)).all()
    assert [(entry.action, entry.staff_name) for entry in entries] == [
        ("round.stop_rules", "Ada"),
        ("round.close", "stop rule date"),
    ]
    again = jobs_pass(session, market.mturk, crowd.settings, clock)
    assert (again.stopped, again.taken_off) == (0, 0)


def test_of_two_who_set_different_rules_at_once_both_keep_theirs(
    crowd: Crowd, hits: list[str], session_factory: sessionmaker[Session]
) -> None:
    session, clock = crowd.session, crowd.clock
    until = clock.now() + timedelta(hours=1)
    # What Ada's command saw before Bob's was done.
    assert rules_of(session.scalars(select(Round)).one()) == StopRules()
    session.rollback()
    with session_factory() as other:
        set_rules(other, clock, "sentiment", 1, lambda rules: replace(rules, validated=40), by="Bob")

    wanted = set_rules(session, clock, "sentiment", 1, lambda rules: replace(rules, at=until), by="Ada")

    assert wanted == StopRules(validated=40, at=until)
    assert rules_of(session.scalars(select(Round)).one()) == wanted


def test_money_that_is_paid_and_owed_counts(crowd: Crowd, hits: list[str]) -> None:
    session, market, clock = crowd.session, crowd.market, crowd.clock
    crowd.write(market.person("writer0"), hits[0], {"A treat, cold soup.": True})
    set_rules(session, clock, "sentiment", 1, lambda _: StopRules(spent=Decimal("0.36")), by="Ada")

    assert jobs_pass(session, market.mturk, crowd.settings, clock).stopped == 1

    assert spent_of(session, 1) == Decimal("0.36")
    assert moves_of(session, 1)[-1].by == "stop rule spent"


def test_a_launch_into_a_round_that_would_stop_at_once_is_refused(crowd: Crowd, hits: list[str]) -> None:
    session, clock = crowd.session, crowd.clock
    set_rules(session, clock, "sentiment", 1, lambda _: StopRules(at=clock.now()), by="Ada")

    with pytest.raises(Refused, match=r"would stop at once.*dynahit round stop-rules sentiment 1"):
        launch_batch(session, crowd.market.mturk, crowd.settings, clock, terms(name="more"), CONTEXTS)

    session.rollback()
    assert stop_rounds(session, clock) != []
    assert stop_rounds(session, clock) == []
