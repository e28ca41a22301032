"""A pass does every step once; a step that fails is said and does not stop the others; a kill changes no end result."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.jobs_pass import PassReport, jobs_pass
from app.operations.launch import launch_batch
from app.settings import Settings
from hits.clock import FixedClock
from hits.db import Base
from hits.models import Assignment, Example, Hit, HitBatch, Vote, Worker
from hits.states import HitKind
from payments.models import LedgerTransaction, TransactionKind
from tests import market as markets
from tests.app.operations.conftest import CONTEXTS, TERMS
from tests.app.operations.crashes import Killed, killed_at
from tests.app.operations.people import Crowd
from tests.market import Market, failing


def passed(crowd: Crowd) -> PassReport:
    return jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)


def story(crowd: Crowd) -> Iterator[None]:
    """Two writers, two validators; a jobs pass belongs after each step."""
    market, session = crowd.market, crowd.session
    launch_batch(session, market.mturk, crowd.settings, crowd.clock, TERMS, CONTEXTS)
    wanted = select(Hit.mturk_hit_id).join(Hit.batch).order_by(Hit.position)
    creation = session.scalars(wanted.where(HitBatch.kind == HitKind.CREATION)).all()
    session.commit()
    crowd.write(market.person("writer0"), creation[0] or "", {"Nice, a bill.": False, "A treat, cold soup.": True})
    crowd.write(market.person("writer1"), creation[1] or "", {"A joy, this queue.": True})
    yield
    crowd.clock.advance(timedelta(seconds=60))
    yield
    validation = session.execute(
        select(Hit.mturk_hit_id, HitBatch.qualification_type_id)
        .join(Hit.batch)
        .where(HitBatch.kind == HitKind.VALIDATION)
    ).one()
    session.commit()
    for name in ("validator0", "validator1"):
        person = market.person(name, grants={validation.qualification_type_id or "": 1})
        crowd.judge(person, validation.mturk_hit_id or "")
    yield
    yield


def ending(session: Session, market: Market) -> dict[str, Any]:
    """Everything that matters at the end, without ids that differ from run to run."""
    rewards = session.scalars(select(LedgerTransaction).where(LedgerTransaction.kind == TransactionKind.REWARD)).all()
    found = {
        "assignments": sorted(row.state.value for row in session.scalars(select(Assignment))),
        "examples": sorted((row.fooled, row.verdict.value) for row in session.scalars(select(Example))),
        "votes": [vote.counted_at is not None for vote in session.scalars(select(Vote))],
        "hits": sorted((row.batch.kind.value, row.state.value) for row in session.scalars(select(Hit))),
        "rewards": sorted(sorted(line.cents for line in one.postings) for one in rewards),
        "there": sorted(hit["HITStatus"] for hit in market.hits()),
        "balance": market.mturk.balance(),
    }
    session.commit()
    return found


def played(sessions: sessionmaker[Session], start: datetime, moment: str, kill: int) -> tuple[dict[str, Any], int]:
    """Play the story with a kill at one commit of the passes, counted through all of them."""
    clock = FixedClock(start)
    market, settings = Market(clock), markets.settings()
    before = 0
    with sessions() as session:
        crowd = Crowd(session, market, settings, clock)
        for _ in story(crowd):
            with killed_at(session, moment, kill - before if kill else 0) as count:
                try:
                    report = passed(crowd)
                except Killed:
                    session.rollback()
                else:
                    assert report.findings == []
            before += count["commits"]
            assert passed(crowd).findings == []
        return ending(session, market), before


def emptied(sessions: sessionmaker[Session]) -> None:
    """Make all tables anew; rows of the ledger can't be deleted."""
    with sessions() as session:
        connection = session.connection()
        Base.metadata.drop_all(connection)
        Base.metadata.create_all(connection)
        session.commit()


def test_the_whole_loop_ends_decided_paid_and_closed(session_factory: sessionmaker[Session], clock: FixedClock) -> None:
    found, _ = played(session_factory, clock.now(), "before_commit", 0)

    assert found["assignments"] == ["approved"] * 4
    assert found["examples"] == [
        (False, "not_validated"),
        (True, "valid_and_model_wrong"),
        (True, "valid_and_model_wrong"),
    ]
    assert found["votes"] == [True] * 4
    assert found["hits"] == [
        ("creation", "closed"),
        ("creation", "closed"),
        ("creation", "created"),
        ("validation", "closed"),
    ]
    assert found["rewards"] == [[-36, 6, 30], [-36, 6, 30], [-30, 5, 25], [-30, 5, 25]]


def test_the_report_names_what_was_done(crowd: Crowd) -> None:
    steps = story(crowd)

    next(steps)
    assert str(passed(crowd)) == "2 submitted, 3 examples, 2 approved"
    assert not passed(crowd).unavailable
    next(steps)
    assert str(passed(crowd)) == "1 validation HITs opened"
    next(steps)
    assert str(passed(crowd)) == "2 submitted, 4 votes, 2 approved, 2 decided"
    assert str(passed(crowd)) == "1 HITs closed"
    assert str(passed(crowd)) == "nothing new"
    assert not passed(crowd).changed


def test_a_marketplace_that_is_away_is_said_and_the_rest_is_done(crowd: Crowd) -> None:
    next(story(crowd))
    crowd.market.before = failing("ListAssignmentsForHIT")

    report = passed(crowd)

    assert report.unavailable
    assert "collecting: The marketplace at http://127.0.0.1:8000 did not answer" in report.findings[0]
    crowd.market.before = None
    assert passed(crowd).submitted == 2


def test_a_failing_step_does_not_stop_the_later_ones(crowd: Crowd) -> None:
    steps = story(crowd)
    next(steps)
    passed(crowd)
    next(steps)
    crowd.market.before = failing("ListHITs", 400, "AccessDeniedException")

    report = passed(crowd)

    assert report.opened == 1
    assert [finding.split(":")[0] for finding in report.findings] == ["collecting"]


def test_no_line_of_a_report_names_a_worker(crowd: Crowd, caplog: pytest.LogCaptureFixture) -> None:
    next(story(crowd))
    person = crowd.market.person("stranger")
    free = next(hit["HITId"] for hit in crowd.market.hits() if hit["HITStatus"] == "Assignable")
    crowd.market.submit(crowd.market.accept(person, free))
    crowd.market.before = failing("ApproveAssignment", 400, "AccessDeniedException")

    report = passed(crowd)

    ids = {row.mturk_worker_id for row in crowd.session.scalars(select(Worker))}
    said = " ".join([str(report), *report.findings, caplog.text])
    assert person in ids
    assert not [worker_id for worker_id in ids if worker_id in said]


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_a_kill_at_any_commit_of_the_jobs_changes_no_end_result(
    session_factory: sessionmaker[Session], clock: FixedClock, moment: str
) -> None:
    expected, commits = played(session_factory, clock.now(), moment, 0)
    assert commits > 20

    for kill in range(1, commits + 1):
        emptied(session_factory)
        found, _ = played(session_factory, clock.now(), moment, kill)
        assert found == expected, kill


def test_settings_decide_the_wait(session: Session, market: Market, clock: FixedClock, settings: Settings) -> None:
    crowd = Crowd(session, market, markets.settings(validation_wait_seconds=0), clock)
    next(story(crowd))

    assert passed(crowd).opened == 1
