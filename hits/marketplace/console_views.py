"""The frozen records of the two consoles: what operators and requesters see beyond the API's own forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

from hits.marketplace.money import from_cents
from hits.marketplace.views import Balance, Requester, Worker

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Page(Generic[Entry]):
    """One page of a list; `pages` is at least 1, `total` counts the entries of all pages.

    Where a list `has_more`, it is longer than both say: it was counted to a limit.
    """

    entries: tuple[Entry, ...]
    page: int
    pages: int
    total: int
    has_more: bool = False


@dataclass(frozen=True)
class Actor:
    """Who does something: an operator by name, a requester or worker by id, a shell user on the command line."""

    kind: str
    name: str

    @classmethod
    def operator(cls, name: str) -> Actor:
        """Return an operator who is signed in."""
        return cls("operator", name)

    @classmethod
    def command_line(cls, login: str) -> Actor:
        """Return whoever runs a command on the marketplace's machine."""
        return cls("command line", login)

    @classmethod
    def requester(cls, requester_id: str) -> Actor:
        """Return a requester, by console or API."""
        return cls("requester", requester_id)

    @classmethod
    def worker(cls, worker_id: str) -> Actor:
        """Return a worker."""
        return cls("worker", worker_id)


@dataclass(frozen=True)
class Operator:
    """An account that runs the marketplace."""

    operator_id: str
    name: str
    created_at: datetime
    password_set_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True)
class AuditEntry:
    """One line of the audit log."""

    number: int
    at: datetime
    actor_kind: str
    actor: str
    action: str
    subject_kind: str
    subject_id: str
    details: Mapping[str, Any]


@dataclass(frozen=True)
class RequesterAccount:
    """A requester with its money, as an operator's list shows it."""

    requester: Requester
    balance: Balance
    disabled_at: datetime | None


@dataclass(frozen=True)
class WorkerPayout:
    """A worker's share of one payout run."""

    run_id: str
    state: str
    until: datetime
    drafted_at: datetime
    ended_at: datetime | None
    amount: Decimal


@dataclass(frozen=True)
class WorkerPayouts:
    """What became of a worker's earnings: earned == open + being_paid + paid, always."""

    earned: Decimal
    open: Decimal
    being_paid: Decimal
    paid: Decimal
    payouts: tuple[WorkerPayout, ...]


@dataclass(frozen=True)
class WorkerAccount:
    """A worker as an operator sees them; the counts are assignments."""

    worker: Worker
    disabled_at: datetime | None
    submitted: int
    approved: int
    rejected: int
    blocks: int
    has_payout_details: bool


@dataclass(frozen=True)
class Dispute:
    """A worker's objection to a rejection with both sides' words.

    `state` is Open, Overturned, Upheld, or Settled (the requester approved after all). `cost` is what approving would
    take from the requester: the reward with its fee.
    """

    dispute_id: str
    assignment_id: str
    hit_id: str
    title: str
    worker_id: str
    requester_id: str
    requester_name: str
    reward: Decimal
    cost: Decimal
    opened_at: datetime
    words: str
    feedback: str | None
    rejected_at: datetime | None
    submitted_at: datetime | None
    answer: str | None
    reply: str | None
    replied_at: datetime | None
    state: str
    decided_at: datetime | None
    decided_by: str | None
    decision: str | None


@dataclass(frozen=True)
class PayoutRun:
    """A payout run with its sums."""

    run_id: str
    until: datetime
    drafted_at: datetime
    drafted_by: str
    state: str
    ended_at: datetime | None
    ended_by: str | None
    reference: str
    workers: int
    earnings: int
    total: Decimal


@dataclass(frozen=True)
class PayoutLine:
    """What one worker gets from a run; amounts are in cents, since that is what the file carries."""

    worker_id: str
    user_name: str
    payout_details: str | None
    rewards: int
    rewards_cents: int
    bonuses: int
    bonuses_cents: int

    @property
    def amount_cents(self) -> int:
        """Rewards and bonuses together."""
        return self.rewards_cents + self.bonuses_cents

    @property
    def rewards_amount(self) -> Decimal:
        """The rewards in dollars."""
        return from_cents(self.rewards_cents)

    @property
    def bonuses_amount(self) -> Decimal:
        """The bonuses in dollars."""
        return from_cents(self.bonuses_cents)

    @property
    def amount(self) -> Decimal:
        """Rewards and bonuses together, in dollars."""
        return from_cents(self.amount_cents)


@dataclass(frozen=True)
class OpenEarnings:
    """What is owed to workers and in no run yet."""

    workers: int
    earnings: int
    total: Decimal
    without_details: int


@dataclass(frozen=True)
class HitTypeView:
    """A HIT type with what became of its HITs."""

    hit_type_id: str
    hit_group_id: str
    title: str
    description: str
    keywords: str
    reward: Decimal
    duration_seconds: int
    auto_approval_seconds: int
    requirements: tuple[Mapping[str, Any], ...]
    created_at: datetime
    hits: int
    transport: str | None
    destination: str | None
    event_types: tuple[str, ...]
    notifies: bool


@dataclass(frozen=True)
class HitSummary:
    """One HIT in the console's list; `status` is the API's. With `missing_elements` no worker can do it here."""

    hit_id: str
    hit_type_id: str
    title: str
    status: str
    reward: Decimal
    max_assignments: int
    available: int
    pending: int
    submitted: int
    completed: int
    created_at: datetime
    expires_at: datetime
    taken_down_at: datetime | None
    missing_elements: tuple[str, ...]


@dataclass(frozen=True)
class WaitingAssignment:
    """A submitted assignment that waits for its requester."""

    assignment_id: str
    hit_id: str
    title: str
    worker_id: str
    reward: Decimal
    submitted_at: datetime
    auto_approval_at: datetime
    answer: str | None


@dataclass(frozen=True)
class AssignmentSummary:
    """One assignment in a HIT's list, in the API's states."""

    assignment_id: str
    worker_id: str
    state: str
    accepted_at: datetime
    submitted_at: datetime | None
    auto_approval_at: datetime | None
    reviewed_at: datetime | None


@dataclass(frozen=True)
class HeldQualification:
    """A worker's grant of a requester's qualification type."""

    worker_id: str
    value: int
    status: str
    granted_at: datetime
