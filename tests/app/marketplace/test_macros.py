"""The small parts that every page of both apps is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask import Flask


@pytest.fixture
def parts(app: Flask) -> Any:
    return app.jinja_env.get_template("_macros/parts.html").module


@pytest.fixture
def fields(app: Flask) -> Any:
    return app.jinja_env.get_template("_macros/fields.html").module


def words(markup: object) -> str:
    return " ".join(BeautifulSoup(str(markup), "html.parser").get_text().split())


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0.3", "$0.30"),
        ("1234567.89", "$1,234,567.89"),
        ("0", "$0.00"),
        ("-0.05", "−$0.05"),
        ("12345678901234567.89", "$12,345,678,901,234,567.89"),
    ],
)
def test_money_is_shown_to_the_cent(parts: Any, amount: str, shown: str) -> None:
    assert words(parts.money(Decimal(amount))) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (90, "1 minute 30 seconds"),
        (3600, "1 hour"),
        (3661, "1 hour 1 minute"),
        (259200, "3 days"),
        (31536000, "365 days"),
        (86400 + 59, "1 day 59 seconds"),
    ],
)
def test_a_duration_is_said_in_words(parts: Any, seconds: int, shown: str) -> None:
    assert words(parts.duration(seconds)) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3599, "59:59"), (3600, "1:00:00"), (90061, "25:01:01"), (5, "0:05"), (-3, "0:00")]
)
def test_a_countdown_begins_with_the_servers_seconds(parts: Any, seconds: int, shown: str) -> None:
    markup = parts.countdown(seconds)

    assert words(markup) == f"Time left: {shown}"
    assert f'data-countdown="{max(0, seconds)}"' in markup


def test_a_time_carries_its_zone(parts: Any) -> None:
    markup = parts.when(datetime(2026, 12, 3, 9, 5, tzinfo=UTC))

    assert words(markup) == "3 Dec 2026, 09:05 UTC"
    assert 'datetime="2026-12-03T09:05:00Z"' in markup


def test_a_field_ties_hint_and_error_to_its_input(fields: Any) -> None:
    page = BeautifulSoup(
        str(fields.field("name", "Name", value='"><script>', hint="Yours", error="Too short")), "html.parser"
    )

    found = page.find("input")
    assert found is not None
    assert (
        found["aria-describedby"] == ["name-hint", "name-error"] or found["aria-describedby"] == "name-hint name-error"
    )
    assert found["aria-invalid"] == "true"
    assert found["value"] == '"><script>'
    assert page.find("script") is None


def test_a_password_is_never_sent_back(fields: Any) -> None:
    assert "secret" not in str(fields.field("p", "Password", value="secret", type="password"))
