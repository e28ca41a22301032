"""What a worker has handed in, how it was judged, and what it brought."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import Date, Row, Select, and_, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from hits.marketplace import pages, workers
from hits.marketplace.errors import AssignmentUnknown
from hits.marketplace.money import from_cents
from hits.marketplace.tables import AssignmentRow, BonusRow, HitRow, HitTypeRow, RequesterRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import BonusView, DayEarnings, Earnings, WorkEntry, WorkPage

Place = tuple[datetime, int]


def work_history(transaction: Transaction, worker_id: str, *, page: int, page_size: int) -> WorkPage:
    """Return a page of what a worker submitted, newest first.

    Raises WorkerUnknown.
    """
    worker = workers.find(transaction, worker_id)
    mine = select(AssignmentRow).where(
        AssignmentRow.worker_id == worker.worker_id, AssignmentRow.submitted_at.is_not(None)
    )
    count = pages.counted(transaction.session, mine, page=page, page_size=page_size)
    last = pages.number_of_pages(count.total, page_size)
    page = pages.existing(page, last)
    query = _submitted_by(worker).limit(page_size).offset((page - 1) * page_size)
    return WorkPage(tuple(_entries(transaction, query)), page, last, count.total, count.has_more)


def work_entry(transaction: Transaction, worker_id: str, assignment_id: str) -> WorkEntry:
    """Return one assignment that a worker submitted.

    Raises WorkerUnknown, AssignmentUnknown.
    """
    worker = workers.find(transaction, worker_id)
    entries = _entries(transaction, _submitted_by(worker).where(AssignmentRow.assignment_id == assignment_id))
    if not entries:
        raise AssignmentUnknown
    return entries[0]


def batch(
    transaction: Transaction, worker_id: str, *, before: Place | None, size: int
) -> tuple[list[WorkEntry], Place | None]:
    """Return the next entries of a worker's history, newest first, and where they end; None at the end.

    Raises WorkerUnknown.
    """
    worker = workers.find(transaction, worker_id)
    query = _submitted_by(worker).limit(size)
    if before is not None:
        moment, seq = before
        query = query.where(
            or_(
                AssignmentRow.submitted_at < moment,
                and_(AssignmentRow.submitted_at == moment, AssignmentRow.seq < seq),
            )
        )
    rows = transaction.session.execute(query).all()
    last = rows[-1][0] if len(rows) == size else None
    ends = None if last is None or last.submitted_at is None else (last.submitted_at, last.seq)
    return _shown(transaction, rows), ends


def earnings(transaction: Transaction, worker_id: str) -> Earnings:
    """Return what a worker has earned, also by day of UTC, and what is pending."""
    session, worker = transaction.session, workers.find(transaction, worker_id)
    rewards = (
        select(HitRow.reward_cents)
        .join(AssignmentRow, AssignmentRow.hit_id == HitRow.hit_id)
        .where(AssignmentRow.worker_id == worker.worker_id)
    )
    approved = _by_day(session, rewards.where(AssignmentRow.state == "Approved"), AssignmentRow.approved_at)
    granted = select(BonusRow.amount_cents).where(BonusRow.worker_id == worker.worker_id)
    bonuses = _by_day(session, granted, BonusRow.granted_at)
    waiting = rewards.where(AssignmentRow.state == "Submitted").subquery()
    pending = session.scalar(select(func.coalesce(func.sum(waiting.c.reward_cents), 0)))
    return Earnings(
        approved=from_cents(sum(approved.values())),
        pending=from_cents(int(pending or 0)),
        bonuses=from_cents(sum(bonuses.values())),
        days=tuple(
            DayEarnings(day, from_cents(approved.get(day, 0)), from_cents(bonuses.get(day, 0)))
            for day in sorted({*approved, *bonuses}, reverse=True)
        ),
    )


def _by_day(session: Session, cents: Select[int], moment: InstrumentedAttribute[Any]) -> dict[date, int]:
    """Return the sum of a query's one column of cents for each day of UTC that a moment of its rows falls on."""
    # SQLite keeps the times of UTC; PostgreSQL would take the day of the connection's time zone.
    is_utc = session.get_bind().dialect.name == "sqlite"
    day = func.date(moment if is_utc else func.timezone("UTC", moment), type_=Date()).label("day")
    amounts = cents.add_columns(day).subquery()
    amount, at = amounts.c
    rows = session.execute(select(at, func.sum(amount)).group_by(at))
    return {found: int(total) for found, total in rows}


def _submitted_by(worker: WorkerRow) -> Select[AssignmentRow, int, str, str]:
    return (
        select(AssignmentRow, HitRow.reward_cents, HitTypeRow.title, RequesterRow.name)
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .join(RequesterRow, RequesterRow.requester_id == AssignmentRow.requester_id)
        .where(AssignmentRow.worker_id == worker.worker_id, AssignmentRow.submitted_at.is_not(None))
        .order_by(AssignmentRow.submitted_at.desc(), AssignmentRow.seq.desc())
    )


def _entries(transaction: Transaction, query: Select[AssignmentRow, int, str, str]) -> list[WorkEntry]:
    return _shown(transaction, transaction.session.execute(query).all())


def _shown(transaction: Transaction, rows: Sequence[Row[AssignmentRow, int, str, str]]) -> list[WorkEntry]:
    bonuses = _bonuses(transaction, [row.assignment_id for row, *_ in rows])
    return [
        WorkEntry(
            assignment_id=row.assignment_id,
            hit_id=row.hit_id,
            title=title,
            requester_name=requester_name,
            reward=from_cents(reward_cents),
            state=row.state,
            accepted_at=row.accepted_at,
            submitted_at=row.submitted_at,
            auto_approval_at=row.auto_approval_at,
            reviewed_at=row.approved_at or row.rejected_at,
            feedback=row.feedback,
            bonuses=tuple(bonuses.get(row.assignment_id, ())),
        )
        for row, reward_cents, title, requester_name in rows
    ]


def _bonuses(transaction: Transaction, assignment_ids: Sequence[str]) -> Mapping[str, list[BonusView]]:
    found: dict[str, list[BonusView]] = defaultdict(list)
    query = select(BonusRow).where(BonusRow.assignment_id.in_(assignment_ids)).order_by(BonusRow.seq)
    for row in transaction.session.scalars(query):
        found[row.assignment_id].append(BonusView(from_cents(row.amount_cents), row.reason, row.granted_at))
    return found
