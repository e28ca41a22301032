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


@dataclass(frozen=True)
class Message:
    """A requester's message in a worker's inbox."""

    number: int
    requester_id: str
    requester_name: str
    sent_at: datetime
    subject: str
    text: str
    is_read: bool


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


@dataclass(frozen=True)
class GroupListing:
    """One HIT group as a worker's list shows it; `available` counts the HITs this worker could accept."""

    hit_id: str
    hit_group_id: str
    title: str
    description: str
    keywords: str
    reward: Decimal
    requester_id: str
    requester_name: str
    duration_seconds: int
    auto_approval_seconds: int
    available: int
    created_at: datetime
    expires_at: datetime
    qualified: bool
    can_preview: bool
    reasons: tuple[str, ...]
    missing: tuple[MissingQualification, ...] = ()


@dataclass(frozen=True)
class HitView:
    """A HIT as its preview shows it; `frame_url` carries ASSIGNMENT_ID_NOT_AVAILABLE.

    `question_kind` is ExternalQuestion, HTMLQuestion or QuestionForm; the last has a `form` and no frame.
    """

    hit_id: str
    hit_group_id: str
    title: str
    description: str
    keywords: str
    reward: Decimal
    requester_id: str
    requester_name: str
    duration_seconds: int
    auto_approval_seconds: int
    available: int
    created_at: datetime
    expires_at: datetime
    qualified: bool
    reasons: tuple[str, ...]
    held_assignment_id: str | None
    question_kind: str
    frame_url: str | None
    frame_height: int
    form: QuestionForm | None
    missing: tuple[MissingQualification, ...] = ()


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
