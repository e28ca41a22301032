"""Hold the books, the outbox and the marketplace against each other, and say what differs and what mends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.models import Assignment, Hit, HitBatch
from hits.money import ZERO, display, from_cents
from hits.mturk.errors import HitMissing
from hits.states import AssignmentState
from payments.ledger import booked_balance, booked_deposits
from payments.models import PAID, LedgerTransaction, Payout, PayoutState, Posting, TransactionKind
from payments.payouts import BonusPayment, reference_in

SETTLE = "Run `dynahit payments settle`."
LOOK = "Look into the marketplace's records before you pay anything more."


class Funds(Protocol):
    """The account's money as the marketplace tells it."""

    @property
    def available(self) -> Decimal: ...
    @property
    def on_hold(self) -> Decimal | None: ...


class AssignmentStatus(Protocol):
    """An assignment as the marketplace shows it."""

    @property
    def assignment_id(self) -> str: ...
    @property
    def status(self) -> str: ...


class Records(Protocol):
    """What is read of a marketplace; raises hits.mturk.errors."""

    endpoint: str

    def funds(self) -> Funds: ...
    def assignments(self, hit_id: str) -> Iterable[AssignmentStatus]: ...
    def bonus_payments(
        self, *, assignment_id: str | None = None, hit_id: str | None = None
    ) -> Iterable[BonusPayment]: ...


class Kind(StrEnum):
    """How two records differ."""

    MISSING = "missing"
    EXTRA = "extra"
    DIFFERENT = "different"
    ORPHAN = "orphan"


@dataclass(frozen=True)
class Finding:
    """One difference, with what to do about it."""

    kind: Kind
    subject: str
    what: str
    todo: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.what} {self.todo}"


@dataclass(frozen=True)
class Reconciliation:
    """What was compared, and every difference."""

    findings: tuple[Finding, ...]
    bonuses: int
    bonus_total: Decimal
    rewards: int
    reward_total: Decimal
    #: None while no deposit is booked or the marketplace does not tell what it holds.
    balance_checked: Decimal | None
    note: str | None

    def __str__(self) -> str:
        """One line for clean books."""
        balance = "" if self.balance_checked is None else f", balance and holds {display(self.balance_checked)}"
        return (
            f"The books agree with the marketplace: {self.rewards} rewards of {display(self.reward_total)}, "
            f"{self.bonuses} bonuses of {display(self.bonus_total)}{balance}."
        )


@dataclass(frozen=True)
class _Row:
    """A payout as it stands, read before the marketplace is asked."""

    reference: str
    state: PayoutState
    amount: Decimal
    worker_id: str
    assignment_id: str


def reconcile(session: Session, records: Records) -> Reconciliation:
    """Compare bonuses, approvals and balance of one marketplace with outbox and ledger. Changes nothing.

    Raises MTurkUnavailable when the marketplace can't be reached.
    """
    hits = _hits(session, records.endpoint)
    approved = _approved(session, records.endpoint)
    session.commit()
    payments: list[BonusPayment] = []
    statuses: dict[str, str] = {}
    for hit_id in hits:
        try:
            payments += records.bonus_payments(hit_id=hit_id)
            statuses |= {seen.assignment_id: seen.status for seen in records.assignments(hit_id)}
        except HitMissing:
            # What was paid there is then missing from the list, and shows as such.
            continue
    rows = _payouts(session, records.endpoint)
    booked = _booked(session, records.endpoint)
    session.commit()
    balance_findings, checked, note = _balance(session, records)
    bonuses = {reference: amount for (kind, reference), amount in booked.items() if kind is TransactionKind.BONUS}
    rewards = {reference: amount for (kind, reference), amount in booked.items() if kind is TransactionKind.REWARD}
    findings = [
        *_payment_findings(payments, rows),
        *_outbox_findings(rows, payments, bonuses),
        *_reward_findings(approved, statuses, rewards),
        *balance_findings,
    ]
    return Reconciliation(
        findings=tuple(findings),
        bonuses=len(bonuses),
        bonus_total=sum(bonuses.values(), ZERO),
        rewards=len(rewards),
        reward_total=sum(rewards.values(), ZERO),
        balance_checked=checked,
        note=note,
    )


def _hits(session: Session, endpoint: str) -> list[str]:
    found = session.scalars(
        select(Hit.mturk_hit_id)
        .join(Hit.batch)
        .where(HitBatch.endpoint == endpoint, Hit.mturk_hit_id.is_not(None))
        .where(Hit.id.in_(select(Assignment.hit_id)))
        .order_by(Hit.id)
    )
    return [hit_id for hit_id in found if hit_id is not None]


def _approved(session: Session, endpoint: str) -> set[str]:
    return set(
        session.scalars(
            select(Assignment.mturk_assignment_id)
            .join(Assignment.hit)
            .join(Hit.batch)
            .where(HitBatch.endpoint == endpoint, Assignment.state == AssignmentState.APPROVED)
        )
    )


def _payouts(session: Session, endpoint: str) -> dict[str, _Row]:
    found = session.scalars(select(Payout).where(Payout.endpoint == endpoint).order_by(Payout.id)).all()
    return {
        row.reference: _Row(
            row.reference, row.state, row.amount, row.worker.mturk_worker_id, row.assignment.mturk_assignment_id
        )
        for row in found
    }


