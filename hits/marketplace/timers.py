"""Carries out what time alone brings about: expiry, abandonment, auto-approval, disposal, each in its due order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, ScalarSelect, and_, bindparam, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from hits.marketplace import accounts, groups, lifecycle, reviews
from hits.marketplace.database import Store
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import AssignmentRow, HitRow, RequesterRow, UtcDateTime
from hits.marketplace.transactions import Transaction

_BATCH: Final = 500


@dataclass(frozen=True)
class _Due:
    at: datetime
    order: int
    happen: Callable[[Transaction, RequesterRow], None]


def settle(store: Store, now: datetime, settings: MarketplaceSettings) -> int:
    """Carry out every timer that is due and return how many there were.

    Requesters are independent of each other and settled one by one, each in transactions that hold the account's
    lock, so that several processes can settle at the same time. A call with nothing due writes nothing.
    """
    done = 0
    seen: list[str] = []
    while True:
        with store.session(writes=False) as session:
            requester_id = _requester_with_a_due_timer(session, now, seen) if is_due(session, now) else None
        if requester_id is None:
            return done
        seen.append(requester_id)
        count = _BATCH
        while count:
            with store.session(writes=True) as session:
                transaction = Transaction(session, now, settings)
                count = _settle_batch(transaction, requester_id)
                groups.finish(session, [transaction])
            done += count


def is_due(session: Session, now: datetime) -> bool:
    """Return whether a timer is due; one statement, four looks at the first entry of an index."""
    return bool(session.connection().execute(_IS_DUE, moments(now)).scalar_one())


def moments(now: datetime) -> dict[str, datetime]:
    """Return the parameters of `SOMETHING_IS_DUE`."""
    return {"now": now, "disposed_from": now - lifecycle.HIT_LIFE}


def _settle_batch(transaction: Transaction, requester_id: str) -> int:
    account = accounts.lock(transaction, requester_id)
    due = list(_due_timers(transaction, requester_id))
    for timer in due:
        then = replace(transaction, now=timer.at)
        timer.happen(then, account)
        reviews.finish(then)
    if due:
        return len(due)
    return _dispose_old_hits(transaction, requester_id)


def _due_timers(transaction: Transaction, requester_id: str) -> Iterator[_Due]:
    """Yield the earliest due timers in due order; equal times in the order expiry, abandonment, approval."""
    session, now = transaction.session, transaction.now
    found: list[_Due] = []
    horizons = [now]
    hits = session.scalars(
        select(HitRow)
        .where(HitRow.requester_id == requester_id, _expiry_is_due(now))
        .order_by(HitRow.expires_at, HitRow.seq)
        .limit(_BATCH)
    ).all()
    found += [_Due(hit.expires_at, 0, _expiry_of(hit.hit_id)) for hit in hits]
    held = session.scalars(
        select(AssignmentRow)
        .where(AssignmentRow.requester_id == requester_id, _abandonment_is_due(now))
        .order_by(AssignmentRow.deadline, AssignmentRow.seq)
        .limit(_BATCH)
    ).all()
    found += [_Due(row.deadline, 1, _abandonment_of(row.hit_id, row.assignment_id)) for row in held]
    submitted = session.scalars(
        select(AssignmentRow)
        .where(AssignmentRow.requester_id == requester_id, _approval_is_due(now))
        .order_by(AssignmentRow.auto_approval_at, AssignmentRow.seq)
        .limit(_BATCH)
    ).all()
    found += [_Due(row.auto_approval_at or now, 2, _approval_of(row.hit_id, row.assignment_id)) for row in submitted]
    # A full batch may have left later timers behind, so nothing after its end is carried out yet.
    for rows, last in (
        (hits, hits[-1].expires_at if hits else now),
        (held, held[-1].deadline if held else now),
        (submitted, (submitted[-1].auto_approval_at or now) if submitted else now),
    ):
        if len(rows) == _BATCH:
            horizons.append(last)
    horizon = min(horizons)
    yield from sorted((timer for timer in found if timer.at <= horizon), key=lambda timer: (timer.at, timer.order))


def _expiry_of(hit_id: str) -> Callable[[Transaction, RequesterRow], None]:
    def happen(transaction: Transaction, account: RequesterRow) -> None:
        lifecycle.expire(transaction, account, lifecycle.lock_hit(transaction, hit_id))

    return happen


def _abandonment_of(hit_id: str, assignment_id: str) -> Callable[[Transaction, RequesterRow], None]:
    def happen(transaction: Transaction, account: RequesterRow) -> None:
        hit = lifecycle.lock_hit(transaction, hit_id)
        assignment = lifecycle.lock_assignment(transaction, assignment_id)
        lifecycle.free_place(transaction, account, hit, assignment, state="Abandoned")

    return happen


def _approval_of(hit_id: str, assignment_id: str) -> Callable[[Transaction, RequesterRow], None]:
    def happen(transaction: Transaction, account: RequesterRow) -> None:
        hit = lifecycle.lock_hit(transaction, hit_id)
        assignment = lifecycle.lock_assignment(transaction, assignment_id)
        lifecycle.approve(transaction, account, hit, assignment, feedback=None)

    return happen


def _dispose_old_hits(transaction: Transaction, requester_id: str) -> int:
    hits = transaction.session.scalars(
        select(HitRow)
        .where(HitRow.requester_id == requester_id, _disposal_is_due(transaction.now - lifecycle.HIT_LIFE))
        .limit(_BATCH)
    ).all()
    for hit in hits:
        lifecycle.dispose(transaction, lifecycle.lock_hit(transaction, hit.hit_id))
    return len(hits)


def _requester_with_a_due_timer(session: Session, now: datetime, seen: list[str]) -> str | None:
    for owner, condition, moment in (
        (HitRow.requester_id, _expiry_is_due(now), HitRow.expires_at),
        (AssignmentRow.requester_id, _abandonment_is_due(now), AssignmentRow.deadline),
        (AssignmentRow.requester_id, _approval_is_due(now), AssignmentRow.auto_approval_at),
        (HitRow.requester_id, _disposal_is_due(now - lifecycle.HIT_LIFE), HitRow.created_at),
    ):
        query = select(owner).where(condition, owner.not_in(seen)).order_by(moment).limit(1)
        if (found := session.scalar(query)) is not None:
            return found
    return None


def _expiry_is_due(now: datetime) -> ColumnElement[bool]:
    return and_(HitRow.is_expired.is_(False), HitRow.expires_at <= now)


def _abandonment_is_due(now: datetime) -> ColumnElement[bool]:
    return and_(AssignmentRow.state == "Accepted", AssignmentRow.deadline <= now)


def _approval_is_due(now: datetime) -> ColumnElement[bool]:
    return and_(AssignmentRow.state == "Submitted", AssignmentRow.auto_approval_at <= now)


def _disposal_is_due(created_until: datetime) -> ColumnElement[bool]:
    return and_(lifecycle.is_disposable(), HitRow.created_at <= created_until)


def _first(moment: InstrumentedAttribute[Any], waits: ColumnElement[bool]) -> ScalarSelect[Any]:
    return select(moment).where(waits, moment.is_not(None)).order_by(moment).limit(1).scalar_subquery()


# The first moment of each kind, and not whether one is over: of that, PostgreSQL expects so many among its prepared
# statements' unknown values that it would read the table.
_NOW: Final = bindparam("now", type_=UtcDateTime())
SOMETHING_IS_DUE: Final = or_(
    _first(HitRow.expires_at, HitRow.is_expired.is_(False)) <= _NOW,
    _first(AssignmentRow.deadline, AssignmentRow.state == "Accepted") <= _NOW,
    _first(AssignmentRow.auto_approval_at, AssignmentRow.state == "Submitted") <= _NOW,
    _first(HitRow.created_at, lifecycle.is_disposable()) <= bindparam("disposed_from", type_=UtcDateTime()),
)
_IS_DUE: Final = select(SOMETHING_IS_DUE)
