"""HIT types ask about our lists, each list is one qualification type, and the marketplace follows what we decide."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.operations import admission_rules as rules
from app.operations.launch import launch_batch
from app.operations.requirements import add_to_list, follow_the_work, mirror_lists, requirements_for
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import InvalidInput
from hits.marketplace.errors import NotQualified
from hits.models import Hit, HitBatch, Round, Worker
from hits.models.people import worker_for
from hits.mturk.errors import HitTypeMismatch, MTurkUnavailable
from hits.states import AssignmentState, HitKind, HitState
from qualification.limits_models import EVERY_ROUND, LimitPer, ListEntry, ListKind, Work
from qualification.requirements import WorkerList
from tests.app.operations.conftest import CONTEXTS, terms
from tests.factories import make_assignment, make_batch, make_hit, make_round, make_worker
from tests.launched import ROOT
from tests.market import Market, failing, served

BY = "robin"
#: What the marketplace is told does not hang on our database.
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def worker(session: Session, market: Market, settings: Settings, clock: FixedClock, name: str) -> Worker:
    """Somebody who is known here and there."""
    found = worker_for(session, market.person(name), key=settings.pseudonym_key.get_secret_value(), now=clock.now())
    session.commit()
    return found


def told(market: Market, name: str) -> set[str]:
    """Who holds the qualification of this name at the marketplace."""
    type_id = market.mturk.find_qualification(name)
    return {grant.worker_id for grant in market.mturk.holders(type_id)} if type_id else set()


def launched(session: Session, market: Market, settings: Settings, clock: FixedClock, **changes: object) -> list[str]:
    before = {hit["HITId"] for hit in market.hits()}
    launch_batch(session, market.mturk, settings, clock, terms(**changes), CONTEXTS)
    return sorted({hit["HITId"] for hit in market.hits()} - before)


@ON_SQLITE
def test_a_launch_asks_what_was_written_and_whether_somebody_is_set_aside(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    hits = launched(session, market, settings, clock, requirements=("percent-approved >= 95", "locale in US, GB"))

    [batch] = session.scalars(select(HitBatch))
    aside = market.mturk.find_qualification("dynahit: other work than sentiment")
    seen = {frozenset(market.mturk.hit(hit_id).requirements) for hit_id in hits}
    assert seen == {
        frozenset(
            {
                "000000000000000000L0 >= 95, DiscoverPreviewAndAccept",
                "00000000000000000071 in GB, US, DiscoverPreviewAndAccept",
                f"{aside} not held, DiscoverPreviewAndAccept",
            }
        )
    }
    assert len(batch.requirements or []) == 3


@ON_SQLITE
def test_somebody_set_aside_sees_no_hit_of_the_task_and_no_block_until_it_is_lifted(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    [hit, *_] = launched(session, market, settings, clock)
    ada, bea = (worker(session, market, settings, clock, name) for name in ("ada", "bea"))

    assert rules.set_aside(session, clock, "sentiment", ada, reason="copied texts", by=BY)
    assert not rules.set_aside(session, clock, "sentiment", ada, reason="again", by=BY)
    assert mirror_lists(session, market.mturk, settings, clock).granted == 1

    assert told(market, "dynahit: other work than sentiment") == {ada.mturk_worker_id}
    with pytest.raises(NotQualified):
        market.accept(ada.mturk_worker_id, hit)
    assert market.call("ListWorkerBlocks")["WorkerBlocks"] == []
    market.accept(bea.mturk_worker_id, hit)

    assert rules.take_back(session, clock, "sentiment", ada, by=BY)
    assert mirror_lists(session, market.mturk, settings, clock).revoked == 1
    assert told(market, "dynahit: other work than sentiment") == set()
    assert mirror_lists(session, market.mturk, settings, clock).granted == 0


@ON_SQLITE
def test_only_the_invited_may_take_a_hit_of_an_allow_list(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    ada, bea = (worker(session, market, settings, clock, name) for name in ("ada", "bea"))
    rules.begin_allow_list(session, clock, "sentiment", 1, by=BY)
    rules.invite(session, clock, "sentiment", 1, ada, by=BY)

    [hit, *_] = launched(session, market, settings, clock)

    with pytest.raises(NotQualified):
        market.accept(bea.mturk_worker_id, hit)
    market.accept(ada.mturk_worker_id, hit)


@ON_SQLITE
def test_writers_of_one_round_can_not_take_hits_of_a_round_that_excludes_them(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    launched(session, market, settings, clock)
    ada, bea = (worker(session, market, settings, clock, name) for name in ("ada", "bea"))
    first = session.scalars(select(Hit)).first()
    make_assignment(session, hit=first, worker=ada, state=AssignmentState.SUBMITTED)
    session.commit()
    rules.exclude_writers(session, clock, "sentiment", 2, 1, by=BY)

    [hit, *_] = launched(session, market, settings, clock, round_number=2)

    with pytest.raises(NotQualified):
        market.accept(ada.mturk_worker_id, hit)
    market.accept(bea.mturk_worker_id, hit)


def test_lists_follow_the_work_and_the_limits(session: Session, clock: FixedClock) -> None:
    make_round(session)
    batch, ada = make_batch(session), make_worker(session)
    for _ in range(2):
        make_assignment(session, hit=make_hit(session, batch=batch), worker=ada, state=AssignmentState.APPROVED)
    session.commit()
    of_round = ("sentiment", 1, Work.WRITING, LimitPer.ROUND)

    def full() -> int:
        follow_the_work(session, clock.now())
        on = (ListEntry.kind == ListKind.FULL, ListEntry.ended_at.is_(None))
        return len(session.scalars(select(ListEntry).where(*on)).all())

    assert full() == 0
    rules.set_limit(session, clock, *of_round, 2, by=BY)
    assert (full(), full()) == (1, 1)
    rules.set_limit(session, clock, *of_round, 3, by=BY)
    assert full() == 0
    rules.set_limit(session, clock, *of_round, 1, by=BY)
    assert full() == 1
    rules.lift_limit(session, clock, *of_round, by=BY)
    assert full() == 0
    assert len(session.scalars(select(ListEntry)).all()) == 2


@ON_SQLITE
def test_a_crash_between_granting_and_storing_grants_again_and_changes_nothing(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    ada = worker(session, market, settings, clock, "ada")
    rules.set_aside(session, clock, "sentiment", ada, reason="for tests", by=BY)

    class Killed(BaseException):
        pass

    def die(operation: str) -> None:
        if operation == "AssociateQualificationWithWorker":
            raise Killed

    market.after = die
    with pytest.raises(Killed):
        mirror_lists(session, market.mturk, settings, clock)
    session.rollback()
    market.after = None
    held = told(market, "dynahit: other work than sentiment")

    assert mirror_lists(session, market.mturk, settings, clock).granted == 1
    assert held == told(market, "dynahit: other work than sentiment") == {ada.mturk_worker_id}


@ON_SQLITE
def test_somebody_whom_the_marketplace_does_not_know_is_a_finding_by_pseudonym(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    nobody = make_worker(session)
    session.commit()
    rules.set_aside(session, clock, "sentiment", nobody, reason="for tests", by=BY)

    [finding] = mirror_lists(session, market.mturk, settings, clock).findings

    assert nobody.pseudonym in finding
    assert nobody.mturk_worker_id not in finding


@ON_SQLITE
def test_a_list_that_was_left_and_joined_again_stays_granted(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    ada = worker(session, market, settings, clock, "ada")
    rules.set_aside(session, clock, "sentiment", ada, reason="one", by=BY)
    mirror_lists(session, market.mturk, settings, clock)
    rules.take_back(session, clock, "sentiment", ada, by=BY)
    rules.set_aside(session, clock, "sentiment", ada, reason="two", by=BY)

    mirror_lists(session, market.mturk, settings, clock)

    assert told(market, "dynahit: other work than sentiment") == {ada.mturk_worker_id}


@ON_SQLITE
def test_another_marketplace_is_told_anew(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    ada = worker(session, market, settings, clock, "ada")
    rules.set_aside(session, clock, "sentiment", ada, reason="for tests", by=BY)
    mirror_lists(session, market.mturk, settings, clock)

    other = market.client("http://127.0.0.1:8002")

    assert mirror_lists(session, other, settings, clock).granted == 1


@ON_SQLITE
def test_without_the_marketplace_the_entry_waits(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    ada = worker(session, market, settings, clock, "ada")
    rules.set_aside(session, clock, "sentiment", ada, reason="for tests", by=BY)
    market.before = failing("AssociateQualificationWithWorker")

    with pytest.raises(MTurkUnavailable):
        mirror_lists(session, market.mturk, settings, clock)
    session.rollback()
    market.before = None

    assert mirror_lists(session, market.mturk, settings, clock).granted == 1


@ON_SQLITE
def test_lists_without_room_are_left_to_our_own_pages(
    session: Session, market: Market, settings: Settings, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1, 14):
        make_round(session, task_code="sentiment", number=number)
    session.commit()
    rules.exclude_writers(session, clock, "sentiment", 13, EVERY_ROUND, by=BY)

    asked = requirements_for(session, market.mturk, settings, "sentiment", 13, HitKind.CREATION, ("adult = 1",))

    assert len(asked) == 10
    assert str(asked[0]).startswith("00000000000000000060 = 1")
    assert caplog.text.count("No room for") == 4


def test_more_requirements_than_ten_are_refused_before_any_call(market: Market) -> None:
    calls = len(market.calls)

    with pytest.raises(InvalidInput, match="11 requirements"):
        terms(requirements=tuple(f"q{number} held" for number in range(11)))
    with pytest.raises(InvalidInput, match="101 is not from 0 to 100"):
        terms(requirements=("percent-approved >= 101",))

    assert len(market.calls) == calls


@ON_SQLITE
def test_a_qualification_that_is_not_there_stops_the_launch_before_anything_is_stored(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    with pytest.raises(InvalidInput, match="no qualification named 'quiz of mine'"):
        launched(session, market, settings, clock, requirements=("quiz of mine held",))

    assert market.hits() == []
    assert session.scalars(select(HitBatch)).all() == []


@ON_SQLITE
def test_a_marketplace_that_drops_requirements_stops_the_launch_before_any_hit_exists(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    """It answers every CreateHITType as if it had been asked for none."""
    plain = market.mturk.create_hit_type(
        title="plain",
        description="for tests",
        keywords="",
        reward=Decimal("0.30"),
        assignment_seconds=60,
        auto_approval_seconds=60,
    )
    answer = f'{{"HITTypeId": "{plain}"}}'.encode()
    market.before = lambda operation: (200, {}, answer) if operation == "CreateHITType" else None

    for _ in range(2):
        with pytest.raises(HitTypeMismatch, match="No HIT was created"):
            launched(session, market, settings, clock)
        session.rollback()

    assert market.hits() == []
    assert "CreateHITWithHITType" not in market.calls
    assert {hit.state for hit in session.scalars(select(Hit))} == {HitState.PLANNED}
    session.rollback()
    market.before = None
    assert len(launched(session, market, settings, clock)) == 3


#: Waits for the word, so that two of them ask at the same time.
ASK_FOR_TYPES = """
import sys
from hits.mturk.client import MTurk
mturk = MTurk(sys.argv[1], "AKIDTESTS", "a secret of the tests", attempts=2)
print("ready", flush=True)
sys.stdin.readline()
for name in sys.argv[2:]:
    mturk.find_or_create_qualification(name, "for tests")
