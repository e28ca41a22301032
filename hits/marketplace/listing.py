"""The worker's list of HIT groups: what is left for them, in the order they like.

How long it takes depends on how many groups are open and on the worker's own history, not on the number of HITs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal

from sqlalchemy import exists, func, or_, select, true
from sqlalchemy.orm import aliased

from hits.marketplace import blocks, groups, lifecycle, pages, workers
from hits.marketplace.eligibility import Judge
from hits.marketplace.errors import HitNotAvailable, HitUnknown
from hits.marketplace.money import from_cents
from hits.marketplace.tables import (
    LIVE_STATES,
    AssignmentRow,
    HitGroupRow,
    HitRow,
    HitTypeRow,
    RequesterRow,
    WorkerBlockRow,
    WorkerRow,
)
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import GroupListing, GroupPage

Sort = Literal["newest", "reward", "time", "wage", "most"]
_UNMEASURED: Final = Decimal(-1)


@dataclass(frozen=True)
class _Group:
    """What sorting needs to know, and the row with the rest."""

    type_id: str
    group_id: str
    reward: Decimal
    wage: Decimal | None
    seconds: int
    available: int
    newest: datetime
    row: Any


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
    judge = Judge(transaction, worker)
    found = _sorted(
        [
            group
            for group in _open_groups(transaction, worker)
            if _is_wanted(group, judge, words=query.strip().casefold(), qualified_only=qualified_only)
        ],
        sort,
    )
    last = pages.number_of_pages(len(found), page_size)
    page = pages.existing(page, last)
    shown = found[(page - 1) * page_size : page * page_size]
    first = _first_hits(transaction, worker, [group.type_id for group in shown])
    # Between two looks at PostgreSQL somebody else can have taken the last HIT of a group.
    listings = tuple(_listing(group, first[group.type_id], judge) for group in shown if group.type_id in first)
    return GroupPage(listings, page, last, len(found))


def hit_of_group(transaction: Transaction, worker_id: str | None, group_or_type_id: str) -> str:
    """Return the id of the HIT of a group, or of a HIT type, that comes next for this worker, or for anybody.

    Raises WorkerUnknown, HitUnknown if there is no such group, HitNotAvailable if none of it is left.
    """
    worker = None if worker_id is None else workers.find(transaction, worker_id)
    hit_type = transaction.session.execute(
        select(HitTypeRow.hit_type_id, HitTypeRow.requester_id).where(
            or_(HitTypeRow.hit_group_id == group_or_type_id, HitTypeRow.hit_type_id == group_or_type_id)
        )
    ).first()
    if hit_type is None:
        raise HitUnknown
    if worker is not None and blocks.is_blocked(transaction, hit_type.requester_id, worker.worker_id):
        raise HitNotAvailable
    found = select(HitRow.hit_id).where(HitRow.hit_type_id == hit_type.hit_type_id, HitRow.status == "Assignable")
    for condition in (true(),) if worker is None else lifecycle.turns_of(worker.worker_id):
        hit_id = transaction.session.scalar(found.where(condition).order_by(*lifecycle.oldest_first()).limit(1))
        if hit_id is not None:
            return hit_id
    raise HitNotAvailable


def _open_groups(transaction: Transaction, worker: WorkerRow) -> Iterator[_Group]:
    has_html = transaction.settings.content_origin is not None
    newest = (
        select(HitRow.created_at)
        .where(
            HitRow.hit_type_id == HitGroupRow.hit_type_id,
            HitRow.status == "Assignable",
            lifecycle.can_be_shown(transaction.settings),
        )
        .order_by(HitRow.created_at.desc(), HitRow.seq.desc())
        .limit(1)
        .correlate(HitGroupRow)
        .scalar_subquery()
    )
    blocked = exists().where(
        WorkerBlockRow.requester_id == HitTypeRow.requester_id, WorkerBlockRow.worker_id == worker.worker_id
    )
    available = HitGroupRow.open_hits + HitGroupRow.open_html_hits if has_html else HitGroupRow.open_hits
    query = (
        select(
            HitTypeRow.hit_type_id,
            HitTypeRow.hit_group_id,
            HitTypeRow.title,
            HitTypeRow.description,
            HitTypeRow.keywords,
            HitTypeRow.reward_cents,
            HitTypeRow.duration_seconds,
            HitTypeRow.auto_approval_seconds,
            HitTypeRow.requirements,
            HitTypeRow.requester_id,
            RequesterRow.name.label("requester_name"),
            HitGroupRow.work_seconds,
            available.label("available"),
            newest.label("newest"),
        )
        .join(HitGroupRow, HitGroupRow.hit_type_id == HitTypeRow.hit_type_id)
        .join(RequesterRow, RequesterRow.requester_id == HitTypeRow.requester_id)
        .where(HitGroupRow.is_open.is_(True), available > 0, ~blocked)
    )
    taken = _taken(transaction, worker)
    for row in transaction.session.execute(query):
        left = row.available - taken.get(row.hit_type_id, 0)
        if left > 0 and row.newest is not None:
            yield _Group(
                type_id=row.hit_type_id,
                group_id=row.hit_group_id,
                reward=from_cents(row.reward_cents),
                wage=groups.hourly_wage(row.reward_cents, row.work_seconds),
                seconds=row.duration_seconds,
                available=left,
                newest=row.newest,
                row=row,
            )


def _taken(transaction: Transaction, worker: WorkerRow) -> Mapping[str, int]:
    """Return of how many open HITs of each type this worker has a place already."""
    query = (
        select(HitRow.hit_type_id, func.count())
        .join(AssignmentRow, AssignmentRow.hit_id == HitRow.hit_id)
        .where(
            AssignmentRow.worker_id == worker.worker_id,
            AssignmentRow.state.in_(LIVE_STATES),
            HitRow.status == "Assignable",
            lifecycle.can_be_shown(transaction.settings),
        )
        .group_by(HitRow.hit_type_id)
    )
    return dict(transaction.session.execute(query).all())


def _first_hits(
    transaction: Transaction, worker: WorkerRow, type_ids: Sequence[str]
) -> Mapping[str, tuple[str, datetime]]:
    """Return (HIT id, end) of the HIT of each type that comes next for this worker."""
    each = aliased(HitRow)
    turns = [
        select(HitRow.seq)
        .where(
            HitRow.hit_type_id == HitGroupRow.hit_type_id,
            HitRow.status == "Assignable",
            lifecycle.can_be_shown(transaction.settings),
            condition,
        )
        .order_by(*lifecycle.oldest_first())
        .limit(1)
        .correlate(HitGroupRow)
        .scalar_subquery()
        for condition in lifecycle.turns_of(worker.worker_id)
    ]
    query = (
        select(HitGroupRow.hit_type_id, each.hit_id, each.expires_at)
        .join(each, each.seq == func.coalesce(*turns))
        .where(HitGroupRow.hit_type_id.in_(type_ids))
    )
    return {type_id: (hit_id, ends) for type_id, hit_id, ends in transaction.session.execute(query)}


def _is_wanted(group: _Group, judge: Judge, *, words: str, qualified_only: bool) -> bool:
    row = group.row
    if words and words not in " ".join((row.title, row.description, row.keywords, row.requester_name)).casefold():
        return False
    unmet = judge.unmet(row.requirements)
    return not (unmet and qualified_only) and all(
        item["ActionsGuarded"] != "DiscoverPreviewAndAccept" for item in unmet
    )


def _listing(group: _Group, first: tuple[str, datetime], judge: Judge) -> GroupListing:
    row, verdict = group.row, judge.verdict(group.row.requirements)
    hit_id, expires_at = first
    return GroupListing(
        hit_id=hit_id,
        hit_group_id=group.group_id,
        title=row.title,
        description=row.description,
        keywords=row.keywords,
        reward=group.reward,
        hourly_wage=group.wage,
        requester_id=row.requester_id,
        requester_name=row.requester_name,
        duration_seconds=row.duration_seconds,
        auto_approval_seconds=row.auto_approval_seconds,
        available=group.available,
        created_at=group.newest,
        expires_at=expires_at,
        qualified=verdict.may_accept,
        can_preview=verdict.may_preview,
        reasons=verdict.reasons,
        missing=verdict.missing,
    )


def _sorted(found: list[_Group], sort: Sort) -> list[_Group]:
    newest_first = sorted(found, key=lambda group: (group.newest, group.group_id), reverse=True)
    if sort == "reward":
        return sorted(newest_first, key=lambda group: group.reward, reverse=True)
    if sort == "time":
        return sorted(newest_first, key=lambda group: group.seconds)
    if sort == "wage":
        return sorted(newest_first, key=lambda group: _UNMEASURED if group.wage is None else group.wage, reverse=True)
    if sort == "most":
        return sorted(newest_first, key=lambda group: group.available, reverse=True)
    return newest_first
