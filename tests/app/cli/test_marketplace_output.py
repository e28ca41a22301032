"""What the marketplace's commands print."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from app.cli.marketplace_output import moment, print_json, print_table, record, shell_user


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


def test_who_runs_a_command_is_named_even_without_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "olga")
    assert shell_user().name == "olga"

    def nobody() -> str:
        raise OSError("No username set in the environment")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert shell_user().name == "unknown"
