"""Hold the books, the outbox and the marketplace against each other, and say what differs and what mends it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, Protocol

from sqlalchemy import BigInteger, ColumnElement, case, cast, exists, func, literal, select
from sqlalchemy.orm import Session, aliased

from hits.db import joins_whole_tables
from hits.models import Assignment, Hit, HitBatch, Round, Worker
from hits.models.people import is_erased
from hits.money import ZERO, display, from_cents
from hits.mturk.errors import HitMissing
from hits.states import AssignmentState
from payments.fees import bonus_fee, for_masters, reward_fee
from payments.ledger import booked_balance, booked_deposits, marketplace_account, round_code
from payments.models import (
    OWED,
    PAID,
    UNSURE,
    LedgerTransaction,
    Payout,
    PayoutState,
    Posting,
    Reservation,
    TransactionKind,
)
from payments.month_close import check_closed_months
from payments.payouts import BonusPayment, reference_in

SETTLE: Final = "Run `dynahit payments settle`."
JOBS: Final = "Run `dynahit jobs run --once`."
RESTORE: Final = (
    "The database was changed past dynahit: restore it from a backup. "
    "`dynahit payments month check` tells what is whole."
)
#: So many HITs are held against the marketplace at a time, which bounds what is in memory.
_HITS_AT_ONCE: Final = 50
#: Databases take tens of thousands of parameters in one statement, and 50 HITs can have more assignments.
_REFERENCES_AT_ONCE: Final = 1_000


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
    """One difference, with the command that mends it.

    ``effect``: how much more the marketplace holds because of it than the books say, less than zero for less.
    """

    kind: Kind
    subject: str
    what: str
    todo: str
    effect: Decimal = ZERO

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
class Booked:
    """What the ledger says was paid for one reference: without and with the fee."""

    amount: Decimal
    cost: Decimal


@dataclass(frozen=True)
class _Row:
    """A payout as it stands."""

    reference: str
    state: PayoutState
    amount: Decimal
    worker_id: str = field(repr=False)
    assignment_id: str
    sent_at: datetime | None


@dataclass(frozen=True)
class _Work:
    """An assignment as it stands, and what its HIT pays for it."""

    is_approved: bool
    reward: Decimal
    max_assignments: int
    #: The day whose prices count; None for work of a HIT that was never seen on the marketplace.
    day: date | None
    masters: bool = False

    @property
    def cost(self) -> Decimal:
        if self.day is None:
            return self.reward
        return self.reward + reward_fee(self.reward, self.max_assignments, on=self.day, masters=self.masters)


@dataclass
class _Comparison:
    """What has come of the portions so far. Only what differs is kept."""

    findings: list[Finding] = field(default_factory=list)
    #: References and assignments that a finding names already: one fault is told once.
    told: set[str] = field(default_factory=set)
    #: Payments that the outbox does not know and the ledger does.
    extras: set[str] = field(default_factory=set)
    #: Approved assignments of HITs that the marketplace does not know.
    gone: int = 0

    def add(self, found: Finding, *names: str) -> None:
        self.findings.append(found)
        self.told.update(names)


def reconcile(session: Session, records: Records) -> Reconciliation:
    """Compare bonuses, approvals, promises, reservations, balance of one marketplace with the books. Changes nothing.

    The HITs are read in portions, so that memory stays flat. Raises MTurkUnavailable when the marketplace can't be
    reached.
    """
    found = _Comparison()
    after = 0
    while hits := _hits(session, records.endpoint, after):
        after = hits[-1][0]
        _compare_portion(session, records, hits, found)
    _compare_books(session, records.endpoint, found)
    session.commit()
    balance_finding, checked, note = _balance(session, records, sum((one.effect for one in found.findings), ZERO))
    if balance_finding is not None:
        found.add(balance_finding)
    if found.gone:
        gone = (
            f"{found.gone} approved assignments are of HITs that the marketplace does not know any more; they are "
            "taken as they were confirmed."
        )
        note = gone if note is None else f"{note} {gone}"
    bonuses, bonus_total = _booked_sum(session, records.endpoint, TransactionKind.BONUS, "bonuses")
    rewards, reward_total = _booked_sum(session, records.endpoint, TransactionKind.REWARD, "rewards")
    session.commit()
    return Reconciliation(tuple(found.findings), bonuses, bonus_total, rewards, reward_total, checked, note)


def _hits(session: Session, endpoint: str, after: int) -> Sequence[tuple[int, str]]:
    rows = session.execute(
        select(Hit.id, Hit.mturk_hit_id)
        .join(Hit.batch)
        .where(HitBatch.endpoint == endpoint, Hit.mturk_hit_id.is_not(None), Hit.id > after)
        .where(exists().where(Assignment.hit_id == Hit.id))
        .order_by(Hit.id)
        .limit(_HITS_AT_ONCE)
    )
    return [(hit_id, mturk_hit_id) for hit_id, mturk_hit_id in rows if mturk_hit_id is not None]


def _compare_portion(session: Session, records: Records, hits: Sequence[tuple[int, str]], found: _Comparison) -> None:
    """Compare some HITs: read here, there, and here again, so that what happens meanwhile is no difference.

    What the first reading calls paid must be on the marketplace's list; what the list shows must be paid in the second.
    """
    ids = [hit_id for hit_id, _ in hits]
    rows_before, work_before = _payouts(session, ids), _work(session, ids)
    session.commit()
    payments: list[BonusPayment] = []
    statuses: dict[str, str] = {}
    gone = []
    for hit_id, mturk_hit_id in hits:
        try:
            payments += records.bonus_payments(hit_id=mturk_hit_id)
            statuses |= {seen.assignment_id: seen.status for seen in records.assignments(mturk_hit_id)}
        except HitMissing:
            gone.append(hit_id)
    rows, work = _payouts(session, ids), _work(session, ids)
    unseen = {name: one.is_approved for name, one in _work(session, gone).items()} if gone else {}
    found.gone += sum(unseen.values())
    extras = extra_references(payments)
    bonuses = booked(session, TransactionKind.BONUS, {*rows, *extras, *map(reference_of, payments)})
    rewards = booked(session, TransactionKind.REWARD, set(work))
    session.commit()
    _compare_payments(payments, extras, rows, bonuses, found)
    listed = {reference_of(payment) for payment in payments}
    for row in rows_before.values():
        taken_as_confirmed = row.state is PayoutState.CONFIRMED and row.assignment_id in unseen
        if row.state in PAID and not taken_as_confirmed:
            _compare_paid(rows[row.reference], row.reference in listed, bonuses.get(row.reference), found)
    _compare_approvals(work_before, work, statuses, rewards, unseen, found)


def _payouts(session: Session, hit_ids: Sequence[int]) -> dict[str, _Row]:
    # One table after the other: as one join, PostgreSQL might begin at all payouts for each portion.
    of_hits = select(Assignment.id, Assignment.mturk_assignment_id).where(Assignment.hit_id.in_(hit_ids))
    names = {row.id: row.mturk_assignment_id for row in session.execute(of_hits)}
    payouts = session.execute(
        select(Payout.reference, Payout.state, Payout.amount, Payout.worker_id, Payout.assignment_id, Payout.sent_at)
        .where(Payout.assignment_id.in_(names))
        .order_by(Payout.id)
    ).all()
    people = {row.worker_id for row in payouts}
    of_people = select(Worker.id, Worker.mturk_worker_id).where(Worker.id.in_(people))
    workers = {row.id: row.mturk_worker_id for row in session.execute(of_people)}
    return {
        row.reference: _Row(
            row.reference, row.state, row.amount, workers[row.worker_id], names[row.assignment_id], row.sent_at
        )
        for row in payouts
    }


def _work(session: Session, hit_ids: Sequence[int]) -> dict[str, _Work]:
    hits = {
        row.id: row
        for row in session.execute(
            select(Hit.id, HitBatch.reward, Hit.max_assignments, Hit.created_at, HitBatch.requirements)
            .join(HitBatch, HitBatch.id == Hit.batch_id)
            .where(Hit.id.in_(hit_ids))
        )
    }
    found = {}
    for hit_id, assignment_id, state, approved_at in session.execute(
        select(Assignment.hit_id, Assignment.mturk_assignment_id, Assignment.state, Assignment.approved_at)
        .where(Assignment.hit_id.in_(hit_ids))
        .order_by(Assignment.id)
    ):
        hit = hits[hit_id]
        at = hit.created_at or approved_at
        is_approved = state is AssignmentState.APPROVED
        masters = for_masters(hit.requirements)
        found[assignment_id] = _Work(is_approved, hit.reward, hit.max_assignments, at.date() if at else None, masters)
    return found


def reference_of(payment: BonusPayment) -> str:
    """Return the reference that a payment of ours carries."""
    return reference_in(payment.reason)


def extra_references(payments: Iterable[BonusPayment]) -> dict[str, BonusPayment]:
    """Return the payments of a list by names that they would be booked under if the outbox does not know them."""
    seen: Counter[str] = Counter()
    found = {}
    for payment in payments:
        words = f"{payment.assignment_id}|{payment.granted_at.astimezone(UTC):%Y%m%dT%H%M%S}|{payment.amount}"
        digest = hashlib.sha256(f"{words}|{payment.reason}".encode()).hexdigest()[:12]
        seen[digest] += 1
        found[f"extra-{digest}-{seen[digest]}"] = payment
    return found


def is_reversed() -> ColumnElement[bool]:
    """Return the condition that a transaction was reversed."""
    reversal = aliased(LedgerTransaction)
    return exists().where(reversal.key == literal("reversal:").concat(LedgerTransaction.key))


def booked(session: Session, kind: TransactionKind, references: Iterable[str]) -> dict[str, Booked]:
    """Return what the ledger says was paid for these references and not reversed."""
    account = "bonuses:" if kind is TransactionKind.BONUS else "rewards:"
    amount = func.sum(case((Posting.account.startswith(account), Posting.cents), else_=0))
    cost = func.sum(case((Posting.account.startswith("marketplace:"), -Posting.cents), else_=0))
    wanted = sorted(set(references))
    found: dict[str, Booked] = {}
    for start in range(0, len(wanted), _REFERENCES_AT_ONCE):
        part = wanted[start : start + _REFERENCES_AT_ONCE]
        # Apart, not joined: PostgreSQL might read all of the ledger for each portion.
        candidates = session.execute(
            select(LedgerTransaction.id, LedgerTransaction.reference, LedgerTransaction.key).where(
                LedgerTransaction.kind == kind, LedgerTransaction.reference.in_(part)
            )
        ).all()
        reversals = [f"reversal:{row.key}" for row in candidates]
        undone = set(session.scalars(select(LedgerTransaction.key).where(LedgerTransaction.key.in_(reversals))))
        named = {row.id: row.reference for row in candidates if f"reversal:{row.key}" not in undone}
        for transaction_id, cents, spent in session.execute(
            select(Posting.transaction_id, amount, cost)
            .where(Posting.transaction_id.in_(named))
            .group_by(Posting.transaction_id)
        ):
            name = named[transaction_id]
            there = found.get(name, Booked(ZERO, ZERO))
            found[name] = Booked(there.amount + from_cents(int(cents)), there.cost + from_cents(int(spent)))
    return found


def _compare_payments(
    payments: Sequence[BonusPayment],
    extras: Mapping[str, BonusPayment],
    rows: Mapping[str, _Row],
    bonuses: Mapping[str, Booked],
    found: _Comparison,
) -> None:
    """What the marketplace's list shows and the outbox does not know, or knows otherwise."""
    seen: set[str] = set()
    for name, payment in extras.items():
        row = rows.get(reference_of(payment))
        cost = payment.amount + bonus_fee(payment.amount, on=payment.granted_at.date())
        if row is None or row.reference in seen:
            if name in bonuses:
                found.extras.add(name)
                continue
            what = (
                f"was paid twice, {display(payment.amount)} too much."
                if row is not None
                else f"the marketplace paid {display(payment.amount)} ({payment.reason!r}) that was not sent from here."
            )
            subject = f"payout {row.reference}" if row is not None else f"bonus on assignment {payment.assignment_id}"
            found.add(Finding(Kind.EXTRA, subject, what, mending(payment.assignment_id), -cost))
            continue
        seen.add(row.reference)
        there = bonuses.get(row.reference)
        effect = (there.cost if there is not None else ZERO) - cost
        # Whom an erased person's payments went to is known by the assignment alone.
        right_worker = is_erased(row.worker_id) or payment.worker_id == row.worker_id
        if not right_worker or payment.assignment_id != row.assignment_id:
            what = (
                f"the marketplace paid it on {payment.assignment_id}, the outbox says on {row.assignment_id} and its "
                "own worker."
            )
            todo = f"{mending(row.reference)} It is owed to its own worker then."
            found.add(Finding(Kind.DIFFERENT, f"payout {row.reference}", what, todo, effect), row.reference)
        elif row.state not in PAID:
            what = f"is paid on the marketplace and {row.state.value.replace('_', ' ')} here."
            # Settling looks up what may have been paid; another process may be doing just that.
            todo = SETTLE if row.state in UNSURE else mending(row.reference)
            found.add(Finding(Kind.MISSING, f"payout {row.reference}", what, todo, effect), row.reference)
        elif payment.amount != row.amount or (there is not None and there.amount != payment.amount):
            ledger = "nothing" if there is None else display(there.amount)
            what = (
                f"is {display(row.amount)} in the outbox, {ledger} in the ledger and {display(payment.amount)} on the "
                "marketplace."
            )
            found.add(
                Finding(Kind.DIFFERENT, f"payout {row.reference}", what, mending(row.reference), effect), row.reference
            )


