"""Operators' accounts."""

from __future__ import annotations

import pytest

from hits.marketplace.console_views import Actor
from hits.marketplace.errors import NotSignedIn, OperatorError
from tests.hits.marketplace.market import Market

ROOT = Actor.command_line("root")
PASSWORD = "a long enough password"


def test_an_operator_signs_in_until_the_account_is_closed(stored_market: Market) -> None:
    engine = stored_market.engine
    made = engine.add_operator(" Olga ", PASSWORD, by=ROOT)

    assert made.name == "Olga"
    assert engine.authenticate_operator("oLGA", PASSWORD) == made
    for name, password in (("Olga", "wrong password!"), ("Otto", PASSWORD), ("O\x00lga", PASSWORD)):
        with pytest.raises(NotSignedIn):
            engine.authenticate_operator(name, password)
    engine.close_operator("olga", by=ROOT)
    with pytest.raises(NotSignedIn):
        engine.authenticate_operator("Olga", PASSWORD)
    assert [one.closed_at is not None for one in engine.operators()] == [True]


def test_a_new_password_replaces_the_old_one(market: Market) -> None:
    engine = market.engine
    before = engine.add_operator("olga", PASSWORD, by=ROOT)
    market.clock.advance(seconds=5)

    after = engine.set_operator_password("olga", "another long password", by=ROOT)

    assert after.password_set_at > before.password_set_at
    with pytest.raises(NotSignedIn):
        engine.authenticate_operator("olga", PASSWORD)
    assert engine.authenticate_operator("olga", "another long password").name == "olga"


def test_what_is_refused(market: Market) -> None:
    engine = market.engine
    engine.add_operator("olga", PASSWORD, by=ROOT)

    with pytest.raises(OperatorError, match="already"):
        engine.add_operator("OLGA", PASSWORD, by=ROOT)
    for name in ("", "o", "with space", "x" * 65):
        with pytest.raises(OperatorError, match="2 to 64 characters"):
            engine.add_operator(name, PASSWORD, by=ROOT)
    for password in ("elevenchars", "x" * 257):
        with pytest.raises(OperatorError, match="12 to 256"):
            engine.add_operator("otto", password, by=ROOT)
        with pytest.raises(OperatorError, match="12 to 256"):
            engine.set_operator_password("olga", password, by=ROOT)
    for call in (engine.close_operator, lambda name, by: engine.set_operator_password(name, PASSWORD, by=by)):
        with pytest.raises(OperatorError, match="no operator “nobody”"):
            call("nobody", by=ROOT)
    engine.close_operator("olga", by=ROOT)
    engine.close_operator("olga", by=ROOT)
    with pytest.raises(OperatorError, match="closed"):
        engine.set_operator_password("olga", PASSWORD, by=ROOT)


def test_each_change_is_in_the_log(market: Market) -> None:
    engine = market.engine
    made = engine.add_operator("olga", PASSWORD, by=ROOT)
    engine.set_operator_password("olga", PASSWORD, by=ROOT)
    engine.close_operator("olga", by=ROOT)

    assert [one.action for one in engine.audit_log(about=made.operator_id).entries] == [
        "operator closed",
        "operator's password changed",
        "operator added",
    ]
    assert PASSWORD not in repr(engine.audit_log().entries)
    assert [one.name for one in engine.operators()] == ["olga"]
