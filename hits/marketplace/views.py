"""The frozen records that the engine hands to its callers; database rows never leave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from hits.marketplace.forms import QuestionForm


@dataclass(frozen=True)
class Requester:
    """An account that creates HITs and pays."""

    requester_id: str
    name: str
    email: str | None
    created_at: datetime
    is_disabled: bool = False
    session_number: int = 0


@dataclass(frozen=True)
class Balance:
    """A requester's money in dollars: deposited == available + on_hold + spent, always."""

    deposited: Decimal
    available: Decimal
    on_hold: Decimal
    spent: Decimal


@dataclass(frozen=True)
class AccountEntry:
    """One line of a requester's account; the three amounts are changes."""

    at: datetime
    kind: str
    deposited: Decimal
    on_hold: Decimal
    spent: Decimal
    hit_id: str | None
    assignment_id: str | None
    note: str


@dataclass(frozen=True)
class HitLayout:
    """A page with `${placeholders}` that a requester's HITs are made from."""

    layout_id: str
    name: str
    html: str
    frame_height: int
    created_at: datetime
    placeholders: tuple[str, ...]


@dataclass(frozen=True)
class AccessKey:
    """A new access key; the secret is shown here and never again."""

    access_key_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class AccessKeyInfo:
    """An access key in a list."""

    access_key_id: str
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True)
class Worker:
    """An account that does HITs, with what the system's qualifications know of it."""

    worker_id: str
    user_name: str
    created_at: datetime
    country: str | None = None
    subdivision: str | None = None
    is_adult: bool = False
    is_master: bool = False
    is_disabled: bool = False
    email: str | None = None
    email_is_confirmed: bool = False
    language: str | None = None
    session_number: int = 0


@dataclass(frozen=True)
class Message:
    """A message in a worker's inbox; without a requester it is the operator's, `question` is what it answers."""

    number: int
    requester_id: str | None
    requester_name: str | None
    sent_at: datetime
    subject: str
    text: str
    is_read: bool
    question: str | None = None


@dataclass(frozen=True)
class MessagePage:
    """One page of a worker's inbox; `pages` is at least 1, `total` counts the messages of all pages.

    Where it `has_more`, there are more than was counted.
    """

    messages: tuple[Message, ...]
    page: int
    pages: int
    total: int
    has_more: bool


@dataclass(frozen=True)
class Reply:
    """A requester's answer to a worker's message."""

    sent_at: datetime
    text: str


@dataclass(frozen=True)
class RequesterMessage:
    """A message to a requester, from a worker or (without one) from the operator; `replies` oldest first."""

    message_id: str
    requester_id: str
    requester_name: str
    worker_id: str | None
    hit_id: str | None
    hit_title: str | None
    assignment_id: str | None
    sent_at: datetime
    text: str
    answered_at: datetime | None
    replies: tuple[Reply, ...]


@dataclass(frozen=True)
class HitSubject:
    """What a worker's message or report is about; `assignment_id` is their newest assignment of the HIT."""

    hit_id: str
    title: str
    requester_name: str
    assignment_id: str | None


@dataclass(frozen=True)
class RequesterMessagePage:
    """One page of messages to requesters; `unanswered` and `total` count those of all pages.

    Where it `has_more`, there are more than was counted.
    """

    messages: tuple[RequesterMessage, ...]
    page: int
    pages: int
    total: int
    unanswered: int
    has_more: bool


@dataclass(frozen=True)
class ReturnedHit:
    """A HIT that a worker gave back with a reason."""

    hit_id: str
    hit_title: str
    requester_id: str
    requester_name: str
    worker_id: str
    returned_at: datetime
    reason: str


@dataclass(frozen=True)
class HitReport:
    """A worker's report of a HIT; `reason` is a key of `reports.REASONS`, `note` what the operator wrote at its end."""

    report_id: str
    worker_id: str
    hit_id: str
    hit_title: str
    hit_status: str
    requester_id: str
    requester_name: str
    assignment_id: str | None
    reason: str
    text: str
    reported_at: datetime
    closed_at: datetime | None
    note: str | None


@dataclass(frozen=True)
class HitReportPage:
    """One page of reports; `pages` is at least 1, `total` counts the reports of all pages.

    Where it `has_more`, there are more than was counted.
    """

    reports: tuple[HitReport, ...]
    page: int
    pages: int
    total: int
    has_more: bool


@dataclass(frozen=True)
class Invitation:
    """A code that lets one person register, with the qualifications it grants."""

    code: str
    note: str
    created_at: datetime
    used_at: datetime | None
    worker_id: str | None
    grants: Mapping[str, int]