def mending(name: str) -> str:
    """Return what to do where ``dynahit payments mend`` knows how."""
    return f"Run `dynahit payments mend {name}`."


def _compare_paid(row: _Row, is_listed: bool, there: Booked | None, found: _Comparison) -> None:
    """What the outbox calls paid, and the marketplace or the ledger does not show."""
    if row.reference in found.told:
        return
    subject, todo = f"payout {row.reference}", mending(row.reference)
    if not is_listed:
        where = "is booked as sent" if there is not None else "is sent by the outbox"
        what = f"{where}, {display(row.amount)}, and the marketplace's list does not show it."
        effect = there.cost if there is not None else ZERO
        found.add(Finding(Kind.ORPHAN, subject, what, todo, effect), row.reference)
    elif there is None:
        cost = row.amount + (bonus_fee(row.amount, on=row.sent_at.date()) if row.sent_at else ZERO)
        found.add(Finding(Kind.MISSING, subject, "is sent and not in the ledger.", todo, -cost), row.reference)


def _compare_approvals(
    before: Mapping[str, _Work],
    after: Mapping[str, _Work],
    statuses: Mapping[str, str],
    rewards: Mapping[str, Booked],
    unseen: Mapping[str, bool],
    found: _Comparison,
) -> None:
    """Approvals against the marketplace's own status and the ledger."""
    for assignment_id, work in after.items():
        subject, there = f"assignment {assignment_id}", rewards.get(assignment_id)
        shown = statuses.get(assignment_id, "not shown at all")
        was_approved = assignment_id in before and before[assignment_id].is_approved
        todo = mending(assignment_id)
        booked_cost = there.cost if there is not None else ZERO
        if assignment_id not in unseen and shown == "Approved" and not work.is_approved:
            what = "is approved on the marketplace and not here."
            found.add(Finding(Kind.MISSING, subject, what, JOBS, booked_cost - work.cost), assignment_id)
        elif assignment_id not in unseen and was_approved and shown != "Approved":
            what = f"is approved here and {shown} on the marketplace."
            found.add(Finding(Kind.ORPHAN, subject, what, todo, booked_cost), assignment_id)
        elif work.is_approved and there is None:
            what = "is approved and its reward is not booked."
            found.add(Finding(Kind.MISSING, subject, what, todo, -work.cost), assignment_id)
        elif work.is_approved and there is not None and there.amount != work.reward:
            what = f"pays {display(work.reward)}, and {display(there.amount)} is booked."
            found.add(Finding(Kind.DIFFERENT, subject, what, todo, there.cost - work.cost), assignment_id)