"""


def test_two_processes_that_want_the_same_type_make_one_of_each_name(market: Market) -> None:
    """Each name among 130 others that hold it as a part, so that it stands on a later page."""
    for number in range(130):
        market.mturk.find_or_create_qualification(f"wanted 1 and {number}", "for tests")
    names = [f"wanted {number}" for number in range(1, 6)]
    with served(market) as address:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", ASK_FOR_TYPES, address, *names],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        ready = [process.stdout.readline() for process in processes if process.stdout]
        for process in processes:
            if process.stdin:
                process.stdin.write("go\n")
                process.stdin.flush()
        for process in processes:
            process.communicate(timeout=120)
    assert ready == ["ready\n"] * 2
    assert [process.returncode for process in processes] == [0, 0]

    page: dict[str, str] = {}
    found: list[str] = []
    while True:
        answer = market.call(
            "ListQualificationTypes", MustBeRequestable=False, MustBeOwnedByCaller=True, MaxResults=100, **page
        )
        found += [item["Name"] for item in answer["QualificationTypes"]]
        if not answer.get("NextToken"):
            break
        page = {"NextToken": answer["NextToken"]}
    assert sorted(name for name in found if name in names) == names


def test_two_processes_that_add_the_same_worker_make_one_entry(
    session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    with session_factory() as session:
        worker_id = make_worker(session).id
        session.commit()
    listed = WorkerList(ListKind.SET_ASIDE, "sentiment", EVERY_ROUND)
    with session_factory() as session:
        assert add_to_list(session, listed, worker_id, reason="one", by=BY, now=clock.now())
        assert not add_to_list(session, listed, worker_id, reason="two", by=BY, now=clock.now())
        session.commit()
        # Past the look that comes before it, the database itself refuses.
        entry = session.scalars(select(ListEntry)).one()
        entry.ended_at, entry.ended_by = clock.now() + timedelta(hours=1), BY
        session.flush()
        assert add_to_list(session, listed, worker_id, reason="three", by=BY, now=clock.now())
        session.commit()
        assert len(session.scalars(select(ListEntry)).all()) == 2


def test_a_round_that_no_rule_speaks_of_keeps_no_lists(session: Session, clock: FixedClock) -> None:
    make_assignment(session, state=AssignmentState.APPROVED)
    assert session.scalars(select(Round)).all() != []
    session.commit()

    assert follow_the_work(session, clock.now()) == 0
