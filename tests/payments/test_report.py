"""The month from the postings, and a CSV that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.models import Assignment
from hits.money import from_cents, usd
from hits.states import AssignmentState, Moderation, Verdict
from payments import payouts
from payments.errors import InvalidMonth
from payments.ledger import record_deposit, record_reward
from payments.models import Payout, PayoutState, Posting
from payments.report import (
    Figures,
    Line,
    Month,
    MonthReport,
    example_in_words,
    month_report,
    months,
    neutralised,
    report_csv,
    report_rows,
    standing,
)
from tests import factories
from tests.payments.builders import fooling_example, verified_example
from tests.payments.senders import ENDPOINT

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
    payouts.plan_bonuses(session, clock.now())
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
    payouts.plan_bonuses(session, datetime(2026, 11, 30, 12, tzinfo=UTC))
    pay(session, datetime(2026, 12, 1, 12, tzinfo=UTC))

    november, december = (month_report(session, Month(2026, number)).totals for number in (11, 12))

    assert (november.promised, november.bonuses) == (usd("0.30"), 0)
    assert (december.promised, december.bonuses) == (0, usd("0.30"))


def test_a_withdrawn_promise_is_taken_off(session: Session, clock: FixedClock) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    payouts.plan_bonuses(session, clock.now())
    example.verdict, example.moderation = Verdict.INVALID, Moderation.UPHELD
    session.flush()
    payouts.plan_bonuses(session, clock.now())

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
    payouts.plan_bonuses(session, clock.now())
    verified_example(session, batch=batch)
    fooling_example(session, batch=batch)
    fooling_example(session, batch=batch, verdict=Verdict.FLAGGED)
    fooling_example(session, batch=batch, verdict=Verdict.INVALID)
    fooling_example(session, batch=batch, fooled=False, verdict=Verdict.NOT_VALIDATED)

    now = standing(session, [due.bonus.amount for due in payouts.due_bonuses(session)])

    assert (now.of(PayoutState.PLANNED).count, now.of(PayoutState.PLANNED).amount) == (1, usd("0.30"))
    assert (now.not_planned.count, now.not_planned.amount) == (1, usd("0.30"))
    assert (now.possible.count, now.possible.amount) == (2, usd("0.60"))


def test_an_example_is_shown_in_words_without_the_worker_s_id(session: Session) -> None:
    example = verified_example(session, batch=factories.make_batch(session), votes=2)
    factories.make_vote(session, example=example, label=None, flag_reason="rude")

    words = example_in_words(session, example)

    assert (words.goal, words.model, words.votes) == ("negative", "positive", "2 negative, 1 flagged")
    assert words.worker == example.writer.pseudonym
    assert example.writer.mturk_worker_id not in str(words)


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-00", "2026-13", "2026-1", "11-2026", "0000-01", "9999-12", "2026-11-01"]
)
def test_what_is_no_month_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidMonth, match="2026-11"):
        Month.parse(text)


def test_a_month_knows_its_neighbours_and_its_words() -> None:
    december = Month.parse("2026-12")

    assert (str(december.next), str(Month(2026, 1).previous), december.words) == (
        "2027-01",
        "2025-12",
        "December 2026",
    )


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_a_text_cell_that_would_run_as_a_formula_is_made_inert(text: str) -> None:
    assert neutralised(text) == "'" + text


def line(**fields: object) -> MonthReport:
    values = {"round": "sentiment/1", "worker": "w-1", "figures": Figures(), **fields}
    return MonthReport(NOVEMBER, (Line(**values),))  # type: ignore[arg-type]


def test_the_csv_keeps_numbers_numeric_and_text_inert(tmp_path: Path) -> None:
    report = line(round='=HYPERLINK("http://x")', worker="w-ü😀", figures=Figures(promised=Decimal("-0.30")))

    path = tmp_path / "report.csv"
    path.write_text(report_csv(report), encoding="utf-8", newline="")

    [row] = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert row["round"] == '\'=HYPERLINK("http://x")'
    assert row["worker"] == "w-ü😀"
    assert row["bonuses_promised"] == "-0.30"
    assert row["rewards"] == "0.00"


cells = st.text(max_size=20)
money = st.integers(-10_000_000, 10_000_000).map(from_cents)


@given(round_=cells, worker=cells, rewards=money, bonuses=money, count=st.integers(0, 10**6))
def test_whatever_is_in_it_the_csv_reads_back_the_same_and_no_text_starts_a_formula(
    round_: str, worker: str, rewards: Decimal, bonuses: Decimal, count: int
) -> None:
    report = line(round=round_, worker=worker, figures=Figures(assignments=count, rewards=rewards, bonuses=bonuses))

    head, row = list(csv.reader(io.StringIO(report_csv(report), newline="")))

    wanted = report_rows(report)[0]
    read = dict(zip(head, row, strict=True))
    assert read["round"] == neutralised(round_)
    assert not read["worker"].startswith(("=", "+", "-", "@", "\t", "\r"))
    for column in ("rewards", "bonuses", "total", "assignments_approved"):
        assert Decimal(read[column]) == wanted[column]


def test_what_is_owed_now_agrees_with_the_promised_account(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    for _ in range(3):
        verified_example(session, batch=batch)
    payouts.plan_bonuses(session, clock.now())
    [first, *_] = payouts.waiting(session, ENDPOINT)
    order = payouts.claim(session, first, clock.now())
    assert order is not None
    payouts.mark_sent(session, order, clock.now())

    promised = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith("promised:")))
    owed = session.scalar(select(func.sum(Payout.amount)).where(Payout.state == PayoutState.PLANNED))

    assert from_cents(int(promised or 0)) == owed == usd("0.60")
