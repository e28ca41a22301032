"""The operations of the API that show, list, approve and reject assignments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import and_, or_, select

from hits.marketplace import accounts, disputes, lifecycle, paging
from hits.marketplace.errors import (
    ASSIGNMENT_DOES_NOT_EXIST,
    FILE_UPLOAD_NOT_SUPPORTED,
    INVALID_ASSIGNMENT_STATE,
    request_error,
)
from hits.marketplace.hit_operations import hit_form, hit_type_of
from hits.marketplace.tables import AssignmentRow, HitRow
from hits.marketplace.transactions import Transaction

Params = dict[str, Any]
VISIBLE: Final = ("Submitted", "Approved", "Rejected")
_OVERRIDE_WITHIN: Final = timedelta(days=30)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def get_assignment(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out GetAssignment."""
    assignment = own_assignment(transaction, requester_id, params["AssignmentId"])
    hit = lifecycle.own_hit(transaction, requester_id, assignment.hit_id)
    _require_undisposed(hit, assignment)
    if assignment.state == "Accepted":
        raise request_error(INVALID_ASSIGNMENT_STATE, allowed="Reviewable,Approved,Rejected")
    return {
        "Assignment": assignment_form(assignment),
        "HIT": hit_form(hit, hit_type_of(transaction, hit)),
    }


def list_assignments(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListAssignmentsForHIT: what was submitted first comes first."""
    operation = "ListAssignmentsForHIT"
    hit = lifecycle.own_hit(transaction, requester_id, params["HITId"])
    lifecycle.require_not_disposed(hit)
    query = select(AssignmentRow).where(
        AssignmentRow.hit_id == hit.hit_id, AssignmentRow.state.in_(params.get("AssignmentStatuses") or VISIBLE)
    )
    last = paging.after(params, operation, parts=2)
    if last is not None:
        moment = _moment(last[0])
        query = query.where(
            or_(
                AssignmentRow.submitted_at > moment,
                and_(AssignmentRow.submitted_at == moment, AssignmentRow.seq > last[1]),
            )
        )
    query = query.order_by(AssignmentRow.submitted_at, AssignmentRow.seq).limit(paging.page_size(params))
    rows = transaction.session.scalars(query).all()
    return paging.page(operation, "Assignments", rows, assignment_form, lambda row: (_micros(row), row.seq))


def approve_assignment(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ApproveAssignment; OverrideRejection approves a rejected one up to 30 days after submission."""
    hit, assignment = _lock(transaction, requester_id, params["AssignmentId"])
    overrides = (
        params.get("OverrideRejection", False)
        and assignment.state == "Rejected"
        and assignment.submitted_at is not None
        and assignment.submitted_at + _OVERRIDE_WITHIN > transaction.now
    )
    if assignment.state != "Submitted" and not overrides:
        raise _not_submitted(assignment)
    account = accounts.lock(transaction, requester_id)
    lifecycle.approve(transaction, account, hit, assignment, feedback=params.get("RequesterFeedback"))
    if overrides:
        disputes.settle_if_open(transaction, assignment)
    return {}


def reject_assignment(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out RejectAssignment."""
    hit, assignment = _lock(transaction, requester_id, params["AssignmentId"])
    if assignment.state != "Submitted":
        raise _not_submitted(assignment)
    account = accounts.lock(transaction, requester_id)
    lifecycle.reject(transaction, account, hit, assignment, feedback=params["RequesterFeedback"])
    return {}


def get_file_upload_url(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Refuse GetFileUploadURL: no answer has a file since MTurk took FileUploadAnswer away on 12 December 2017."""
    assignment = own_assignment(transaction, requester_id, params["AssignmentId"])
    raise request_error(FILE_UPLOAD_NOT_SUPPORTED, id=assignment.assignment_id)


def own_assignment(transaction: Transaction, requester_id: str, assignment_id: str) -> AssignmentRow:
    """Return an assignment of one of the requester's HITs.

    Raises MarketplaceError: another requester's does not exist, nor does one that was returned or abandoned.
    """
    row = transaction.session.scalar(select(AssignmentRow).where(AssignmentRow.assignment_id == assignment_id))
    if row is None or row.requester_id != requester_id or row.state in {"Returned", "Abandoned"}:
        raise request_error(ASSIGNMENT_DOES_NOT_EXIST, id=assignment_id)
    return row


def assignment_form(row: AssignmentRow) -> Params:
    """Return an assignment as the API shows it; what is absent is left out."""
    form: Params = {
        "AssignmentId": row.assignment_id,
        "WorkerId": row.worker_id,
        "HITId": row.hit_id,
        "AssignmentStatus": row.state,
        "AutoApprovalTime": row.auto_approval_at,
        "AcceptTime": row.accepted_at,
        "SubmitTime": row.submitted_at,
        "ApprovalTime": row.approved_at,
        "RejectionTime": row.rejected_at,
        "Deadline": row.deadline,
        "Answer": row.answer,
        "RequesterFeedback": row.feedback,
    }
    return {name: value for name, value in form.items() if value is not None}


def _lock(transaction: Transaction, requester_id: str, assignment_id: str) -> tuple[HitRow, AssignmentRow]:
    found = own_assignment(transaction, requester_id, assignment_id)
    hit = lifecycle.lock_hit(transaction, found.hit_id)
    assignment = lifecycle.lock_assignment(transaction, assignment_id)
    _require_undisposed(hit, assignment)
    return hit, assignment


def _require_undisposed(hit: HitRow, assignment: AssignmentRow) -> None:
    if hit.status == "Disposed":
        raise request_error(ASSIGNMENT_DOES_NOT_EXIST, id=assignment.assignment_id)


def _not_submitted(assignment: AssignmentRow) -> Exception:
    # The real service said "null" for an assignment that nobody has submitted yet.
    allowed = "null" if assignment.state == "Accepted" else "Submitted"
    return request_error(INVALID_ASSIGNMENT_STATE, allowed=allowed)


def _micros(row: AssignmentRow) -> int:
    return ((row.submitted_at or _EPOCH) - _EPOCH) // _MICROSECOND


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=min(max(micros, 0), 2**57))
