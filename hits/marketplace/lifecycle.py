"""The states of HITs and assignments: every move of either is made here, with its effect on the account."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, String, and_, exists, literal_column, select

from hits.marketplace import accounts, events, groups
from hits.marketplace.errors import (
    HIT_DOES_NOT_EXIST,
    INVALID_HIT_STATE,
    request_error,
)
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import LIVE_STATES, AssignmentRow, HitRow, RequesterRow
from hits.marketplace.transactions import Transaction

HIT_LIFE: Final = timedelta(days=120)


def own_hit(transaction: Transaction, requester_id: str, hit_id: str, *, lock: bool = False) -> HitRow:
    """Return one of the requester's own HITs, locked if asked for.

    Raises MarketplaceError: another requester's HIT does not exist.
    """
    row = find_hit(transaction, hit_id, lock=lock)
    if row is None or row.requester_id != requester_id:
        raise request_error(HIT_DOES_NOT_EXIST, id=hit_id)
    return row


def find_hit(transaction: Transaction, hit_id: str, *, lock: bool = False) -> HitRow | None:
    """Return a HIT of anybody's."""
    query = select(HitRow).where(HitRow.hit_id == hit_id)
    if lock:
        query = query.with_for_update(key_share=True).execution_options(populate_existing=True)
    return transaction.session.scalar(query)


def oldest_first() -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Return the order in which HITs of a type are offered.

    By the sequence number alone, PostgreSQL would rather read the whole table in that order than use the type's index.
    """
    return HitRow.created_at.asc(), HitRow.seq.asc()


def is_listed() -> ColumnElement[bool]:
    """Return the condition that a HIT is not disposed of, in words that SQLite finds its partial index by."""
    return HitRow.status != literal_column("'Disposed'")


def is_disposable() -> ColumnElement[bool]:
    """Return the condition that a HIT is done and fully reviewed, in words that SQLite finds its partial index by."""
    done = ("Reviewable", "Reviewing")
    return and_(
        HitRow.status.in_([literal_column(f"'{status}'", String) for status in done]),
        HitRow.submitted == literal_column("0"),
    )


def can_be_shown(settings: MarketplaceSettings) -> ColumnElement[bool]:
    """Return the condition that the site can show a HIT: HTML needs an origin of its own and known elements."""
    if settings.content_origin is None:
        return HitRow.question_kind != "HTMLQuestion"
    return HitRow.missing_elements.is_(None)


def turns_of(worker_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions on a HIT in whose order it is a worker's turn: not had by them yet, not had by them now.

    Asked one after the other, each is found along an index at once; sorting by them would read every HIT.
    """
    had = AssignmentRow.hit_id == HitRow.hit_id, AssignmentRow.worker_id == worker_id
    return ~exists().where(*had), ~exists().where(*had, AssignmentRow.state.in_(LIVE_STATES))


def lock_hit(transaction: Transaction, hit_id: str) -> HitRow:
    """Return a HIT that is known to exist, locked until the transaction ends."""
    query = select(HitRow).where(HitRow.hit_id == hit_id).with_for_update(key_share=True)
    return transaction.session.scalars(query.execution_options(populate_existing=True)).one()


def lock_assignment(transaction: Transaction, assignment_id: str) -> AssignmentRow:
    """Return an assignment that is known to exist, locked until the transaction ends."""
    query = select(AssignmentRow).where(AssignmentRow.assignment_id == assignment_id).with_for_update(key_share=True)
    return transaction.session.scalars(query.execution_options(populate_existing=True)).one()


def refresh_status(transaction: Transaction, hit: HitRow) -> None:
    """Set the status that follows from the counters; Reviewing stays while the HIT is done, Disposed forever."""
    before = hit.status
    if hit.status == "Disposed":
        return
    if hit.available > 0:
        hit.status = "Assignable"
    elif hit.pending > 0:
        hit.status = "Unassignable"
    elif hit.status != "Reviewing":
        hit.status = "Reviewable"
    if hit.status == "Reviewable" != before:
        transaction.reviewable.append(hit.hit_id)
    if hit.status == "Assignable" != before:
        groups.opened(transaction, hit)
    elif before == "Assignable" != hit.status:
        groups.closed(transaction, hit)


def require_not_disposed(hit: HitRow) -> None:
    """Raise MarketplaceError (InvalidHITState) if the HIT is disposed."""
    if hit.status == "Disposed":
        raise request_error(
            INVALID_HIT_STATE, state=hit.status, allowed="Assignable, Unassignable, Reviewable, Reviewing"
        )


def take_place(transaction: Transaction, hit: HitRow, assignment: AssignmentRow) -> None:
    """Count an accepted assignment."""
    hit.pending += 1
    refresh_status(transaction, hit)
    events.emit(transaction, "AssignmentAccepted", hit, assignment.assignment_id)


