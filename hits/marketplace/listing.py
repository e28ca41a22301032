"""The worker's list of HIT groups: what is left for them, in the order they like."""

from __future__ import annotations

import statistics
from decimal import Decimal
from typing import Final, Literal

from sqlalchemy import case, func, or_, select

from hits.marketplace import eligibility, lifecycle, pages, workers
from hits.marketplace.errors import HitNotAvailable, HitUnknown
from hits.marketplace.money import from_cents
from hits.marketplace.tables import AssignmentRow, HitRow, HitTypeRow, RequesterRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import GroupListing, GroupPage

Sort = Literal["newest", "reward", "time", "wage", "most"]
WAGE_SUBMISSIONS: Final = 5
WAGE_WORKERS: Final = 3


def hit_groups(
    transaction: Transaction,
    worker_id: str,
    *,
    sort: Sort,
    query: str,
    qualified_only: bool,
    page: int,
    page_size: int,
) -> GroupPage:
    """Return a page of the HIT groups with a HIT left for this worker.

    Each is shown by its oldest HIT; HITs they gave up come last. Raises WorkerUnknown.
    """
    worker = workers.find(transaction, worker_id)
    not_given_up = case((lifecycle.was_given_up_by(worker.worker_id), None), else_=HitRow.seq)
    summary = (
        select(
            HitRow.hit_type_id,
            func.count().label("available"),
            func.coalesce(func.min(not_given_up), func.min(HitRow.seq)).label("first"),
            func.max(HitRow.created_at).label("newest"),
            func.min(HitRow.expires_at).label("next_end"),
        )
        .where(lifecycle.is_open_to(worker.worker_id), lifecycle.can_be_shown(transaction.settings))
        .group_by(HitRow.hit_type_id)
        .subquery()
    )
    rows = transaction.session.execute(
        select(HitTypeRow, RequesterRow.name, HitRow, summary.c.available, summary.c.newest, summary.c.next_end)
        .join(summary, summary.c.hit_type_id == HitTypeRow.hit_type_id)
        .join(HitRow, HitRow.seq == summary.c.first)
        .join(RequesterRow, RequesterRow.requester_id == HitTypeRow.requester_id)
    )
    listings = []
    for hit_type, requester_name, hit, available, newest, next_end in rows:
        verdict = eligibility.judge(transaction, worker, hit_type.requirements)
        haystack = " ".join((hit_type.title, hit_type.description, hit_type.keywords, requester_name)).casefold()
        if not verdict.may_discover or query.strip().casefold() not in haystack:
            continue
        if qualified_only and not verdict.may_accept:
            continue
        listings.append(
            GroupListing(
                hit_id=hit.hit_id,
                hit_group_id=hit_type.hit_group_id,
                title=hit_type.title,
                description=hit_type.description,
                keywords=hit_type.keywords,
                reward=from_cents(hit_type.reward_cents),
                hourly_wage=hourly_wage(transaction, hit_type),
                requester_id=hit_type.requester_id,
                requester_name=requester_name,
                duration_seconds=hit_type.duration_seconds,
                auto_approval_seconds=hit_type.auto_approval_seconds,
                available=available,
                created_at=newest,
                expires_at=next_end,
                qualified=verdict.may_accept,
                can_preview=verdict.may_preview,
                reasons=verdict.reasons,
                missing=verdict.missing,
            )
        )
    last = pages.number_of_pages(len(listings), page_size)
    page = pages.existing(page, last)
    start = (page - 1) * page_size
    return GroupPage(tuple(_sorted(listings, sort)[start : start + page_size]), page, last, len(listings))


def hit_of_group(transaction: Transaction, worker_id: str | None, group_or_type_id: str) -> str:
    """Return the id of the HIT of a group, or of a HIT type, that comes next for this worker, or for anybody.

    Raises WorkerUnknown, HitUnknown if there is no such group, HitNotAvailable if none of it is left.
    """
    worker = None if worker_id is None else workers.find(transaction, worker_id)
    hit_type_id = transaction.session.scalar(
        select(HitTypeRow.hit_type_id).where(
            or_(HitTypeRow.hit_group_id == group_or_type_id, HitTypeRow.hit_type_id == group_or_type_id)
        )
    )
    if hit_type_id is None:
        raise HitUnknown
    query = select(HitRow.hit_id).where(HitRow.hit_type_id == hit_type_id, HitRow.status == "Assignable")
    if worker is not None:
        query = query.where(lifecycle.is_open_to(worker.worker_id)).order_by(
            lifecycle.was_given_up_by(worker.worker_id)
        )
    found = transaction.session.scalar(query.order_by(HitRow.seq).limit(1))
    if found is None:
        raise HitNotAvailable
    return found


def hourly_wage(transaction: Transaction, hit_type: HitTypeRow) -> Decimal | None:
    """Return dollars per hour of a HIT type as measured, or None while too little was handed in."""
    rows = transaction.session.execute(
        select(AssignmentRow.worker_id, AssignmentRow.accepted_at, AssignmentRow.submitted_at)
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .where(HitRow.hit_type_id == hit_type.hit_type_id, AssignmentRow.submitted_at.is_not(None))
    ).all()
    if len(rows) < WAGE_SUBMISSIONS or len({row.worker_id for row in rows}) < WAGE_WORKERS:
        return None
    seconds = statistics.median((row.submitted_at - row.accepted_at).total_seconds() for row in rows)
    return (from_cents(hit_type.reward_cents) * 3600 / Decimal(max(seconds, 1))).quantize(Decimal("0.01"))


def _sorted(listings: list[GroupListing], sort: Sort) -> list[GroupListing]:
    newest_first = sorted(listings, key=lambda group: (group.created_at, group.hit_group_id), reverse=True)
    if sort == "reward":
        return sorted(newest_first, key=lambda group: group.reward, reverse=True)
    if sort == "time":
        return sorted(newest_first, key=lambda group: group.duration_seconds)
    if sort == "wage":
        return sorted(newest_first, key=lambda group: group.hourly_wage or Decimal(-1), reverse=True)
    if sort == "most":
        return sorted(newest_first, key=lambda group: group.available, reverse=True)
    return newest_first
