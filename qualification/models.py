"""Who may do what, and why: versions of the quizzes, people's results, grants, and levels."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UtcDateTime, by_value
from hits.models import Assignment, HitBatch, Worker


class Level(StrEnum):
    """How far somebody has come in a task: everybody begins as a novice."""

    NOVICE = "novice"
    WRITER = "writer"
    EXPERT = "expert"


class QuizVersion(Base):
    """One state of a quiz, whole: rules, examples, pool and key. Its content never changes.

    HITs that were launched with a version go on with it, whatever the task's file says by then.
    """

    __tablename__ = "quiz_version"
    __table_args__ = (
        UniqueConstraint("kind", "number"),
        UniqueConstraint("kind", "digest"),
        CheckConstraint("number >= 1", name="number_from_one"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    #: Such as ``writer:nli``; the qualification that the quiz earns has the same.
    kind: Mapped[str] = mapped_column(String(60))
    #: Counts from 1; the value that the qualification has on the marketplace.
    number: Mapped[int]
    digest: Mapped[str] = mapped_column(String(64))
    #: qualification.quizzes.Quiz as JSON; holds the key, so it never leaves the server.
    content: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: New HITs don't accept it from then on; those that exist do.
    retired_at: Mapped[datetime | None] = mapped_column(UtcDateTime())


class QuizType(Base):
    """What a quiz's qualification is called by id on a marketplace, so that HITs that ask for it are known here."""

    __tablename__ = "quiz_type"
    __table_args__ = (UniqueConstraint("kind", "endpoint"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(60))
    endpoint: Mapped[str] = mapped_column(String(200))
    qualification_type_id: Mapped[str] = mapped_column(String(64), index=True)


class QuizBatch(Base):
    """Which version the HITs of a qualification batch ask."""

    __tablename__ = "quiz_batch"

    batch_id: Mapped[int] = mapped_column(ForeignKey("hit_batch.id"), primary_key=True)
    version_id: Mapped[int] = mapped_column(ForeignKey("quiz_version.id"), index=True)

    batch: Mapped[HitBatch] = relationship()
    version: Mapped[QuizVersion] = relationship()


class QuizForm(Base):
    """A version that stands on the marketplace as its own fixed form, scored there."""

    __tablename__ = "quiz_form"
    __table_args__ = (UniqueConstraint("version_id", "endpoint"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    version_id: Mapped[int] = mapped_column(ForeignKey("quiz_version.id"))
    endpoint: Mapped[str] = mapped_column(String(200))
    qualification_type_id: Mapped[str] = mapped_column(String(64))
    #: Set once the marketplace has shown the form as it was sent.
    published_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    version: Mapped[QuizVersion] = relationship()


class QuizResult(Base):
    """One try of one person at one version: the items drawn, and once answered the answers and the score."""

    __tablename__ = "quiz_result"
    __table_args__ = (
        # Two tabs can't both draw the same try.
        UniqueConstraint("worker_id", "version_id", "number"),
        CheckConstraint("number >= 1", name="number_from_one"),
        CheckConstraint(
            "(answered_at IS NULL) = (score IS NULL) AND (answered_at IS NULL) = (passed IS NULL)"
            " AND (answered_at IS NULL) = (answers IS NULL)",
            name="answered_whole",
        ),
        CheckConstraint("counted_at IS NULL OR answered_at IS NOT NULL", name="counted_is_answered"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    version_id: Mapped[int] = mapped_column(ForeignKey("quiz_version.id"), index=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    #: The assignment that it was last opened in, where it is answered; one HIT is one try.
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"), unique=True)
    number: Mapped[int]
    #: Ids of the items, in the order in which they are asked.
    items: Mapped[list[str]] = mapped_column(JSON)
    #: By item id.
    answers: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    score: Mapped[int | None]
    passed: Mapped[bool | None]
    opened_at: Mapped[datetime] = mapped_column(UtcDateTime())
    answered_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: Set when the marketplace has shown the assignment with this worker; before that it earns nothing.
    counted_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: Set by a reset or an expiry: it uses no try any more.
    set_aside_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    version: Mapped[QuizVersion] = relationship()
    worker: Mapped[Worker] = relationship()
    assignment: Mapped[Assignment] = relationship()


class GrantState(StrEnum):
    """planned -> granting (the call may have happened) -> granted -> ending (to be taken away) -> ended.

    failed: the marketplace refused to grant it; the cause stands beside it.
    """

    PLANNED = "planned"
    GRANTING = "granting"
    GRANTED = "granted"
    ENDING = "ending"
    ENDED = "ended"
    FAILED = "failed"


#: One of these at most for each person, kind and marketplace.
LIVE = frozenset({GrantState.PLANNED, GrantState.GRANTING, GrantState.GRANTED, GrantState.ENDING})


class Ending(StrEnum):
    """Why a grant ends. Only a revoked one keeps its holder from earning it again."""

    EXPIRED = "expired"
    REVOKED = "revoked"
    REPLACED = "replaced"


_LIVE_ONLY = text("state IN ('planned', 'granting', 'granted', 'ending')")


class QualificationGrant(Base):
    """One qualification of one person. The row exists before the marketplace is asked to grant or to take away."""

    __tablename__ = "qualification_grant"
    __table_args__ = (
        Index(
            "uq_qualification_grant_live",
            "worker_id",
            "kind",
            "endpoint",
            unique=True,
            sqlite_where=_LIVE_ONLY,
            postgresql_where=_LIVE_ONLY,
        ),
        Index("ix_qualification_grant_state", "state"),
        CheckConstraint("state != 'granted' OR granted_at IS NOT NULL", name="granted_has_time"),
        CheckConstraint("state NOT IN ('ending', 'ended') OR ending IS NOT NULL", name="end_has_reason"),
        CheckConstraint("state != 'ended' OR revoked_at IS NOT NULL", name="ended_has_time"),
        CheckConstraint("state != 'failed' OR cause IS NOT NULL", name="trouble_has_cause"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    #: Such as ``writer:nli``, or ``validator`` for the validators of all tasks.
    kind: Mapped[str] = mapped_column(String(60))
    #: Of the quiz that earned it; 0 when a person granted it without one.
    version: Mapped[int]
    #: As the marketplace has it.
    value: Mapped[int]
    #: The Requester API endpoint; ids of one marketplace mean nothing on another.
    endpoint: Mapped[str] = mapped_column(String(200))
    #: A result earns one grant, however often it is counted.
    result_id: Mapped[int | None] = mapped_column(ForeignKey("quiz_result.id"), unique=True)
    state: Mapped[GrantState] = mapped_column(by_value(GrantState), default=GrantState.PLANNED)
    #: Raised with every claim, so that a process that lost its claim can't write over the one that took it.
    claims: Mapped[int] = mapped_column(default=0)
    planned_at: Mapped[datetime] = mapped_column(UtcDateTime())
    granted_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    ending: Mapped[Ending | None] = mapped_column(by_value(Ending))
    #: Set by a reset: a revocation from before keeps its holder from earning it again no more.
    lifted_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: Why it was granted, and once it ends why that; shown to its holder.
    reason: Mapped[str] = mapped_column(String(500), default="")
    #: Who granted it, and once it ends who took it away.
    by: Mapped[str] = mapped_column(String(80))
    cause: Mapped[str | None] = mapped_column(String(500))

    worker: Mapped[Worker] = relationship()
    result: Mapped[QuizResult | None] = relationship()


class LevelChange(Base):
    """One step of one person in one task; the newest row is the level. Rows are only ever added."""

    __tablename__ = "level_change"
    __table_args__ = (Index("ix_level_change_worker_id_task_code", "worker_id", "task_code"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"))
    task_code: Mapped[str] = mapped_column(String(40))
    level: Mapped[Level] = mapped_column(by_value(Level))
    at: Mapped[datetime] = mapped_column(UtcDateTime())
    by: Mapped[str] = mapped_column(String(80))
    reason: Mapped[str] = mapped_column(String(500), default="")

    worker: Mapped[Worker] = relationship()
