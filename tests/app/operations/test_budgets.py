"""Budgets are set by somebody, for something that there is, and never at the cost of what is committed already."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.budgets import budget_lines, plan_budget, read_amount, read_scope, set_budget
from hits.clock import FixedClock
from hits.errors import InvalidInput
from hits.money import MoneyError, usd
from payments.budgets import reserve
from payments.errors import InvalidBudget, OverBudget
from payments.models import Budget, BudgetScope
from tests import factories


def test_a_budget_is_set_by_somebody_and_the_plan_changes_nothing(session: Session, clock: FixedClock) -> None:
    plan = plan_budget(session, BudgetScope.ROUND, " sentiment/1 ", usd("5.00"))
    before = session.scalars(select(Budget)).all()

    done = set_budget(session, clock, BudgetScope.ROUND, " sentiment/1 ", usd("5.00"), by="kim")

    assert before == []
    assert plan == done
    assert (done.before.most, done.after.most, done.after.key) == (None, usd("5.00"), "sentiment/1")
    [entry] = session.scalars(select(AuditEntry)).all()
    assert (entry.staff_name, entry.action, entry.subject) == ("kim", "budget.set", "budget round sentiment/1")
    assert entry.detail == {"before": "no limit", "after": "$5.00"}


def test_a_budget_below_what_is_committed_takes_nothing_back_and_lets_nothing_more_in(
    session: Session, clock: FixedClock
) -> None:
    batch = factories.make_batch(session)
    reserve(session, batch, usd("5.00"), now=clock.now())
    session.commit()

    change = set_budget(session, clock, BudgetScope.PROJECT, "", usd("1.00"), by="kim")

    assert (change.after.committed, change.after.left) == (usd("5.00"), usd(0))
    with pytest.raises(OverBudget):
        reserve(session, factories.make_batch(session, round=batch.round), usd("0.01"), now=clock.now())
    session.rollback()
    assert budget_lines(session, clock)[0].committed == usd("5.00")


def test_what_can_not_be_read_is_refused_with_the_value() -> None:
    assert read_scope("worker-day") is BudgetScope.WORKER_DAY
    assert (read_amount("none"), read_amount("2.50")) == (None, usd("2.50"))
    with pytest.raises(InvalidInput, match="'planet' is no kind of budget"):
        read_scope("planet")
    with pytest.raises(MoneyError, match="'ten'"):
        read_amount("ten")


def test_a_refused_budget_leaves_no_trace(session: Session, clock: FixedClock) -> None:
    with pytest.raises(InvalidBudget):
        set_budget(session, clock, BudgetScope.DAY, "yesterday", usd("1.00"), by="kim")
    session.rollback()

    assert session.scalars(select(AuditEntry)).all() == []