def _compare_books(session: Session, endpoint: str, found: _Comparison) -> None:
    """What stands in the ledger and nowhere else, and what the ledger contradicts."""
    for name, key, cost in _orphans(session, endpoint, TransactionKind.BONUS):
        if name not in found.told and name not in found.extras:
            what = f"is in the ledger with {display(cost)}, fee included, and not paid here."
            found.add(Finding(Kind.ORPHAN, f"payout {name}", what, mending(key), cost), name)
    for name, key, cost in _orphans(session, endpoint, TransactionKind.REWARD):
        if name not in found.told:
            what = "has a booked reward and is not approved here."
            found.add(Finding(Kind.ORPHAN, f"assignment {name}", what, mending(key), cost), name)
    unequal = (
        select(LedgerTransaction.key, func.sum(Posting.cents))
        .join(Posting, Posting.transaction_id == LedgerTransaction.id)
        .group_by(LedgerTransaction.key)
        .having(func.sum(Posting.cents) != 0)
        .order_by(LedgerTransaction.key)
    )
    with joins_whole_tables(session):
        sums = session.execute(unequal).all()
    for key, cents in sums:
        what = f"its postings sum to {display(from_cents(int(cents)))} instead of $0.00."
        found.add(Finding(Kind.DIFFERENT, f"transaction {key}", what, RESTORE))
    for reference, owed, promised in promise_differences(session, endpoint):
        if reference not in found.told:
            what = f"{display(owed)} is owed by the outbox and {display(promised)} promised by the ledger."
            kind = Kind.MISSING if owed and not promised else Kind.DIFFERENT
            found.add(Finding(kind, f"payout {reference}", what, mending(reference)), reference)
    for code, held, reserved in reservation_differences(session):
        what = f"{display(held)} is reserved by its batches and {display(reserved)} by the ledger."
        found.add(Finding(Kind.DIFFERENT, f"round {code}", what, mending(f"reserved:{code}")))
    for check in check_closed_months(session):
        if check.differs:
            what = f"is closed, and {'; '.join(check.differs)}."
            found.add(Finding(Kind.DIFFERENT, f"month {check.month}", what, RESTORE))


