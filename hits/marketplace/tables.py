"""The marketplace's own tables: its metadata is apart from every other database model of the project."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SequenceNumber = BigInteger().with_variant(Integer, "sqlite")
LIVE_STATES: Final = ("Accepted", "Submitted", "Approved", "Rejected")
_LIVE = text("state IN ('Accepted', 'Submitted', 'Approved', 'Rejected')")
_NOT_DELETED = text("deleted_at IS NULL")
_WAITING = text("state = 'Pending'")


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC datetimes; SQLite, which knows no zone, keeps them as naive UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive time, which would mean something else on every machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; pass an aware datetime.")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return aware UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of the marketplace's tables."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime(),
        dict[str, Any]: JSON(),
        list[dict[str, Any]]: JSON(),
    }


class RequesterRow(Base):
    """A requester with the totals of its account; what is available is deposited - held - spent."""

    __tablename__ = "mp_requester"
    __table_args__ = (
        CheckConstraint("held_cents >= 0", name="held_not_negative"),
        CheckConstraint("deposited_cents - held_cents - spent_cents >= 0", name="not_overdrawn"),
    )

    requester_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str | None] = mapped_column(String(320), unique=True)
    password_hash: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[datetime]
    deposited_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    held_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    spent_cents: Mapped[int] = mapped_column(BigInteger, default=0)

    @property
    def available_cents(self) -> int:
        """The cents that new holds and payments can use."""
        return self.deposited_cents - self.held_cents - self.spent_cents


class AccountEntryRow(Base):
    """One change of a requester's account; rows are only ever added."""

    __tablename__ = "mp_account_entry"

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), index=True)
    at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(32))
    deposited_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    held_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    spent_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    hit_id: Mapped[str | None] = mapped_column(String(64))
    assignment_id: Mapped[str | None] = mapped_column(String(64))
    note: Mapped[str] = mapped_column(Text, default="")


class AccessKeyRow(Base):
    """An access key; SigV4 needs the secret back, so it is encrypted and not hashed."""

    __tablename__ = "mp_access_key"

    access_key_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), index=True)
    encrypted_secret: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class WorkerRow(Base):
    """A worker account with what the system qualifications need to know."""

    __tablename__ = "mp_worker"

    worker_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_name: Mapped[str] = mapped_column(String(64))
    user_name_key: Mapped[str] = mapped_column(String(64), unique=True)
    password_hash: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    country: Mapped[str | None] = mapped_column(String(2))
    subdivision: Mapped[str | None] = mapped_column(String(2))
    is_adult: Mapped[bool] = mapped_column(default=False)
    is_master: Mapped[bool] = mapped_column(default=False)


