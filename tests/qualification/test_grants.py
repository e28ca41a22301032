"""Levels, and grants step by step: planned once, safe whatever is overtaken by what, ended for a reason."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from hits.db import Base
from hits.errors import NotFound, Refused
from hits.models import Worker
from qualification import grants
from qualification.models import LIVE, Ending, GrantState, Level, LevelChange, QualificationGrant
from qualification.quizzes import answer_quiz
from tests import factories as make
from tests.factories import NOON
from tests.qualification.quiz_hits import answers, opened, quiz_hit

ENDPOINT = "http://127.0.0.1:8000"
KIND = "writer:nli"


@pytest.fixture
def ada(session: Session) -> Worker:
    return make.make_worker(session)


def plan(session: Session, worker: Worker, *, version: int = 1, **fields: object) -> QualificationGrant | None:
    values = {"value": version, "endpoint": ENDPOINT, "reason": "", "by": "robin", "now": NOON, **fields}
    return grants.plan_grant(session, worker.id, KIND, version=version, **values)  # type: ignore[arg-type]


def claimed(session: Session) -> grants.Order:
    """The oldest waiting grant, claimed."""
    [(grant_id, claims), *_] = grants.waiting(session, ENDPOINT)
    order = grants.claim(session, grant_id, claims)
    assert order is not None
    return order


def settle(session: Session) -> list[grants.Order]:
    """Let the marketplace do everything that is asked of it."""
    done = []
    while rows := grants.waiting(session, ENDPOINT):
        order = grants.claim(session, *rows[0])
        assert order is not None
        grants.mark_done(session, order, NOON)
        done.append(order)
    return done


def test_everybody_begins_as_a_novice_and_rises(session: Session, ada: Worker) -> None:
    assert grants.level_of(session, ada.id, "nli") is Level.NOVICE
    said = {"by": "robin", "reason": "Five of five passed.", "now": NOON}

    assert grants.raise_level(session, ada.id, "nli", Level.WRITER, **said) is Level.WRITER  # type: ignore[arg-type]
    assert grants.raise_level(session, ada.id, "nli", Level.EXPERT, **said) is Level.EXPERT  # type: ignore[arg-type]
    assert grants.raise_level(session, ada.id, "nli", Level.WRITER, **said) is Level.EXPERT  # type: ignore[arg-type]
    assert grants.level_of(session, ada.id, "qa") is Level.NOVICE
    assert session.scalar(select(func.count()).select_from(LevelChange)) == 2


def test_a_level_is_lowered_for_a_reason_only(session: Session, ada: Worker) -> None:
    grants.raise_level(session, ada.id, "nli", Level.EXPERT, by="robin", reason="", now=NOON)

    with pytest.raises(Refused, match="for a reason"):
        grants.lower_level(session, ada.id, "nli", Level.NOVICE, by="robin", reason=" ", now=NOON)
    with pytest.raises(Refused, match="expert is not lower"):
        grants.lower_level(session, ada.id, "nli", Level.EXPERT, by="robin", reason="x", now=NOON)
    assert grants.lower_level(session, ada.id, "nli", Level.WRITER, by="robin", reason="x", now=NOON) is Level.WRITER
    assert grants.level_of(session, ada.id, "nli") is Level.WRITER


@pytest.mark.parametrize(
    ("at", "months", "later"),
    [
        (datetime(2026, 1, 31, 12, tzinfo=UTC), 1, datetime(2026, 2, 28, 12, tzinfo=UTC)),
        (datetime(2027, 12, 31, tzinfo=UTC), 2, datetime(2028, 2, 29, tzinfo=UTC)),
        (datetime(2026, 11, 15, tzinfo=UTC), 12, datetime(2027, 11, 15, tzinfo=UTC)),
        (datetime(2026, 11, 15, tzinfo=UTC), 120, datetime(2036, 11, 15, tzinfo=UTC)),
    ],
)
def test_months_end_on_the_same_day(at: datetime, months: int, later: datetime) -> None:
    assert grants.months_later(at, months) == later


def test_qualifications_have_names_of_their_own(session: Session) -> None:
    assert grants.type_name(KIND, prefix="lab", validators="lab judges") == "lab nli writer"
    assert grants.type_name(grants.VALIDATOR, prefix="lab", validators="lab judges") == "lab judges"
    assert "nli" in grants.type_description(KIND)
    assert "judge" in grants.type_description(grants.VALIDATOR)


def test_a_grant_goes_from_the_row_to_the_marketplace_and_back(session: Session, ada: Worker) -> None:
    grant = plan(session, ada, months=12)
    assert grant is not None
    assert not grants.holds(session, ada.id, KIND, None, NOON)

    order = claimed(session)
    assert (order.kind, order.value, order.ends, order.worker_id) == (KIND, 1, False, ada.mturk_worker_id)
    assert ada.mturk_worker_id not in repr(order)
    assert grants.mark_done(session, order, NOON)

    assert grants.waiting(session, ENDPOINT) == []
    assert grants.holds(session, ada.id, KIND, None, NOON)
    assert grants.holds(session, ada.id, KIND, frozenset({1, 2}), NOON)
    assert not grants.holds(session, ada.id, KIND, frozenset({2}), NOON)
    assert not grants.holds(session, ada.id, "validator:nli", None, NOON)
    assert not grants.holds(session, ada.id, KIND, None, grants.months_later(NOON, 12))


def test_a_grant_that_stands_is_not_planned_again_and_another_version_replaces_it(
    session: Session, ada: Worker
) -> None:
    plan(session, ada)
    assert plan(session, ada) is None
    settle(session)
    assert plan(session, ada) is None

    assert plan(session, ada, version=2) is not None

    states = session.execute(
        select(QualificationGrant.version, QualificationGrant.state, QualificationGrant.ending).order_by(
            QualificationGrant.id
        )
    ).all()
    assert [tuple(row) for row in states] == [
        (1, GrantState.ENDED, Ending.REPLACED),
        (2, GrantState.PLANNED, None),
    ]
    # It is overwritten on the marketplace, so that only the new one is asked for.
    assert [order.value for order in settle(session)] == [2]


def test_a_row_that_was_dealt_with_is_not_claimed_twice(session: Session, ada: Worker) -> None:
    plan(session, ada)
    [(grant_id, claims)] = grants.waiting(session, ENDPOINT)

    assert grants.claim(session, grant_id, claims) is not None
    assert grants.claim(session, grant_id, claims) is None
    # A killed process leaves it claimed; the next one asks again, which changes nothing there.
    order = claimed(session)
    assert grants.mark_done(session, order, NOON)
    assert grants.claim(session, grant_id, order.claim) is None


def test_a_refused_grant_keeps_its_cause_and_lets_another_one_be_made(session: Session, ada: Worker) -> None:
    plan(session, ada)

    grants.mark_failed(session, claimed(session), "ParameterValidationError")

    session.expire_all()
    grant = session.scalars(select(QualificationGrant)).one()
    assert (grant.state, grant.cause) == (GrantState.FAILED, "ParameterValidationError")
    assert plan(session, ada) is not None


def test_an_ended_grant_counts_no_more_at_once_and_says_why(session: Session, ada: Worker) -> None:
    plan(session, ada)
    settle(session)

    grants.end_grant(session, ada.id, KIND, ENDPOINT, reason="Copied texts.", by="robin", now=NOON)

    assert not grants.holds(session, ada.id, KIND, None, NOON)
    [order] = settle(session)
    assert (order.ends, order.reason) == (True, "Copied texts.")
    latest = grants.latest_grant(session, ada.id, KIND, ENDPOINT)
    assert latest is not None
    assert (latest.state, latest.ending, latest.revoked_at) == (GrantState.ENDED, Ending.REVOKED, NOON)
    assert grants.is_barred(latest)
    with pytest.raises(NotFound, match="holds no qualification"):
        grants.end_grant(session, ada.id, KIND, ENDPOINT, reason="", by="robin", now=NOON)


def test_what_expired_is_taken_away_once_and_its_quiz_can_be_taken_again(session: Session, ada: Worker) -> None:
    assignment, result = opened(session, quiz_hit(session, "nli"), ada)
    answer_quiz(session, assignment, answers(result), NOON)
    assert grants.count_result(session, assignment.id, ada.id, months=12, now=NOON)
    settle(session)
    expiry = grants.months_later(NOON, 12)

    assert grants.end_expired(session, ENDPOINT, expiry - timedelta(seconds=1)) == 0
    assert grants.end_expired(session, ENDPOINT, expiry) == 1
    assert grants.end_expired(session, ENDPOINT, expiry) == 0

    assert [order.ends for order in settle(session)] == [True]
    latest = grants.latest_grant(session, ada.id, KIND, ENDPOINT)
    assert latest is not None
    assert not grants.is_barred(latest)
    assert result.set_aside_at == expiry
    again, second = opened(session, quiz_hit(session, "nli"), ada, after=expiry - NOON)
    answer_quiz(session, again, answers(second), expiry)
    assert grants.count_result(session, again.id, ada.id, months=12, now=expiry)
    assert [order.ends for order in settle(session)] == [False]


def test_a_result_earns_one_grant_however_often_it_is_counted(session: Session, ada: Worker) -> None:
    assignment, result = opened(session, quiz_hit(session, "nli"), ada)
    assert not grants.count_result(session, assignment.id, ada.id, months=0, now=NOON)
    answer_quiz(session, assignment, answers(result), NOON)
    bea = make.make_worker(session)

    # A forged address: the marketplace names somebody else than the page was opened for.
    assert not grants.count_result(session, assignment.id, bea.id, months=0, now=NOON)
    assert grants.count_result(session, assignment.id, ada.id, months=0, now=NOON)
    assert not grants.count_result(session, assignment.id, ada.id, months=0, now=NOON)
    result.counted_at = None
    session.flush()
    assert grants.count_result(session, assignment.id, ada.id, months=0, now=NOON)

    assert session.scalar(select(func.count()).select_from(QualificationGrant)) == 1
    assert grants.latest_grant(session, bea.id, KIND, ENDPOINT) is None


def test_a_failed_quiz_and_one_of_a_barred_worker_earn_nothing(session: Session, ada: Worker) -> None:
    assignment, result = opened(session, quiz_hit(session, "nli"), ada)
    answer_quiz(session, assignment, answers(result, 5), NOON)
    assert grants.count_result(session, assignment.id, ada.id, months=0, now=NOON)

    bea = make.make_worker(session)
    assignment, result = opened(session, quiz_hit(session, "nli"), bea)
    answer_quiz(session, assignment, answers(result), NOON)
    plan(session, bea)
    grants.end_grant(session, bea.id, KIND, ENDPOINT, reason="x", by="robin", now=NOON)
    assert grants.count_result(session, assignment.id, bea.id, months=0, now=NOON)

    states = session.scalars(select(QualificationGrant.state)).all()
    assert list(states) == [GrantState.ENDING]


def test_an_older_quiz_that_is_counted_late_takes_no_newer_qualification_away(session: Session, ada: Worker) -> None:
    assignment, result = opened(session, quiz_hit(session, "nli"), ada)
    answer_quiz(session, assignment, answers(result), NOON)
    newer = plan(session, ada, version=result.version.number + 1)
    settle(session)

    assert grants.count_result(session, assignment.id, ada.id, months=12, now=NOON)

    assert newer is not None
    assert newer.state is GrantState.GRANTED
    assert grants.latest_grant(session, ada.id, KIND, ENDPOINT) is newer
    assert settle(session) == []


def test_what_the_marketplace_shows_is_taken_over_once(session: Session, ada: Worker) -> None:
    shown = {"version": 1, "value": 1, "endpoint": ENDPOINT, "granted_at": NOON, "reason": "", "months": 12}

    assert grants.note_held(session, ada.id, KIND, **shown) is not None  # type: ignore[arg-type]
    assert grants.note_held(session, ada.id, KIND, **shown) is None  # type: ignore[arg-type]
    assert grants.holds(session, ada.id, KIND, frozenset({1}), NOON)

    # Expired since: the list may still show the old one.
    grants.end_expired(session, ENDPOINT, grants.months_later(NOON, 12))
    settle(session)
    assert grants.note_held(session, ada.id, KIND, **shown) is None  # type: ignore[arg-type]
    later = grants.months_later(NOON, 13)
    again = grants.note_held(session, ada.id, KIND, **{**shown, "granted_at": later})  # type: ignore[arg-type]
    assert again is not None


def test_what_a_person_took_away_and_the_marketplaces_quiz_gave_back_is_taken_away_again(
    session: Session, ada: Worker
) -> None:
    plan(session, ada)
    grants.end_grant(session, ada.id, KIND, ENDPOINT, reason="x", by="robin", now=NOON)
    settle(session)
    shown = {"version": 1, "value": 1, "endpoint": ENDPOINT, "granted_at": NOON + timedelta(days=1), "reason": ""}

    assert grants.note_held(session, ada.id, KIND, **shown) is None  # type: ignore[arg-type]
    assert [order.ends for order in settle(session)] == [True]

    grants.reset(session, ada.id, KIND, NOON)
    assert grants.note_held(session, ada.id, KIND, **shown) is not None  # type: ignore[arg-type]


def test_the_database_itself_allows_one_live_grant_only(session: Session, ada: Worker) -> None:
    plan(session, ada)
    row = {"worker_id": ada.id, "kind": KIND, "version": 1, "value": 1, "endpoint": ENDPOINT, "reason": "", "by": "x"}
    row |= {"planned_at": NOON, "claims": 0}

    for fields in (
        {"state": GrantState.PLANNED},
        {"state": GrantState.GRANTED, "kind": "validator:nli"},
        {"state": GrantState.ENDED, "revoked_at": NOON},
        {"state": GrantState.ENDED, "ending": Ending.EXPIRED},
        {"state": GrantState.FAILED},
    ):
        with pytest.raises(IntegrityError), session.begin_nested():
            session.execute(insert(QualificationGrant).values(**{**row, **fields}))
    elsewhere = {**row, "state": GrantState.PLANNED, "endpoint": "https://elsewhere"}
    session.execute(insert(QualificationGrant).values(**elsewhere))


def test_many_planners_at_once_plan_one_grant(session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        worker_id = make.make_worker(session).id
        session.commit()
    barrier, made = Barrier(6), []

    def plan_one() -> None:
        with session_factory() as session:
            barrier.wait(60)
            found = grants.plan_grant(
                session, worker_id, KIND, version=1, value=1, endpoint=ENDPOINT, reason="", by="x", now=NOON
            )
            session.commit()
            made.append(found is not None)

    threads = [Thread(daemon=True, target=plan_one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(made) == [False] * 5 + [True]


@pytest.fixture(scope="module")
def memory() -> Iterator[Engine]:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


#: What people and processes do: a process claims (1 to 3), its call lands, it marks; a person grants or revokes.
STEPS = st.lists(
    st.tuples(st.sampled_from(["grant", "grant 2", "revoke", "claim", "land", "mark", "die"]), st.integers(0, 2)),
    max_size=40,
)


@given(steps=STEPS)
@settings(max_examples=50, deadline=None)
def test_whatever_overtakes_what_the_marketplace_ends_as_the_rows_say(
    memory: Engine, steps: list[tuple[str, int]]
) -> None:
    with Session(memory) as session:
        worker_id = make.make_worker(session).id
        there: int | None = None
        held: dict[int, tuple[grants.Order, bool]] = {}
        for step, process in steps:
            if step.startswith("grant"):
                version = 2 if step.endswith("2") else 1
                grants.plan_grant(
                    session,
                    worker_id,
                    KIND,
                    version=version,
                    value=version,
                    endpoint=ENDPOINT,
                    reason="",
                    by="x",
                    now=NOON,
                )
            elif step == "revoke":
                try:
                    grants.end_grant(session, worker_id, KIND, ENDPOINT, reason="", by="x", now=NOON)
                except NotFound:
                    continue
            elif step == "claim" and process not in held and (rows := grants.waiting(session, ENDPOINT)):
                order = grants.claim(session, *rows[process % len(rows)])
                if order is not None:
                    held[process] = (order, False)
            elif step == "land" and process in held:
                order, _ = held[process]
                there = None if order.ends else order.value
                held[process] = (order, True)
            elif step == "mark" and process in held and held[process][1]:
                grants.mark_done(session, held.pop(process)[0], NOON)
            elif step == "die" and not (process in held and held[process][1]):
                held.pop(process, None)
        # Whoever's call has landed marks it; then one process goes on alone until nothing is left.
        for order, landed in held.values():
            if not landed:
                there = None if order.ends else order.value
            grants.mark_done(session, order, NOON)
        for _ in range(20):
            rows = grants.waiting(session, ENDPOINT)
            if not rows:
                break
            order = grants.claim(session, *rows[0])
            assert order is not None
            there = None if order.ends else order.value
            grants.mark_done(session, order, NOON)
        assert grants.waiting(session, ENDPOINT) == []
        live = session.scalars(
            select(QualificationGrant).where(
                QualificationGrant.worker_id == worker_id, QualificationGrant.state.in_(LIVE)
            )
        ).all()
        assert [grant.value for grant in live] == ([] if there is None else [there])
        assert all(grant.state is GrantState.GRANTED for grant in live)
        session.rollback()
