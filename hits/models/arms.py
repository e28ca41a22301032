"""The arms of a round: under which conditions its writers work, and who was drawn for which."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import JSON, CheckConstraint, ForeignKey, String, Table, UniqueConstraint, event
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UtcDateTime, append_only_guards
from hits.models.people import Worker
from hits.models.rounds import Round

ARM_NAME_CHARACTERS: Final = 40


class ArmPlan(Base):
    """One version of a round's arms and their shares. Rows are only ever added; the newest holds for new people."""

    __tablename__ = "arm_plan"
    __table_args__ = (UniqueConstraint("round_id", "version"), CheckConstraint("version >= 1", name="version_from_one"))

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"))
    version: Mapped[int]
    #: hits.arms.Arm.as_json of each, in the order in which they are reported.
    arms: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    seed: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())
    created_by: Mapped[str] = mapped_column(String(80))

    round: Mapped[Round] = relationship()


class ArmAssignment(Base):
    """A writer's arm in a round, drawn once and never changed. ``place`` counts the people of its plan from 0."""

    __tablename__ = "arm_assignment"
    __table_args__ = (
        UniqueConstraint("round_id", "worker_id"),
        # Two people can't take the same place of a block, whatever locks are there.
        UniqueConstraint("plan_id", "place"),
        CheckConstraint("place >= 0", name="place_from_zero"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"))
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    plan_id: Mapped[int] = mapped_column(ForeignKey("arm_plan.id"))
    place: Mapped[int]
    #: The name of one of the plan's arms.
    arm: Mapped[str] = mapped_column(String(ARM_NAME_CHARACTERS))
    drawn_at: Mapped[datetime] = mapped_column(UtcDateTime())

    plan: Mapped[ArmPlan] = relationship()
    worker: Mapped[Worker] = relationship()


#: The statements, by database, that forbid changing what was drawn; a migration runs them.
ARM_GUARDS: Final[dict[str, tuple[str, ...]]] = append_only_guards(
    "arm_plan",
    "arm_assignment",
    function="forbid_arm_change",
    message="arms and who was drawn for them are append-only",
)


@event.listens_for(ArmAssignment.__table__, "after_create")
def _guard_arms(_table: Table, connection: Any, **_options: Any) -> None:
    """Put the guards on a database that ``create_all`` makes; who was drawn comes after the plans."""
    for statement in ARM_GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
