"""The month from the postings, and a CSV that no spreadsheet runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import event, func, select, text
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.models import Assignment
from hits.money import from_cents, usd
from hits.states import AssignmentState, Moderation, Verdict
from payments import payouts
from payments.beancount_export import beancount_lines
from payments.due import due_bonuses
from payments.journal import month_digest
from payments.ledger import record_deposit, record_reward
from payments.models import Payout, PayoutState, Posting
from payments.month import Month
from payments.report import (
    Figures,
    Line,
    MonthReport,
    example_in_words,
    month_report,
    months,
    report_table,
    standing,
)
from tests import factories
from tests.payments.builders import fooling_example, plan, verified_example
from tests.payments.senders import ENDPOINT
from tests.payments.year import make_year

NOVEMBER = Month(2026, 11)


def pay(session: Session, at: datetime) -> None:
    """Pay every planned bonus at a moment."""
    for row in payouts.waiting(session, ENDPOINT):
        order = payouts.claim(session, row, at)
        assert order is not None
        payouts.mark_sent(session, order, at)


def approve_all(session: Session, at: datetime) -> None:
    for assignment in session.scalars(select(Assignment).where(Assignment.state == AssignmentState.APPROVED)).all():
        assignment.approved_at = at
        record_reward(session, assignment, at)


def test_a_month_holds_what_was_approved_and_sent_in_it_by_utc(session: Session) -> None:
    batch = factories.make_batch(session)
    for at in (
        datetime(2026, 10, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 11, 1, tzinfo=UTC),
        datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 12, 1, tzinfo=UTC),
        # Still November in UTC.
        datetime(2026, 12, 1, 1, tzinfo=timezone(timedelta(hours=2))),
    ):
        hit = factories.make_hit(session, batch=batch)
        assignment = factories.make_assignment(session, hit=hit, state=AssignmentState.APPROVED, approved_at=at)
        record_reward(session, assignment, at)

    assert [month_report(session, Month(2026, number)).totals.assignments for number in (10, 11, 12)] == [1, 3, 1]


def test_a_report_adds_up_by_round_and_by_worker_to_the_postings(session: Session, clock: FixedClock) -> None:
    first = factories.make_batch(session, bonus=usd("0.30"))
    second = factories.make_batch(
        session, round=factories.make_round(session, number=2), reward=usd("0.25"), bonus=usd("0.55")
    )
    for batch in (first, first, second):
        verified_example(session, batch=batch, votes=2)
    approve_all(session, clock.now())
    plan(session, clock.now())
    pay(session, clock.now())
    record_deposit(session, ENDPOINT, usd("500.00"), reference="invoice", now=clock.now())

    report = month_report(session, NOVEMBER)

    spent = session.scalar(
        select(func.sum(Posting.cents)).where(Posting.account.startswith("marketplace:"), Posting.cents < 0)
    )
    assert report.totals.total == -from_cents(int(spent or 0)) == usd("2.40")
    assert report.totals == Figures(3, usd("0.85"), usd("0.17"), 3, usd("1.15"), usd("0.23"), usd("1.15"))
    assert sum(report.by_round.values(), Figures()) == report.totals
    assert sum(report.by_worker.values(), Figures()) == report.totals
    assert list(report.by_round) == ["sentiment/1", "sentiment/2"]
    assert len(report.by_worker) == 3


def test_a_promise_of_one_month_that_is_paid_in_the_next_shows_in_both(session: Session) -> None:
    verified_example(session, batch=factories.make_batch(session, bonus=usd("0.30")))
    plan(session, datetime(2026, 11, 30, 12, tzinfo=UTC))
    pay(session, datetime(2026, 12, 1, 12, tzinfo=UTC))

    november, december = (month_report(session, Month(2026, number)).totals for number in (11, 12))

    assert (november.promised, november.bonuses) == (usd("0.30"), 0)
    assert (december.promised, december.bonuses) == (0, usd("0.30"))


def test_a_withdrawn_promise_is_taken_off(session: Session, clock: FixedClock) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    plan(session, clock.now())
    example.verdict, example.moderation = Verdict.INVALID, Moderation.UPHELD
    session.flush()
    plan(session, clock.now())

    assert month_report(session, NOVEMBER).totals.promised == 0


def test_an_empty_month_has_no_lines_and_totals_of_nothing(session: Session) -> None:
    report = month_report(session, NOVEMBER)

    assert (report.lines, report.totals, months(session)) == ((), Figures(), [])


def test_the_months_run_from_the_first_booking_to_the_last(session: Session) -> None:
    for number, at in enumerate((datetime(2026, 11, 30, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC))):
        record_deposit(session, ENDPOINT, usd("1.00"), reference=f"invoice {number}", now=at)

    assert list(map(str, months(session))) == ["2027-02", "2027-01", "2026-12", "2026-11"]


def test_what_stands_open_is_told_apart_from_what_is_possible(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    verified_example(session, batch=batch)
    plan(session, clock.now())
    verified_example(session, batch=batch)
    fooling_example(session, batch=batch)
    fooling_example(session, batch=batch, verdict=Verdict.FLAGGED)
    fooling_example(session, batch=batch, verdict=Verdict.INVALID)
    fooling_example(session, batch=batch, fooled=False, verdict=Verdict.NOT_VALIDATED)

    now = standing(session, [due.bonus.amount for due in due_bonuses(session)])

    assert (now.of(PayoutState.APPROVED).count, now.of(PayoutState.APPROVED).amount) == (1, usd("0.30"))
    assert (now.not_planned.count, now.not_planned.amount) == (1, usd("0.30"))
    assert (now.possible.count, now.possible.amount) == (2, usd("0.60"))


def test_an_example_is_shown_in_words_without_the_worker_s_id(session: Session) -> None:
    example = verified_example(session, batch=factories.make_batch(session), votes=2)
    factories.make_vote(session, example=example, label=None, flag_reason="rude")

    words = example_in_words(session, example)

    assert (words.goal, words.model, words.votes) == ("negative", "positive", "2 negative, 1 flagged")
    assert words.worker == example.writer.pseudonym
    assert example.writer.mturk_worker_id not in str(words)


def test_what_is_owed_now_agrees_with_the_promised_account(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    for _ in range(3):
        verified_example(session, batch=batch)
    plan(session, clock.now())
    [first, *_] = payouts.waiting(session, ENDPOINT)
    order = payouts.claim(session, first, clock.now())
    assert order is not None
    payouts.mark_sent(session, order, clock.now())

    promised = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith("promised:")))
    owed = session.scalar(select(func.sum(Payout.amount)).where(Payout.state == PayoutState.APPROVED))

    assert from_cents(int(promised or 0)) == owed == usd("0.60")


def test_the_table_has_one_row_by_round_and_worker_whose_cells_fit_their_columns() -> None:
    figures = Figures(2, usd("0.60"), usd("0.12"), 1, usd("0.30"), usd("0.06"), usd("0.30"))

    table = report_table(MonthReport(NOVEMBER, (Line("sentiment/1", "w-1", figures),)))

    assert [dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows] == [
        {
            "month": "2026-11",
            "round": "sentiment/1",
            "worker": "w-1",
            "assignments_approved": 2,
            "rewards": usd("0.60"),
            "reward_fees": usd("0.12"),
            "bonuses_promised": usd("0.30"),
            "bonuses_paid": 1,
            "bonuses": usd("0.30"),
            "bonus_fees": usd("0.06"),
            "fees": usd("0.18"),
            "total": usd("1.08"),
        }
    ]


@pytest.mark.parametrize("database_url", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True)
def test_whole_books_are_read_by_passes_though_postgresql_believes_that_the_tables_are_empty(session: Session) -> None:
    make_year(session, events=30)
    session.commit()
    believed = "UPDATE pg_class SET reltuples = 0, relpages = 1 WHERE relname IN ('ledger_transaction', 'posting')"
    session.execute(text(believed + " AND relnamespace = current_schema()::regnamespace"))
    session.commit()
    plans: list[str] = []

    def explain(connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        if statement.startswith("SELECT") and "JOIN" in statement:
            with connection.connection.cursor() as asking:
                asking.execute(f"EXPLAIN {statement}", parameters)
                plans.append("\n".join(line for (line,) in asking.fetchall()))

    bind = session.get_bind()
    event.listen(bind, "before_cursor_execute", explain)
    try:
        month_report(session, Month(2026, 3))
        list(beancount_lines(session))
        month_digest(session, Month(2026, 3))
    finally:
        event.remove(bind, "before_cursor_execute", explain)

    assert plans
    assert [plan for plan in plans if "Nested Loop" in plan] == []
    assert session.scalar(text("SHOW enable_nestloop")) == "on"