def _orphans(session: Session, endpoint: str, kind: TransactionKind) -> Iterator[tuple[str, str, Decimal]]:
    """Yield reference, key and cost of what is booked as paid and is paid by no payout or approval."""
    if kind is TransactionKind.BONUS:
        known = exists().where(Payout.reference == LedgerTransaction.reference, Payout.state.in_(PAID))
    else:
        known = exists().where(
            Assignment.mturk_assignment_id == LedgerTransaction.reference,
            Assignment.state == AssignmentState.APPROVED,
        )
    query = (
        select(LedgerTransaction.reference, LedgerTransaction.key, Posting.cents)
        .join(Posting, Posting.transaction_id == LedgerTransaction.id)
        .where(LedgerTransaction.kind == kind, Posting.account == marketplace_account(endpoint))
        .where(~known, ~is_reversed())
        .order_by(LedgerTransaction.id)
    )
    with joins_whole_tables(session):
        rows = session.execute(query).all()
    for reference, key, cents in rows:
        yield reference, key, from_cents(-cents)


def promise_differences(
    session: Session, endpoint: str, reference: str | None = None
) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield the payouts of which the ledger promises another amount than is owed: reference, owed, promised."""
    promises = (
        select(LedgerTransaction.reference.label("reference"), func.sum(Posting.cents).label("cents"))
        .join(Posting, Posting.transaction_id == LedgerTransaction.id)
        .where(Posting.account.startswith("promised:"), LedgerTransaction.kind != TransactionKind.REVERSAL)
        .where(~is_reversed())
        .group_by(LedgerTransaction.reference)
        .subquery()
    )
    owed: ColumnElement[Any] = case((Payout.state.in_(OWED), cast(Payout.amount, BigInteger)), else_=0)
    promised: ColumnElement[Any] = func.coalesce(promises.c.cents, 0)
    query = (
        select(Payout.reference, owed, promised)
        .outerjoin(promises, promises.c.reference == Payout.reference)
        .where(Payout.endpoint == endpoint, owed != promised)
        .order_by(Payout.id)
    )
    if reference is not None:
        query = query.where(Payout.reference == reference)
    with joins_whole_tables(session):
        rows = session.execute(query).all()
    for name, owed_cents, promised_cents in rows:
        yield name, from_cents(int(owed_cents)), from_cents(int(promised_cents))


def reservation_differences(session: Session) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield the rounds whose reservations are not what the ledger says: code, held open, reserved by the ledger."""
    open_: ColumnElement[Any] = Reservation.held - Reservation.spent - Reservation.released - Reservation.moved_out
    held: dict[str, int] = {}
    for round_, cents in session.execute(
        select(Round, func.sum(cast(open_, BigInteger)))
        .join(Reservation, Reservation.round_id == Round.id)
        .group_by(Round.id)
    ):
        held[round_code(round_)] = int(cents)
    reserved = {
        account.removeprefix("reserved:").rstrip(":"): int(cents)
        for account, cents in session.execute(
            select(Posting.account, func.sum(Posting.cents))
            .where(Posting.account.startswith("reserved:"))
            .group_by(Posting.account)
        )
    }
    for code in sorted({*held, *reserved}):
        if held.get(code, 0) != reserved.get(code, 0):
            yield code, from_cents(held.get(code, 0)), from_cents(reserved.get(code, 0))


