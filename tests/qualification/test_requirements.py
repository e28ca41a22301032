"""Requirements are read as people write them, refused before any call if they can't be, and follow from the rules."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.errors import InvalidInput
from hits.marketplace import system_qualifications as marketplace
from hits.mturk.client import Requirement
from hits.mturk.questions import external_question
from qualification import requirements
from qualification.limits_models import EVERY_ROUND, AllowList, LimitPer, ListKind, RoundExclusion, Work, WorkLimit
from qualification.requirements import (
    COMPARATORS,
    WorkerList,
    as_json,
    check_requirements,
    excluded_by,
    from_json,
    limit_of,
    lists_asked,
    read_wanted,
    resolved,
)
from tests.factories import NOON, make_round
from tests.market import Market

OWN = "3OWNQUALIFICATION000000000000000"


@pytest.fixture
def market(clock: FixedClock) -> Market:
    return Market(clock)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("percent-approved >= 95", "percent-approved GreaterThanOrEqualTo 95"),
        ("percent-approved>=95", "percent-approved GreaterThanOrEqualTo 95"),
        ("number-approved > 100", "number-approved GreaterThan 100"),
        ("locale in US, GB", "locale In US GB"),
        ("locale = US-NY", "locale EqualTo US-NY"),
        ("locale  not  in FR,DE", "locale NotIn FR DE"),
        ("masters held", "masters Exists"),
        ("adult = 1", "adult EqualTo 1"),
        ("my quiz not held", "my quiz DoesNotExist"),
        # Words of a comparison inside a name.
        ("works in teams held", "works in teams Exists"),
        ("held in trust in 1, 2", "held in trust In 1 2"),
        ("score < -3", "score LessThan -3"),
    ],
)
def test_a_requirement_is_read_as_people_write_it(written: str, told: str) -> None:
    wanted = read_wanted(written)

    values = " ".join([*map(str, wanted.values), *wanted.locales])
    assert f"{wanted.name} {wanted.comparator} {values}".strip() == told
    assert wanted.actions_guarded == "DiscoverPreviewAndAccept"


@pytest.mark.parametrize(
    ("written", "cause"),
    [
        ("", "can't be read"),
        ("held", "can't be read"),
        ("percent-approved", "can't be read"),
        ("percent-approved >= many", "can't be read"),
        ("percent-approved >= 95; DROP", "can't be read"),
        ("percent-approved >= 101", "101 is not from 0 to 100"),
        ("number-approved >= -1", "-1 is not from 0"),
        ("adult = 2", "2 is not from 0 to 1"),
        ("percent-approved >= 90, 95", "it has 2 values and takes 1"),
        ("percent-approved >=", "it has 0 values and takes 1"),
        ("masters >= 1", "held or not held"),
        ("masters held 1", "take no values"),
        ("locale >= US", "a locale is compared with"),
        ("locale = 1", "1 is no place"),
        ("locale = US, GB", "it has 2 places and takes 1"),
        ("locale in FR-PA", "only the US may have"),
        ("my quiz in US", "which only locale is compared with"),
        ("score in " + ", ".join(map(str, range(16))), "it has 16 values and takes 1 to 15"),
        ("locale in " + ", ".join(f"A{chr(65 + n % 26)}" for n in range(31)), "it has 31 places and takes 1 to 30"),
        ("score = 2147483648", "is not from -2,147,483,648 to 2,147,483,647"),
    ],
)
def test_a_requirement_that_can_not_be_meant_is_refused_with_its_cause(written: str, cause: str) -> None:
    with pytest.raises(InvalidInput, match=cause):
        read_wanted(written)


def test_what_was_not_written_is_checked_too() -> None:
    for requirement, cause in (
        (Requirement(OWN, actions_guarded="Look"), "guards 'Look'"),
        (Requirement(OWN, comparator="Least", values=(1,)), "'Least' is none of"),
        (Requirement(requirements.LOCALE, comparator="In", locales=("usa",)), "'usa' is no place"),
        (Requirement(requirements.LOCALE, comparator="EqualTo", values=(1,), locales=("US",)), "1 is no place"),
    ):
        with pytest.raises(InvalidInput, match=cause):
            check_requirements([requirement])


def test_ten_requirements_are_possible_and_none_twice() -> None:
    ten = [Requirement(f"{OWN}{number}") for number in range(10)]

    check_requirements(ten)

    with pytest.raises(InvalidInput, match="11 requirements; a HIT type has at most 10"):
        check_requirements([*ten, Requirement(OWN)])
    with pytest.raises(InvalidInput, match="stands there twice"):
        check_requirements([*ten[:3], ten[0]])


def test_the_ids_of_system_qualifications_are_those_of_the_marketplace() -> None:
    assert {*requirements.SYSTEM.values(), requirements.MASTERS_SANDBOX} == set(marketplace.SYSTEM_TYPES)


def test_every_comparator_is_kept_and_read_back_the_same(market: Market) -> None:
    mine = market.mturk.find_or_create_qualification("mine", "for tests")
    listed = {"In": "1, 2", "NotIn": "1, 2"}
    for sign, name in COMPARATORS.items():
        values = "" if name in ("Exists", "DoesNotExist") else listed.get(name, "1")
        requirement = resolved(market.mturk, read_wanted(f"mine {sign} {values}"))
        assert requirement.qualification_type_id == mine
        assert from_json(as_json(requirement)) == requirement
        hit_type = market.mturk.create_hit_type(
            title=name,
            description="for tests",
            keywords="",
            reward=Decimal("0.05"),
            assignment_seconds=60,
            auto_approval_seconds=60,
            requirements=[requirement],
        )
        seen = market.mturk.create_hit(
            hit_type,
            question_xml=external_question("http://localhost:8001/work/abc"),
            max_assignments=1,
            lifetime_seconds=60,
            annotation=name,
            request_token=name,
        )
        assert seen.requirements == {str(requirement)}


def test_a_qualification_is_found_by_its_exact_name_or_its_id(market: Market) -> None:
    market.mturk.find_or_create_qualification("mine and more", "for tests")
    mine = market.mturk.find_or_create_qualification("mine", "for tests")

    assert resolved(market.mturk, read_wanted("mine held")).qualification_type_id == mine
    assert resolved(market.mturk, read_wanted(f"{mine} held")).qualification_type_id == mine
    assert resolved(market.mturk, read_wanted("masters held")).qualification_type_id == requirements.MASTERS
    with pytest.raises(InvalidInput, match="no qualification named 'min'"):
        resolved(market.mturk, read_wanted("min held"))
    market.call("UpdateQualificationType", QualificationTypeId=mine, QualificationTypeStatus="Inactive")
    with pytest.raises(InvalidInput, match="is not active"):
        resolved(market.mturk, read_wanted("mine held"))


def rule(session: Session, row: AllowList | RoundExclusion | WorkLimit) -> None:
    row.set_at, row.set_by = NOON, "robin"
    session.add(row)
    session.flush()


def test_hit_types_ask_about_the_lists_that_rules_speak_of(session: Session) -> None:
    for number in (1, 2, 3):
        make_round(session, task_code="nli", number=number)
    aside = WorkerList(ListKind.SET_ASIDE, "nli", EVERY_ROUND)
    assert lists_asked(session, "nli", 3, Work.WRITING) == [aside]

    rule(session, RoundExclusion(task_code="nli", round_number=3, other_number=1))
    rule(session, AllowList(task_code="nli", round_number=EVERY_ROUND))
    rule(session, WorkLimit(task_code="nli", round_number=3, work=Work.WRITING, per=LimitPer.ROUND, most=5))
    rule(session, WorkLimit(task_code="nli", round_number=3, work=Work.WRITING, per=LimitPer.DAY, most=5))

    assert lists_asked(session, "nli", 3, Work.WRITING) == [
        aside,
        WorkerList(ListKind.ALLOWED, "nli", EVERY_ROUND),
        WorkerList(ListKind.FULL, "nli", 3, Work.WRITING),
        WorkerList(ListKind.WROTE, "nli", 1),
    ]
    assert [one.kind for one in lists_asked(session, "nli", 3, Work.JUDGING)] == [ListKind.SET_ASIDE, ListKind.ALLOWED]
    assert [one.kind for one in lists_asked(session, "sentiment", 3, Work.WRITING)] == [ListKind.SET_ASIDE]


def test_an_exclusive_round_keeps_its_writers_out_of_all_others_and_all_others_out(session: Session) -> None:
    for number in (1, 2, 3):
        make_round(session, task_code="nli", number=number)
    rule(session, RoundExclusion(task_code="nli", round_number=2, other_number=EVERY_ROUND))

    assert excluded_by(session, "nli", 2) == {1, 3}
    assert excluded_by(session, "nli", 1) == {2}
    assert excluded_by(session, "nli", 4) == {2}
    assert excluded_by(session, "qa", 1) == set()


def test_the_rule_of_a_round_stands_above_that_of_every_round(session: Session) -> None:
    for number, most in ((EVERY_ROUND, 50), (2, 5)):
        rule(session, WorkLimit(task_code="nli", round_number=number, work=Work.WRITING, per=LimitPer.DAY, most=most))

    found = [limit_of(session, "nli", number, Work.WRITING, LimitPer.DAY) for number in (1, 2)]

    assert [limit.most if limit else None for limit in found] == [50, 5]
    assert limit_of(session, "nli", 2, Work.JUDGING, LimitPer.DAY) is None


def test_names_of_lists_tell_them_apart_and_blame_nobody() -> None:
    lists = [
        WorkerList(kind, task_code, number, work)
        for kind in ListKind
        for task_code in ("nli", "hate")
        for number in (0, 1, 11)
        for work in (Work if kind is ListKind.FULL else (Work.WRITING,))
    ]
    names = [one.name("dynahit") for one in lists]

    assert len(set(names)) == len(names)
    assert max(map(len, names)) < 200
    assert not any(
        word in f"{name} {one.description}".lower()
        for name, one in zip(names, lists, strict=True)
        for word in ("block", "ban", "bad")
    )
