"""The table of the API's 39 operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from hits.marketplace import assignment_operations as assignments
from hits.marketplace import blocks, hit_types, messages, notifications, qualifications, reviews
from hits.marketplace import bonus_operations as money
from hits.marketplace import hit_operations as hits
from hits.marketplace import qualification_requests as requests
from hits.marketplace.limits import check_limits
from hits.marketplace.model_check import check_parameters
from hits.marketplace.transactions import Transaction


class Function(Protocol):
    """What carries out one operation for one requester, whose parameters have been checked."""

    def __call__(self, transaction: Transaction, requester_id: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the operation's output."""
        ...


@dataclass(frozen=True)
class Operation:
    """How an operation is carried out; one that writes gets a locked account, unless it locks that itself, late."""

    function: Function
    writes: bool = True
    locks: bool = True


OPERATIONS: Final[Mapping[str, Operation]] = {
    "AcceptQualificationRequest": Operation(requests.accept_request),
    "ApproveAssignment": Operation(assignments.approve_assignment),
    "AssociateQualificationWithWorker": Operation(qualifications.associate),
    "CreateAdditionalAssignmentsForHIT": Operation(hits.create_additional_assignments),
    "CreateHIT": Operation(hits.create_hit, locks=False),
    "CreateHITType": Operation(hit_types.create_type),
    "CreateHITWithHITType": Operation(hits.create_hit_with_type, locks=False),
    "CreateQualificationType": Operation(qualifications.create_type),
    "CreateWorkerBlock": Operation(blocks.create_block),
    "DeleteHIT": Operation(hits.delete_hit),
    "DeleteQualificationType": Operation(qualifications.delete_type),
    "DeleteWorkerBlock": Operation(blocks.delete_block),
    "DisassociateQualificationFromWorker": Operation(qualifications.disassociate),
    "GetAccountBalance": Operation(money.get_account_balance, writes=False),
    "GetAssignment": Operation(assignments.get_assignment, writes=False),
    "GetFileUploadURL": Operation(assignments.get_file_upload_url, writes=False),
    "GetHIT": Operation(hits.get_hit, writes=False),
    "GetQualificationScore": Operation(qualifications.get_score, writes=False),
    "GetQualificationType": Operation(qualifications.get_type, writes=False),
    "ListAssignmentsForHIT": Operation(assignments.list_assignments, writes=False),
    "ListBonusPayments": Operation(money.list_bonus_payments, writes=False),
    "ListHITs": Operation(hits.list_hits, writes=False),
    "ListHITsForQualificationType": Operation(hits.list_hits_for_qualification, writes=False),
    "ListQualificationRequests": Operation(requests.list_requests, writes=False),
    "ListQualificationTypes": Operation(qualifications.list_types, writes=False),
    "ListReviewPolicyResultsForHIT": Operation(reviews.list_results, writes=False),
    "ListReviewableHITs": Operation(hits.list_reviewable_hits, writes=False),
    "ListWorkerBlocks": Operation(blocks.list_blocks, writes=False),
    "ListWorkersWithQualificationType": Operation(qualifications.list_workers, writes=False),
    "NotifyWorkers": Operation(messages.notify_workers),
    "RejectAssignment": Operation(assignments.reject_assignment),
    "RejectQualificationRequest": Operation(requests.reject_request),
    "SendBonus": Operation(money.send_bonus),
    "SendTestEventNotification": Operation(notifications.send_test),
    "UpdateExpirationForHIT": Operation(hits.update_expiration),
    "UpdateHITReviewStatus": Operation(hits.update_review_status),
    "UpdateHITTypeOfHIT": Operation(hits.update_hit_type),
    "UpdateNotificationSettings": Operation(notifications.update_settings),
    "UpdateQualificationType": Operation(qualifications.update_type),
}


def prepare(operation: str, params: Mapping[str, Any]) -> tuple[Operation, dict[str, Any]]:
    """Return the row of an operation and its checked parameters.

    Raises MarketplaceError for an operation that is unknown, and for parameters that do not fit.
    """
    checked = check_parameters(operation, params)
    check_limits(checked)
    return OPERATIONS[operation], checked
