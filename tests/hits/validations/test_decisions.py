"""Verdicts and counters from counted votes, flags, overrides and retractions, recomputed at any time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits import validations
from hits.clock import FixedClock
from hits.errors import InvalidInput, Refused
from hits.models import Example
from hits.states import AssignmentState, Moderation, Verdict
from tests import factories as make
from tests.app.four_tasks import creation_hit, fooling_example

W, M, A = "negative", "positive", "neutral"
WRONG, RIGHT = Verdict.VALID_AND_MODEL_WRONG, Verdict.VALID_AND_MODEL_RIGHT


def test_two_counted_votes_decide_and_drafts_do_not(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    make.make_vote(session, example=example)
    make.make_vote(session, example=example, counted_at=None)

    assert validations.decide(session, example, clock.now()).verdict is Verdict.PENDING
    assert (example.votes_wanted, example.leased) == (1, 1)

    make.make_vote(session, example=example)

    assert validations.decide(session, example, clock.now()).writer_confirmed
    assert (example.verdict, example.final_label, example.decided_at) == (WRONG, W, clock.now())
    assert (example.votes_wanted, example.leased) == (0, 1)
    assert validations.writer_confirmed(example)


def test_an_example_that_readers_reject_earns_no_bonus(session: Session, clock: FixedClock) -> None:
    example = fooling_example(session, creation_hit(session, "qa"))
    for _ in range(2):
        make.make_vote(session, example=example, label="wrong")

    validations.decide(session, example, clock.now())

    assert (example.verdict, example.final_label) == (Verdict.INVALID, "wrong")
    assert not validations.writer_confirmed(example)


def test_deciding_again_changes_nothing(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    for label in (W, M, A):
        make.make_vote(session, example=example, label=label)
    first = validations.decide(session, example, clock.now())
    clock.advance(timedelta(days=1))

    assert validations.decide(session, example, clock.now()) == first
    assert example.decided_at == clock.now() - timedelta(days=1)


def test_a_dismissed_flag_asks_for_another_vote_and_an_upheld_one_ends_it(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    make.make_vote(session, example=example)
    make.make_vote(session, example=example, label=None, flag_reason="names a person")
    validations.decide(session, example, clock.now())
    assert (example.verdict, example.votes_wanted) == (Verdict.FLAGGED, 0)

    assert validations.moderate(session, example, upheld=False, reason="nobody real", now=clock.now()).votes_wanted == 1
    assert (example.verdict, example.votes_wanted) == (Verdict.PENDING, 1)

    with pytest.raises(Refused, match="no open flag"):
        validations.moderate(session, example, upheld=True, reason="again", now=clock.now())


def test_a_flag_that_comes_after_a_dismissed_one_waits_for_a_decision_of_its_own(
    session: Session, clock: FixedClock
) -> None:
    example = make.make_example(session)
    make.make_vote(session, example=example, label=None, flag_reason="dull")
    validations.decide(session, example, clock.now())
    validations.moderate(session, example, upheld=False, reason="dull is no fault", now=clock.now())
    clock.advance(timedelta(hours=1))
    make.make_vote(session, example=example, label=None, flag_reason="my neighbour", counted_at=clock.now())

    assert validations.decide(session, example, clock.now()).verdict is Verdict.FLAGGED
    validations.moderate(session, example, upheld=True, reason="a real person", now=clock.now())
    assert (example.verdict, example.moderation) == (Verdict.INVALID, Moderation.UPHELD)


def test_a_flag_dismissed_before_its_time_was_kept_stays_dismissed(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session, moderation=Moderation.DISMISSED)
    make.make_vote(session, example=example, label=None, flag_reason="dull")

    assert validations.decide(session, example, clock.now()).verdict is Verdict.PENDING


def test_the_requester_overrides_the_readers_and_takes_it_back(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    for _ in range(2):
        make.make_vote(session, example=example, label=M)
    validations.decide(session, example, clock.now())

    validations.override(session, example, label=W, reason="Irony, they missed it.", now=clock.now())
    assert (example.verdict, example.final_label) == (WRONG, W)
    assert validations.writer_confirmed(example)
    validations.override(session, example, label=None, reason="On second thoughts no English.", now=clock.now())
    assert (example.verdict, example.final_label) == (Verdict.INVALID, None)

    validations.lift_override(session, example, clock.now())
    assert (example.verdict, example.final_label) == (RIGHT, M)
    with pytest.raises(Refused, match="Nobody has overridden"):
        validations.lift_override(session, example, clock.now())


@pytest.mark.parametrize(("label", "reason"), [("angry", "fine"), (W, "  "), (None, "a\0b"), (W, "x" * 501)])
def test_an_override_that_is_none_changes_nothing(
    session: Session, clock: FixedClock, label: str | None, reason: str
) -> None:
    example = make.make_example(session)

    with pytest.raises(InvalidInput):
        validations.override(session, example, label=label, reason=reason, now=clock.now())

    assert (example.verdict, example.overridden_at, example.override_reason) == (Verdict.PENDING, None, None)


def test_an_example_that_was_not_validated_may_be_overridden_and_goes_back(session: Session, clock: FixedClock) -> None:
    attempt = make.make_attempt(
        session, assignment=make.make_assignment(session, state=AssignmentState.SUBMITTED), predicted_label=W
    )
    example = make.make_example(session, attempt=attempt)
    assert example.verdict is Verdict.NOT_VALIDATED

    validations.override(session, example, label=A, reason="Plainly neutral.", now=clock.now())
    assert (example.verdict, example.final_label) == (WRONG, A)
    assert not validations.writer_confirmed(example)

    validations.lift_override(session, example, clock.now())
    assert (example.verdict, example.final_label, example.decided_at) == (Verdict.NOT_VALIDATED, None, None)


def test_a_flag_goes_before_an_override(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    make.make_vote(session, example=example, label=None, flag_reason="my neighbour")
    validations.decide(session, example, clock.now())
    with pytest.raises(Refused, match="Decide about the flag first"):
        validations.override(session, example, label=W, reason="Good one.", now=clock.now())

    validations.moderate(session, example, upheld=True, reason="so it is", now=clock.now())
    with pytest.raises(Refused, match="was upheld"):
        validations.override(session, example, label=W, reason="Good one.", now=clock.now())


def test_a_retracted_example_keeps_its_verdict_and_wants_no_vote(session: Session, clock: FixedClock) -> None:
    pending, verified = make.make_example(session), make.make_example(session)
    for _ in range(2):
        make.make_vote(session, example=verified)
    validations.decide(session, verified, clock.now())

    for example in (pending, verified):
        validations.retract(session, example, reason="The writer asked for it.", now=clock.now())
        validations.retract(session, example, reason="twice", now=clock.now())
    for _ in range(2):
        make.make_vote(session, example=pending)
    validations.decide(session, pending, clock.now())

    assert (pending.verdict, pending.votes_wanted) == (Verdict.PENDING, 0)
    assert (verified.verdict, verified.retraction_reason) == (WRONG, "The writer asked for it.")
    # What was verified before was earned.
    assert validations.writer_confirmed(verified)
    pending.verdict = Verdict.FLAGGED
    with pytest.raises(Refused, match="no open flag"):
        validations.moderate(session, pending, upheld=True, reason="seen", now=clock.now())
    with pytest.raises(Refused, match="retracted"):
        validations.override(session, pending, label=W, reason="Good one.", now=clock.now())


def test_the_share_of_right_answers_that_is_validated_is_by_chance_and_always_the_same(session: Session) -> None:
    names = [f"attempt-{number}" for number in range(2000)]
    shares = {}
    for percent in (0, 10, 40, 100):
        round_ = make.make_round(session, number=percent + 1, non_fooling_percent=percent, seed=7)
        chosen = [name for name in names if validations.selected(round_, name)]
        assert chosen == [name for name in names if validations.selected(round_, name)]
        shares[percent] = len(chosen) / len(names)
        if percent == 40:
            chosen_of_forty = chosen

    assert (shares[0], shares[100]) == (0, 1)
    assert shares[10] == pytest.approx(0.10, abs=0.03)
    assert shares[40] == pytest.approx(0.40, abs=0.04)
    other_seed = make.make_round(session, number=500, non_fooling_percent=40, seed=8)
    assert [name for name in names if validations.selected(other_seed, name)] != chosen_of_forty


@pytest.mark.parametrize(
    "fields",
    [
        {"votes_wanted": -1},
        {"leased": -1},
        {"override_label": W},
        {"override_reason": "no time"},
        {"retraction_reason": "no time"},
    ],
)
def test_the_database_keeps_counters_and_decisions_whole(session: Session, fields: dict[str, object]) -> None:
    example = make.make_example(session)
    for name, value in fields.items():
        setattr(example, name, value)

    with pytest.raises(IntegrityError):
        session.flush()


def test_locked_examples_come_in_one_order(session: Session) -> None:
    examples = [make.make_example(session) for _ in range(3)]

    found: list[Example] = validations.locked_examples(session, [example.id for example in reversed(examples)])

    assert found == examples
    assert validations.locked_examples(session, []) == []


def test_writing_that_was_rejected_is_out_until_that_is_undone(session: Session, clock: FixedClock) -> None:
    waits, fine = make.make_example(session), make.make_example(session)
    decided = make.make_example(
        session, attempt=make.make_attempt(session, assignment=waits.attempt.assignment, try_number=2)
    )
    validations.override(session, decided, label="negative", reason="I looked.", now=clock.now())
    work = waits.attempt.assignment

    assert validations.put_out(session, work, clock.now()) == 1
    assert (waits.verdict, waits.votes_wanted, decided.override_label) == (Verdict.INVALID, 0, "negative")
    assert fine.verdict is Verdict.PENDING
    assert validations.put_out(session, work, clock.now()) == 0

    assert validations.take_in(session, work, clock.now()) == 1
    assert (waits.verdict, waits.votes_wanted, waits.overridden_at) == (Verdict.PENDING, 2, None)
    assert decided.override_label == "negative"
    assert validations.take_in(session, work, clock.now()) == 0


def test_rejected_writing_of_a_frozen_round_stays(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session, verdict=Verdict.INVALID)
    example.round.frozen_at, example.round.manifest_sha256 = clock.now(), "0" * 64
    session.flush()

    assert validations.put_out(session, example.attempt.assignment, clock.now()) == 0
