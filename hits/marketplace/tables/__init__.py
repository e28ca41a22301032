"""The marketplace's own tables; importing this package registers every one of them."""

from hits.marketplace.tables._base import LIVE_STATES, Base, SequenceNumber, UtcDateTime
from hits.marketplace.tables.accounts import AccessKeyRow, AccountEntryRow, RequesterRow
from hits.marketplace.tables.contact import HitReportRow, RequesterMessageRow
from hits.marketplace.tables.events import ClockRow, EventRow, NotificationRow
from hits.marketplace.tables.groups import HitGroupRow
from hits.marketplace.tables.hits import HitLayoutRow, HitRow, HitTypeRow, RequestTokenRow
from hits.marketplace.tables.mails import MailRow
from hits.marketplace.tables.operators import AuditRow, DisputeRow, OperatorRow, PayoutItemRow, PayoutRunRow
from hits.marketplace.tables.people import InvitationRow, MessageRow, WorkerBlockRow, WorkerRow
from hits.marketplace.tables.qualifications import QualificationRequestRow, QualificationRow, QualificationTypeRow
from hits.marketplace.tables.sessions import EndedSessionRow
from hits.marketplace.tables.work import AssignmentRow, BonusRow, ReviewEntryRow

__all__ = [
    "LIVE_STATES",
    "AccessKeyRow",
    "AccountEntryRow",
    "AssignmentRow",
    "AuditRow",
    "Base",
    "BonusRow",
    "ClockRow",
    "DisputeRow",
    "EndedSessionRow",
    "EventRow",
    "HitGroupRow",
    "HitLayoutRow",
    "HitReportRow",
    "HitRow",
    "HitTypeRow",
    "InvitationRow",
    "MailRow",
    "MessageRow",
    "NotificationRow",
    "OperatorRow",
    "PayoutItemRow",
    "PayoutRunRow",
    "QualificationRequestRow",
    "QualificationRow",
    "QualificationTypeRow",
    "RequestTokenRow",
    "RequesterMessageRow",
    "RequesterRow",
    "ReviewEntryRow",
    "SequenceNumber",
    "UtcDateTime",
    "WorkerBlockRow",
    "WorkerRow",
]
