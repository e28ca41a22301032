"""The qualifications that the marketplace itself computes for every worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import func, select

from hits.marketplace.tables import AssignmentRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.words import words

MASTERS_PRODUCTION: Final = "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH"
MASTERS_SANDBOX: Final = "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6"
NUMBER_APPROVED: Final = "00000000000000000040"
LOCALE: Final = "00000000000000000071"
ADULT: Final = "00000000000000000060"
PERCENT_APPROVED: Final = "000000000000000000L0"
MASTERS: Final = frozenset({MASTERS_PRODUCTION, MASTERS_SANDBOX})
# Until this many submissions a worker's percentage is 100, as on MTurk.
PERCENT_COUNTS_FROM: Final = 100


@dataclass(frozen=True)
class SystemType:
    """A system qualification type."""

    type_id: str
    name: str
    description: str

    def form(self) -> dict[str, Any]:
        """Return it as the API shows a qualification type."""
        return {
            "QualificationTypeId": self.type_id,
            "CreationTime": datetime(2012, 1, 1, tzinfo=UTC),
            "Name": self.name,
            "Description": self.description,
            "QualificationTypeStatus": "Active",
            "IsRequestable": False,
            "AutoGranted": False,
        }


SYSTEM_TYPES: Final = {
    item.type_id: item
    for item in (
        SystemType(MASTERS_PRODUCTION, "Masters", words("Named a master by the operator of this marketplace.")),
        SystemType(MASTERS_SANDBOX, "Masters", words("Named a master by the operator of this marketplace.")),
        SystemType(
            NUMBER_APPROVED, "Worker_NumberHITsApproved", words("How many of the worker's assignments were approved.")
        ),
        SystemType(LOCALE, "Worker_Locale", words("Where the worker lives.")),
        SystemType(ADULT, "Worker_Adult", words("Whether the worker agreed to see adult content.")),
        SystemType(
            PERCENT_APPROVED,
            "Worker_PercentAssignmentsApproved",
            words("Which share of the worker's reviewed assignments was approved."),
        ),
    )
}


def value_of(transaction: Transaction, worker: WorkerRow, type_id: str) -> int | None:
    """Return a worker's whole-number value of a system type; None if they have none (locale, masters)."""
    if type_id in MASTERS:
        return 1 if worker.is_master else None
    if type_id == ADULT:
        return int(worker.is_adult)
    counts = dict(
        transaction.session.execute(
            select(AssignmentRow.state, func.count())
            .where(AssignmentRow.worker_id == worker.worker_id)
            .group_by(AssignmentRow.state)
        ).all()
    )
    approved, rejected = counts.get("Approved", 0), counts.get("Rejected", 0)
    if type_id == NUMBER_APPROVED:
        return approved
    if type_id == PERCENT_APPROVED:
        submissions = approved + rejected + counts.get("Submitted", 0)
        if submissions < PERCENT_COUNTS_FROM or not approved + rejected:
            return 100
        return 100 * approved // (approved + rejected)
    return None
