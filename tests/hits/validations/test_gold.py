"""Gold items: what may become one, who gets which, and what they tell about a validator."""

from __future__ import annotations

import random

import pytest
from sqlalchemy.orm import Session

from hits import validations
from hits.clock import FixedClock
from hits.errors import InvalidInput
from hits.models import GoldItem, Lease, Round, Vote
from hits.rates import Rate
from hits.states import AssignmentState, HitKind
from hits.validations.gold import gold_for
from hits.validations.readers import readers
from tests import factories as make

W, M = "negative", "positive"


def row(number: int = 1, **changes: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "context": {"prompt": f"Day {number}."},
        "answer": {"statement": f"It rained on day {number}."},
        "label": "neutral",
    }
    return {**fields, **changes}


@pytest.fixture
def round_(session: Session) -> Round:
    return make.make_round(session)


def gold(session: Session, round_: Round, number: int, clock: FixedClock) -> GoldItem:
    item = validations.add_gold(session, round_, row(number), clock.now())
    assert item is not None
    return item


def test_a_gold_item_is_stored_once(session: Session, clock: FixedClock, round_: Round) -> None:
    first = gold(session, round_, 1, clock)

    assert validations.add_gold(session, round_, row(1, label="positive"), clock.now()) is None
    assert (first.context, first.answer, first.label) == (row()["context"], row()["answer"], "neutral")
    # Nothing in its name tells it from an attempt, which secrets.token_urlsafe(18) names as well.
    assert len(first.public_id) == 24


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"label": "angry"}, "'angry' is not a label"),
        ({"label": None}, "'None' is not a label"),
        ({"context": None}, "expected an object"),
        ({"context": {"prompt": "x", "more": "y"}}, "unknown field 'more'"),
        ({"answer": "It rained."}, "'answer' must be an object, not str"),
        ({"answer": {}}, "is missing"),
        ({"answer": {"statement": " "}}, "is empty"),
        ({"writer": "me"}, "unknown field 'writer'"),
    ],
)
def test_a_gold_item_that_is_none_is_refused_with_its_fault(
    session: Session, clock: FixedClock, round_: Round, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        validations.add_gold(session, round_, row(**changes), clock.now())


def test_what_all_readers_agreed_on_becomes_gold_for_others(session: Session, clock: FixedClock, round_: Round) -> None:
    agreed, disputed, flagged = (make.make_example(session) for _ in range(3))
    for example in (agreed, disputed, flagged):
        for _ in range(2):
            make.make_vote(session, example=example)
    make.make_vote(session, example=disputed, label=M)
    make.make_vote(session, example=flagged, label=None, flag_reason="insult")
    for example in (agreed, disputed):
        validations.decide(session, example, clock.now())

    [item] = validations.gold_from_verified(session, round_, 10, clock.now())

    assert (item.example_id, item.label, item.answer) == (agreed.id, W, agreed.attempt.answer)
    assert validations.gold_from_verified(session, round_, 10, clock.now()) == []
    readers = [lease.validator_id for lease in session.query(Lease).filter(Lease.example_id == agreed.id)]
    for known in (agreed.writer_id, *readers):
        assert gold_for(session, round_, known, 5, random.Random(1)) == []
    assert gold_for(session, round_, make.make_worker(session).id, 5, random.Random(1)) == [item]


def test_what_the_requester_alone_has_decided_is_no_agreement_of_readers(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    validations.override(session, example, label=example.goal_label, reason="Plainly so.", now=clock.now())

    assert validations.gold_from_verified(session, example.round, 10, clock.now()) == []


def test_retired_items_are_shown_to_nobody(session: Session, clock: FixedClock, round_: Round) -> None:
    items = [gold(session, round_, number, clock) for number in range(3)]
    assert validations.gold_left(session, round_) == 3
    validations.retire_gold(session, items[:2], clock.now())

    assert validations.gold_left(session, round_) == 1
    assert gold_for(session, round_, make.make_worker(session).id, 5, random.Random(1)) == items[2:]
    assert gold_for(session, round_, make.make_worker(session).id, 0, random.Random(1)) == []


def test_accuracy_counts_what_was_submitted_and_a_flag_is_not_right(
    session: Session, clock: FixedClock, round_: Round
) -> None:
    round_.gold_items = 3
    for number in range(3):
        gold(session, round_, number, clock)
    for _ in range(3):
        make.make_example(session)
    batch = make.make_batch(session, round=round_, kind=HitKind.VALIDATION, items=6)
    assignment = make.make_assignment(session, hit=make.make_hit(session, batch=batch))
    leases = validations.draw(session, assignment, clock.now())
    said = iter(({"label": "neutral"}, {"label": "positive"}, {"flag_reason": "odd"}))
    for lease in leases:
        judgement = next(said) if lease.gold_item_id is not None else {"label": W}
        validations.record_vote(session, assignment, lease.id, now=clock.now(), **judgement)
    assert readers(session, round_) == []

    assignment.state = AssignmentState.SUBMITTED
    assert validations.count_votes(session, assignment, clock.now()) == 6

    assert [one.gold for one in readers(session, round_)] == [Rate(1, 3)]
    assert readers(session, make.make_round(session, number=2)) == []
    # Votes on gold decide nothing.
    assert session.query(Vote).filter(Vote.example_id.is_not(None)).count() == 3
