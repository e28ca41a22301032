"""Workers taking and giving back places of HITs."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import ColumnElement, Select, and_, select

from hits.marketplace import accounts, blocks, eligibility, lifecycle, workers
from hits.marketplace.errors import (
    AlreadyWorkedOn,
    AssignmentNotHeld,
    AssignmentUnknown,
    BlockedByRequester,
    ElementsMissing,
    HitGroupEmpty,
    HitNotAvailable,
    HitNotShown,
    HitUnknown,
    NotQualified,
)
from hits.marketplace.hit_operations import hit_type_of
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.site import assignment_view
from hits.marketplace.tables import LIVE_STATES, AssignmentRow, HitRow, HitTypeRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import AssignmentView
from hits.marketplace.xmltext import legal


def accept(transaction: Transaction, worker_id: str, hit_id: str) -> AssignmentView:
    """Give a worker a place of a HIT, or the one they hold of it.

    Raises WorkerUnknown, HitUnknown, HitNotAvailable, HitNotShown, ElementsMissing, BlockedByRequester, NotQualified,
    AlreadyWorkedOn.
    """
    worker = workers.find(transaction, worker_id)
    hit = lifecycle.find_hit(transaction, hit_id, lock=True)
    if hit is None or hit.status == "Disposed":
        raise HitUnknown
    return _take(transaction, worker, hit)


def accept_next(transaction: Transaction, worker_id: str, hit_group_id: str) -> AssignmentView:
    """Give a worker a place of the oldest HIT of a group that they have not taken; those they gave up come last.

    Raises WorkerUnknown, HitGroupEmpty, NotQualified.
    """
    worker = workers.find(transaction, worker_id)
    group = transaction.session.scalar(select(HitTypeRow).where(HitTypeRow.hit_group_id == hit_group_id))
    if group is None:
        raise HitGroupEmpty
    if blocks.is_blocked(transaction, group.requester_id, worker.worker_id):
        raise HitGroupEmpty
    of_group = (
        HitRow.hit_type_id == group.hit_type_id,
        HitRow.status == "Assignable",
        lifecycle.can_be_shown(transaction.settings),
    )
    # First whatever nobody else is taking at this moment; only if there is nothing, wait for one that somebody is.
    for search in (_first_free, _first):
        for turn in lifecycle.turns_of(worker.worker_id):
            hit = search(transaction, and_(*of_group, turn))
            if hit is not None:
                return _take(transaction, worker, hit)
    raise HitGroupEmpty


def give_back(transaction: Transaction, worker_id: str, assignment_id: str, reason: str) -> None:
    """Return a held assignment.

    Raises AssignmentUnknown, AssignmentNotHeld.
    """
    found = transaction.session.scalar(select(AssignmentRow).where(AssignmentRow.assignment_id == assignment_id))
    if found is None or found.worker_id != worker_id:
        raise AssignmentUnknown
    account = accounts.lock(transaction, found.requester_id)
    hit = lifecycle.lock_hit(transaction, found.hit_id)
    assignment = lifecycle.lock_assignment(transaction, assignment_id)
    if assignment.state != "Accepted":
        raise AssignmentNotHeld(assignment.state)
    assignment.return_reason = legal(reason)[:1024] or None
    lifecycle.free_place(transaction, account, hit, assignment, state="Returned")


def _first_free(transaction: Transaction, fits: ColumnElement[bool]) -> HitRow | None:
    """Return the oldest HIT that fits and that nobody else has locked, locked; or None, with nothing locked."""
    query = select(HitRow).where(fits).order_by(*lifecycle.oldest_first()).limit(1)
    return _locked(transaction, query.with_for_update(key_share=True, skip_locked=True))


def _first(transaction: Transaction, fits: ColumnElement[bool]) -> HitRow | None:
    """Return the oldest HIT that fits, locked, having waited for it; or None, with nothing locked.

    It waits for one HIT at a time and holds no other meanwhile. One statement that looks for the oldest and locks it
    would hold each HIT that somebody took before its eyes, and wait for the next: two of them, or one and a timer,
    for each other.
    """
    oldest = select(HitRow.hit_id).where(fits).order_by(*lifecycle.oldest_first()).limit(1)
    while (hit_id := transaction.session.scalar(oldest)) is not None:
        hit = _locked(transaction, select(HitRow).where(HitRow.hit_id == hit_id, fits).with_for_update(key_share=True))
        if hit is not None:
            return hit
    return None


def _locked(transaction: Transaction, query: Select[HitRow]) -> HitRow | None:
    # PostgreSQL keeps the lock of a row that it found changed on the way, until what came before is restored.
    here = transaction.session.begin_nested()
    hit = transaction.session.scalar(query.execution_options(populate_existing=True))
    if hit is None:
        here.rollback()
    else:
        here.commit()
    return hit


def _take(transaction: Transaction, worker: WorkerRow, hit: HitRow) -> AssignmentView:
    hit_type = hit_type_of(transaction, hit)
    mine = transaction.session.scalar(
        select(AssignmentRow).where(
            AssignmentRow.hit_id == hit.hit_id,
            AssignmentRow.worker_id == worker.worker_id,
            AssignmentRow.state.in_(LIVE_STATES),
        )
    )
    if mine is not None:
        if mine.state == "Accepted":
            return assignment_view(transaction, mine, hit, hit_type)
        raise AlreadyWorkedOn
    if blocks.is_blocked(transaction, hit.requester_id, worker.worker_id):
        raise BlockedByRequester
    if hit.question_kind == "HTMLQuestion" and transaction.settings.content_origin is None:
        raise HitNotShown
    if hit.missing_elements:
        raise ElementsMissing(hit.missing_elements.split())
    if hit.available <= 0:
        raise HitNotAvailable
    verdict = eligibility.judge(transaction, worker, hit_type.requirements)
    if not verdict.may_accept:
        raise NotQualified(verdict.reasons, verdict.missing)
    assignment = AssignmentRow(
        assignment_id=new_entity_id(),
        hit_id=hit.hit_id,
        hit_type_id=hit.hit_type_id,
        worker_id=worker.worker_id,
        requester_id=hit.requester_id,
        state="Accepted",
        accepted_at=transaction.now,
        deadline=transaction.now + timedelta(seconds=hit_type.duration_seconds),
    )
    transaction.session.add(assignment)
    lifecycle.take_place(transaction, hit, assignment)
    return assignment_view(transaction, assignment, hit, hit_type)
