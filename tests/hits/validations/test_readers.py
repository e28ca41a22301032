"""What the figures say about each validator, and why examples are open."""

from __future__ import annotations

import random
from datetime import timedelta
from statistics import fmean, median

from sqlalchemy.orm import Session

from hits import validations
from hits.clock import FixedClock
from hits.models import Assignment, Round, Vote
from hits.rates import Rate
from hits.states import AssignmentState, HitKind, PracticeState, Verdict
from hits.validations.readers import readers, why_waiting
from tests import factories as make
from tests.factories import NOON

W, M, A = "negative", "positive", "neutral"


def an_assignment(session: Session, round_: Round) -> Assignment:
    batch = make.make_batch(session, round=round_, kind=HitKind.VALIDATION, items=10)
    return make.make_assignment(session, hit=make.make_hit(session, batch=batch), state=AssignmentState.SUBMITTED)


def judged_gold(session: Session, assignment: Assignment, round_: Round, said: list[str], clock: FixedClock) -> None:
    for number, label in enumerate(said):
        row = {"context": {"prompt": f"{assignment.id} {number}"}, "answer": {"statement": f"It rained {number} days."}}
        item = validations.add_gold(session, round_, {**row, "label": A}, clock.now())
        assert item is not None
        session.add(
            Vote(
                gold_item_id=item.id,
                validator_id=assignment.worker_id,
                assignment_id=assignment.id,
                label=label,
                created_at=NOON,
                counted_at=NOON,
                seconds=9.0,
            )
        )
    session.flush()


def test_a_reader_is_judged_by_gold_and_by_the_verdicts(session: Session, clock: FixedClock) -> None:
    round_ = make.make_round(session)
    good, bad = an_assignment(session, round_), an_assignment(session, round_)
    judged_gold(session, good, round_, [A] * 5, clock)
    judged_gold(session, bad, round_, [A] * 3 + [M] * 2, clock)
    for number in range(4):
        example = make.make_example(session)
        make.make_vote(session, example=example, assignment=good, seconds=10.0 + number)
        make.make_vote(session, example=example)
        if number < 2:
            make.make_vote(session, example=example, assignment=bad, label=M, seconds=1.0)
        validations.decide(session, example, clock.now())
    undecided, flagged = make.make_example(session), make.make_example(session)
    make.make_vote(session, example=undecided, assignment=good, label=M)
    make.make_vote(session, example=flagged, assignment=good, label=None, flag_reason="insult")

    found = {one.pseudonym: one for one in readers(session, round_)}

    kind = found[good.worker.pseudonym]
    assert (kind.votes, kind.flags, kind.gold, kind.agreed, kind.warnings) == (11, 1, Rate(5, 5), Rate(4, 4), ())
    assert kind.seconds == 9.0
    careless = found[bad.worker.pseudonym]
    assert (careless.votes, careless.gold, careless.agreed) == (7, Rate(3, 5), Rate(0, 2))
    assert careless.warnings == ("3 of 5 gold items right, below 70%",)
    assert readers(session, round_)[0] == careless
    assert (kind.drift, kind.seconds_later) == (None, None)
    round_.gold_warning_percent = 60
    assert {one.pseudonym: one for one in readers(session, round_)}[careless.pseudonym].warnings == ()


def test_few_gold_items_warn_of_nobody(session: Session, clock: FixedClock) -> None:
    round_ = make.make_round(session)
    judged_gold(session, an_assignment(session, round_), round_, [M] * 4, clock)

    assert [one.warnings for one in readers(session, round_)] == [()]


def test_who_agrees_less_and_hurries_later_is_seen(session: Session, clock: FixedClock) -> None:
    round_ = make.make_round(session)
    assignment = an_assignment(session, round_)
    for number in range(20):
        example = make.make_example(session)
        late = number >= 10
        make.make_vote(
            session,
            example=example,
            assignment=assignment,
            label=M if number >= 15 else W,
            seconds=1.0 if late or number % 2 else 12.0,
            created_at=NOON + timedelta(minutes=number),
        )
        for _ in range(2):
            make.make_vote(session, example=example)
        validations.decide(session, example, clock.now())

    one = next(one for one in readers(session, round_) if one.votes == 20)

    assert (one.drift, one.seconds_later) == (-50.0, 1.0)
    assert one.warnings == (
        "agrees 50 points less in the later half of the votes",
        "1.0 seconds for an item in the middle",
    )


def test_what_is_open_says_why(session: Session, clock: FixedClock) -> None:
    round_ = make.make_round(session, senior_value=2)
    hit = make.make_hit(session, batch=make.make_batch(session, round=round_))
    examples = []
    for number in range(1, 7):
        assignment = make.make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
        attempt = make.make_attempt(session, assignment=assignment, answer={"statement": f"Day {number} was cold."})
        examples.append(make.make_example(session, attempt=attempt))
    fresh, read, tied, flagged, practice, dropped = examples
    reading = make.make_validation_hit(session, examples=[read])
    for _ in range(2):
        make.make_lease(session, assignment=make.make_assignment(session, hit=reading), example=read)
    for label in (W, M):
        make.make_vote(session, example=tied, label=label)
    make.make_vote(session, example=flagged, label=None, flag_reason="insult")
    practice.practice_state = PracticeState.WAITING
    for example in examples:
        validations.decide(session, example, clock.now())
    validations.retract(session, dropped, reason="asked for", now=clock.now())

    found = why_waiting(session, round_)

    assert found == {
        "a flag waits for the requester": 1,
        "a practice example that no reviewer has passed": 1,
        "being read, or about to be decided": 1,
        "waits for a senior reader": 1,
        "waits for readers": 1,
    }
    assert fresh.verdict is Verdict.PENDING


def test_readers_who_are_read_one_after_the_other_are_those_of_all_votes_at_once(
    session: Session, clock: FixedClock
) -> None:
    round_, chance = make.make_round(session), random.Random(4)
    people = [an_assignment(session, round_) for _ in range(3)]
    for number in range(30):
        example = make.make_example(session, final_label=chance.choice([W, M, None]))
        for person in people:
            label = chance.choice([W, M, A, None])
            make.make_vote(
                session,
                example=example,
                assignment=person,
                label=label,
                flag_reason=None if label else "insult",
                seconds=chance.choice([None, chance.uniform(1, 20)]),
                created_at=NOON + timedelta(minutes=chance.randrange(40)),
                counted_at=NOON if number else None,
            )
    session.commit()

    found = {one.pseudonym: one for one in readers(session, round_)}

    for person in people:
        votes = [one for one in session.query(Vote).all() if one.validator_id == person.worker_id and one.counted_at]
        votes.sort(key=lambda one: (one.created_at, one.id))
        compared = [
            one.label == one.example.final_label
            for one in votes
            if one.label and one.example is not None and one.example.final_label
        ]
        half, seconds = len(compared) // 2, [one.seconds for one in votes if one.seconds is not None]
        later = [one.seconds for one in votes[len(votes) // 2 :] if one.seconds is not None]
        reader = found[person.worker.pseudonym]
        assert (reader.votes, reader.flags) == (29, sum(one.label is None for one in votes))
        assert reader.agreed == Rate(sum(compared), len(compared))
        assert (reader.seconds, reader.seconds_later) == (median(seconds), median(later))
        if len(compared) >= 20:
            assert reader.drift == 100 * (fmean(compared[half:]) - fmean(compared[:half]))