def _booked_sum(session: Session, endpoint: str, kind: TransactionKind, account: str) -> tuple[int, Decimal]:
    here = aliased(Posting)
    query = (
        select(func.count(Posting.transaction_id.distinct()), func.sum(Posting.cents))
        .join(LedgerTransaction, LedgerTransaction.id == Posting.transaction_id)
        .where(LedgerTransaction.kind == kind, Posting.account.startswith(f"{account}:"), ~is_reversed())
        .where(
            exists().where(here.transaction_id == Posting.transaction_id, here.account == marketplace_account(endpoint))
        )
    )
    with joins_whole_tables(session):
        row = session.execute(query).one()
    return row[0], from_cents(int(row[1] or 0))


def _balance(
    session: Session, records: Records, explained: Decimal
) -> tuple[Finding | None, Decimal | None, str | None]:
    """Deposits less everything paid must be what is available and on hold, but for what other findings explain."""
    funds = records.funds()
    deposits, booked_ = booked_deposits(session, records.endpoint), booked_balance(session, records.endpoint)
    session.commit()
    if funds.on_hold is None:
        return (
            None,
            None,
            "The marketplace does not tell what it holds for open HITs, so the balance can't be compared.",
        )
    there = funds.available + funds.on_hold
    more = there - booked_ - explained
    if not deposits:
        return (
            None,
            None,
            f"No deposit is booked. If you put {display(more)} into the account, the balance agrees to the cent: "
            f"book it with `dynahit payments deposit {more} --reference NAME`.",
        )
    if not more:
        return None, None if explained else there, None
    besides = ", besides what the other findings explain" if explained else ""
    if more > 0:
        what = f"holds {display(more)} more than the books say{besides}."
        todo = (
            f"If that was a deposit, book it: `dynahit payments deposit {more} --reference NAME`; if nobody knows, "
            "`dynahit payments mend account` books it as a difference."
        )
    else:
        what = f"holds {display(-more)} less than the books say{besides}."
        todo = (
            f"{JOBS} If it stays, something else spent it: look into the marketplace's records, then "
            "`dynahit payments mend account` books it as a difference."
        )
    return Finding(Kind.DIFFERENT, "account", what, todo, more), None, None


def unexplained(found: Reconciliation) -> Decimal:
    """Return what the marketplace holds more than the books say and no other finding explains, 0.00 if nothing."""
    return sum((one.effect for one in found.findings if one.subject == "account"), ZERO)
