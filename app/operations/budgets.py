"""Set budgets and caps, and show what is committed of them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy.orm import Session

from app.models import AuditEntry
from hits.clock import Clock
from hits.errors import InvalidInput
from hits.money import display, usd
from payments import budgets
from payments.budgets import BudgetLine
from payments.models import BudgetScope


@dataclass(frozen=True)
class BudgetChange:
    """What setting a budget does: its line as it is and as it would be."""

    before: BudgetLine
    after: BudgetLine


def read_scope(text: str) -> BudgetScope:
    """Return the scope written as ``worker-day``. Raises InvalidInput."""
    try:
        return BudgetScope(text.replace("-", "_"))
    except ValueError:
        known = ", ".join(scope.value.replace("_", "-") for scope in BudgetScope)
        raise InvalidInput(f"{text!r} is no kind of budget. There are {known}.") from None


def read_amount(text: str) -> Decimal | None:
    """Return the dollars of a budget, None for ``none``. Raises MoneyError."""
    return None if text.strip().lower() == "none" else usd(text)


def budget_lines(session: Session, clock: Clock) -> list[BudgetLine]:
    """Return every budget and cap with what is committed of it. Changes nothing."""
    found = budgets.lines(session, clock.now().date())
    session.rollback()
    return found


def plan_budget(session: Session, scope: BudgetScope, key: str, most: Decimal | None) -> BudgetChange:
    """Return what setting a budget would do. Changes nothing. Raises InvalidBudget."""
    change = _change(session, scope, key, most)
    session.rollback()
    return change


def set_budget(
    session: Session, clock: Clock, scope: BudgetScope, key: str, most: Decimal | None, *, by: str
) -> BudgetChange:
    """Set a budget or cap, and keep who did it. Raises InvalidBudget."""
    change = _change(session, scope, key, most)
    budgets.set_budget(session, scope, change.after.key, most, now=clock.now())
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by,
            action="budget.set",
            subject=f"budget {scope.value} {change.after.key}".strip(),
            detail={"before": _words(change.before.most), "after": _words(most)},
        )
    )
    session.commit()
    return change


def _change(session: Session, scope: BudgetScope, key: str, most: Decimal | None) -> BudgetChange:
    key = budgets.checked_key(session, scope, key)
    committed = budgets.committed(session, scope, key) if budgets.is_summed(scope, key) else None
    before = BudgetLine(scope, key, budgets.limit_of(session, scope, key), committed)
    return BudgetChange(before, BudgetLine(scope, key, most, committed))


def _words(most: Decimal | None) -> str:
    return "no limit" if most is None else display(most)
