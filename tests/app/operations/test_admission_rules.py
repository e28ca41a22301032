"""Rules are set once, lifted once, listed in words, and stand in the audit trail with who set them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations import admission_rules as rules
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound, Refused
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
from tests.factories import NOON, make_worker

OF = ("nli", 2, Work.WRITING, LimitPer.DAY)


def words(session: Session) -> list[tuple[int, str, int | None]]:
    return [(one.round_number, one.words, one.people) for one in rules.rules_in_force(session)]


def audit(session: Session) -> list[tuple[str, str]]:
    return [(one.action, one.subject) for one in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]


def test_a_limit_is_set_replaced_and_lifted(session: Session, clock: FixedClock) -> None:
    rules.set_limit(session, clock, *OF, 20, by="robin")
    rules.set_limit(session, clock, *OF, 1, by="sam")
    assert words(session) == [(2, "writing: each worker at most 1 HIT in a day (UTC)", None)]

    rules.lift_limit(session, clock, *OF, by="sam")

    assert words(session) == []
    with pytest.raises(Refused, match="no such limit on round 2 of nli"):
        rules.lift_limit(session, clock, *OF, by="sam")
    assert audit(session) == [("limit.set", "round 2 of nli")] * 2 + [("limit.lift", "round 2 of nli")]


def test_exclusions_are_set_once_and_lifted(session: Session, clock: FixedClock) -> None:
    assert rules.exclude_writers(session, clock, "nli", 2, 1, by="robin")
    assert not rules.exclude_writers(session, clock, "nli", 2, 1, by="robin")
    assert rules.exclude_writers(session, clock, "nli", 3, EVERY_ROUND, by="robin")

    assert [(number, told) for number, told, _ in words(session)] == [
        (2, "who wrote in round 1 does not write here"),
        (3, "exclusive: its writers write in no other round, and no others write in it"),
    ]
    rules.lift_exclusion(session, clock, "nli", 2, 1, by="robin")
    with pytest.raises(Refused):
        rules.lift_exclusion(session, clock, "nli", 2, 1, by="robin")


def test_an_allow_list_begins_is_filled_and_ends_and_remembers_whom_it_named(
    session: Session, clock: FixedClock
) -> None:
    ada = make_worker(session)
    assert rules.begin_allow_list(session, clock, "nli", 1, by="robin")
    assert not rules.begin_allow_list(session, clock, "nli", 1, by="robin")
    assert words(session) == [(1, "only invited workers", 0)]
    assert rules.invite(session, clock, "nli", 1, ada, by="robin")
    assert not rules.invite(session, clock, "nli", 1, ada, by="robin")
    assert words(session) == [(1, "only invited workers", 1)]

    rules.end_allow_list(session, clock, "nli", 1, by="robin")
    assert words(session) == []
    with pytest.raises(Refused, match="open to everybody already"):
        rules.end_allow_list(session, clock, "nli", 1, by="robin")
    rules.begin_allow_list(session, clock, "nli", 1, by="robin")
    assert words(session) == [(1, "only invited workers", 1)]
    assert rules.take_invitation_back(session, clock, "nli", 1, ada, by="robin")
    assert not rules.take_invitation_back(session, clock, "nli", 1, ada, by="robin")
    assert words(session) == [(1, "only invited workers", 0)]


def test_setting_aside_needs_a_reason_and_names_the_worker_by_pseudonym(session: Session, clock: FixedClock) -> None:
    ada = make_worker(session)
    for reason, cause in ((" ", "for a reason only"), ("x" * 501, "501 characters")):
        with pytest.raises(InvalidInput, match=cause):
            rules.set_aside(session, clock, "hate", ada, reason=reason, by="robin")

    rules.set_aside(session, clock, "hate", ada, reason="copied texts", by="robin")

    [entry] = session.scalars(select(AuditEntry))
    assert (entry.action, entry.staff_name) == ("worker.set_aside", "robin")
    assert entry.detail == {"worker": ada.pseudonym}
    assert words(session) == [(0, "workers who are offered other work for now", 1)]
    assert rules.take_back(session, clock, "hate", ada, by="robin")
    assert not rules.take_back(session, clock, "hate", ada, by="robin")


def test_what_can_not_be_meant_is_refused(session: Session, clock: FixedClock) -> None:
    with pytest.raises(NotFound):
        rules.set_limit(session, clock, "poems", 1, Work.WRITING, LimitPer.DAY, 5, by="robin")
    for most in (0, 1_000_001):
        with pytest.raises(InvalidInput, match="The limit is"):
            rules.set_limit(session, clock, *OF, most, by="robin")
    with pytest.raises(InvalidInput, match="can't exclude its own writers"):
        rules.exclude_writers(session, clock, "nli", 2, 2, by="robin")
    for number, other in ((0, 1), (10_001, 1), (2, -1)):
        with pytest.raises(InvalidInput, match="must be from 1"):
            rules.exclude_writers(session, clock, "nli", number, other, by="robin")
    assert words(session) == []


def test_rules_are_listed_of_one_task_if_wanted(session: Session, clock: FixedClock) -> None:
    rules.set_limit(session, clock, *OF, 20, by="robin")
    rules.begin_allow_list(session, clock, "qa", 1, by="robin")

    [one] = rules.rules_in_force(session, "qa")

    assert one.as_json() == {
        "task": "qa",
        "round": 1,
        "kind": "allow-list",
        "rule": "only invited workers",
        "people": 0,
        "since": clock.now().isoformat(),
        "by": "robin",
    }
    with pytest.raises(NotFound):
        rules.rules_in_force(session, "poems")


def rows() -> list[Any]:
    who = {"set_at": NOON, "set_by": "robin"}
    entry = {"kind": ListKind.ALLOWED, "task_code": "nli", "round_number": 1, "reason": "r", "added_at": NOON}
    return [
        WorkLimit(task_code="nli", round_number=1, work=Work.WRITING, per=LimitPer.DAY, most=0, **who),
        WorkLimit(task_code="nli", round_number=-1, work=Work.WRITING, per=LimitPer.DAY, most=1, **who),
        RoundExclusion(task_code="nli", round_number=1, other_number=1, **who),
        RoundExclusion(task_code="nli", round_number=0, other_number=1, **who),
        AllowList(task_code="nli", round_number=-1, **who),
        ListEntry(**entry, added_by="robin", revoked_at=NOON),
        ListEntry(**entry, added_by="robin", granted_at=NOON),
    ]


@pytest.mark.parametrize("number", range(len(rows())))
def test_the_database_itself_refuses_rules_that_make_no_sense(session: Session, number: int) -> None:
    row = rows()[number]
    if isinstance(row, ListEntry):
        row.worker_id = make_worker(session).id
    session.add(row)

    with pytest.raises(IntegrityError):
        session.flush()


def test_the_database_keeps_each_rule_and_each_entry_once(session: Session) -> None:
    ada = make_worker(session)
    who = {"set_at": NOON, "set_by": "robin"}
    twice = [
        lambda: WorkLimit(task_code="nli", round_number=1, work=Work.WRITING, per=LimitPer.DAY, most=1, **who),
        lambda: RoundExclusion(task_code="nli", round_number=1, other_number=2, **who),
        lambda: AllowList(task_code="nli", round_number=1, **who),
        lambda: ListEntry(
            worker_id=ada.id,
            kind=ListKind.ALLOWED,
            task_code="nli",
            round_number=1,
            reason="r",
            added_at=NOON,
            added_by="robin",
        ),
    ]
    for make in twice:
        session.add(make())
        session.flush()
        with pytest.raises(IntegrityError), session.begin_nested():
            session.add(make())
