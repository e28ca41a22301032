"""A pass does every step once; a step that fails is said and does not stop the others; a kill changes no end result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.admission_rules import set_aside
from app.operations.jobs_pass import PassReport, jobs_pass
from app.operations.launch import launch_batch
from app.operations.practice import grade_practice
from app.settings import Settings
from hits.clock import FixedClock
from hits.db import Base
from hits.models import Assignment, Attempt, Example, Hit, HitBatch, Vote, Worker
from hits.states import HitKind
from payments.models import LedgerTransaction
from tests import market as markets
from tests.app.operations.conftest import CONTEXTS, TERMS
from tests.app.operations.crashes import Killed, killed_at
from tests.app.operations.people import Crowd
from tests.market import Market, failing

WROTE = "I was there on Monday"


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


def ending(crowd: Crowd) -> dict[str, Any]:
    """Everything that matters at the end, without ids that differ from run to run."""
    session = crowd.session
    booked = session.scalars(select(LedgerTransaction)).all()
    found = {
        "assignments": sorted(row.state.value for row in session.scalars(select(Assignment))),
        "examples": sorted((row.fooled, row.verdict.value) for row in session.scalars(select(Example))),
        "votes": [vote.counted_at is not None for vote in session.scalars(select(Vote))],
        "hits": sorted((row.batch.kind.value, row.state.value) for row in session.scalars(select(Hit))),
        "booked": sorted((one.kind.value, sorted(line.cents for line in one.postings)) for one in booked),
        "there": sorted(hit["HITStatus"] for hit in crowd.market.hits()),
        "balance": crowd.market.mturk.balance(),
    }
    session.commit()
    return found


def fresh(crowd: Crowd, start: datetime) -> Crowd:
    """Return a crowd on a new market at the story's first hour."""
    clock = FixedClock(start)
    return Crowd(crowd.session, Market(clock), crowd.settings, clock)


def played(crowd: Crowd, moment: str, kill: int) -> int:
    """Play the story with a kill at one commit, counted through all passes, and return how many there were."""
    before = 0
    for _ in story(crowd):
        with killed_at(crowd.session, moment, kill - before if kill else 0) as count:
            try:
                assert passed(crowd).findings == []
            except Killed:
                crowd.session.close()
        before += count["commits"]
        assert passed(crowd).findings == []
    return before


def battered(crowd: Crowd, moment: str) -> int:
    """Play the story while each pass is killed at its first commit, then its second, until one gets through."""
    kills = 0
    for _ in story(crowd):
        for number in itertools.count(1):
            with killed_at(crowd.session, moment, number) as count:
                try:
                    assert passed(crowd).findings == []
                except Killed:
                    crowd.session.close()
                    kills += 1
            if count["commits"] < number:
                break
    return kills


def emptied(sessions: sessionmaker[Session]) -> None:
    """Make all tables anew; rows of the ledger can't be deleted."""
    with sessions() as session:
        connection = session.connection()
        Base.metadata.drop_all(connection)
        Base.metadata.create_all(connection)
        session.commit()


def test_the_whole_loop_ends_decided_paid_and_closed(crowd: Crowd) -> None:
    played(crowd, "before_commit", 0)

    found = ending(crowd)
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
    assert [cents for kind, cents in found["booked"] if kind == "reward"] == [
        [-36, -36, 6, 30, 36],
        [-36, -36, 6, 30, 36],
        [-30, -30, 5, 25, 30],
        [-30, -30, 5, 25, 30],
    ]


def test_the_report_names_what_was_done(crowd: Crowd) -> None:
    steps = story(crowd)

    next(steps)
    assert str(passed(crowd)) == "2 submitted, 3 examples, 2 approved"
    assert not passed(crowd).unavailable
    next(steps)
    assert str(passed(crowd)) == "1 validation HITs opened"
    next(steps)
    assert str(passed(crowd)) == "2 submitted, 4 votes, 2 approved, 2 decided, 2 bonuses owed"
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


def test_a_step_with_a_fault_of_ours_stops_neither_the_others_nor_the_process(
    crowd: Crowd, hits: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def at_fault(*_: object) -> int:
        raise KeyError(WROTE)

    crowd.write(crowd.market.person("writer"), hits[0], {"A treat, cold soup.": True})
    monkeypatch.setattr("app.operations.jobs_pass.decide_pending", at_fault)

    report = passed(crowd)
    crowd.clock.advance(timedelta(seconds=60))

    assert (report.submitted, report.approved, passed(crowd).opened) == (1, 1, 1)
    assert report.findings == ["deciding: KeyError, a fault of this program; the log has it"]
    assert report.broken
    assert "KeyError" in caplog.text
    assert "in at_fault" in caplog.text
    assert WROTE not in caplog.text + str(report)


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


@pytest.mark.parametrize("moment", ["before_commit", pytest.param("after_commit", marks=pytest.mark.slow)])
def test_kills_at_one_commit_after_the_other_change_no_end_result(
    session_factory: sessionmaker[Session], crowd: Crowd, clock: FixedClock, moment: str
) -> None:
    start = clock.now()
    played(crowd, moment, 0)
    expected = ending(crowd)
    crowd.session.close()
    emptied(session_factory)

    other = fresh(crowd, start)
    kills = battered(other, moment)

    assert kills > 20
    assert ending(other) == expected


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_a_kill_at_any_commit_of_the_jobs_changes_no_end_result(
    session_factory: sessionmaker[Session], crowd: Crowd, clock: FixedClock, moment: str
) -> None:
    start = clock.now()
    commits = played(crowd, moment, 0)
    expected = ending(crowd)
    assert commits > 20

    for kill in range(1, commits + 1):
        crowd.session.close()
        emptied(session_factory)
        other = fresh(crowd, start)
        played(other, moment, kill)
        assert ending(other) == expected, kill


def test_settings_decide_the_wait(session: Session, market: Market, clock: FixedClock, settings: Settings) -> None:
    crowd = Crowd(session, market, markets.settings(validation_wait_seconds=0), clock)
    next(story(crowd))

    assert passed(crowd).opened == 1


def test_a_pass_keeps_the_lists_of_workers_and_tells_writers_of_their_grades(crowd: Crowd) -> None:
    market, session, clock = crowd.market, crowd.session, crowd.clock
    launch_batch(session, market.mturk, crowd.settings, clock, replace(TERMS, practice=1), CONTEXTS)
    writer = market.person("writer0")
    crowd.write(writer, market.hits()[0]["HITId"], {"A treat, cold soup.": True})
    passed(crowd)
    row = session.scalars(select(Worker)).one()
    set_aside(session, clock, "sentiment", row, reason="for tests", by="robin")
    [name] = session.scalars(select(Attempt.public_id))
    grade_practice(session, clock, name, passed=False, words="It names no feeling.", by="robin")

    report = passed(crowd)

    assert (report.listed, report.told, report.opened) == (1, 1, 0)
    assert "1 changes of workers' lists, 1 writers told of grades" in str(report)
    type_id = market.mturk.find_qualification("dynahit: other work than sentiment") or ""
    assert [grant.worker_id for grant in market.mturk.holders(type_id)] == [writer]
    assert "It names no feeling." in market.engine.messages(writer).messages[0].text
    assert not passed(crowd).changed
