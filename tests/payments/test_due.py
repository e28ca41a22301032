"""What the rules owe is found by whole pages: bonuses of examples, of sure models, of streaks, of readers."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.models import Example, Hit, HitBatch, Vote, Worker
from hits.money import usd
from hits.states import AssignmentState, HitKind, HitState, Moderation, Verdict
from payments import due
from payments.budgets import reserve_for_validation, set_budget
from payments.due import due_bonuses, streak_subject
from payments.models import BudgetScope, PayoutState, Reservation
from payments.releases import release_unused
from payments.rules import (
    DIFFICULT_EXAMPLE,
    FOOLING_STREAK,
    GOLD_ACCURACY,
    VALIDATION_BATCH,
    VERIFIED_FOOLING_EXAMPLE,
    Extras,
    ReaderTerms,
)
from tests import factories
from tests.payments.builders import assignment_of, judge, plan, verified_example

STREAKS = Extras(streak_length=2, streak_bonus=usd("1.00")).as_json()
SURE = Extras(sure_percent=80, sure_bonus=usd("0.10")).as_json()
GOLD = ReaderTerms(75, usd("0.20")).as_json()
WHOLE = ReaderTerms(hit_bonus=usd("0.05")).as_json()


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


def validation_batch(session: Session, extras: dict[str, object] | None) -> HitBatch:
    return factories.make_batch(session, kind=HitKind.VALIDATION, items=4, extras=extras)


def test_gold_is_owed_once_for_all_that_one_reader_judged_in_a_batch(session: Session, clock: FixedClock) -> None:
    batch = validation_batch(session, GOLD)
    first = judge(session, batch, 1, 1)
    last = judge(session, batch, 2, 0, worker=first.worker)
    judge(session, batch, 2, 1)

    [payout], again = plan(session, clock.now()), plan(session, clock.now())

    assert again == []
    assert (payout.worker_id, payout.assignment_id, payout.amount) == (first.worker_id, last.id, usd("0.20"))
    assert payout.reason == f"3 of 4 items whose answer was known were right: $0.20. {payout.reference}"
    assert payout.subject == f"gold:{batch.round_id}:{first.worker_id}:{batch.id}"


def test_gold_waits_until_every_hit_of_the_batch_is_closed_and_a_judged_hit_does_not(
    session: Session, clock: FixedClock
) -> None:
    batch = validation_batch(session, ReaderTerms(75, usd("0.20"), usd("0.05")).as_json())
    judge(session, batch, 4, 0)
    still_open = judge(session, batch, 0, 0, hit_state=HitState.CREATED).hit

    assert rules(session) == [VALIDATION_BATCH]
    plan(session, clock.now())
    session.get_one(Hit, still_open.id).state = HitState.CLOSED
    session.flush()
    assert rules(session) == [GOLD_ACCURACY]


def test_every_judged_hit_of_a_reader_is_owed_once(session: Session, clock: FixedClock) -> None:
    batch = validation_batch(session, WHOLE)
    first = judge(session, batch, 2, 1, state=AssignmentState.SUBMITTED)
    second = judge(session, batch, 1, 0, worker=first.worker)
    judge(session, batch, 0, 0)

    assert [one.assignment.id for one in due_bonuses(session, limit=1)] == [first.id]
    planned, again = plan(session, clock.now()), plan(session, clock.now())

    assert again == []
    assert [(one.assignment_id, one.amount) for one in planned] == [
        (first.id, usd("0.05")),
        (second.id, usd("0.05")),
    ]
    assert planned[0].reason == f"You judged 3 items of a HIT: $0.05. {planned[0].reference}"


@pytest.mark.parametrize("extras", [GOLD, WHOLE], ids=["gold", "whole HIT"])
def test_rejected_work_drafts_the_erased_and_batches_without_terms_earn_nothing(
    session: Session, extras: dict[str, object]
) -> None:
    batch = validation_batch(session, extras)
    judge(session, batch, 4, 0, state=AssignmentState.REJECTED)
    draft = judge(session, batch, 1, 0)
    session.scalars(select(Vote).where(Vote.assignment_id == draft.id)).one().counted_at = None
    erased = judge(session, batch, 4, 0).worker
    erased.mturk_worker_id, erased.erased_at = f"erased-{'0' * 32}", factories.NOON
    judge(session, factories.make_batch(session, round=batch.round, kind=HitKind.VALIDATION, items=4), 4, 0)

    assert rules(session) == []


def test_a_hit_that_a_person_had_to_look_at_is_not_a_judged_one(session: Session) -> None:
    judge(session, validation_batch(session, WHOLE), 1, 0).review_reason = "not all judged"

    assert rules(session) == []


def test_readers_are_paid_out_of_what_the_batch_set_aside_and_the_rest_goes_back(
    session: Session, clock: FixedClock
) -> None:
    batch = validation_batch(session, ReaderTerms(75, usd("0.20"), usd("0.05")).as_json())
    for right in (4, 0):
        judge(session, batch, right, 4 - right)
    # Two readers, each with bonuses of $0.20 and $0.05 and their fees of $0.04 and $0.01 at most.
    reserve_for_validation(session, batch, usd("1.20"), now=clock.now(), bonuses=usd("0.60"))
    set_budget(session, BudgetScope.PROJECT, "", usd("1.20"), now=clock.now())

    planned = plan(session, clock.now())
    release_unused(session, clock.now())

    kept = session.scalars(select(Reservation)).one()
    assert [one.state for one in planned] == [PayoutState.APPROVED] * 3
    assert (kept.promised, kept.bonuses, kept.held) == (usd("0.36"), Decimal(0), usd("1.20"))


def test_without_room_in_the_budget_nothing_is_promised_to_a_reader(session: Session, clock: FixedClock) -> None:
    judge(session, validation_batch(session, GOLD), 4, 0)
    set_budget(session, BudgetScope.PROJECT, "", usd("0.23"), now=clock.now())

    assert [row.state for row in plan(session, clock.now())] == [PayoutState.NO_BUDGET]


def test_a_rejection_that_can_be_undone_keeps_what_its_reader_would_earn(session: Session, clock: FixedClock) -> None:
    batch = validation_batch(session, WHOLE)
    row = judge(
        session,
        batch,
        1,
        0,
        state=AssignmentState.REJECTED,
    )
    row.rejected_at = clock.now()
    reserve_for_validation(session, batch, usd("0.36"), now=clock.now(), bonuses=usd("0.06"))

    release_unused(session, clock.now())

    assert session.scalars(select(Reservation)).one().bonuses == usd("0.06")


def test_a_hit_of_which_items_were_left_unjudged_is_not_a_judged_one(session: Session) -> None:
    """Handed in early, approved by a person after all, or rejected and undone: the terms ask for every item."""
    batch = validation_batch(session, WHOLE)
    left = judge(session, batch, 1, 0)
    factories.make_lease(session, assignment=left, example=factories.make_example(session), place=None)
    assert rules(session) == []

    stopped = judge(session, batch, 1, 0)
    gone = factories.make_example(session, verdict=Verdict.FLAGGED, moderation=Moderation.OPEN)
    factories.make_lease(session, assignment=stopped, example=gone, place=None)
    whole = judge(session, batch, 0, 0)
    factories.make_vote(session, example=factories.make_example(session), assignment=whole)

    assert [one.assignment.id for one in due_bonuses(session)] == [stopped.id, whole.id]