class QualificationTypeRow(Base):
    """A qualification type of one requester."""

    __tablename__ = "mp_qualification_type"
    __table_args__ = (
        Index(
            "uq_mp_qualification_type_requester_id_name",
            "requester_id",
            "name",
            unique=True,
            sqlite_where=_NOT_DELETED,
            postgresql_where=_NOT_DELETED,
        ),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    qualification_type_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    name: Mapped[str] = mapped_column(String(200))
    description: Mapped[str] = mapped_column(Text)
    keywords: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    retry_delay_seconds: Mapped[int | None] = mapped_column(BigInteger)
    auto_granted: Mapped[bool] = mapped_column(default=False)
    auto_granted_value: Mapped[int | None]
    test: Mapped[str | None] = mapped_column(Text)
    test_duration_seconds: Mapped[int | None] = mapped_column(BigInteger)
    answer_key: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class QualificationRow(Base):
    """One worker's value of one qualification type."""

    __tablename__ = "mp_qualification"
    __table_args__ = (UniqueConstraint("qualification_type_id", "worker_id"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    qualification_type_id: Mapped[str] = mapped_column(ForeignKey("mp_qualification_type.qualification_type_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"), index=True)
    value: Mapped[int]
    status: Mapped[str] = mapped_column(String(16))
    granted_at: Mapped[datetime]


class QualificationRequestRow(Base):
    """A worker's request for a qualification; `test` and `answer_key` are those of the moment of the request."""

    __tablename__ = "mp_qualification_request"
    __table_args__ = (
        Index("ix_mp_qualification_request_type", "qualification_type_id", "state", "seq"),
        Index("ix_mp_qualification_request_worker", "worker_id", "qualification_type_id", "seq"),
        Index(
            "uq_mp_qualification_request_open",
            "qualification_type_id",
            "worker_id",
            unique=True,
            sqlite_where=_WAITING,
            postgresql_where=_WAITING,
        ),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    request_id: Mapped[str] = mapped_column(String(64), unique=True)
    qualification_type_id: Mapped[str] = mapped_column(ForeignKey("mp_qualification_type.qualification_type_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"))
    state: Mapped[str] = mapped_column(String(16))
    requested_at: Mapped[datetime]
    test: Mapped[str | None] = mapped_column(Text)
    answer_key: Mapped[str | None] = mapped_column(Text)
    deadline: Mapped[datetime | None]
    submitted_at: Mapped[datetime | None]
    answer: Mapped[str | None] = mapped_column(Text)
    decided_at: Mapped[datetime | None]
    value: Mapped[int | None]
    reason: Mapped[str | None] = mapped_column(Text)


class WorkerBlockRow(Base):
    """A worker whom one requester takes no work from."""

    __tablename__ = "mp_worker_block"
    __table_args__ = (UniqueConstraint("requester_id", "worker_id"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"), index=True)
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class MessageRow(Base):
    """A message to a worker, shown on the worker site."""

    __tablename__ = "mp_message"
    __table_args__ = (Index(None, "worker_id", "seq"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"))
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    sent_at: Mapped[datetime]
    subject: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    read_at: Mapped[datetime | None]


class InvitationRow(Base):
    """A code that lets one person register."""

    __tablename__ = "mp_invitation"

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    code: Mapped[str] = mapped_column(String(64), unique=True)
    note: Mapped[str] = mapped_column(Text)
    grants: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    worker_id: Mapped[str | None] = mapped_column(ForeignKey("mp_worker.worker_id"))


class HitTypeRow(Base):
    """A HIT type, found again by the fingerprint of its canonical parts; it is one HIT group for workers."""

    __tablename__ = "mp_hit_type"
    __table_args__ = (
        Index(
            "uq_mp_hit_type_requester_id_fingerprint",
            "requester_id",
            "fingerprint",
            unique=True,
            sqlite_where=_NOT_DELETED,
            postgresql_where=_NOT_DELETED,
        ),
        CheckConstraint("reward_cents >= 0", name="reward_not_negative"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    hit_type_id: Mapped[str] = mapped_column(String(64), unique=True)
    hit_group_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    fingerprint: Mapped[str] = mapped_column(String(64))
    title: Mapped[str] = mapped_column(Text)
    description: Mapped[str] = mapped_column(Text)
    keywords: Mapped[str] = mapped_column(Text)
    reward_cents: Mapped[int] = mapped_column(BigInteger)
    duration_seconds: Mapped[int] = mapped_column(BigInteger)
    auto_approval_seconds: Mapped[int] = mapped_column(BigInteger)
    requirements: Mapped[list[dict[str, Any]]]
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class HitRow(Base):
    """A HIT with its counters; `is_expired` says that its expiry has been settled and its free places released."""

    __tablename__ = "mp_hit"
    __table_args__ = (
        CheckConstraint("pending >= 0 AND submitted >= 0 AND completed >= 0", name="counters_not_negative"),
        CheckConstraint("pending + submitted + completed <= max_assignments", name="not_overfull"),
        Index(None, "requester_id", "seq"),
        Index(None, "hit_type_id", "status", "seq"),
        Index(None, "status", "created_at"),
        Index(None, "is_expired", "expires_at"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    hit_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    hit_type_id: Mapped[str] = mapped_column(ForeignKey("mp_hit_type.hit_type_id"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    is_expired: Mapped[bool] = mapped_column(default=False)
    status: Mapped[str] = mapped_column(String(16))
    max_assignments: Mapped[int] = mapped_column(BigInteger)
    pending: Mapped[int] = mapped_column(BigInteger, default=0)
    submitted: Mapped[int] = mapped_column(BigInteger, default=0)
    completed: Mapped[int] = mapped_column(BigInteger, default=0)
    reward_cents: Mapped[int] = mapped_column(BigInteger)
    fee_cents: Mapped[int] = mapped_column(BigInteger)
    question: Mapped[str] = mapped_column(Text)
    question_kind: Mapped[str] = mapped_column(String(24), server_default="ExternalQuestion")
    external_url: Mapped[str] = mapped_column(Text)
    frame_height: Mapped[int]
    annotation: Mapped[str | None] = mapped_column(Text)
    layout_id: Mapped[str | None] = mapped_column(String(64))
    assignment_policy: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    hit_policy: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    @property
    def available(self) -> int:
        """The places that a worker could take now."""
        if self.is_expired or self.status == "Disposed":
            return 0
        return self.max_assignments - self.pending - self.submitted - self.completed

    @property
    def unit_cents(self) -> int:
        """What one assignment costs the requester when it is approved."""
        return self.reward_cents + self.fee_cents

    @property
    def held_cents(self) -> int:
        """What this HIT holds of its requester's money: every place that can still be approved."""
        return (self.available + self.pending + self.submitted) * self.unit_cents


class HitLayoutRow(Base):
    """A page with placeholders that HITs are made from; it never changes, since HITs name it."""

    __tablename__ = "mp_hit_layout"

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    layout_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    html: Mapped[str] = mapped_column(Text)
    frame_height: Mapped[int]
    created_at: Mapped[datetime]


class AssignmentRow(Base):
    """One worker's work on one HIT."""

    __tablename__ = "mp_assignment"
    __table_args__ = (
        Index(
            "uq_mp_assignment_hit_id_worker_id",
            "hit_id",
            "worker_id",
            unique=True,
            sqlite_where=_LIVE,
            postgresql_where=_LIVE,
        ),
        Index(None, "state", "deadline"),
        Index(None, "state", "auto_approval_at"),
        Index(None, "hit_id", "submitted_at", "seq"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    assignment_id: Mapped[str] = mapped_column(String(64), unique=True)
    hit_id: Mapped[str] = mapped_column(ForeignKey("mp_hit.hit_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"), index=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    state: Mapped[str] = mapped_column(String(16))
    accepted_at: Mapped[datetime]
    deadline: Mapped[datetime]
    submitted_at: Mapped[datetime | None]
    auto_approval_at: Mapped[datetime | None]
    approved_at: Mapped[datetime | None]
    rejected_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    answer: Mapped[str | None] = mapped_column(Text)
    feedback: Mapped[str | None] = mapped_column(Text)
    return_reason: Mapped[str | None] = mapped_column(Text)


class BonusRow(Base):
    """One bonus payment."""

    __tablename__ = "mp_bonus"
    __table_args__ = (CheckConstraint("amount_cents > 0 AND fee_cents >= 0", name="positive"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"), index=True)
    hit_id: Mapped[str] = mapped_column(ForeignKey("mp_hit.hit_id"), index=True)
    assignment_id: Mapped[str] = mapped_column(ForeignKey("mp_assignment.assignment_id"), index=True)
    amount_cents: Mapped[int] = mapped_column(BigInteger)
    fee_cents: Mapped[int] = mapped_column(BigInteger)
    reason: Mapped[str] = mapped_column(Text)
    granted_at: Mapped[datetime]


class RequestTokenRow(Base):
    """A request token that has been used; `result` names what the first request made."""

    __tablename__ = "mp_request_token"

    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), primary_key=True)
    operation: Mapped[str] = mapped_column(String(64), primary_key=True)
    token: Mapped[str] = mapped_column(String(128), primary_key=True)
    created_at: Mapped[datetime]
    result: Mapped[str] = mapped_column(String(64), default="")


class ReviewEntryRow(Base):
    """One result or action of a review policy; an action's target is the subject, its outcome the value."""

    __tablename__ = "mp_review_entry"
    __table_args__ = (Index(None, "hit_id", "seq"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    hit_id: Mapped[str] = mapped_column(ForeignKey("mp_hit.hit_id"))
    level: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(8))
    action_id: Mapped[str] = mapped_column(String(64))
    subject_id: Mapped[str] = mapped_column(String(64))
    subject_type: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(64))
    value: Mapped[str] = mapped_column(Text)
    question_id: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str | None] = mapped_column(String(16))
    error_code: Mapped[str | None] = mapped_column(String(64))
    at: Mapped[datetime]


class NotificationRow(Base):
    """Where the events of one HIT type go."""

    __tablename__ = "mp_notification"

    hit_type_id: Mapped[str] = mapped_column(ForeignKey("mp_hit_type.hit_type_id"), primary_key=True)
    transport: Mapped[str] = mapped_column(String(16))
    destination: Mapped[str] = mapped_column(Text)
    event_types: Mapped[dict[str, Any]]
    is_active: Mapped[bool]


class EventRow(Base):
    """An event on its way out; what has the same queue and destination goes out in order."""

    __tablename__ = "mp_event"
    __table_args__ = (Index(None, "state", "next_attempt_at"), Index(None, "queue", "state", "seq"))

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    document_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), index=True)
    queue: Mapped[str] = mapped_column(String(64))
    event_type: Mapped[str] = mapped_column(String(32))
    at: Mapped[datetime]
    recorded_at: Mapped[datetime]
    hit_type_id: Mapped[str] = mapped_column(String(64))
    hit_id: Mapped[str] = mapped_column(String(64))
    assignment_id: Mapped[str | None] = mapped_column(String(64))
    transport: Mapped[str] = mapped_column(String(16))
    destination: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(16))
    attempts: Mapped[int] = mapped_column(default=0)
    next_attempt_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)


class ClockRow(Base):
    """How far the clock of a test server has been moved; one row at most."""

    __tablename__ = "mp_clock"

    clock_id: Mapped[int] = mapped_column(primary_key=True)
    offset_microseconds: Mapped[int] = mapped_column(BigInteger)
