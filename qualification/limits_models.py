"""The tables of who may work where: limits per worker, exclusions between rounds, lists of workers, practice grades."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UtcDateTime, by_value
from hits.models import Example, Worker

#: Stands in ``round_number`` for every round of the task, in ``other_number`` for every other one.
EVERY_ROUND = 0


class Work(StrEnum):
    """What people are let in to: writing (creation HITs) or judging (validation HITs)."""

    WRITING = "writing"
    JUDGING = "judging"


class LimitPer(StrEnum):
    """What a limit counts: a worker's HITs of one HIT type, of one round, or of one UTC day."""

    HIT_TYPE = "hit_type"
    ROUND = "round"
    DAY = "day"


class ListKind(StrEnum):
    """Why a worker is on a list.

    set_aside: gets no HITs of the task for now. allowed: is invited where only the invited may work. wrote: has written
    in a round whose writers are kept out of others. full: has done the most HITs of a kind that the round allows.
    """

    SET_ASIDE = "set_aside"
    ALLOWED = "allowed"
    WROTE = "wrote"
    FULL = "full"


class WorkLimit(Base):
    """The most HITs of a kind that one worker may do; the limit of a round stands above that of every round."""

    __tablename__ = "work_limit"
    __table_args__ = (
        UniqueConstraint("task_code", "round_number", "work", "per"),
        CheckConstraint("round_number >= 0", name="round_number"),
        CheckConstraint("most >= 1", name="most"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    task_code: Mapped[str] = mapped_column(String(40))
    round_number: Mapped[int]
    work: Mapped[Work] = mapped_column(by_value(Work))
    per: Mapped[LimitPer] = mapped_column(by_value(LimitPer))
    most: Mapped[int]
    set_at: Mapped[datetime] = mapped_column(UtcDateTime())
    set_by: Mapped[str] = mapped_column(String(80))


class RoundExclusion(Base):
    """Whoever wrote in round ``other_number`` may not write in round ``round_number``.

    With every other round as the other one, the round is exclusive: its writers write nowhere else in the task, and
    nobody who wrote elsewhere writes in it, as for a test set whose writers no model has been trained on.
    """

    __tablename__ = "round_exclusion"
    __table_args__ = (
        UniqueConstraint("task_code", "round_number", "other_number"),
        CheckConstraint("round_number >= 1 AND other_number >= 0 AND round_number != other_number", name="rounds"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    task_code: Mapped[str] = mapped_column(String(40))
    round_number: Mapped[int]
    other_number: Mapped[int]
    set_at: Mapped[datetime] = mapped_column(UtcDateTime())
    set_by: Mapped[str] = mapped_column(String(80))


class AllowList(Base):
    """Only invited workers may write and judge in the round; an empty list lets nobody in."""

    __tablename__ = "allow_list"
    __table_args__ = (
        UniqueConstraint("task_code", "round_number"),
        CheckConstraint("round_number >= 0", name="round_number"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    task_code: Mapped[str] = mapped_column(String(40))
    round_number: Mapped[int]
    set_at: Mapped[datetime] = mapped_column(UtcDateTime())
    set_by: Mapped[str] = mapped_column(String(80))


class ListEntry(Base):
    """A worker on one of our lists, from when to when and why. Our database decides; the marketplace follows.

    ``granted_at`` and ``revoked_at`` tell when the marketplace was told of it by a qualification of the list's name.
    """

    __tablename__ = "list_entry"
    __table_args__ = (
        Index(
            "uq_list_entry_current",
            "worker_id",
            "kind",
            "task_code",
            "round_number",
            "work",
            unique=True,
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
        CheckConstraint("round_number >= 0", name="round_number"),
        CheckConstraint("ended_at IS NOT NULL OR revoked_at IS NULL", name="revoked_after_its_end"),
        CheckConstraint("granted_at IS NULL OR endpoint IS NOT NULL", name="granted_somewhere"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    kind: Mapped[ListKind] = mapped_column(by_value(ListKind))
    task_code: Mapped[str] = mapped_column(String(40))
    round_number: Mapped[int]
    #: Of a full list, what has been done enough; writing for all others.
    work: Mapped[Work] = mapped_column(by_value(Work), default=Work.WRITING)
    reason: Mapped[str] = mapped_column(String(500))
    added_at: Mapped[datetime] = mapped_column(UtcDateTime())
    added_by: Mapped[str] = mapped_column(String(80))
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    ended_by: Mapped[str | None] = mapped_column(String(80))
    #: Where it was granted; another marketplace is told anew.
    endpoint: Mapped[str | None] = mapped_column(String(200))
    granted_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    worker: Mapped[Worker] = relationship()


class PracticeGrade(Base):
    """What a reviewer said about one practice example; the words go to its writer."""

    __tablename__ = "practice_grade"
    __table_args__ = (CheckConstraint("length(words) > 0", name="words"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    example_id: Mapped[int] = mapped_column(ForeignKey("example.id"), unique=True)
    passed: Mapped[bool]
    words: Mapped[str] = mapped_column(Text)
    graded_at: Mapped[datetime] = mapped_column(UtcDateTime())
    graded_by: Mapped[str] = mapped_column(String(80))
    #: When the marketplace was asked to pass the words on.
    notified_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: The assignment on whose page the writer has seen them first.
    shown_assignment_id: Mapped[int | None] = mapped_column(ForeignKey("assignment.id"))

    example: Mapped[Example] = relationship()