@dataclass(frozen=True)
class QualificationRequestView:
    """A worker's request; `state` is Testing, Lapsed, Pending, Granted or Rejected, `form` is there while Testing."""

    request_id: str
    qualification_type_id: str
    name: str
    state: str
    requested_at: datetime
    deadline: datetime | None
    submitted_at: datetime | None
    decided_at: datetime | None
    value: int | None
    reason: str | None
    form: QuestionForm | None


@dataclass(frozen=True)
class QualificationView:
    """A qualification type as a worker sees it; `status` is None, Granted or Revoked, `value` only if granted.

    The system's own have no requester. `retry_at` is None if it was never requested, or can never be again.
    """

    qualification_type_id: str
    name: str
    description: str
    requester_id: str | None
    requester_name: str | None
    value: int | None
    status: str | None
    granted_at: datetime | None
    has_test: bool
    test_duration_seconds: int | None
    can_request: bool
    retry_at: datetime | None
    request: QualificationRequestView | None


@dataclass(frozen=True)
class MissingQualification:
    """A requester's qualification that a worker would need for a HIT."""

    qualification_type_id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a list and a preview say of a HIT alike; `missing` is what the worker could ask for.

    `hourly_wage` is dollars per hour as measured: the reward over the median time from accepting to handing in. It is
    None until three workers have handed in five assignments of the type.
    """

    hit_id: str
    hit_group_id: str
    title: str
    description: str
    keywords: str
    reward: Decimal
    hourly_wage: Decimal | None
    requester_id: str
    requester_name: str
    duration_seconds: int
    auto_approval_seconds: int
    available: int
    created_at: datetime
    expires_at: datetime
    qualified: bool
    reasons: tuple[str, ...]
    missing: tuple[MissingQualification, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GroupListing(Offer):
    """One HIT group as a worker's list shows it; `available` counts the HITs this worker could accept."""

    can_preview: bool


@dataclass(frozen=True)
class GroupPage:
    """One page of HIT groups; `pages` is at least 1, `total` counts the groups of all pages."""

    groups: tuple[GroupListing, ...]
    page: int
    pages: int
    total: int


@dataclass(frozen=True, kw_only=True)
class HitView(Offer):
    """A HIT as its preview shows it; `available` counts its places, `frame_url` has ASSIGNMENT_ID_NOT_AVAILABLE.

    `question_kind` is ExternalQuestion, HTMLQuestion or QuestionForm; the last has a `form` and no frame.
    With `missing_elements`, parts of its page that this site has not, it cannot be accepted.
    """

    held_assignment_id: str | None
    question_kind: str
    frame_url: str | None
    frame_height: int
    form: QuestionForm | None
    missing_elements: tuple[str, ...] = ()


@dataclass(frozen=True)
class AssignmentView:
    """An assignment as its worker sees it; `frame_url` and `form` are None unless the worker holds it now."""

    assignment_id: str
    hit_id: str
    hit_group_id: str
    worker_id: str
    state: str
    title: str
    description: str
    reward: Decimal
    requester_id: str
    requester_name: str
    duration_seconds: int
    auto_approval_seconds: int
    accepted_at: datetime
    deadline: datetime
    question_kind: str
    frame_url: str | None
    frame_height: int
    form: QuestionForm | None


@dataclass(frozen=True)
class Receipt:
    """What a worker gets for a submission."""

    assignment_id: str
    hit_id: str
    hit_group_id: str
    worker_id: str
    state: str
    submitted_at: datetime
    auto_approval_at: datetime


@dataclass(frozen=True)
class BonusView:
    """One bonus a worker got."""

    amount: Decimal
    reason: str
    granted_at: datetime


@dataclass(frozen=True)
class WorkEntry:
    """One line of a worker's history."""

    assignment_id: str
    hit_id: str
    title: str
    requester_name: str
    reward: Decimal
    state: str
    accepted_at: datetime
    submitted_at: datetime | None
    auto_approval_at: datetime | None
    reviewed_at: datetime | None
    feedback: str | None
    bonuses: tuple[BonusView, ...]


@dataclass(frozen=True)
class WorkPage:
    """One page of a worker's history; `pages` is at least 1, `total` counts the entries of all pages.

    Where it `has_more`, it is longer than both say: it was counted to a limit.
    """

    entries: tuple[WorkEntry, ...]
    page: int
    pages: int
    total: int
    has_more: bool


@dataclass(frozen=True)
class DayEarnings:
    """What one UTC day brought: rewards by day of approval, bonuses by day of grant."""

    day: date
    approved: Decimal
    bonuses: Decimal


@dataclass(frozen=True)
class Earnings:
    """A worker's money in dollars."""

    approved: Decimal
    pending: Decimal
    bonuses: Decimal
    days: tuple[DayEarnings, ...]
