"""Our own database lets in whom the rules let in, also when many HITs are opened in the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from hits.attempts import open_assignment
from hits.models import Assignment, Hit, Worker
from hits.states import AssignmentState, HitKind
from qualification.admission import Phase, check_admission
from qualification.errors import NotAdmitted
from qualification.grants import VALIDATOR, end_grant, plan_grant
from qualification.limits_models import (
    EVERY_ROUND,
    AllowList,
    LimitPer,
    ListEntry,
    ListKind,
    RoundExclusion,
    Work,
    WorkLimit,
)
from tests.factories import (
    NOON,
    PSEUDONYM_KEY,
    make_assignment,
    make_attempt,
    make_batch,
    make_example,
    make_hit,
    make_round,
    make_validation_hit,
    make_vote,
    make_worker,
)

LATER = NOON + timedelta(hours=2)


def rule(session: Session, row: AllowList | RoundExclusion | WorkLimit) -> None:
    row.set_at, row.set_by = NOON, "robin"
    session.add(row)
    session.flush()


def limit(session: Session, per: LimitPer, most: int, *, round_number: int = 1, work: Work = Work.WRITING) -> None:
    rule(session, WorkLimit(task_code="sentiment", round_number=round_number, work=work, per=per, most=most))


def listed(session: Session, worker: Worker, kind: ListKind, round_number: int = EVERY_ROUND, **fields: Any) -> None:
    session.add(
        ListEntry(
            worker_id=worker.id,
            kind=kind,
            task_code="sentiment",
            round_number=round_number,
            reason="for tests",
            added_at=NOON,
            added_by="robin",
            **fields,
        )
    )
    session.flush()


def refusal(
    session: Session, hit: Hit, worker: Worker, *, phase: Phase = "load", now: Any = NOON + timedelta(minutes=1)
) -> str:
    """What the worker is told, empty for one who is let in."""
    try:
        check_admission(session, hit, worker, now, phase=phase)
    except NotAdmitted as error:
        return str(error)
    return ""


def test_without_rules_everybody_is_let_in(session: Session) -> None:
    assert refusal(session, make_hit(session), make_worker(session)) == ""


def test_somebody_set_aside_is_let_in_again_when_that_ends(session: Session) -> None:
    hit, worker = make_hit(session), make_worker(session)
    listed(session, worker, ListKind.SET_ASIDE)

    assert "does not offer you HITs of this task at the moment" in refusal(session, hit, worker)
    assert refusal(session, hit, make_worker(session)) == ""
    entry = session.scalars(select(ListEntry)).one()
    entry.ended_at, entry.ended_by = NOON, "robin"
    session.flush()
    assert refusal(session, hit, worker) == ""


def test_whose_validators_qualification_was_taken_back_is_not_let_in_whatever_the_marketplace_shows(
    session: Session,
) -> None:
    hit, worker = make_validation_hit(session, examples=[make_example(session)]), make_worker(session)
    endpoint = hit.batch.endpoint
    hit.batch.qualification_type_id = "TVALIDATORS"
    terms = {"version": 0, "value": 1, "endpoint": endpoint, "reason": "", "by": "robin", "now": NOON}
    assert refusal(session, hit, worker) == ""
    plan_grant(session, worker.id, VALIDATOR, **terms)  # type: ignore[arg-type]
    assert refusal(session, hit, worker) == ""

    end_grant(session, worker.id, VALIDATOR, endpoint, reason="Guesses.", by="robin", now=NOON)

    for phase in ("load", "submit"):
        assert "has been taken back, or has ended" in refusal(session, hit, worker, phase=phase)
    hit.batch.qualification_type_id = None
    assert refusal(session, hit, worker) == ""
    hit.batch.qualification_type_id = "TVALIDATORS"
    plan_grant(session, worker.id, VALIDATOR, **terms, months=1)  # type: ignore[arg-type]
    assert refusal(session, hit, worker) == ""
    assert "has ended" in refusal(session, hit, worker, now=NOON + timedelta(days=40))


def test_an_allow_list_lets_in_whom_it_names_and_an_empty_one_nobody(session: Session) -> None:
    hit, invited, other = make_hit(session), make_worker(session), make_worker(session)
    rule(session, AllowList(task_code="sentiment", round_number=1))

    assert "invited" in refusal(session, hit, invited)
    listed(session, invited, ListKind.ALLOWED, 1)
    assert refusal(session, hit, invited) == ""
    assert "invited" in refusal(session, hit, other)
    # To the whole task, so to this round as well.
    listed(session, other, ListKind.ALLOWED)
    assert refusal(session, hit, other) == ""


def test_who_wrote_in_one_round_is_kept_out_of_another(session: Session) -> None:
    rounds = [make_round(session, task_code="sentiment", number=number) for number in (1, 2, 3)]
    hits = [make_hit(session, batch=make_batch(session, round=one)) for one in rounds]
    worker = make_worker(session)
    make_assignment(session, hit=hits[0], worker=worker, state=AssignmentState.SUBMITTED)
    rule(session, RoundExclusion(task_code="sentiment", round_number=2, other_number=1))

    assert refusal(session, hits[1], worker) == (
        "You wrote in round 1 of this task, and round 2 is kept for people who did not."
    )
    assert refusal(session, hits[2], worker) == ""
    assert refusal(session, hits[1], make_worker(session)) == ""


def test_an_exclusive_round_works_both_ways(session: Session) -> None:
    rounds = [make_round(session, task_code="sentiment", number=number) for number in (1, 2)]
    hits = [make_hit(session, batch=make_batch(session, round=one)) for one in rounds]
    before, inside = make_worker(session), make_worker(session)
    make_assignment(session, hit=hits[0], worker=before, state=AssignmentState.APPROVED)
    make_assignment(session, hit=hits[1], worker=inside, state=AssignmentState.APPROVED)
    rule(session, RoundExclusion(task_code="sentiment", round_number=2, other_number=EVERY_ROUND))

    more = [make_hit(session, batch=hits[0].batch), make_hit(session, batch=hits[1].batch)]
    assert "round 1" in refusal(session, more[1], before)
    assert "round 2" in refusal(session, more[0], inside)
    assert refusal(session, more[0], before) == refusal(session, more[1], inside) == ""


def test_a_hit_that_lapsed_untouched_excludes_from_nothing_and_one_with_a_question_does(session: Session) -> None:
    rounds = [make_round(session, task_code="sentiment", number=number) for number in (1, 2)]
    hits = [make_hit(session, batch=make_batch(session, round=one)) for one in rounds]
    rule(session, RoundExclusion(task_code="sentiment", round_number=2, other_number=1))
    looked, asked = make_worker(session), make_worker(session)
    make_assignment(session, hit=hits[0], worker=looked)
    make_attempt(session, assignment=make_assignment(session, hit=hits[0], worker=asked))

    assert "round 1" in refusal(session, hits[1], looked)
    assert refusal(session, hits[1], looked, now=LATER) == ""
    assert "round 1" in refusal(session, hits[1], asked, now=LATER)


def test_of_two_open_hits_that_exclude_each_other_the_first_may_go_on(session: Session) -> None:
    rounds = [make_round(session, task_code="sentiment", number=number) for number in (1, 2)]
    hits = [make_hit(session, batch=make_batch(session, round=one)) for one in rounds]
    worker = make_worker(session)
    for hit in reversed(hits):
        make_assignment(session, hit=hit, worker=worker)
    rule(session, RoundExclusion(task_code="sentiment", round_number=2, other_number=EVERY_ROUND))

    assert refusal(session, hits[1], worker, phase="submit") == ""
    assert "round 2" in refusal(session, hits[0], worker, phase="submit")


@pytest.mark.parametrize("per", list(LimitPer))
def test_a_limit_counts_hits_and_says_which(session: Session, per: LimitPer) -> None:
    limit(session, per, 2)
    batch, worker = make_batch(session), make_worker(session)
    first = make_hit(session, batch=batch)
    # Returned and taken again: still one HIT.
    for state in (AssignmentState.OPENED, AssignmentState.SUBMITTED):
        make_assignment(session, hit=first, worker=worker, state=state)
    second, third = make_hit(session, batch=batch), make_hit(session, batch=batch)

    assert refusal(session, second, worker) == ""
    make_assignment(session, hit=second, worker=worker)
    told = refusal(session, third, worker)

    assert "2 HITs" in told
    assert "at most 2" in told
    assert ("in a day" in told) is (per is LimitPer.DAY)
    assert refusal(session, third, make_worker(session)) == ""
    # A place that was given stays given.
    assert refusal(session, second, worker) == refusal(session, second, worker, phase="submit") == ""


def test_limits_count_what_they_say(session: Session) -> None:
    """Another HIT type, another round, another kind of work and another day are not counted."""
    worker = make_worker(session)
    other_round = make_round(session, task_code="sentiment", number=2)
    make_round(session)
    done = make_hit(session)
    make_assignment(session, hit=done, worker=worker, state=AssignmentState.SUBMITTED)
    judged = make_hit(session, batch=make_batch(session, kind=HitKind.VALIDATION))
    same_type = make_hit(session, batch=make_batch(session, hit_type_id=done.batch.hit_type_id))
    elsewhere = make_hit(session, batch=make_batch(session, round=other_round))

    limit(session, LimitPer.HIT_TYPE, 1, round_number=EVERY_ROUND)
    assert refusal(session, same_type, worker) != ""
    assert refusal(session, make_hit(session), worker) == ""
    assert refusal(session, judged, worker) == ""

    limit(session, LimitPer.ROUND, 1, round_number=EVERY_ROUND)
    assert refusal(session, make_hit(session), worker) != ""
    assert refusal(session, elsewhere, worker) == ""

    limit(session, LimitPer.DAY, 1, round_number=EVERY_ROUND)
    assert refusal(session, elsewhere, worker) != ""
    midnight = NOON.replace(hour=0) + timedelta(days=1)
    assert refusal(session, elsewhere, worker, now=midnight - timedelta(seconds=1)) != ""
    assert refusal(session, elsewhere, worker, now=midnight) == ""


def test_a_hit_that_was_let_lapse_gives_its_place_back(session: Session) -> None:
    limit(session, LimitPer.ROUND, 1)
    batch, worker = make_batch(session), make_worker(session)
    first, second = make_hit(session, batch=batch), make_hit(session, batch=batch)
    make_assignment(session, hit=first, worker=worker)

    assert refusal(session, second, worker) != ""
    assert refusal(session, second, worker, now=LATER) == ""
    make_assignment(session, hit=second, worker=worker, state=AssignmentState.SUBMITTED)
    assert refusal(session, first, worker, now=LATER) != ""


def everything_against(session: Session, worker: Worker) -> None:
    listed(session, worker, ListKind.SET_ASIDE)
    rule(session, AllowList(task_code="sentiment", round_number=1))
    for work in Work:
        limit(session, LimitPer.ROUND, 1, work=work)


def test_writing_that_was_begun_may_be_finished(session: Session) -> None:
    hit, worker = make_hit(session), make_worker(session)
    assignment = make_assignment(session, hit=hit, worker=worker)
    everything_against(session, worker)

    assert refusal(session, hit, worker, phase="submit") != ""
    make_attempt(session, assignment=assignment)
    assert refusal(session, hit, worker, phase="submit") == refusal(session, hit, worker) == ""
    assert refusal(session, make_hit(session, batch=hit.batch), worker) != ""


def test_judging_that_was_begun_may_be_finished(session: Session) -> None:
    example = make_example(session)
    hit = make_validation_hit(session, examples=[example])
    assignment = make_assignment(session, hit=hit)
    worker = session.get_one(Worker, assignment.worker_id)
    everything_against(session, worker)

    assert refusal(session, hit, worker, phase="submit") != ""
    make_vote(session, example=example, assignment=assignment, counted_at=None)
    assert refusal(session, hit, worker, phase="submit") == refusal(session, hit, worker) == ""


def test_hits_that_are_neither_writing_nor_judging_are_open_to_all(session: Session) -> None:
    worker = make_worker(session)
    everything_against(session, worker)
    quiz = make_hit(session, batch=make_batch(session, kind=HitKind.QUALIFICATION))

    assert refusal(session, quiz, worker) == ""


def opening(sessions: sessionmaker[Session], hit_id: int, worker_id: int, together: threading.Barrier) -> str:
    """Open a HIT as its page does, in one transaction."""
    with sessions() as session:
        together.wait(20)
        hit = session.get_one(Hit, hit_id)
        worker = session.get_one(Worker, worker_id)
        try:
            check_admission(session, hit, worker, NOON, phase="load")
        except NotAdmitted as error:
            session.rollback()
            return str(error)
        open_assignment(
            session,
            hit,
            mturk_assignment_id=f"ASSIGNMENT{hit_id:04d}",
            mturk_worker_id=worker.mturk_worker_id,
            pseudonym_key=PSEUDONYM_KEY,
            deadline=NOON + timedelta(hours=1),
            now=NOON,
        )
        session.commit()
        return ""


def all_at_once(work: list[Callable[[], str]]) -> list[str]:
    told: list[str] = []
    failures: list[BaseException] = []

    def run(one: Callable[[], str]) -> None:
        try:
            told.append(one())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    return told


@pytest.mark.parametrize("per", list(LimitPer))
def test_twenty_hits_opened_at_once_at_a_limit_of_five_are_five(
    session_factory: sessionmaker[Session], per: LimitPer
) -> None:
    with session_factory() as session:
        limit(session, per, 5)
        batch, worker = make_batch(session), make_worker(session)
        hits = [make_hit(session, batch=batch).id for _ in range(20)]
        worker_id = worker.id
        session.commit()
    together = threading.Barrier(20)

    told = all_at_once([partial(opening, session_factory, hit_id, worker_id, together) for hit_id in hits])

    with session_factory() as session:
        stored = session.scalar(select(func.count()).select_from(Assignment))
    assert (sum(not one for one in told), stored) == (5, 5)
    assert all("at most 5" in one for one in told if one)


def test_two_tabs_of_rounds_that_exclude_each_other_let_one_in(session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        rounds = [make_round(session, task_code="sentiment", number=number) for number in (1, 2)]
        hits = [make_hit(session, batch=make_batch(session, round=one)).id for one in rounds]
        worker_id = make_worker(session).id
        rule(session, RoundExclusion(task_code="sentiment", round_number=2, other_number=EVERY_ROUND))
        session.commit()
    together = threading.Barrier(2)

    told = all_at_once([partial(opening, session_factory, hit_id, worker_id, together) for hit_id in hits])

    assert sorted(map(bool, told)) == [False, True]
