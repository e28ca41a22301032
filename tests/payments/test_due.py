"""What the rules owe is found by whole pages: bonuses of examples, of sure models, of streaks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.models import Example, HitBatch, Worker
from hits.money import usd
from hits.states import AssignmentState, Moderation, Verdict
from payments import due
from payments.due import due_bonuses, streak_subject
from payments.models import PayoutState
from payments.rules import DIFFICULT_EXAMPLE, FOOLING_STREAK, VERIFIED_FOOLING_EXAMPLE, Extras
from tests import factories
from tests.payments.builders import assignment_of, plan, verified_example

STREAKS = Extras(streak_length=2, streak_bonus=usd("1.00")).as_json()
SURE = Extras(sure_percent=80, sure_bonus=usd("0.10")).as_json()


def in_a_row(session: Session, batch: HitBatch, *verdicts: Verdict) -> tuple[Worker, list[Example]]:
    """One writer's HITs of a batch, an hour apart, each with an example that has this verdict."""
    worker = factories.make_worker(session)
    found = []
    for number, verdict in enumerate(verdicts):
        hit = factories.make_hit(session, batch=batch)
        at = factories.NOON + timedelta(hours=number)
        row = factories.make_assignment(
            session, hit=hit, worker=worker, state=AssignmentState.APPROVED, submitted_at=at
        )
        attempt = factories.make_attempt(session, assignment=row)
        label = "negative" if verdict is Verdict.VALID_AND_MODEL_WRONG else None
        found.append(factories.make_example(session, attempt=attempt, verdict=verdict, final_label=label))
    return worker, found


def rules(session: Session) -> list[str]:
    return [one.bonus.rule for one in due_bonuses(session)]


def test_a_page_ends_at_its_limit_oldest_first(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session)
    examples = [verified_example(session, batch=batch) for _ in range(3)]

    first = due_bonuses(session, limit=2)
    plan(session, clock.now())

    assert [one.example.id for one in first] == [one.id for one in examples[:2]]
    assert due_bonuses(session) == []


def test_a_model_that_was_sure_earns_more_and_one_that_was_not_does_not(session: Session) -> None:
    batch = factories.make_batch(session, extras=SURE)
    sure, unsure = verified_example(session, batch=batch), verified_example(session, batch=batch)
    # The factories' model gives its label 80 %.
    unsure.attempt.probabilities = {"positive": 0.79, "negative": 0.21}
    legacy = verified_example(session, batch=batch)
    legacy.attempt.confidence, legacy.attempt.probabilities = 0.7999, None
    session.flush()

    found = [one for one in due_bonuses(session) if one.bonus.rule == DIFFICULT_EXAMPLE]

    assert [one.example.id for one in found] == [sure.id]
    assert found[0].bonus.amount == usd("0.10")
    assert "though it was 80 % sure: $0.10." in found[0].bonus.reason


def test_examples_of_unsure_models_hold_up_no_page(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due, "_ROWS_AT_ONCE", 2)
    batch = factories.make_batch(session, bonus=usd("0.00"), extras=SURE)
    for _ in range(3):
        verified_example(session, batch=batch).attempt.probabilities = {"positive": 0.79, "negative": 0.21}
    sure = verified_example(session, batch=batch)
    sure.attempt.probabilities = {"positive": 0.81, "negative": 0.19}
    session.flush()

    assert [one.example.id for one in due_bonuses(session, limit=2)] == [sure.id]


def test_a_streak_pays_once_for_so_many_in_a_row(session: Session, clock: FixedClock) -> None:
    yes, no = Verdict.VALID_AND_MODEL_WRONG, Verdict.INVALID
    batch = factories.make_batch(session, extras=STREAKS)
    worker, examples = in_a_row(session, batch, yes, no, yes, yes, yes, yes)

    streaks = [one for one in due_bonuses(session) if one.bonus.rule == FOOLING_STREAK]
    rows = plan(session, clock.now())
    again = plan(session, clock.now())

    assert [one.example.id for one in streaks] == [examples[3].id, examples[5].id]
    assert [one.subject for one in streaks] == [streak_subject(batch.id, worker.id, number) for number in (1, 2)]
    assert [row.rule for row in rows].count(FOOLING_STREAK) == 2
    assert again == []


def test_a_streak_waits_for_the_decision_about_an_earlier_hit(session: Session) -> None:
    yes, open_ = Verdict.VALID_AND_MODEL_WRONG, Verdict.PENDING
    batch = factories.make_batch(session, extras=STREAKS)
    _, [_, pending, *_] = in_a_row(session, batch, yes, open_, yes, yes)

    before = rules(session)
    pending.verdict, pending.final_label = yes, "negative"
    session.flush()

    assert before == [VERIFIED_FOOLING_EXAMPLE] * 3
    assert rules(session) == [VERIFIED_FOOLING_EXAMPLE] * 4 + [FOOLING_STREAK] * 2


def test_a_streak_of_two_writers_is_none(session: Session) -> None:
    batch = factories.make_batch(session, extras=STREAKS)
    for _ in range(2):
        in_a_row(session, batch, Verdict.VALID_AND_MODEL_WRONG)

    assert rules(session) == [VERIFIED_FOOLING_EXAMPLE] * 2


def test_a_streak_that_breaks_afterwards_is_withdrawn_while_it_is_unpaid(session: Session, clock: FixedClock) -> None:
    yes = Verdict.VALID_AND_MODEL_WRONG
    batch = factories.make_batch(session, extras=STREAKS)
    _, examples = in_a_row(session, batch, yes, yes)
    rows = plan(session, clock.now())
    streak = next(row for row in rows if row.rule == FOOLING_STREAK)

    examples[0].verdict, examples[0].moderation = Verdict.INVALID, Moderation.UPHELD
    session.flush()
    plan(session, clock.now())

    session.refresh(streak)
    assert streak.state is PayoutState.NOT_DUE


def test_the_assignment_is_the_writer_s_own_that_was_handed_in(session: Session) -> None:
    example = verified_example(session, batch=factories.make_batch(session))

    [due] = due_bonuses(session)

    assert due.assignment.id == assignment_of(session, example).id
    assert due.subject == f"example:{example.id}"
