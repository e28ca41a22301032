"""What the pages on months, workers, reconcile and the audit trail show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import AuditEntry, ReconcileRun
from hits.errors import InvalidInput, NotFound
from payments.closed_months import MonthClose
from payments.models import TransactionKind
from payments.month import Month
from payments.report import Figures, month_report, months
from payments.statement import Statement, StatementLine, statement

PAGE_SIZE: Final = 100
#: So many months stand in the picture.
_MONTHS: Final = 12

#: How a worker's statement names an event.
EVENTS: Final[dict[TransactionKind, str]] = {
    TransactionKind.REWARD: "Reward paid",
    TransactionKind.PROMISE: "Bonus owed",
    TransactionKind.WITHDRAWAL: "Not owed any more",
    TransactionKind.BONUS: "Bonus paid",
    TransactionKind.COMPENSATION: "Paid by a HIT of its own",
    TransactionKind.REVERSAL: "Turned round",
}


@dataclass(frozen=True)
class Page:
    """One page of a list."""

    rows: Sequence[Any]
    number: int
    pages: int
    count: int


@dataclass(frozen=True)
class Frozen:
    """The figures of a closed month as they were when it was closed."""

    totals: Figures
    by_round: Mapping[str, Figures]


@dataclass(frozen=True)
class AuditLine:
    """One deed of a member of staff."""

    at: datetime
    staff_name: str
    action: str
    subject: str
    detail: tuple[tuple[str, str], ...]

    @property
    def is_refusal(self) -> bool:
        return self.action.endswith(".refused")


def page_number(text: str) -> int:
    """Return the page that an address asks for, 0 for what is none."""
    return int(text) if text.isdecimal() and len(text) < 9 else 0


def spent_by_month(session: Session) -> dict[str, Figures]:
    """Return the totals of the last months in which anything was booked, the oldest first."""
    return {str(month): month_report(session, month).totals for month in reversed(months(session)[:_MONTHS])}


def frozen(closing: MonthClose) -> Frozen:
    """Return the figures that a closing keeps."""
    kept = closing.figures
    return Frozen(_figures(kept["totals"]), {name: _figures(one) for name, one in kept["by_round"].items()})


def _figures(kept: Mapping[str, Any]) -> Figures:
    return Figures(
        assignments=kept["assignments_approved"],
        rewards=Decimal(kept["rewards"]),
        reward_fees=Decimal(kept["reward_fees"]),
        bonuses_paid=kept["bonuses_paid"],
        bonuses=Decimal(kept["bonuses"]),
        bonus_fees=Decimal(kept["bonus_fees"]),
        promised=Decimal(kept["bonuses_promised"]),
    )


def statement_page(session: Session, pseudonym: str, number: int) -> tuple[Statement, Page]:
    """Return a worker's statement and one page of its lines, the newest first. Raises NotFound."""
    found = statement(session, pseudonym)
    newest: list[StatementLine] = list(reversed(found.lines))
    return found, _page(newest[(number - 1) * PAGE_SIZE : number * PAGE_SIZE] if number else [], number, len(newest))


def _page(rows: Sequence[Any], number: int, count: int) -> Page:
    pages = max((count + PAGE_SIZE - 1) // PAGE_SIZE, 1)
    if not 1 <= number <= pages:
        raise NotFound(f"There is no page {number}; this list has {pages}.")
    return Page(rows, number, pages, count)


def audit_page(session: Session, who: str, action: str, number: int) -> Page:
    """Return one page of the audit trail, the newest first; of one person or one kind of deed where they are given.

    Raises NotFound for a page that is not there, InvalidInput for text that no name can be.
    """
    if "\0" in who or "\0" in action:
        raise InvalidInput("A name holds no NUL character. Leave the field empty to see everybody.")
    wanted = []
    if who:
        wanted.append(AuditEntry.staff_name == who)
    if action:
        wanted.append(AuditEntry.action == action)
    count = session.scalar(select(func.count()).select_from(AuditEntry).where(*wanted)) or 0
    entries = session.scalars(
        select(AuditEntry)
        .where(*wanted)
        .order_by(AuditEntry.id.desc())
        .limit(PAGE_SIZE)
        .offset(max(number - 1, 0) * PAGE_SIZE)
    )
    lines = [AuditLine(one.at, one.staff_name, one.action, one.subject, tuple(_words(one.detail))) for one in entries]
    return _page(lines, number, count)


def _words(detail: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    return [(name.replace("_", " "), str(value)) for name, value in sorted(detail.items())]


def audit_choices(session: Session) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return who did something, and which deeds there are, as choices of a form."""
    names = session.scalars(select(AuditEntry.staff_name).distinct().order_by(AuditEntry.staff_name))
    actions = session.scalars(select(AuditEntry.action).distinct().order_by(AuditEntry.action))
    return [(name, name) for name in names], [(action, action) for action in actions]


def last_runs(session: Session) -> list[ReconcileRun]:
    """Return the newest run of reconcile on each marketplace, the newest first."""
    newest = select(func.max(ReconcileRun.id)).group_by(ReconcileRun.endpoint)
    return list(
        session.scalars(select(ReconcileRun).where(ReconcileRun.id.in_(newest)).order_by(ReconcileRun.id.desc()))
    )


def month_options(known: Sequence[Month], chosen: Month) -> list[tuple[str, str]]:
    """Return the months to choose from, the chosen one among them."""
    return [(str(one), one.words) for one in (known if chosen in known else [chosen, *known])]