def _booked(session: Session, endpoint: str) -> dict[tuple[TransactionKind, str], Decimal]:
    """Return what the ledger says was paid on a marketplace, without fees, by kind and reference."""
    here = select(Posting.transaction_id).where(Posting.account == f"marketplace:{endpoint}")
    rows = session.execute(
        select(LedgerTransaction.kind, LedgerTransaction.reference, func.sum(Posting.cents))
        .join(Posting, Posting.transaction_id == LedgerTransaction.id)
        .where(LedgerTransaction.id.in_(here))
        .where(Posting.account.startswith("rewards:") | Posting.account.startswith("bonuses:"))
        .group_by(LedgerTransaction.kind, LedgerTransaction.reference)
    )
    return {(kind, reference): from_cents(int(cents)) for kind, reference, cents in rows}


def _payment_findings(payments: Iterable[BonusPayment], rows: dict[str, _Row]) -> Iterator[Finding]:
    """What the marketplace's list shows and the outbox does not know, or knows otherwise."""
    seen: set[str] = set()
    for payment in payments:
        subject = f"bonus on assignment {payment.assignment_id}"
        row = rows.get(reference_in(payment.reason))
        if row is None:
            yield Finding(
                Kind.EXTRA,
                subject,
                f"the marketplace paid {display(payment.amount)} ({payment.reason!r}) that was not sent from here.",
                LOOK,
            )
            continue
        if row.reference in seen:
            yield Finding(
                Kind.EXTRA, f"payout {row.reference}", f"was paid twice, {display(payment.amount)} too much.", LOOK
            )
            continue
        seen.add(row.reference)
        if (payment.amount, payment.worker_id, payment.assignment_id) != (row.amount, row.worker_id, row.assignment_id):
            yield Finding(
                Kind.DIFFERENT,
                f"payout {row.reference}",
                f"the marketplace paid {display(payment.amount)} on {payment.assignment_id}, the outbox says "
                f"{display(row.amount)} on {row.assignment_id} and its own worker.",
                LOOK,
            )
        elif row.state not in PAID:
            yield Finding(
                Kind.MISSING,
                f"payout {row.reference}",
                f"is paid on the marketplace and {row.state} here.",
                f"{SETTLE} Add --retry if it is failed." if row.state is PayoutState.FAILED else SETTLE,
            )


def _outbox_findings(
    rows: dict[str, _Row], payments: Iterable[BonusPayment], booked: dict[str, Decimal]
) -> Iterator[Finding]:
    """What the outbox calls paid and the marketplace or the ledger does not show, and the other way round."""
    paid = [row for row in rows.values() if row.state in PAID]
    listed = {reference_in(payment.reason) for payment in payments}
    for row in paid:
        if row.reference not in listed:
            yield Finding(
                Kind.ORPHAN,
                f"payout {row.reference}",
                f"is booked as sent, {display(row.amount)}, and the marketplace's list does not show it.",
                LOOK,
            )
        if row.reference not in booked:
            yield Finding(Kind.MISSING, f"payout {row.reference}", "is sent and not in the ledger.", LOOK)
        elif booked[row.reference] != row.amount:
            yield Finding(
                Kind.DIFFERENT,
                f"payout {row.reference}",
                f"is {display(row.amount)} in the outbox and {display(booked[row.reference])} in the ledger.",
                LOOK,
            )
    known = {row.reference for row in paid}
    for reference, amount in booked.items():
        if reference not in known:
            yield Finding(
                Kind.ORPHAN, f"payout {reference}", f"is in the ledger with {display(amount)}, not paid here.", LOOK
            )


def _reward_findings(approved: set[str], statuses: dict[str, str], booked: dict[str, Decimal]) -> Iterator[Finding]:
    """Approvals against the marketplace's own status and the ledger."""
    run = "Run `dynahit jobs run --once`."
    on_marketplace = {assignment_id for assignment_id, status in statuses.items() if status == "Approved"}
    for assignment_id in sorted(on_marketplace - approved):
        yield Finding(Kind.MISSING, f"assignment {assignment_id}", "is approved on the marketplace and not here.", run)
    for assignment_id in sorted(approved - on_marketplace):
        shown = statuses.get(assignment_id, "not shown at all")
        yield Finding(
            Kind.ORPHAN, f"assignment {assignment_id}", f"is approved here and {shown} on the marketplace.", LOOK
        )
    for assignment_id in sorted(approved - booked.keys()):
        yield Finding(Kind.MISSING, f"assignment {assignment_id}", "is approved and its reward is not booked.", LOOK)
    for assignment_id in sorted(booked.keys() - approved):
        yield Finding(Kind.ORPHAN, f"assignment {assignment_id}", "has a booked reward and is not approved here.", LOOK)


def _balance(session: Session, records: Records) -> tuple[list[Finding], Decimal | None, str | None]:
    """Deposits less everything paid must be what is available and on hold."""
    funds = records.funds()
    deposits, booked = booked_deposits(session, records.endpoint), booked_balance(session, records.endpoint)
    session.commit()
    if funds.on_hold is None:
        return [], None, "The marketplace does not tell what it holds for open HITs, so the balance can't be compared."
    there = funds.available + funds.on_hold
    if not deposits:
        needed = there - booked
        return (
            [],
            None,
            f"No deposit is booked. If you put {display(needed)} into the account, the balance agrees to the cent: "
            f"book it with `dynahit payments deposit {needed} --reference NAME`.",
        )
    if there == booked:
        return [], there, None
    more = there - booked
    if more > 0:
        what = f"holds {display(more)} more than the books say."
        todo = f"If that was a deposit, book it: `dynahit payments deposit {more} --reference NAME`."
    else:
        what = f"holds {display(-more)} less than the books say."
        todo = f"Run `dynahit jobs run --once` and reconcile again; if it stays, something else spent it. {LOOK}"
    return [Finding(Kind.DIFFERENT, "account", what, todo)], None, None
