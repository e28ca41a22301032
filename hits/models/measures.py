"""What models reached on which sets, and what was found about the data of rounds. Rows are only ever added."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import JSON, CheckConstraint, ForeignKey, String, Table, UniqueConstraint, event
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UtcDateTime, append_only_guards
from hits.models.rounds import Round


class MeasuredSet(Base):
    """Labelled rows that models are measured on: a split of a frozen round, a base test set, or functional tests.

    ``sha256`` is over the rows: of a round's split over its manifest's hash and the split's name.
    """

    __tablename__ = "measured_set"
    __table_args__ = (
        UniqueConstraint("task_code", "sha256"),
        CheckConstraint("kind IN ('round', 'base', 'functions')", name="kind"),
        CheckConstraint("(kind = 'round') = (round_number IS NOT NULL)", name="round_has_number"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    task_code: Mapped[str] = mapped_column(String(40))
    sha256: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(120))
    kind: Mapped[str] = mapped_column(String(20))
    round_number: Mapped[int | None]
    split: Mapped[str | None] = mapped_column(String(20))
    rows: Mapped[int]
    first_seen_at: Mapped[datetime] = mapped_column(UtcDateTime())


class ModelAnswers(Base):
    """What a model made of ``rows`` rows of a set from the place ``start`` on, so that measuring goes on where it was.

    ``outcomes`` is by row [right label, answered label] as numbers among ``classes``, the second one -1 for no answer;
    or of readers of passages [exact match, token F1]. ``model_key`` is the hash that tells models apart; ``transfer``
    names the map between two tasks' labels, and is empty within a task.
    """

    __tablename__ = "model_answers"
    __table_args__ = (UniqueConstraint("set_id", "model_key", "transfer", "start"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    set_id: Mapped[int] = mapped_column(ForeignKey("measured_set.id"), index=True)
    model_key: Mapped[str] = mapped_column(String(64))
    transfer: Mapped[str] = mapped_column(String(40), default="")
    start: Mapped[int]
    rows: Mapped[int]
    classes: Mapped[list[str]] = mapped_column(JSON)
    outcomes: Mapped[list[Any]] = mapped_column(JSON)
    at: Mapped[datetime] = mapped_column(UtcDateTime())


class ModelScore(Base):
    """One figure of a model on a whole set, with its interval. ``parts`` are the same figure by part of the set."""

    __tablename__ = "model_score"
    __table_args__ = (UniqueConstraint("set_id", "model_key", "transfer", "metric"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    set_id: Mapped[int] = mapped_column(ForeignKey("measured_set.id"), index=True)
    model_key: Mapped[str] = mapped_column(String(64), index=True)
    transfer: Mapped[str] = mapped_column(String(40), default="")
    model_id: Mapped[str] = mapped_column(String(200))
    revision: Mapped[str] = mapped_column(String(80))
    weights_sha256: Mapped[str | None] = mapped_column(String(64))
    metric: Mapped[str] = mapped_column(String(40))
    value: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]
    rows: Mapped[int]
    seed: Mapped[int]
    resamples: Mapped[int]
    parts: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    at: Mapped[datetime] = mapped_column(UtcDateTime())

    set: Mapped[MeasuredSet] = relationship()


class BiasReport(Base):
    """What was found about the data of a frozen round (hits.measures.bias); the manifest says which data they were."""

    __tablename__ = "bias_report"
    __table_args__ = (UniqueConstraint("round_id", "manifest_sha256", "format", "seed"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    manifest_sha256: Mapped[str] = mapped_column(String(64))
    format: Mapped[int]
    seed: Mapped[int]
    report: Mapped[dict[str, Any]] = mapped_column(JSON)
    at: Mapped[datetime] = mapped_column(UtcDateTime())

    round: Mapped[Round] = relationship()


_STAY: Final = "what was measured stays"

#: The statements, by table and database, that forbid changing what was measured; a migration runs them.
MEASURE_GUARDS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    name: append_only_guards(name, function=f"forbid_{name}_change", message=_STAY)
    for name in ("measured_set", "model_answers", "model_score", "bias_report")
}


@event.listens_for(MeasuredSet.__table__, "after_create")
@event.listens_for(ModelAnswers.__table__, "after_create")
@event.listens_for(ModelScore.__table__, "after_create")
@event.listens_for(BiasReport.__table__, "after_create")
def _guard_measures(table: Table, connection: Any, **_options: Any) -> None:
    """Put the guards on a database that ``create_all`` makes."""
    for statement in MEASURE_GUARDS[table.name][connection.dialect.name]:
        connection.exec_driver_sql(statement)
