"""`dynahit staff`, run as a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flask import Flask

from app.cli.staff import group
from app.models import AuditEntry, StaffUser, password_fits

Rows = Callable[[type[Any]], list[Any]]


def run(app: Flask, *arguments: str, text: str | None = None) -> Any:
    return app.test_cli_runner().invoke(group, arguments, input=text, env={"DYNAHIT_STAFF_PASSWORD": ""})


def test_an_account_is_made_listed_given_a_password_and_closed(app: Flask, rows: Rows) -> None:
    long = "a long enough password\n"
    added = run(app, "add", "robin", "--role", "requester", "--role", "finance", text=long * 2)
    listed = run(app, "list", "--json")
    changed = run(app, "password", "robin", text="another good password\n" * 2)
    closed = run(app, "close", "robin")
    shown = run(app, "list")

    assert added.exit_code == 0, added.output
    assert "a long enough" not in added.output
    assert json.loads(listed.output) == [{"name": "robin", "roles": ["finance", "requester"], "active": True}]
    assert changed.exit_code == closed.exit_code == 0
    assert "closed" in shown.output
    user = rows(StaffUser)[0]
    assert not user.active
    assert not password_fits(user, "another good password")
    user.active = True
    assert password_fits(user, "another good password")
    assert [entry.action for entry in rows(AuditEntry)] == ["staff.add", "staff.password", "staff.close"]
