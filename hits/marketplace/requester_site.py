"""What the requester console reads beyond the API's own lists; another requester's things do not exist here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Select, func, select

from hits.marketplace import accounts, frames, lifecycle
from hits.marketplace.assignment_operations import VISIBLE
from hits.marketplace.console_pages import page_of
from hits.marketplace.console_views import (
    AssignmentSummary,
    HeldQualification,
    HitSummary,
    HitTypeView,
    Page,
    WaitingAssignment,
)
from hits.marketplace.errors import HIT_TYPE_DOES_NOT_EXIST, NothingThere, request_error
from hits.marketplace.money import from_cents
from hits.marketplace.qualifications import own_type
from hits.marketplace.tables import (
    AccountEntryRow,
    AssignmentRow,
    HitLayoutRow,
    HitRow,
    HitTypeRow,
    NotificationRow,
    QualificationRow,
)
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import AccountEntry
from hits.marketplace.words import words

PAGE_SIZE: Final = 25
_PREVIEW_LIFE: Final = timedelta(days=1)
STATUSES: Final = ("Assignable", "Unassignable", "Reviewable", "Reviewing", "Disposed")


def account_lines(transaction: Transaction, requester_id: str, *, kind: str = "", page: int = 1) -> Page[AccountEntry]:
    """Return the lines of an account, newest first; of one kind if asked for."""
    query = select(AccountEntryRow).where(AccountEntryRow.requester_id == requester_id)
    if kind:
        query = query.where(AccountEntryRow.kind == kind)
    query = query.order_by(AccountEntryRow.seq.desc())
    return page_of(transaction, query, accounts.entry_view, page=page, page_size=50)


def hit_types(transaction: Transaction, requester_id: str, *, page: int = 1) -> Page[HitTypeView]:
    """Return a requester's HIT types, newest first."""
    query = _types(requester_id).order_by(HitTypeRow.seq.desc())
    return page_of(transaction, query, _type_view, page=page, page_size=PAGE_SIZE)


def hit_type(transaction: Transaction, requester_id: str, hit_type_id: str) -> HitTypeView:
    """Return one of a requester's HIT types.

    Raises MarketplaceError: another requester's type does not exist.
    """
    row = transaction.session.execute(_types(requester_id).where(HitTypeRow.hit_type_id == hit_type_id)).one_or_none()
    if row is None:
        raise request_error(HIT_TYPE_DOES_NOT_EXIST, id=hit_type_id)
    return _type_view(*row)


def hits(
    transaction: Transaction, requester_id: str, *, status: str = "", hit_type_id: str = "", page: int = 1
) -> Page[HitSummary]:
    """Return a requester's HITs, newest first; without a status all but disposed ones."""
    query = (
        select(HitRow, HitTypeRow.title)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .where(HitRow.requester_id == requester_id)
    )
    query = query.where(HitRow.status == status if status else lifecycle.is_listed())
    if hit_type_id:
        query = query.where(HitRow.hit_type_id == hit_type_id)
    return page_of(transaction, query.order_by(HitRow.seq.desc()), _hit_view, page=page, page_size=PAGE_SIZE)


def hit(transaction: Transaction, requester_id: str, hit_id: str) -> HitSummary:
    """Return one of a requester's HITs.

    Raises MarketplaceError: another requester's HIT does not exist.
    """
    return _with_title(transaction, lifecycle.own_hit(transaction, requester_id, hit_id))


def any_hit(transaction: Transaction, hit_id: str) -> HitSummary:
    """Return a HIT of any requester's, for an operator.

    Raises NothingThere if there is none.
    """
    row = lifecycle.find_hit(transaction, hit_id)
    if row is None:
        raise NothingThere(words("There is no HIT “%(id)s”.", id=hit_id))
    return _with_title(transaction, row)


def waiting(transaction: Transaction, requester_id: str, *, hit_id: str = "", page: int = 1) -> Page[WaitingAssignment]:
    """Return the submitted assignments that wait for a requester, the first to be approved by itself first."""
    query = (
        select(AssignmentRow, HitRow.reward_cents, HitTypeRow.title)
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .where(AssignmentRow.requester_id == requester_id, AssignmentRow.state == "Submitted")
    )
    if hit_id:
        query = query.where(AssignmentRow.hit_id == hit_id)
    query = query.order_by(AssignmentRow.auto_approval_at, AssignmentRow.seq)
    return page_of(transaction, query, _waiting_view, page=page, page_size=PAGE_SIZE)


def assignments(
    transaction: Transaction, requester_id: str, hit_id: str, *, state: str = "", page: int = 1
) -> Page[AssignmentSummary]:
    """Return what was submitted for one of a requester's HITs, newest first; of one state if asked for.

    Raises MarketplaceError: another requester's HIT does not exist.
    """
    found = lifecycle.own_hit(transaction, requester_id, hit_id)
    query = select(AssignmentRow).where(
        AssignmentRow.hit_id == found.hit_id, AssignmentRow.state.in_((state,) if state else VISIBLE)
    )
    query = query.order_by(AssignmentRow.submitted_at.desc(), AssignmentRow.seq.desc())
    return page_of(transaction, query, _assignment_view, page=page, page_size=PAGE_SIZE)


