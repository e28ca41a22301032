"""What the marketplace's commands print."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import click
import pytest

from app.cli.marketplace_output import fail, moment, print_json, print_table, record, say, shell_user


@dataclass(frozen=True)
class Inner:
    amount: Decimal


@dataclass(frozen=True)
class Outer:
    at: datetime | None
    inner: tuple[Inner, ...]
    details: dict[str, object]


def test_a_record_is_json_with_exact_amounts(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 12, 31, 12, tzinfo=UTC)

    print_json(record(Outer(at, (Inner(Decimal("0.30")),), {"n": 1, "amount": Decimal("1.00")})))

    assert json.loads(capsys.readouterr().out) == {
        "at": "2026-12-31T12:00:00+00:00",
        "inner": [{"amount": "0.30"}],
        "details": {"n": 1, "amount": "1.00"},
    }
    assert moment(None) == ""
    assert moment(at) == "2026-12-31 12:00 UTC"


def test_what_people_typed_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name",), [("[red]Lab[/red]",), ("[/]",)], "none")

    out = capsys.readouterr().out
    assert "[red]Lab[/red]" in out
    assert "[/]" in out
    print_table(("a", "b"), [("x" * 90, "y" * 90)], "none")
    assert f"{'x' * 90} │ {'y' * 90}" in capsys.readouterr().out
    print_table(("name",), [], "None yet.")
    assert capsys.readouterr().out == "None yet.\n"


def test_a_terminal_obeys_nothing_that_people_typed(capsys: pytest.CaptureFixture[str]) -> None:
    typed = "\x1b[2J\x1b]52;c;cm0=\x07 \x9b31m\r\x7f ж\t€\n👩‍🔬"
    seen = "\\x1b[2J\\x1b]52;c;cm0=\\x07 \\x9b31m\\x0d\\x7f ж"

    say(typed)
    print_table(("words",), [(typed,)], "none")
    print_json({"words": typed})
    with pytest.raises(click.ClickException) as refused:
        fail(ValueError(typed))

    out = capsys.readouterr().out
    assert out.startswith(f"{seen}\t€\n👩‍🔬\n")
    assert out.count(seen) == 2
    assert refused.value.message == f"{seen}\t€\n👩‍🔬"
    assert not {*"\x1b\x07\x9b\r\x7f"} & {*out}


def test_who_runs_a_command_is_named_even_without_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "olga")
    assert shell_user().name == "olga"

    def nobody() -> str:
        raise OSError("No username set in the environment")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert shell_user().name == "unknown"
