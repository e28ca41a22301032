"""Budgets, and what is reserved of them. Nothing is committed beyond a budget, however many ask at once.

Every commitment takes the lock of the project's budget first, then looks at the sums, then writes; so of two that
together would be too much, one is refused. What a batch reserved is spent by payments.ledger as it is paid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, case, cast, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.models import Assignment, Hit, HitBatch, Round, Worker
from hits.money import ZERO, display, from_cents, usd
from hits.states import AssignmentState, HitKind
from payments import reservations
from payments.errors import InvalidBudget, OverBudget
from payments.ledger import record_budget, record_release, record_reservation, round_code
from payments.models import NOT_PROMISED, Budget, BudgetScope, Payout, Reservation

#: Scopes that guard the money as it is reserved, and scopes that cap what one person gets.
MONEY: Final = (BudgetScope.PROJECT, BudgetScope.ROUND, BudgetScope.DAY)
CAPS: Final = (BudgetScope.WORKER, BudgetScope.WORKER_DAY, BudgetScope.ASSIGNMENT)

_ROUND: Final = re.compile(r"[a-z][a-z0-9_]*/[1-9][0-9]{0,4}")
_PSEUDONYM: Final = re.compile(r"w-[0-9a-f]{16}")
_WORDS: Final = {
    BudgetScope.PROJECT: "budget of the project",
    BudgetScope.ROUND: "budget of round {key}",
    BudgetScope.DAY: "budget of the day {key}",
    BudgetScope.WORKER: "cap on all pay of worker {key}",
    BudgetScope.WORKER_DAY: "cap on bonuses of worker {key} in one day",
    BudgetScope.ASSIGNMENT: "cap on bonuses on one assignment",
}


@dataclass(frozen=True)
class BudgetLine:
    """One budget and what is committed of it; ``committed`` is None for a cap that holds for each worker or day."""

    scope: BudgetScope
    key: str
    most: Decimal | None
    committed: Decimal | None

    @property
    def left(self) -> Decimal | None:
        """What may still be committed, 0.00 when more is committed than allowed; None without a limit or a sum."""
        if self.most is None or self.committed is None:
            return None
        return max(self.most - self.committed, ZERO)


@dataclass(frozen=True)
class Limits:
    """Every budget and cap as it stands while the lock is held."""

    most: Mapping[tuple[BudgetScope, str], Decimal | None]

    def of(self, scope: BudgetScope, key: str) -> Decimal | None:
        """Return the limit of exactly this, else the one for each, None when there is none."""
        return self.most[scope, key] if (scope, key) in self.most else self.most.get((scope, ""))


def locked_limits(session: Session, now: datetime) -> Limits:
    """Wait until nobody else commits money, keep everybody waiting until this transaction ends, return the limits."""
    _lock(session, now)
    return _limits(session)


def shortfall(session: Session, amount: Decimal, code: str, now: datetime) -> str | None:
    """Return why there is no room for ``amount`` in a round at this moment, None if there is. Changes nothing."""
    try:
        _check_money(session, _limits(session), amount, code, now.astimezone(UTC).date())
    except OverBudget as error:
        return str(error)
    return None


def _limits(session: Session) -> Limits:
    rows = session.execute(select(Budget.scope, Budget.key, Budget.most)).all()
    return Limits({(row.scope, row.key): row.most for row in rows})


def _lock(session: Session, now: datetime) -> None:
    statement = select(Budget.id).where(Budget.scope == BudgetScope.PROJECT, Budget.key == "").with_for_update()
    if session.scalar(statement) is not None:
        return
    try:
        with session.begin_nested():
            session.add(Budget(scope=BudgetScope.PROJECT, key="", most=None, set_at=now))
    except IntegrityError:
        # Another process made the row meanwhile.
        pass
    session.scalar(statement)


def set_budget(session: Session, scope: BudgetScope, key: str, most: Decimal | None, *, now: datetime) -> Budget:
    """Set the most that may be committed, None for no limit, and book the change. Flushes, never commits.

    A budget below what is committed already takes nothing back: it refuses what comes next. Raises InvalidBudget.
    """
    key = checked_key(session, scope, key)
    most = None if most is None else usd(most)
    _lock(session, now)
    budget = session.scalar(
        select(Budget).where(Budget.scope == scope, Budget.key == key).execution_options(populate_existing=True)
    )
    if budget is None:
        budget = Budget(scope=scope, key=key, most=None, set_at=now, changes=0)
        session.add(budget)
    if budget.most == most and budget.changes:
        return budget
    before = budget.most or ZERO
    budget.most, budget.set_at, budget.changes = most, now, budget.changes + 1
    session.flush()
    record_budget(session, budget, (most or ZERO) - before, now)
    return budget


def checked_key(session: Session, scope: BudgetScope, key: str) -> str:
    """Return which budget of a scope is meant, without spaces around. Raises InvalidBudget."""
    key = key.strip()
    if scope in (BudgetScope.PROJECT, BudgetScope.ASSIGNMENT):
        if key:
            raise InvalidBudget(f"The {scope.value} budget has no further name, but {key!r} is given. Leave it out.")
        return key
    if not key:
        if scope is BudgetScope.ROUND:
            raise InvalidBudget("Name the round that the budget is for, such as sentiment/1.")
        return key
    if scope is BudgetScope.ROUND and not _ROUND.fullmatch(key):
        raise InvalidBudget(f"{key!r} is no round. Write task and number, such as sentiment/1.")
    if scope is BudgetScope.DAY and not _is_day(key):
        raise InvalidBudget(f"{key!r} is no day. Write it as 2026-11-30, or leave it out for every day.")
    if scope in (BudgetScope.WORKER, BudgetScope.WORKER_DAY):
        known = _PSEUDONYM.fullmatch(key) and session.scalar(select(Worker.id).where(Worker.pseudonym == key))
        if not known:
            raise InvalidBudget(f"{key!r} is no worker's pseudonym. `dynahit workers list` shows them.")
    return key


def limit_of(session: Session, scope: BudgetScope, key: str) -> Decimal | None:
    """Return the limit that is set for exactly this, None for none."""
    return session.scalar(select(Budget.most).where(Budget.scope == scope, Budget.key == key))


def is_summed(scope: BudgetScope, key: str) -> bool:
    """Tell whether one sum stands behind a budget; a cap holds for each worker or day by itself."""
    return scope is BudgetScope.PROJECT or (scope in MONEY and key != "")


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def reserve(
    session: Session,
    batch: HitBatch,
    amount: Decimal,
    *,
    now: datetime,
    bonuses: Decimal = ZERO,
    validation: Decimal = ZERO,
    validation_each: Decimal = ZERO,
) -> Reservation:
    """Set ``amount`` aside for a batch, once; ``bonuses`` and ``validation`` are the parts of it kept for those.

    A batch that has a reservation gets no second one. Raises OverBudget. Flushes, never commits.
    """
    limits = locked_limits(session, now)
    there = reservations.locked(session, batch.id)
    if there is not None:
        return there
    day = now.astimezone(UTC).date()
    _check_money(session, limits, amount, round_code(batch.round), day)
    reservation = Reservation(
        batch_id=batch.id,
        round_id=batch.round_id,
        day=day,
        held=amount,
        moved_in=ZERO,
        moved_out=ZERO,
        promised=ZERO,
        spent=ZERO,
        released=ZERO,
        bonuses=bonuses,
        validation=validation,
        validation_each=validation_each,
        changes=1,
    )
    session.add(reservation)
    session.flush()
    record_reservation(session, reservation, amount, now)
    return reservation


def reserve_for_validation(
    session: Session, batch: HitBatch, amount: Decimal, *, now: datetime, bonuses: Decimal = ZERO
) -> Reservation:
    """Set ``amount`` aside for a validation batch, from what its round's launches kept for that as far as it goes.

    The rest is a new commitment. ``bonuses`` is the part of it kept for those. Raises OverBudget. Flushes, never
    commits.
    """
    _lock(session, now)
    there = reservations.locked(session, batch.id)
    if there is not None:
        return there
    sources = session.scalars(
        select(Reservation)
        .where(Reservation.round_id == batch.round_id, Reservation.validation > ZERO)
        .order_by(Reservation.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    wanted, taken = amount, []
    for source in sources:
        part = min(source.validation, wanted)
        if part:
            taken.append((source, part))
            wanted -= part
    reservation = reserve(session, batch, wanted, now=now, bonuses=ZERO)
    for source, part in taken:
        _move(source, reservation, part)
        source.validation -= part
    reservation.bonuses += bonuses
    session.flush()
    return reservation


def move_kept(session: Session, payout: Payout, batch: HitBatch, amount: Decimal, *, now: datetime) -> Reservation:
    """Set ``amount`` aside for a batch that pays a payout in another way, out of what is kept for the payout.

    What is missing is a new commitment, what is too much stays for bonuses. Raises OverBudget. Flushes, never commits.
    """
    _lock(session, now)
    source = reservations.locked(session, payout.batch_id)
    part = ZERO if source is None else min(payout.kept, amount)
    reservation = reserve(session, batch, amount - part, now=now)
    if source is not None:
        reservations.give_back(source, payout)
        source.bonuses -= part
        _move(source, reservation, part)
    session.flush()
    return reservation


def _move(source: Reservation, target: Reservation, amount: Decimal) -> None:
    """Money stays reserved for its round and counts against the day on which it was first set aside."""
    source.moved_out += amount
    target.held += amount
    target.moved_in += amount


def keep_for(
    session: Session, limits: Limits, payout: Payout, cost: Decimal, *, in_worst_case: bool, now: datetime
) -> None:
    """Keep ``cost``, the bonus with its fee, for a payout; what its batch has not reserved is a new commitment.

    ``limits`` are those of this transaction's lock. ``in_worst_case``: the batch's reservation counted on it. Raises
    OverBudget, also for a cap. Flushes, never commits.
    """
    _check_caps(session, limits, payout, now)
    reservation = reservations.locked(session, payout.batch_id)
    batch = session.get_one(HitBatch, payout.batch_id)
    if reservation is None:
        reservation = reserve(session, batch, cost, now=now, bonuses=cost)
        part = cost
    else:
        part = min(reservation.bonuses, cost) if in_worst_case else ZERO
        missing = cost - part
        if missing:
            _check_money(session, limits, missing, round_code(batch.round), reservation.day)
            reservation.held += missing
            reservation.changes += 1
            reservation.closed_at = None
            session.flush()
            record_reservation(session, reservation, missing, now)
    reservations.keep(reservation, payout, cost, of_bonuses=part)
    session.flush()


def release(
    session: Session,
    reservation: Reservation,
    *,
    rewards: Decimal,
    bonuses: Decimal,
    validation: Decimal,
    now: datetime,
) -> None:
    """Give parts of what is free back to the budgets, and book it. Flushes, never commits."""
    amount = rewards + bonuses + validation
    if not amount:
        return
    reservation.released += amount
    reservation.bonuses -= bonuses
    reservation.validation -= validation
    reservation.changes += 1
    session.flush()
    record_release(session, reservation, amount, now)


def _check_money(session: Session, limits: Limits, amount: Decimal, code: str, day: date) -> None:
    if not amount:
        return
    for scope, key in ((BudgetScope.PROJECT, ""), (BudgetScope.ROUND, code), (BudgetScope.DAY, day.isoformat())):
        most = limits.of(scope, key)
        if most is None:
            continue
        there = committed(session, scope, key)
        if there + amount > most:
            raise OverBudget(_WORDS[scope].format(key=key), most, there, amount, _command(scope, key))


def _check_caps(session: Session, limits: Limits, payout: Payout, now: datetime) -> None:
    worker = session.get_one(Worker, payout.worker_id)
    for scope in CAPS:
        if scope is BudgetScope.ASSIGNMENT and payout.assignment_id is None:
            continue
        key = "" if scope is BudgetScope.ASSIGNMENT else worker.pseudonym
        most = limits.of(scope, key)
        if most is None:
            continue
        there = _paid_to(session, scope, payout, now)
        if there + payout.amount > most:
            raise OverBudget(_WORDS[scope].format(key=key), most, there, payout.amount, _command(scope, key))


def _command(scope: BudgetScope, key: str) -> str:
    name = scope.value.replace("_", "-")
    return f"dynahit payments budget set {name} {key} DOLLARS" if key else f"dynahit payments budget set {name} DOLLARS"


def committed(session: Session, scope: BudgetScope, key: str) -> Decimal:
    """Return what is spent or set aside of a project's, round's or day's budget, with fees."""
    amount: ColumnElement[Any] = Reservation.held - Reservation.moved_out - Reservation.released
    statement = select(func.sum(_cents(amount)))
    if scope is BudgetScope.ROUND:
        task_code, _, number = key.partition("/")
        statement = statement.join(Round, Round.id == Reservation.round_id).where(
            Round.task_code == task_code, Round.number == int(number or 0)
        )
    if scope is BudgetScope.DAY:
        fresh: ColumnElement[Any] = Reservation.held - Reservation.moved_in - Reservation.released
        statement = select(func.sum(case((_cents(fresh) > 0, _cents(fresh)), else_=0))).where(
            Reservation.day == date.fromisoformat(key)
        )
    return from_cents(int(session.scalar(statement) or 0))