def holders(
    transaction: Transaction, requester_id: str, qualification_type_id: str, *, page: int = 1
) -> Page[HeldQualification]:
    """Return who holds a requester's qualification type, and who held it, newest grant first.

    Raises MarketplaceError: another requester's type does not exist.
    """
    kind = own_type(transaction, requester_id, qualification_type_id)
    query = (
        select(QualificationRow)
        .where(QualificationRow.qualification_type_id == kind.qualification_type_id)
        .order_by(QualificationRow.granted_at.desc(), QualificationRow.seq.desc())
    )
    return page_of(transaction, query, _held_view, page=page, page_size=PAGE_SIZE)


def layout_preview_url(transaction: Transaction, requester_id: str, layout_id: str) -> str | None:
    """Return the address at which a requester's layout is shown for a day, None without a second origin.

    Raises NothingThere: another requester's layout does not exist.
    """
    owner = select(HitLayoutRow.requester_id).where(HitLayoutRow.layout_id == layout_id)
    if transaction.session.scalar(owner) != requester_id:
        raise NothingThere(words("There is no layout “%(id)s”.", id=layout_id))
    settings = transaction.settings
    if settings.content_origin is None:
        return None
    until = transaction.now + _PREVIEW_LIFE
    return frames.content_url(settings.content_origin, settings.secret_key, hit_id=layout_id, until=until)


def _types(requester_id: str) -> Select[*tuple[Any, ...]]:
    count = (
        select(func.count())
        .select_from(HitRow)
        .where(HitRow.hit_type_id == HitTypeRow.hit_type_id, HitRow.status != "Disposed")
        .scalar_subquery()
    )
    return (
        select(HitTypeRow, NotificationRow, count)
        .outerjoin(NotificationRow, NotificationRow.hit_type_id == HitTypeRow.hit_type_id)
        .where(HitTypeRow.requester_id == requester_id, HitTypeRow.deleted_at.is_(None))
    )


def _type_view(row: HitTypeRow, wanted: NotificationRow | None, count: int) -> HitTypeView:
    return HitTypeView(
        hit_type_id=row.hit_type_id,
        hit_group_id=row.hit_group_id,
        title=row.title,
        description=row.description,
        keywords=row.keywords,
        reward=from_cents(row.reward_cents),
        duration_seconds=row.duration_seconds,
        auto_approval_seconds=row.auto_approval_seconds,
        requirements=tuple(row.requirements),
        created_at=row.created_at,
        hits=count,
        transport=wanted.transport if wanted is not None else None,
        destination=wanted.destination if wanted is not None else None,
        event_types=tuple(wanted.event_types["wanted"]) if wanted is not None else (),
        notifies=wanted is not None and wanted.is_active,
    )


def _with_title(transaction: Transaction, row: HitRow) -> HitSummary:
    title = select(HitTypeRow.title).where(HitTypeRow.hit_type_id == row.hit_type_id)
    return _hit_view(row, transaction.session.scalars(title).one())


def _hit_view(row: HitRow, title: str) -> HitSummary:
    return HitSummary(
        hit_id=row.hit_id,
        hit_type_id=row.hit_type_id,
        title=title,
        status=row.status,
        reward=from_cents(row.reward_cents),
        max_assignments=row.max_assignments,
        available=row.available,
        pending=row.pending,
        submitted=row.submitted,
        completed=row.completed,
        created_at=row.created_at,
        expires_at=row.expires_at,
        taken_down_at=row.taken_down_at,
        missing_elements=tuple((row.missing_elements or "").split()),
    )


def _waiting_view(row: AssignmentRow, reward_cents: int, title: str) -> WaitingAssignment:
    return WaitingAssignment(
        assignment_id=row.assignment_id,
        hit_id=row.hit_id,
        title=title,
        worker_id=row.worker_id,
        reward=from_cents(reward_cents),
        submitted_at=row.submitted_at or row.accepted_at,
        auto_approval_at=row.auto_approval_at or row.deadline,
        answer=row.answer,
    )


def _assignment_view(row: AssignmentRow) -> AssignmentSummary:
    return AssignmentSummary(
        assignment_id=row.assignment_id,
        worker_id=row.worker_id,
        state=row.state,
        accepted_at=row.accepted_at,
        submitted_at=row.submitted_at,
        auto_approval_at=row.auto_approval_at,
        reviewed_at=row.approved_at or row.rejected_at,
    )


def _held_view(row: QualificationRow) -> HeldQualification:
    return HeldQualification(row.worker_id, row.value, row.status, row.granted_at)