def free_place(
    transaction: Transaction, account: RequesterRow, hit: HitRow, assignment: AssignmentRow, *, state: str
) -> None:
    """End a held assignment as Returned or Abandoned; on an expired HIT its share of the hold is released."""
    held = hit.held_cents
    assignment.state = state
    assignment.ended_at = transaction.now
    hit.pending -= 1
    refresh_status(transaction, hit)
    events.emit(transaction, f"Assignment{state}", hit, assignment.assignment_id)
    accounts.enter(
        transaction,
        account,
        "release_unused",
        held=hit.held_cents - held,
        hit_id=hit.hit_id,
        assignment_id=assignment.assignment_id,
    )


def submit(
    transaction: Transaction,
    account: RequesterRow,
    hit: HitRow,
    assignment: AssignmentRow,
    *,
    answer: str,
    auto_approval_seconds: int,
) -> None:
    """Store an answer; with an auto-approval delay of 0 the assignment is approved at once."""
    assignment.state = "Submitted"
    assignment.answer = answer
    assignment.submitted_at = transaction.now
    assignment.auto_approval_at = transaction.now + timedelta(seconds=auto_approval_seconds)
    hit.pending -= 1
    hit.submitted += 1
    transaction.submitted.append(assignment.assignment_id)
    groups.handed_in(transaction, assignment)
    events.emit(transaction, "AssignmentSubmitted", hit, assignment.assignment_id)
    refresh_status(transaction, hit)
    if auto_approval_seconds == 0:
        approve(transaction, account, hit, assignment, feedback=None)


def approve(
    transaction: Transaction,
    account: RequesterRow,
    hit: HitRow,
    assignment: AssignmentRow,
    *,
    feedback: str | None,
) -> None:
    """Approve a submitted assignment and pay for it from the hold, or a rejected one from what is available.

    Raises MarketplaceError (InsufficientFunds), for a rejected one only.
    """
    held = hit.held_cents
    if assignment.state == "Submitted":
        hit.submitted -= 1
        hit.completed += 1
    assignment.state = "Approved"
    assignment.approved_at = transaction.now
    assignment.feedback = feedback if feedback is not None else assignment.feedback
    refresh_status(transaction, hit)
    events.emit(transaction, "AssignmentApproved", hit, assignment.assignment_id)
    accounts.enter(
        transaction,
        account,
        "reward",
        held=hit.held_cents - held,
        spent=hit.unit_cents,
        hit_id=hit.hit_id,
        assignment_id=assignment.assignment_id,
    )


def reject(
    transaction: Transaction, account: RequesterRow, hit: HitRow, assignment: AssignmentRow, *, feedback: str
) -> None:
    """Reject a submitted assignment and release its share of the hold; its place stays taken."""
    held = hit.held_cents
    hit.submitted -= 1
    hit.completed += 1
    assignment.state = "Rejected"
    assignment.rejected_at = transaction.now
    assignment.feedback = feedback
    refresh_status(transaction, hit)
    events.emit(transaction, "AssignmentRejected", hit, assignment.assignment_id)
    accounts.enter(
        transaction,
        account,
        "release_rejected",
        held=hit.held_cents - held,
        hit_id=hit.hit_id,
        assignment_id=assignment.assignment_id,
    )


def expire(transaction: Transaction, account: RequesterRow, hit: HitRow) -> None:
    """End the lifetime of a HIT: free places go, and what they held is released."""
    held = hit.held_cents
    if hit.submitted + hit.completed < hit.max_assignments:
        events.emit(transaction, "HITExpired", hit)
    hit.is_expired = True
    hit.expires_at = min(hit.expires_at, transaction.now)
    refresh_status(transaction, hit)
    accounts.enter(transaction, account, "release_expired", held=hit.held_cents - held, hit_id=hit.hit_id)


def prolong(transaction: Transaction, account: RequesterRow, hit: HitRow) -> None:
    """Let a HIT live until its (new) expiry; free places that come back are held for again.

    Raises MarketplaceError (InsufficientFunds).
    """
    held = hit.held_cents
    hit.is_expired = False
    refresh_status(transaction, hit)
    events.emit(transaction, "HITExtended", hit)
    accounts.enter(transaction, account, "hold_prolonged", held=hit.held_cents - held, hit_id=hit.hit_id)


def extend(transaction: Transaction, account: RequesterRow, hit: HitRow, *, added: int) -> None:
    """Add places to a HIT and hold for them while it lives.

    Raises MarketplaceError (InsufficientFunds).
    """
    held = hit.held_cents
    hit.max_assignments += added
    refresh_status(transaction, hit)
    events.emit(transaction, "HITExtended", hit)
    accounts.enter(transaction, account, "hold_extended", held=hit.held_cents - held, hit_id=hit.hit_id)


def dispose(transaction: Transaction, hit: HitRow) -> None:
    """Dispose of a HIT that is done and fully reviewed, which holds nothing any more."""
    hit.is_expired = True
    hit.status = "Disposed"
    events.emit(transaction, "HITDisposed", hit)