def _cents(amount: ColumnElement[Any]) -> ColumnElement[Any]:
    """Sums and comparisons of an amount are done in its own whole cents."""
    return cast(amount, BigInteger)


def _paid_to(session: Session, scope: BudgetScope, payout: Payout, now: datetime) -> Decimal:
    """Return what one person has got or is promised, without fees, this payout left out."""
    statement = select(func.sum(Payout.amount)).where(
        Payout.worker_id == payout.worker_id, Payout.state.not_in(NOT_PROMISED), Payout.id != (payout.id or 0)
    )
    if scope is BudgetScope.ASSIGNMENT:
        return session.scalar(statement.where(Payout.assignment_id == payout.assignment_id)) or ZERO
    if scope is BudgetScope.WORKER_DAY:
        start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        within = (Payout.promised_at >= start, Payout.promised_at < start + timedelta(days=1))
        return session.scalar(statement.where(*within)) or ZERO
    rewards = session.scalar(
        select(func.sum(HitBatch.reward))
        .select_from(Assignment)
        .join(Hit, Hit.id == Assignment.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .where(Assignment.worker_id == payout.worker_id)
        .where(Assignment.state.in_((AssignmentState.SUBMITTED, AssignmentState.APPROVED)))
        # The reward of such a HIT pays a payout, which counts already.
        .where(HitBatch.kind != HitKind.COMPENSATION)
    )
    return (session.scalar(statement) or ZERO) + (rewards or ZERO)


def lines(session: Session, today: date) -> list[BudgetLine]:
    """Return every budget and cap with what is committed; project, known rounds and today also without a limit."""
    limits = {(row.scope, row.key): row.most for row in session.scalars(select(Budget))}
    wanted: dict[tuple[BudgetScope, str], None] = {(BudgetScope.PROJECT, ""): None}
    rounds = session.scalars(
        select(Round).where(Round.id.in_(select(Reservation.round_id))).order_by(Round.task_code, Round.number)
    )
    wanted |= {(BudgetScope.ROUND, round_code(one)): None for one in rounds}
    wanted[BudgetScope.DAY, today.isoformat()] = None
    wanted |= dict.fromkeys(sorted(limits, key=lambda one: (list(BudgetScope).index(one[0]), one[1])))
    found = []
    for scope, key in wanted:
        most = limits.get((scope, key))
        if (scope, key) not in limits and scope is not BudgetScope.PROJECT:
            most = limits.get((scope, ""))
        found.append(BudgetLine(scope, key, most, committed(session, scope, key) if is_summed(scope, key) else None))
    return found


def words(line: BudgetLine) -> str:
    """Return a budget in one sentence."""
    name = _WORDS[line.scope].format(key=line.key or "(each)")
    limit = "no limit" if line.most is None else display(line.most)
    return f"{name}: {limit}"
