"""A round's policy: made before its first launch, kept once votes count, recorded; gold items from where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.launch import launch_batch
from app.operations.round_policy import (
    RoundPolicy,
    add_gold_file,
    add_gold_from_verified,
    changed,
    policy_now,
    set_policy,
)
from app.settings import Settings
from hits import validations
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound, Refused
from hits.models import GoldItem, Round
from hits.validations import Policy
from tests.app.operations.conftest import CONTEXTS, terms
from tests.factories import make_example, make_round, make_vote
from tests.market import Market

ADAPTIVE = RoundPolicy(Policy(2, 5, 3), gold_items=1, non_fooling_percent=10)


def rows(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def gold_row(number: int = 1, **changes: object) -> dict[str, object]:
    return {
        "context": {"prompt": f"Day {number}."},
        "answer": {"statement": "It rained all day."},
        "label": "neutral",
    } | (changes)


def test_a_policy_is_set_before_the_first_launch_which_then_uses_it(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    assert policy_now(session, "sentiment", 1) == (RoundPolicy(), False)

    assert set_policy(session, clock, "sentiment", 1, ADAPTIVE, by="ada") == RoundPolicy()

    assert policy_now(session, "sentiment", 1) == (ADAPTIVE, True)
    launch_batch(session, market.mturk, settings, clock, terms(), CONTEXTS)
    round_ = session.scalars(select(Round)).one()
    assert (round_.agreeing_votes, round_.max_votes, round_.split_votes, round_.gold_items) == (2, 5, 3, 1)
    entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "round.policy")).one()
    assert (entry.staff_name, entry.subject) == ("ada", "round 1 of sentiment")
    assert (entry.detail["before"]["max_votes"], entry.detail["after"]["max_votes"]) == (3, 5)


def test_once_votes_are_counted_what_they_need_stays_and_the_rest_may_change(
    session: Session, clock: FixedClock
) -> None:
    make_vote(session, example=make_example(session))
    session.commit()

    with pytest.raises(Refused, match="can't change any more"):
        set_policy(session, clock, "sentiment", 1, ADAPTIVE, by="ada")
    assert policy_now(session, "sentiment", 1) == (RoundPolicy(), True)

    set_policy(session, clock, "sentiment", 1, RoundPolicy(gold_items=2), by="ada")
    assert policy_now(session, "sentiment", 1)[0].gold_items == 2


def test_waiting_examples_want_what_the_new_policy_says(session: Session, clock: FixedClock) -> None:
    example = make_example(session)
    session.commit()

    set_policy(session, clock, "sentiment", 1, RoundPolicy(Policy(3, 5)), by="ada")

    session.refresh(example)
    assert example.votes_wanted == 3


def test_changes_leave_the_rest_and_zero_takes_away() -> None:
    assert changed(RoundPolicy(), agreeing_votes=None, gold_items=None) == RoundPolicy()
    assert changed(ADAPTIVE, split_votes=0, gold_items=0) == RoundPolicy(Policy(2, 5), non_fooling_percent=10)
    assert changed(RoundPolicy(), senior_value=4).policy == Policy(2, 3, None, 4)


@pytest.mark.parametrize(
    "values",
    [
        {"non_fooling_percent": 101},
        {"non_fooling_percent": -1},
        {"gold_items": -1},
        {"gold_items": 51},
        {"gold_warning_percent": 101},
        {"pair_percent": 0},
    ],
)
def test_a_setting_beyond_its_limits_is_refused_with_its_value(values: dict[str, int]) -> None:
    [value] = values.values()

    with pytest.raises(InvalidInput, match=f"not {value}"):
        RoundPolicy(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(("task_code", "number"), [("sentimental", 1), ("sentiment", 0), ("sentiment", 10_001)])
def test_a_round_that_can_not_be_is_refused(session: Session, clock: FixedClock, task_code: str, number: int) -> None:
    with pytest.raises((InvalidInput, NotFound)):
        set_policy(session, clock, task_code, number, RoundPolicy(), by="ada")
    assert session.scalars(select(Round)).all() == []


def test_gold_items_come_from_a_file_whole_or_not_at_all(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    make_round(session)
    session.commit()
    broken = rows(tmp_path / "broken.jsonl", gold_row(1), "{", "[]", gold_row(2, label="angry"))

    with pytest.raises(InvalidInput) as error:
        add_gold_file(session, clock, "sentiment", 1, broken)
    assert [line.split(":")[0].strip() for line in str(error.value).splitlines()[1:-1]] == [
        "line 2",
        "line 3",
        "line 4",
    ]
    assert session.scalars(select(GoldItem)).all() == []

    good = rows(tmp_path / "good.jsonl", gold_row(1), "", gold_row(2), gold_row(1))
    assert add_gold_file(session, clock, "sentiment", 1, good) == (2, 1)
    assert add_gold_file(session, clock, "sentiment", 1, good) == (0, 3)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "no gold items"), (b"\xff\xfe", "not UTF-8"), (b"[" * 100_000, "line 1: not JSON"), (None, "can't be read")],
)
def test_a_file_that_holds_none_is_said(
    session: Session, clock: FixedClock, tmp_path: Path, content: bytes | None, words: str
) -> None:
    make_round(session)
    session.commit()
    path = tmp_path / "gold.jsonl"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InvalidInput, match=words):
        add_gold_file(session, clock, "sentiment", 1, path)


def test_gold_items_are_made_of_what_all_agreed_on(session: Session, clock: FixedClock) -> None:
    example = make_example(session)
    for _ in range(2):
        make_vote(session, example=example)
    validations.decide(session, example, clock.now())
    session.commit()

    assert add_gold_from_verified(session, clock, "sentiment", 1, 5) == 1
    assert add_gold_from_verified(session, clock, "sentiment", 1, 5) == 0
    with pytest.raises(InvalidInput, match="1 or more, not 0"):
        add_gold_from_verified(session, clock, "sentiment", 1, 0)
    with pytest.raises(NotFound):
        add_gold_from_verified(session, clock, "sentiment", 2, 5)
