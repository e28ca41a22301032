"""What finance reads: the month by round and worker from the postings, what is owed now, and payouts in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Final, Self

from sqlalchemy import ColumnElement, String, case, cast, func, literal, select
from sqlalchemy.orm import Session

from hits.db import joins_whole_tables
from hits.models import Attempt, Example, Hit, HitBatch, Vote
from hits.money import ZERO, from_cents
from hits.states import Moderation, Verdict
from hits.tasks import task
from payments.ledger import Account, round_code
from payments.models import LedgerTransaction, Payout, PayoutState, Posting, TransactionKind
from payments.month import Month
from payments.tables import Column, ColumnKind, Table


@dataclass(frozen=True)
class Figures:
    """Sums of money. ``promised`` counts the promises made less those withdrawn; ``bonuses`` is what was paid."""

    assignments: int = 0
    rewards: Decimal = ZERO
    reward_fees: Decimal = ZERO
    bonuses_paid: int = 0
    bonuses: Decimal = ZERO
    bonus_fees: Decimal = ZERO
    promised: Decimal = ZERO

    @property
    def fees(self) -> Decimal:
        return self.reward_fees + self.bonus_fees

    @property
    def total(self) -> Decimal:
        """All that left the account: rewards, bonuses and fees."""
        return self.rewards + self.bonuses + self.fees

    def __add__(self, other: Self) -> Self:
        return replace(self, **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})


@dataclass(frozen=True)
class Line:
    """The figures of one worker in one round."""

    round: str
    worker: str
    figures: Figures


@dataclass(frozen=True)
class MonthReport:
    """A month by round and worker, every figure from the postings."""

    month: Month
    lines: tuple[Line, ...]

    @property
    def totals(self) -> Figures:
        return sum((line.figures for line in self.lines), Figures())

    @property
    def by_round(self) -> dict[str, Figures]:
        return self._grouped(lambda line: line.round)

    @property
    def by_worker(self) -> dict[str, Figures]:
        return self._grouped(lambda line: line.worker)

    def _grouped(self, key: Callable[[Line], str]) -> dict[str, Figures]:
        groups: dict[str, Figures] = {}
        for line in self.lines:
            groups[key(line)] = groups.get(key(line), Figures()) + line.figures
        return dict(sorted(groups.items()))


@dataclass(frozen=True)
class Amount:
    """So many bonuses and their sum."""

    count: int = 0
    amount: Decimal = ZERO


@dataclass(frozen=True)
class Standing:
    """What is owed and paid now, whatever the month.

    ``not_planned``: verified, and the next settle will plan it. ``possible``: what the fooling examples that are still
    being validated or wait for the requester could add.
    """

    by_state: Mapping[PayoutState, Amount]
    not_planned: Amount
    possible: Amount

    def of(self, *states: PayoutState) -> Amount:
        """Return the sum over these states."""
        found = [self.by_state.get(state, Amount()) for state in states]
        return Amount(sum(one.count for one in found), sum((one.amount for one in found), ZERO))


@dataclass(frozen=True)
class ExampleInWords:
    """An example as finance reads it; the writer by pseudonym."""

    round: str
    worker: str
    text: str
    context: str
    goal: str
    model: str
    votes: str


def month_report(session: Session, month: Month) -> MonthReport:
    """Return what was paid and promised in a month, by the time of approval or sending in UTC.

    A reversal takes off what it reverses, in the month in which it is booked.
    """
    figures: dict[tuple[str, str], Figures] = {}
    for account, part in posted(session, LedgerTransaction.at >= month.start, LedgerTransaction.at < month.end):
        key = (account.round, account.worker)
        figures[key] = figures.get(key, Figures()) + part
    return MonthReport(month, tuple(Line(*key, figures[key]) for key in sorted(figures)))


def posted(session: Session, *where: ColumnElement[bool]) -> Iterator[tuple[Account, Figures]]:
    """Yield what the postings of some transactions, or of all, say was paid and promised, account by account."""
    kind, is_reversal = _reversed_kind(), LedgerTransaction.kind == TransactionKind.REVERSAL
    query = (
        select(kind, is_reversal, Posting.account, func.sum(Posting.cents), func.count())
        .join(LedgerTransaction, LedgerTransaction.id == Posting.transaction_id)
        .where(*where)
        .group_by(kind, is_reversal, Posting.account)
    )
    with joins_whole_tables(session):
        rows = session.execute(query).all()
    for of_kind, taken_off, name, cents, count in rows:
        account = Account.parse(name)
        part = _figures(of_kind, account.name, from_cents(int(cents)), -count if taken_off else count)
        if part is not None:
            yield account, part


def _reversed_kind() -> ColumnElement[str]:
    """Return the kind of a transaction as text, for a reversal that of the transaction which it reverses."""
    kinds = [kind for kind in TransactionKind if kind is not TransactionKind.REVERSAL]
    return case(
        *((LedgerTransaction.key.startswith(f"reversal:{kind.value}:"), literal(kind.value)) for kind in kinds),
        else_=cast(LedgerTransaction.kind, String),
    )


def _figures(kind: str, account: str, amount: Decimal, count: int) -> Figures | None:
    parts: dict[tuple[str, str], Figures] = {
        (TransactionKind.REWARD, "rewards"): Figures(rewards=amount),
        # Every approved assignment costs a fee, also one whose reward is $0.00.
        (TransactionKind.REWARD, "reward_fees"): Figures(reward_fees=amount, assignments=count),
        (TransactionKind.BONUS, "bonuses"): Figures(bonuses=amount, bonuses_paid=count),
        (TransactionKind.BONUS, "bonus_fees"): Figures(bonus_fees=amount),
        (TransactionKind.PROMISE, "promised"): Figures(promised=amount),
        (TransactionKind.WITHDRAWAL, "promised"): Figures(promised=amount),
    }
    return parts.get((kind, account))


def months(session: Session) -> list[Month]:
    """Return the months from the first booking to the last, newest first; empty while nothing is booked."""
    first = session.scalar(select(func.min(LedgerTransaction.at)))
    last = session.scalar(select(func.max(LedgerTransaction.at)))
    if first is None or last is None:
        return []
    found = [Month.of(last)]
    while found[-1] > Month.of(first):
        found.append(found[-1].previous)
    return found


def standing(session: Session, not_planned: Iterable[Decimal] = ()) -> Standing:
    """Return what is owed and paid now; ``not_planned`` are the amounts of payouts.due_bonuses."""
    rows = session.execute(select(Payout.state, func.count(), func.sum(Payout.amount)).group_by(Payout.state)).all()
    open_examples = session.execute(
        select(func.count(), func.sum(HitBatch.bonus))
        .select_from(Example)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Hit, Hit.id == Attempt.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .where(Example.fooled.is_(True))
        .where(Example.verdict.in_((Verdict.PENDING, Verdict.FLAGGED)) | (Example.moderation == Moderation.OPEN))
        .where(Example.id.not_in(select(Payout.example_id).where(Payout.example_id.is_not(None))))
    ).one()
    due = list(not_planned)
    return Standing(
        by_state={state: Amount(count, amount) for state, count, amount in rows},
        not_planned=Amount(len(due), sum(due, ZERO)),
        possible=Amount(open_examples[0], open_examples[1] or ZERO),
    )


def example_in_words(session: Session, example: Example) -> ExampleInWords:
    """Return an example with its context, labels and counted votes by name."""
    spec = task(example.round.task_code)
    votes = session.execute(
        select(Vote.label, Vote.flag_reason).where(Vote.example_id == example.id, Vote.counted_at.is_not(None))
    ).all()
    counts = Counter("flagged" if vote.label is None else spec.label(vote.label).name for vote in votes)
    return ExampleInWords(
        round=round_code(example.round),
        worker=example.writer.pseudonym,
        text=" / ".join(example.attempt.answer[item.name] for item in spec.answer_fields),
        context=" / ".join(example.context.fields.values()),
        goal=spec.label(example.goal_label).name,
        model=spec.label(example.model_label).name,
        votes=", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none",
    )


_COLUMNS: Final = (
    Column("month"),
    Column("round"),
    Column("worker"),
    Column("assignments_approved", ColumnKind.COUNT),
    Column("rewards", ColumnKind.MONEY),
    Column("reward_fees", ColumnKind.MONEY),
    Column("bonuses_promised", ColumnKind.MONEY),
    Column("bonuses_paid", ColumnKind.COUNT),
    Column("bonuses", ColumnKind.MONEY),
    Column("bonus_fees", ColumnKind.MONEY),
    Column("fees", ColumnKind.MONEY),
    Column("total", ColumnKind.MONEY),
)


def report_rows(report: MonthReport) -> list[dict[str, str | int | Decimal]]:
    """Return the report as one row by round and worker; there is no row of totals, so that a sum over it is right."""
    return [
        {
            "month": str(report.month),
            "round": line.round,
            "worker": line.worker,
            **figures_row(line.figures),
        }
        for line in report.lines
    ]


def figures_row(figures: Figures) -> dict[str, int | Decimal]:
    """Return figures by column name."""
    return {
        "assignments_approved": figures.assignments,
        "rewards": figures.rewards,
        "reward_fees": figures.reward_fees,
        "bonuses_promised": figures.promised,
        "bonuses_paid": figures.bonuses_paid,
        "bonuses": figures.bonuses,
        "bonus_fees": figures.bonus_fees,
        "fees": figures.fees,
        "total": figures.total,
    }


def report_table(report: MonthReport) -> Table:
    """Return the report as a table, one row by round and worker."""
    rows = ([row[column.name] for column in _COLUMNS] for row in report_rows(report))
    return Table(f"dynahit-{report.month}", _COLUMNS, rows)
