"""The audit log: what it has, and that no line can be changed or go."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import delete, text, update
from sqlalchemy.exc import DatabaseError

from hits.marketplace.console_views import Actor
from hits.marketplace.database import upgrade
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import OperatorError
from hits.marketplace.tables import AccountEntryRow, AuditRow
from tests.hits.marketplace.market import Market

OLGA = Actor.operator("olga")


def test_lines_of_the_log_and_of_accounts_are_only_added(database_url: str) -> None:
    upgrade(database_url)
    market = Market(database_url)
    market.engine.operator_top_up(market.requester_id, Decimal("1.00"), by=OLGA)

    for row in (AuditRow, AccountEntryRow):
        for statement in (update(row).values(at=market.clock.now()), delete(row)):
            with pytest.raises(DatabaseError, match="append-only"), market.engine.store.session(writes=True) as session:
                session.execute(statement)
    market.engine.close()


def test_tables_made_without_migrations_are_guarded_too(stored_market: Market) -> None:
    with pytest.raises(DatabaseError, match="append-only"), stored_market.engine.store.session(writes=True) as session:
        session.execute(text("DELETE FROM mp_audit"))


def test_the_database_that_postgresql_empties_at_once_keeps_its_log(stored_market: Market) -> None:
    if stored_market.engine.store.engine.dialect.name == "sqlite":
        # SQLite has no TRUNCATE; its DELETE without a condition is refused above.
        assert "sqlite" in stored_market.url
        return
    with pytest.raises(DatabaseError, match="append-only"), stored_market.engine.store.session(writes=True) as session:
        session.execute(text("TRUNCATE mp_audit"))


def test_keys_and_bonuses_of_requesters_are_in_it(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    key = engine.create_access_key(market.requester_id)
    engine.revoke_access_key(market.requester_id, key.access_key_id)
    engine.revoke_access_key(market.requester_id, key.access_key_id)
    assignment_id = market.submitted(market.create_hit(), worker_id)
    market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount="0.10", Reason="r")

    lines = engine.audit_log(about=market.requester_id).entries

    assert [(one.action, one.actor_kind) for one in lines[:3]] == [
        ("bonus", "requester"),
        ("access key revoked", "requester"),
        ("access key created", "requester"),
    ]
    assert lines[0].subject_id == assignment_id
    assert lines[0].details == {"amount": "0.10"}
    assert key.secret not in repr(lines)


def test_a_refused_act_leaves_no_line(market: Market) -> None:
    with pytest.raises(OperatorError):
        market.engine.operator_top_up(market.requester_id, Decimal("-1"), by=OLGA)

    assert market.engine.audit_log(action="top-up").total == 0


def test_it_is_read_by_page_subject_and_action(market: Market) -> None:
    engine = market.engine
    for number in range(60):
        engine.record_act("thing done", "requester", market.requester_id, by=OLGA, number=str(number))
    engine.record_act("other thing", "worker", "A1", by=Actor.command_line("root"))

    first, second = (engine.audit_log(action="thing done", page=page) for page in (1, 2))

    assert (first.pages, first.total, len(first.entries), len(second.entries)) == (2, 60, 50, 10)
    assert first.entries[0].details == {"number": "59"}
    assert engine.audit_log(about="olga").total == 60
    assert [one.actor for one in engine.audit_log(about="A1").entries] == ["root"]
    assert {"other thing", "thing done"} <= set(engine.audit_actions())


def test_a_token_stands_for_one_act(market: Market) -> None:
    engine = market.engine
    for _ in range(2):
        engine.operator_top_up(market.requester_id, Decimal("5.00"), by=OLGA, token="form-token-0123456")

    assert f"{engine.balance(market.requester_id).deposited}" == "1005.00"
    with pytest.raises(OperatorError, match="used for something else"):
        engine.draft_payout_run(by=OLGA, token="form-token-0123456")
    for other in (
        lambda: engine.operator_top_up(market.requester_id, Decimal("6.00"), by=OLGA, token="form-token-0123456"),
        lambda: engine.operator_top_up(market.other_requester(), Decimal("5.00"), by=OLGA, token="form-token-0123456"),
    ):
        with pytest.raises(OperatorError, match="used for something else"):
            other()
    for token in ("short", "ü" * 20, "x" * 200):
        with pytest.raises(OperatorError, match="not whole"):
            engine.operator_top_up(market.requester_id, Decimal("5.00"), by=OLGA, token=token)


def test_a_log_survives_a_restart(stored_market: Market) -> None:
    stored_market.engine.record_act("thing done", "worker", "A1", by=OLGA)
    stored_market.engine.close()

    again = Marketplace(stored_market.url, settings=stored_market.settings, clock=stored_market.clock)

    assert again.audit_log(about="A1").entries[0].action == "thing done"
    again.close()
