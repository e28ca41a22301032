"""Paying: whatever crashes, fails or runs twice, each bonus is paid once, and the books say so."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.plan_payouts import plan_payouts
from app.operations.settle import Result, Settled, confirm, plan_settlement, settle
from hits.clock import FixedClock
from hits.db import Base
from hits.models import Example, Round
from hits.money import from_cents, usd
from hits.states import AssignmentState, Moderation, Verdict
from payments.models import LedgerTransaction, Payout, PayoutState, Posting
from payments.month import Month
from payments.report import month_report
from tests import factories
from tests.payments.builders import fooling_example, verified_example
from tests.payments.senders import BonusDesk, Fault, Killed

#: So many times settling two bonuses commits.
COMMITS = 11


def owe(session: Session, count: int = 1, **fields: Any) -> list[Example]:
    """Examples that earn a bonus of $0.30 each, with work of others beside them that earns none."""
    round_ = session.scalar(select(Round)) or factories.make_round(session)
    batch = factories.make_batch(session, round=round_, bonus=usd("0.30"))
    fooling_example(session, batch=batch)
    examples = [verified_example(session, batch=batch, votes=2, **fields) for _ in range(count)]
    session.commit()
    return examples


def booked(session: Session, account: str) -> Decimal:
    cents = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith(account)))
    return from_cents(int(cents or 0))


def states(session: Session) -> list[PayoutState]:
    session.expire_all()
    found = list(session.scalars(select(Payout.state).order_by(Payout.id)))
    session.commit()
    return found


def check_paid_once(session: Session, desk: BonusDesk, count: int) -> None:
    """The end that every story must have: each bonus paid once, booked once, confirmed."""
    assert len(desk.paid) == count
    assert len({one.reason for one in desk.paid}) == count
    assert states(session) == [PayoutState.CONFIRMED] * count
    assert booked(session, "bonuses:") == count * usd("0.30")
    assert booked(session, "bonus_fees:") == count * usd("0.06")
    assert booked(session, "marketplace") == -count * usd("0.36")
    assert booked(session, "promised:") == 0
    assert session.scalar(select(func.sum(Posting.cents))) == 0
    session.commit()


def test_rows_that_nobody_can_look_up_do_not_hold_up_the_others(session: Session, clock: FixedClock) -> None:
    owe(session, 4)
    desk = BonusDesk(clock, session=session)
    plan_payouts(session, clock, endpoint=desk.endpoint, approval_limit=None)
    for row in session.scalars(select(Payout).order_by(Payout.id).limit(3)):
        row.state, row.cause, row.tries = PayoutState.DOUBTFUL, "no clear answer", 5
        row.token_sent_at = row.claimed_at = clock.now() - timedelta(days=2)
    session.commit()
    desk.list_faults.extend([Fault.ERROR_BEFORE] * 3)

    settlement = settle(session, desk, clock)

    assert len(desk.paid) == 1
    assert settlement.stopped is not None
    clock.advance(timedelta(hours=1))
    settle(session, desk, clock)
    check_paid_once(session, desk, 4)


def test_what_is_owed_is_paid_confirmed_and_booked(session: Session, clock: FixedClock) -> None:
    [example] = owe(session)
    desk = BonusDesk(clock, session=session)
    heard: list[Settled] = []

    settlement = settle(session, desk, clock, on_settled=heard.append)

    check_paid_once(session, desk, 1)
    assert [one.result for one in heard] == [Result.PAID]
    assert (settlement.paid, settlement.confirmed, settlement.waiting, settlement.stopped) == (usd("0.30"), 1, 0, None)
    assert desk.paid[0].worker_id == example.writer.mturk_worker_id
    assert desk.paid[0].reason == heard[0].reason


def test_settling_again_pays_nothing_more(session: Session, clock: FixedClock) -> None:
    owe(session, 3)
    desk = BonusDesk(clock, session=session)
    settle(session, desk, clock)

    again = settle(session, desk, clock)

    check_paid_once(session, desk, 3)
    assert (again.settled, desk.calls) == ((), 3)


def test_a_limit_pays_so_many_and_leaves_the_rest(session: Session, clock: FixedClock) -> None:
    owe(session, 3)
    desk = BonusDesk(clock, session=session)

    settlement = settle(session, desk, clock, limit=2)

    assert (len(desk.paid), settlement.waiting) == (2, 1)


@pytest.mark.parametrize("later", [timedelta(0), timedelta(hours=22), timedelta(hours=25)])
def test_a_crash_or_an_error_around_the_call_pays_once_now_and_a_day_later(
    session_factory: sessionmaker[Session], clock: FixedClock, later: timedelta
) -> None:
    desk = BonusDesk(clock)
    faults = [Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.ERROR_BEFORE, Fault.ERROR_AFTER]
    for number, fault in enumerate(faults, start=1):
        with session_factory() as session:
            owe(session)
            desk.session = session
            desk.faults.append(fault)
            try:
                settle(session, desk, clock)
            except Killed:
                session.rollback()

        clock.advance(later)

        with session_factory() as session:
            desk.session = session
            settle(session, desk, clock)

            check_paid_once(session, desk, number)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_kill_at_any_commit_leaves_the_same_end(
    session_factory: sessionmaker[Session], clock: FixedClock, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    desk = BonusDesk(clock)
    for kill_at in range(1, COMMITS + 1):
        with session_factory() as session:
            owe(session, 2)
            desk.session = session
            commit, commits = session.commit, 0

            def commit_or_die() -> None:
                nonlocal commits
                commits += 1
                if (commits, side) == (kill_at, "before"):  # noqa: B023 - called within this round of the loop
                    raise Killed
                commit()  # noqa: B023
                if (commits, side) == (kill_at, "after"):  # noqa: B023
                    raise Killed

            monkeypatch.setattr(session, "commit", commit_or_die)
            with pytest.raises(Killed):
                settle(session, desk, clock)
            session.rollback()

        with session_factory() as session:
            desk.session = session
            settle(session, desk, clock)

            check_paid_once(session, desk, 2 * kill_at)


def test_the_kills_above_cover_every_commit(
    session: Session, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    owe(session, 2)
    commit, commits = session.commit, 0

    def count() -> None:
        nonlocal commits
        commits += 1
        commit()

    monkeypatch.setattr(session, "commit", count)
    settle(session, BonusDesk(clock, session=session), clock)

    assert commits == COMMITS


def test_a_bonus_answered_with_an_error_twice_though_it_was_paid_is_paid_once(
    session: Session, clock: FixedClock
) -> None:
    owe(session)
    desk = BonusDesk(clock, session=session)
    desk.faults.extend([Fault.ERROR_AFTER, Fault.ERROR_AFTER])

    first = settle(session, desk, clock)
    second = settle(session, desk, clock)

    check_paid_once(session, desk, 1)
    assert [one.result for one in first.settled] == [Result.DOUBTFUL]
    assert "ServiceFault" in str(first.settled[0].cause)
    assert [one.result for one in second.settled] == [Result.FOUND]
    assert desk.calls == 1


def test_a_doubtful_bonus_stays_doubtful_while_the_list_can_not_be_read(session: Session, clock: FixedClock) -> None:
    owe(session)
    desk = BonusDesk(clock, session=session)
    desk.faults.append(Fault.ERROR_AFTER)
    settle(session, desk, clock)
    desk.list_faults.append(Fault.ERROR_BEFORE)

    settle(session, desk, clock)

    assert states(session) == [PayoutState.DOUBTFUL]
    assert desk.calls == 1


def test_a_token_too_old_is_not_replaced_while_an_earlier_call_may_be_on_its_way(
    session: Session, clock: FixedClock
) -> None:
    owe(session)
    desk = BonusDesk(clock, session=session)
    desk.faults.extend([Fault.ERROR_BEFORE, Fault.ERROR_BEFORE])
    settle(session, desk, clock)
    clock.advance(timedelta(hours=22, minutes=55))
    settle(session, desk, clock)
    clock.advance(timedelta(minutes=10))

    early = settle(session, desk, clock)
    clock.advance(timedelta(minutes=16))
    late = settle(session, desk, clock)

    assert [one.result for one in early.settled] == [Result.LEFT]
    assert [one.result for one in late.settled] == [Result.PAID]
    check_paid_once(session, desk, 1)


def test_without_funds_nothing_more_is_sent_and_the_missing_amount_is_named(
    session: Session, clock: FixedClock
) -> None:
    owe(session, 3)
    desk = BonusDesk(clock, funds="0.50", session=session)

    settlement = settle(session, desk, clock)

    assert len(desk.paid) == 1
    assert states(session) == [PayoutState.CONFIRMED, PayoutState.APPROVED, PayoutState.APPROVED]
    assert settlement.stopped is not None
    assert "$0.14" in settlement.stopped
    assert "$0.72" in settlement.stopped
    assert "$0.58 are missing" in settlement.stopped

    desk.funds = usd("10.00")
    clock.advance(timedelta(hours=25))
    settle(session, desk, clock)
    check_paid_once(session, desk, 3)


def test_a_refused_bonus_fails_with_its_cause_and_does_not_hold_up_the_others(
    session: Session, clock: FixedClock
) -> None:
    owe(session, 2)
    desk = BonusDesk(clock, session=session)
    desk.faults.append(Fault.REFUSED)

    settlement = settle(session, desk, clock)
    again = settle(session, desk, clock)

    assert [one.result for one in settlement.settled] == [Result.FAILED, Result.PAID]
    assert "AssignmentDoesNotExist" in str(settlement.settled[0].cause)
    assert states(session) == [PayoutState.FAILED, PayoutState.CONFIRMED]
    assert again.settled == ()

    settle(session, desk, clock, retry_failed=True)
    check_paid_once(session, desk, 2)


def test_three_failures_in_a_row_stop_the_run(session: Session, clock: FixedClock) -> None:
    owe(session, 5)
    desk = BonusDesk(clock, session=session)
    desk.faults.extend([Fault.REFUSED, Fault.ERROR_BEFORE, Fault.REFUSED])

    settlement = settle(session, desk, clock)

    assert (desk.calls, settlement.waiting) == (3, 3)
    assert settlement.stopped is not None
    assert "3 bonuses in a row" in settlement.stopped
    settle(session, desk, clock, retry_failed=True)
    check_paid_once(session, desk, 5)


def test_a_flagged_example_is_not_paid_until_the_flag_is_dismissed(session: Session, clock: FixedClock) -> None:
    [example] = owe(session, verdict=Verdict.FLAGGED, final_label=None, moderation=Moderation.OPEN)
    desk = BonusDesk(clock, session=session)

    settle(session, desk, clock)
    before = len(desk.paid)
    example.verdict, example.final_label = Verdict.VALID_AND_MODEL_WRONG, "negative"
    example.moderation = Moderation.DISMISSED
    session.commit()
    settle(session, desk, clock)

    assert before == 0
    check_paid_once(session, desk, 1)


@pytest.mark.parametrize(
    ("fault", "paid"), [(Fault.ERROR_BEFORE, 0), (Fault.KILL_BEFORE, 0), (Fault.ERROR_AFTER, 1), (Fault.KILL_AFTER, 1)]
)
def test_a_bonus_in_doubt_whose_example_is_flagged_is_looked_up_and_not_sent_again(
    session: Session, clock: FixedClock, fault: Fault, paid: int
) -> None:
    [example] = owe(session)
    desk = BonusDesk(clock, session=session)
    desk.faults.append(fault)
    with contextlib.suppress(Killed):
        settle(session, desk, clock)
    session.rollback()
    example.verdict, example.final_label, example.moderation = Verdict.FLAGGED, None, Moderation.OPEN
    session.commit()

    for _ in range(3):
        settle(session, desk, clock)
        clock.advance(timedelta(minutes=20))

    assert (len(desk.paid), desk.calls) == (paid, 1)
    assert states(session) == [PayoutState.CONFIRMED if paid else PayoutState.HELD]
    example.verdict, example.final_label, example.moderation = (
        Verdict.VALID_AND_MODEL_WRONG,
        example.goal_label,
        Moderation.DISMISSED,
    )
    session.commit()
    settle(session, desk, clock)
    check_paid_once(session, desk, 1)


def test_two_settles_at_once_pay_each_bonus_once(session_factory: sessionmaker[Session], clock: FixedClock) -> None:
    with session_factory() as session:
        owe(session, 12)
    desk = BonusDesk(clock)
    barrier = threading.Barrier(3)
    crashes: list[BaseException] = []

    def run() -> None:
        try:
            with session_factory() as session:
                barrier.wait()
                settle(session, desk, clock)
        except BaseException as error:
            crashes.append(error)
            raise

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert crashes == []
    with session_factory() as session:
        settle(session, desk, clock)
        check_paid_once(session, desk, 12)


def test_the_plan_lists_who_is_owed_what_and_changes_nothing(session: Session, clock: FixedClock) -> None:
    [example] = owe(session)
    desk = BonusDesk(clock, funds="0.20", session=session)

    plan = plan_settlement(session, desk, clock)

    [line] = plan.lines
    assert line.example.worker == example.writer.pseudonym
    assert line.example.text == example.attempt.answer["statement"]
    assert line.example.context == example.context.fields["prompt"]
    assert (line.example.goal, line.example.model, line.example.votes) == ("negative", "positive", "2 negative")
    assert (line.amount, line.fee, plan.total) == (usd("0.30"), usd("0.06"), usd("0.36"))
    assert (plan.balance, plan.missing) == (usd("0.20"), usd("0.16"))
    session.commit()
    assert session.scalar(select(func.count()).select_from(Payout)) == 0
    assert session.scalar(select(func.count()).select_from(LedgerTransaction)) == 0
    assert desk.calls == 0


def test_the_plan_shows_failed_rows_apart_since_settle_would_not_touch_them(
    session: Session, clock: FixedClock
) -> None:
    owe(session, 2)
    desk = BonusDesk(clock, session=session)
    desk.faults.extend([Fault.REFUSED, Fault.ERROR_BEFORE])
    settle(session, desk, clock)

    plan = plan_settlement(session, desk, clock)

    assert [line.state for line in plan.lines] == [PayoutState.DOUBTFUL]
    assert [line.state for line in plan.untouched] == [PayoutState.FAILED]


def test_a_bonus_that_the_list_does_not_show_yet_is_confirmed_by_a_later_run(
    session: Session, clock: FixedClock
) -> None:
    owe(session)
    desk = BonusDesk(clock, session=session)
    desk.list_faults.append(Fault.ERROR_BEFORE)
    settle(session, desk, clock)
    before = states(session)

    assert confirm(session, desk, clock) == 1
    assert (before, states(session)) == ([PayoutState.SENT], [PayoutState.CONFIRMED])


def test_rejected_work_earns_no_bonus(session: Session, clock: FixedClock) -> None:
    owe(session, state=AssignmentState.REJECTED)
    desk = BonusDesk(clock, session=session)

    settle(session, desk, clock)

    assert desk.calls == 0


steps = st.lists(
    st.one_of(
        st.sampled_from([f for f in Fault if f is not Fault.REFUSED]),
        st.sampled_from(["list down", "an hour", "a day"]),
    ),
    max_size=10,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=steps)
def test_no_story_of_faults_and_waiting_pays_twice_or_never(story: list[Fault | str]) -> None:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    factory = sessionmaker(engine, expire_on_commit=False)
    clock = FixedClock(factories.NOON)
    desk = BonusDesk(clock)
    with factory() as session:
        owe(session, 2)
    for step in story:
        if isinstance(step, Fault):
            desk.faults.append(step)
        elif step == "list down":
            desk.list_faults.append(Fault.ERROR_BEFORE)
        else:
            clock.advance(timedelta(hours=1) if step == "an hour" else timedelta(hours=25))
        with factory() as session:
            desk.session = session
            try:
                settle(session, desk, clock)
            except Killed:
                session.rollback()
    desk.faults.clear()
    desk.list_faults.clear()
    clock.advance(timedelta(minutes=20))
    with factory() as session:
        desk.session = session
        settle(session, desk, clock)

        check_paid_once(session, desk, 2)
        report = month_report(session, Month(2026, 11)).totals + month_report(session, Month(2026, 12)).totals
        assert report.bonuses == report.promised == sum((one.amount for one in desk.paid), Decimal(0))
    engine.dispose()
