"""Words and tables of ``dynahit payments``; test_payments.py reads them as the commands print them."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pytest
from rich.console import Console

from app.cli.payment_output import (
    bonuses_in_words,
    plan_json,
    show_plan,
    show_report,
    show_settlement,
    standing_json,
    standing_rows,
    todo,
)
from app.operations.settle import PlanLine, Result, Settled, Settlement, SettlePlan
from hits.money import usd
from payments.models import PayoutState
from payments.month import Month
from payments.report import Amount, ExampleInWords, Figures, Line, MonthReport, Standing

EXAMPLE = ExampleInWords(
    "sentiment/1", "w-1", "Good [red]soup[/red] " * 9, "A [context]", "negative", "positive", "none"
)


def line(state: PayoutState = PayoutState.PLANNED) -> PlanLine:
    return PlanLine("sentiment/1", "w-1", EXAMPLE, usd("0.30"), usd("0.06"), state, "Your statement ... DH-1")


def plan(*states: PayoutState, balance: str = "10.00") -> SettlePlan:
    apart = (PayoutState.FAILED, PayoutState.HELD)
    lines = [line(state) for state in states]
    return SettlePlan(
        tuple(one for one in lines if one.state not in apart),
        tuple(one for one in lines if one.state in apart),
        usd(balance),
    )


def standing(**counts: int) -> Standing:
    by_state = {PayoutState(name): Amount(count, count * usd("0.30")) for name, count in counts.items()}
    return Standing(by_state, Amount(), Amount())


def shown(console_text: io.StringIO) -> str:
    return " ".join(console_text.getvalue().split())


@pytest.mark.parametrize(("count", "words"), [(0, "0 bonuses"), (1, "1 bonus"), (2, "2 bonuses")])
def test_one_bonus_is_no_plural(count: int, words: str) -> None:
    assert bonuses_in_words(count) == words


def test_square_brackets_of_a_worker_are_shown_and_long_texts_cut() -> None:
    text = io.StringIO()

    show_plan(plan(PayoutState.PLANNED), Console(file=text, width=250))

    assert "Good [red]soup[/red]" in shown(text)
    assert "A [context]" in shown(text)
    assert "…" in shown(text)


def test_a_report_keeps_ids_whole_in_a_terminal_of_80_columns() -> None:
    text = io.StringIO()
    figures = Figures(1234, usd("999.99"), usd("99.99"), 999, usd("999.99"), usd("99.99"), usd("999.99"))

    show_report(
        MonthReport(Month(2026, 11), (Line("sentiment/1", "w-0123456789abcdef", figures),)),
        standing(),
        Console(file=text, width=80),
    )

    assert "w-0123456789abcdef" in text.getvalue()
    assert "$2,199" in text.getvalue()
    assert "…" not in text.getvalue()
    assert max(map(len, text.getvalue().splitlines())) <= 80


def test_a_plan_that_the_balance_does_not_cover_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    show_plan(plan(PayoutState.PLANNED, balance="0.10"), Console(file=io.StringIO()))

    assert "$0.26 short" in capsys.readouterr().out


def test_failed_and_held_ones_are_told_apart_from_what_is_paid(capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(PayoutState.FAILED, PayoutState.HELD)

    show_plan(found, Console(file=io.StringIO()))

    assert "--retry" in capsys.readouterr().out
    assert (found.failed, found.total) == (1, Decimal(0))
    assert [one["state"] for one in plan_json(found)["not_paid_now"]] == ["failed", "held"]


def test_a_settlement_says_what_to_do_about_each_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    settled = tuple(
        Settled("DH-1", "w-1", usd("0.30"), "reason", result, "cause [x]")
        for result in (Result.PAID, Result.DOUBTFUL, Result.FAILED)
    )

    show_settlement(Settlement(settled, 1, 4, "Stopped here."), Console(file=io.StringIO()))

    said = capsys.readouterr().out
    for words in ("Paid: 1 bonus, $0.30", "Doubtful: 1", "Failed: 1", "--retry", "Stopped here.", "Still waiting: 4"):
        assert words in said


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("planned", "pays what is owed"),
        ("planned", "payments approve"),
        ("approved", "pays what is owed"),
        ("failed", "settle --retry"),
        ("held", "decision on a flag"),
        ("no_budget", "budget set"),
        ("needs_compensation", "a HIT that pays"),
    ],
)
def test_what_stands_open_says_what_to_do(state: str, words: str) -> None:
    assert words in " ".join(todo(standing(**{state: 1})))


def test_nothing_open_says_nothing() -> None:
    assert todo(standing(confirmed=3)) == []


def test_every_state_is_listed_also_as_json() -> None:
    now = standing(confirmed=3)

    names = [name for name, _ in standing_rows(now)]
    assert len(names) == len(PayoutState) + 2
    assert json.loads(json.dumps(standing_json(now)))["confirmed"] == {"count": 3, "amount": "0.90"}
