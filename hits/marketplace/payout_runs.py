"""Payout runs: what workers have earned goes into one run each, and a run is paid or cancelled, once."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from cryptography.fernet import Fernet, InvalidToken
from sqlalchemy import (
    BigInteger,
    Select,
    String,
    Subquery,
    case,
    cast,
    exists,
    func,
    insert,
    literal,
    null,
    select,
    union_all,
    update,
)

from hits.marketplace import audit, console_pages, mails, passwords, workers
from hits.marketplace.console_views import (
    Actor,
    OpenEarnings,
    Page,
    PayoutLine,
    PayoutRun,
    WorkerPayout,
    WorkerPayouts,
)
from hits.marketplace.errors import NothingThere, OperatorError, PayoutDetailsUnfit
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.money import from_cents
from hits.marketplace.tables import AssignmentRow, BonusRow, HitRow, PayoutItemRow, PayoutRunRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.words import words

PAGE_SIZE: Final = 50
MOST_DETAILS: Final = 1000
MOST_REFERENCE: Final = 200
COLUMNS: Final = (
    "run_id",
    "worker_id",
    "user_name",
    "pay_to",
    "rewards",
    "rewards_cents",
    "bonuses",
    "bonuses_cents",
    "amount_cents",
    "amount_usd",
)
_IN_A_RUN: Final = PayoutItemRow.released_at.is_(None)
_CLASH: Final = words(
    "Another payout run took some of these earnings at the same moment, so this one was not drafted. "
    "Look at the list of runs, then draft again for what is left."
)


def draft(
    transaction: Transaction,
    by: Actor,
    until: datetime,
    *,
    only_with_details: bool = False,
    token: str | None = None,
) -> PayoutRun:
    """Put every earning from before `until` that is in no run yet into a new one.

    With `only_with_details`, workers who have not said how to pay them are left for later. Raises OperatorError for a
    time to come, and if nothing is owed; IntegrityError if another run took an earning at the same moment (see
    `clash`).
    """
    done = audit.was_done(transaction, token, "payout run drafted")
    if done is not None:
        return one(transaction, done.subject_id)
    moment = f"{until:%Y-%m-%d %H:%M}"
    if until > transaction.now:
        raise OperatorError(words("A payout run ends now at the latest, got %(moment)s UTC.", moment=moment))
    run = PayoutRunRow(
        run_id=new_entity_id(),
        until=until,
        drafted_at=transaction.now,
        drafted_by=by.name[:200],
        state="Drafted",
    )
    transaction.session.add(run)
    transaction.session.flush()
    payable = WorkerRow.payout_details.is_not(None) if only_with_details else literal(True)
    owed = _owed()
    source = (
        select(literal(run.run_id), *owed.c)
        .join(WorkerRow, WorkerRow.worker_id == owed.c.worker_id)
        .where(owed.c.earned_at < until, payable)
    )
    columns = ["run_id", *owed.c.keys()]
    transaction.session.execute(insert(PayoutItemRow).from_select(columns, source))
    made = one(transaction, run.run_id)
    if not made.earnings:
        raise OperatorError(
            words(
                "Nothing that was earned before %(moment)s UTC is left to pay out. No run was drafted.",
                moment=moment,
            )
        )
    audit.record(
        transaction,
        by,
        "payout run drafted",
        "payout run",
        run.run_id,
        token=token,
        until=until.isoformat(),
        workers=made.workers,
        earnings=made.earnings,
        total=str(made.total),
    )
    return made


def clash() -> OperatorError:
    """Return what the operator is told when two runs wanted one earning."""
    return OperatorError(_CLASH)


def mark_paid(
    transaction: Transaction, by: Actor, run_id: str, reference: str, *, token: str | None = None
) -> PayoutRun:
    """Write down that a drafted run was paid, with the reference of the payment.

    Raises OperatorError for an unknown run, one that is paid or cancelled, and a reference that is missing or long.
    """
    if audit.was_done(transaction, token, "payout run paid", run_id):
        return one(transaction, run_id)
    reference = reference.replace("\x00", "").strip()
    if not 0 < len(reference) <= MOST_REFERENCE:
        raise OperatorError(
            words("Name the payment's reference in 1 to %(most)d characters, such as the bank's.", most=MOST_REFERENCE)
        )
    run = _end(transaction, by, run_id, "Paid")
    run.reference = reference
    audit.record(transaction, by, "payout run paid", "payout run", run_id, token=token, reference=reference)
    return one(transaction, run_id)


def cancel(transaction: Transaction, by: Actor, run_id: str, *, token: str | None = None) -> PayoutRun:
    """Give the earnings of a drafted run free again.

    Raises OperatorError for an unknown run, and one that is paid or cancelled.
    """
    if audit.was_done(transaction, token, "payout run cancelled", run_id):
        return one(transaction, run_id)
    _end(transaction, by, run_id, "Cancelled")
    transaction.session.execute(
        update(PayoutItemRow).where(PayoutItemRow.run_id == run_id).values(released_at=transaction.now)
    )
    audit.record(transaction, by, "payout run cancelled", "payout run", run_id, token=token)
    return one(transaction, run_id)


def open_earnings(transaction: Transaction, until: datetime) -> OpenEarnings:
    """Return what was earned before `until` and is in no run yet."""
    owed = _owed()
    without = case((WorkerRow.payout_details.is_(None), owed.c.worker_id))
    row = transaction.session.execute(
        select(
            func.count(owed.c.worker_id.distinct()),
            func.count(),
            func.coalesce(func.sum(owed.c.amount_cents), 0),
            func.count(without.distinct()),
        )
        .join(WorkerRow, WorkerRow.worker_id == owed.c.worker_id)
        .where(owed.c.earned_at < until)
    ).one()
    return OpenEarnings(row[0], row[1], from_cents(int(row[2])), row[3])


def page_of(transaction: Transaction, *, page: int = 1) -> Page[PayoutRun]:
    """Return the runs, newest first."""
    query = _with_sums().order_by(PayoutRunRow.seq.desc())
    return console_pages.page_of(transaction, query, _view, page=page, page_size=PAGE_SIZE)


def one(transaction: Transaction, run_id: str) -> PayoutRun:
    """Return one run.

    Raises OperatorError if there is none.
    """
    row = transaction.session.execute(_with_sums().where(PayoutRunRow.run_id == run_id)).one_or_none()
    if row is None:
        raise NothingThere(words("There is no payout run “%(id)s”.", id=run_id))
    return _view(*row)


def lines(transaction: Transaction, run_id: str, *, page: int = 1) -> Page[PayoutLine]:
    """Return what each worker gets from a run, by user name.

    Raises OperatorError if there is no such run.
    """
    one(transaction, run_id)
    cipher = _cipher(transaction)
    return console_pages.page_of(
        transaction, _lines(run_id), lambda *row: _line(cipher, *row), page=page, page_size=PAGE_SIZE
    )


def all_lines(transaction: Transaction, run_id: str) -> list[PayoutLine]:
    """Return what every worker gets from a run, by user name.

    Raises OperatorError if there is no such run.
    """
    one(transaction, run_id)
    cipher = _cipher(transaction)
    return [_line(cipher, *row) for row in transaction.session.execute(_lines(run_id))]


def csv_text(run_id: str, found: Iterable[PayoutLine]) -> Iterator[str]:
    """Yield the lines of the file that is paid from; what a spreadsheet would take for a formula is made text."""
    yield _csv_row(COLUMNS)
    for line in found:
        yield _csv_row(
            (
                run_id,
                line.worker_id,
                cell(line.user_name),
                cell(line.payout_details or ""),
                line.rewards,
                line.rewards_cents,
                line.bonuses,
                line.bonuses_cents,
                line.amount_cents,
                f"{from_cents(line.amount_cents):.2f}",
            )
        )


def of_worker(transaction: Transaction, worker_id: str) -> WorkerPayouts:
    """Return what became of a worker's earnings.

    Raises WorkerUnknown.
    """
    worker = workers.find(transaction, worker_id)
    rewards = (
        select(func.coalesce(func.sum(HitRow.reward_cents), 0))
        .join(AssignmentRow, AssignmentRow.hit_id == HitRow.hit_id)
        .where(AssignmentRow.worker_id == worker.worker_id, AssignmentRow.state == "Approved")
    )
    bonuses = select(func.coalesce(func.sum(BonusRow.amount_cents), 0)).where(BonusRow.worker_id == worker.worker_id)
    earned = int(transaction.session.scalar(rewards) or 0) + int(transaction.session.scalar(bonuses) or 0)
    query = (
        select(PayoutRunRow, func.sum(PayoutItemRow.amount_cents))
        .join(PayoutItemRow, PayoutItemRow.run_id == PayoutRunRow.run_id)
        .where(PayoutItemRow.worker_id == worker.worker_id, _IN_A_RUN)
        .group_by(*PayoutRunRow.__table__.c)
        .order_by(PayoutRunRow.seq.desc())
    )
    found = [(run, int(cents)) for run, cents in transaction.session.execute(query)]
    sums = {state: sum(cents for run, cents in found if run.state == state) for state in ("Drafted", "Paid")}
    return WorkerPayouts(
        earned=from_cents(earned),
        open=from_cents(earned - sums["Drafted"] - sums["Paid"]),
        being_paid=from_cents(sums["Drafted"]),
        paid=from_cents(sums["Paid"]),
        payouts=tuple(
            WorkerPayout(run.run_id, run.state, run.until, run.drafted_at, run.ended_at, from_cents(cents))
            for run, cents in found
        ),
    )


def set_details(transaction: Transaction, worker_id: str, password: str, text: str) -> None:
    """Keep, encrypted, how a worker wants to be paid, and tell the worker's confirmed address; nothing takes it back.

    Raises WorkerUnknown, PasswordWrong, PayoutDetailsUnfit.
    """
    row = workers.lock(transaction, worker_id)
    passwords.check_present(password, row.password_hash, n=transaction.settings.scrypt_n)
    text = text.replace("\x00", "").strip()
    if len(text) > MOST_DETAILS:
        raise PayoutDetailsUnfit(MOST_DETAILS)
    row.payout_details = _cipher(transaction).encrypt(text.encode()) if text else None
    if row.email is not None and row.email_confirmed_at is not None:
        mails.queue(
            transaction,
            mails.PAYOUT_CHANGED,
            row.email,
            about=row.worker_id,
            language=row.language,
            user_name=row.user_name,
        )
    audit.record(transaction, Actor.worker(worker_id), "payout details changed", "worker", worker_id, given=bool(text))


def details(transaction: Transaction, worker_id: str) -> str:
    """Return how a worker wants to be paid, or nothing.

    Raises WorkerUnknown, OperatorError if it was stored under another secret_key.
    """
    return _revealed(_cipher(transaction), workers.find(transaction, worker_id).payout_details) or ""


def _end(transaction: Transaction, by: Actor, run_id: str, state: str) -> PayoutRunRow:
    query = select(PayoutRunRow).where(PayoutRunRow.run_id == run_id).with_for_update()
    run = transaction.session.scalar(query.execution_options(populate_existing=True))
    if run is None:
        raise NothingThere(words("There is no payout run “%(id)s”.", id=run_id))
    if run.state != "Drafted":
        said = {"name": run.ended_by, "moment": f"{run.ended_at:%Y-%m-%d %H:%M}" if run.ended_at else ""}
        raise OperatorError(
            words("This payout run was paid by %(name)s on %(moment)s UTC. Nothing was changed.", **said)
            if run.state == "Paid"
            else words("This payout run was cancelled by %(name)s on %(moment)s UTC. Nothing was changed.", **said)
        )
    run.state, run.ended_at, run.ended_by = state, transaction.now, by.name[:200]
    return run


def _owed() -> Subquery:
    """Return what is earned and in no run: one row for each reward and each bonus."""
    reward_is_taken = exists().where(PayoutItemRow.assignment_id == AssignmentRow.assignment_id, _IN_A_RUN)
    bonus_is_taken = exists().where(PayoutItemRow.bonus_seq == BonusRow.seq, _IN_A_RUN)
    rewards = (
        select(
            AssignmentRow.worker_id.label("worker_id"),
            AssignmentRow.assignment_id.label("assignment_id"),
            cast(null(), BigInteger).label("bonus_seq"),
            HitRow.reward_cents.label("amount_cents"),
            AssignmentRow.approved_at.label("earned_at"),
        )
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .where(AssignmentRow.state == "Approved", HitRow.reward_cents > 0, ~reward_is_taken)
    )
    bonuses = select(
        BonusRow.worker_id, cast(null(), String), BonusRow.seq, BonusRow.amount_cents, BonusRow.granted_at
    ).where(~bonus_is_taken)
    return union_all(rewards, bonuses).subquery("owed")


def _with_sums() -> Select[*tuple[Any, ...]]:
    sums = (
        select(
            PayoutItemRow.run_id,
            func.count(PayoutItemRow.worker_id.distinct()).label("workers"),
            func.count().label("earnings"),
            func.sum(PayoutItemRow.amount_cents).label("cents"),
        )
        .group_by(PayoutItemRow.run_id)
        .subquery()
    )
    return select(PayoutRunRow, sums.c.workers, sums.c.earnings, sums.c.cents).outerjoin(
        sums, sums.c.run_id == PayoutRunRow.run_id
    )


def _view(run: PayoutRunRow, found: int | None, earnings: int | None, cents: int | None) -> PayoutRun:
    return PayoutRun(
        run_id=run.run_id,
        until=run.until,
        drafted_at=run.drafted_at,
        drafted_by=run.drafted_by,
        state=run.state,
        ended_at=run.ended_at,
        ended_by=run.ended_by,
        reference=run.reference,
        workers=found or 0,
        earnings=earnings or 0,
        total=from_cents(int(cents or 0)),
    )


def _lines(run_id: str) -> Select[*tuple[Any, ...]]:
    is_reward = PayoutItemRow.assignment_id.is_not(None)
    return (
        select(
            WorkerRow.worker_id,
            WorkerRow.user_name,
            WorkerRow.payout_details,
            func.count(PayoutItemRow.assignment_id),
            func.sum(case((is_reward, PayoutItemRow.amount_cents), else_=0)),
            func.count(PayoutItemRow.bonus_seq),
            func.sum(case((is_reward, 0), else_=PayoutItemRow.amount_cents)),
        )
        .join(PayoutItemRow, PayoutItemRow.worker_id == WorkerRow.worker_id)
        .where(PayoutItemRow.run_id == run_id)
        .group_by(WorkerRow.worker_id, WorkerRow.user_name, WorkerRow.payout_details)
        .order_by(WorkerRow.user_name, WorkerRow.worker_id)
    )


def _line(
    cipher: Fernet,
    worker_id: str,
    user_name: str,
    sealed: bytes | None,
    rewards: int,
    rewards_cents: int,
    bonuses: int,
    bonuses_cents: int,
) -> PayoutLine:
    return PayoutLine(
        worker_id, user_name, _revealed(cipher, sealed), rewards, int(rewards_cents), bonuses, int(bonuses_cents)
    )


def _revealed(cipher: Fernet, sealed: bytes | None) -> str | None:
    if sealed is None:
        return None
    try:
        return cipher.decrypt(sealed).decode()
    except InvalidToken as error:
        raise OperatorError(
            words(
                "How workers are paid was stored under another secret_key; "
                "start the marketplace with the old secret_key."
            )
        ) from error


def _cipher(transaction: Transaction) -> Fernet:
    return Fernet(transaction.settings.secret_key)


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet runs as a formula."""
    # A leading space or line break does not keep a spreadsheet from reading what follows as a formula.
    risky = text.lstrip()[:1] in {"=", "+", "-", "@"} or text[:1] in {"\t", "\r", "\n"}
    return "'" + text if text and risky else text


def _csv_row(cells: Iterable[object]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()
