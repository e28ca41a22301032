"""Rounds, their contexts, target models, and the HITs that were put on the marketplace for them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    Table,
    UniqueConstraint,
    event,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UsdCents, UtcDateTime, append_only_guards, by_value
from hits.states import HitKind, HitState, RoundState


class Round(Base):
    """One collection round of a task against one target model."""

    __tablename__ = "round"
    __table_args__ = (
        UniqueConstraint("task_code", "number"),
        CheckConstraint("number >= 1", name="number_from_one"),
        CheckConstraint("agreeing_votes >= 1 AND max_votes >= agreeing_votes", name="votes"),
        CheckConstraint(
            "split_votes IS NULL OR (split_votes >= agreeing_votes AND split_votes <= max_votes)", name="split_votes"
        ),
        CheckConstraint("senior_value IS NULL OR senior_value >= 1", name="senior_value"),
        CheckConstraint("gold_items >= 0", name="gold_items"),
        CheckConstraint(
            "non_fooling_percent BETWEEN 0 AND 100 AND pair_percent BETWEEN 1 AND 100"
            " AND gold_warning_percent BETWEEN 0 AND 100",
            name="percents",
        ),
        CheckConstraint("(frozen_at IS NULL) = (manifest_sha256 IS NULL)", name="frozen_has_manifest"),
        CheckConstraint("stop_validated IS NULL OR stop_validated >= 1", name="stop_validated"),
        CheckConstraint("stop_spent IS NULL OR stop_spent >= 1", name="stop_spent"),
        CheckConstraint("stop_window IS NULL OR stop_window >= 20", name="stop_window"),
        CheckConstraint("stop_points BETWEEN 1 AND 50", name="stop_points"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    task_code: Mapped[str] = mapped_column(String(40))
    number: Mapped[int]
    task_version: Mapped[int]
    seed: Mapped[int] = mapped_column(default=0)
    #: Votes that must agree to decide an example, and the most that are asked for.
    agreeing_votes: Mapped[int] = mapped_column(default=2)
    max_votes: Mapped[int] = mapped_column(default=3)
    #: Votes that must agree once readers have differed; None: as many as before.
    split_votes: Mapped[int | None]
    #: The value of the validators' qualification from which somebody may break a tie; None: everybody may.
    senior_value: Mapped[int | None]
    #: How many of a hundred examples that did not fool the model are validated as well.
    non_fooling_percent: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: Items with a known label among those of each validation HIT.
    gold_items: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: Validators below this share of right gold items are warned about.
    gold_warning_percent: Mapped[int] = mapped_column(default=70, server_default=text("70"))
    #: Of two people who judge each other, the most that one may judge of the other's examples.
    pair_percent: Mapped[int] = mapped_column(default=25, server_default=text("25"))
    #: The version of its arms for which new writers are drawn (hits.arms); None: all work under the same conditions.
    arms_version: Mapped[int | None]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: Of a round that was published elsewhere and imported: from which files, under which licence (hits.imports).
    origin: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    #: From then on nothing of the round's data can change; triggers see to it (hits.models.frozen).
    frozen_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    frozen_by: Mapped[str | None] = mapped_column(String(80))
    #: What the data are and how they came about (hits.manifest), and the hash over it.
    manifest: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    manifest_sha256: Mapped[str | None] = mapped_column(String(64))
    #: Changed by hits.rounds.move alone, which keeps a RoundMove of each change.
    state: Mapped[RoundState] = mapped_column(
        by_value(RoundState), default=RoundState.DRAFT, server_default=RoundState.DRAFT.value
    )
    #: When collecting stops by itself (hits.rounds.stop_rules); None: never for this reason.
    stop_validated: Mapped[int | None]
    stop_spent: Mapped[Decimal | None] = mapped_column(UsdCents())
    stop_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: Examples in each of the two windows that are compared, and the widest half interval in percentage points.
    stop_window: Mapped[int | None]
    stop_points: Mapped[int] = mapped_column(default=5, server_default=text("5"))


class RoundMove(Base):
    """A round went from one state into another: when, who did it, what was said. Rows are only ever added."""

    __tablename__ = "round_move"

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    #: None for the state in which the round was made.
    from_state: Mapped[str | None] = mapped_column(String(40))
    to_state: Mapped[RoundState] = mapped_column(by_value(RoundState))
    at: Mapped[datetime] = mapped_column(UtcDateTime())
    by: Mapped[str] = mapped_column(String(80))
    note: Mapped[str] = mapped_column(String(500))


#: The statements, by database, that forbid changing what was moved; a migration runs them.
MOVE_GUARDS: Final[dict[str, tuple[str, ...]]] = append_only_guards(
    "round_move", function="forbid_round_move_change", message="moves of a round are append-only"
)


@event.listens_for(RoundMove.__table__, "after_create")
def _guard_moves(_table: Table, connection: Any, **_options: Any) -> None:
    """Put the guards on a database that ``create_all`` makes."""
    for statement in MOVE_GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)


class ModelVersion(Base):
    """The registry of target models: one row per model id and revision that ever answered."""

    __tablename__ = "model_version"
    __table_args__ = (UniqueConstraint("model_id", "revision"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    task_code: Mapped[str] = mapped_column(String(40))
    model_id: Mapped[str] = mapped_column(String(200))
    revision: Mapped[str] = mapped_column(String(80))
    labels: Mapped[list[str]] = mapped_column(JSON)
    #: The model's own label names by the task's.
    label_map: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    weights_sha256: Mapped[str | None] = mapped_column(String(64))
    licence: Mapped[str | None] = mapped_column(String(200))
    parameters: Mapped[int | None] = mapped_column(BigInteger)
    seed: Mapped[int | None]
    card: Mapped[dict[str, Any]] = mapped_column(JSON)
    first_seen_at: Mapped[datetime] = mapped_column(UtcDateTime())


class Context(Base):
    """What a writer starts from (a prompt, a passage); ``fields`` by the task's context fields."""

    __tablename__ = "context"
    __table_args__ = (UniqueConstraint("round_id", "digest"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    fields: Mapped[dict[str, str]] = mapped_column(JSON)
    digest: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())


class HitBatch(Base):
    """HITs of one kind that were launched together with the same terms."""

    __tablename__ = "hit_batch"
    __table_args__ = (
        CheckConstraint("reward >= 0 AND bonus >= 0", name="amounts"),
        CheckConstraint("tries >= 1", name="tries"),
        CheckConstraint("practice >= 0", name="practice"),
        CheckConstraint("pilot IS NULL OR pilot >= 1", name="pilot"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    kind: Mapped[HitKind] = mapped_column(by_value(HitKind))
    #: The same launch has the same key, so that running it again goes on with it instead of beginning a second one.
    key: Mapped[str] = mapped_column(String(64), unique=True)
    #: The Requester API endpoint; ids of one marketplace mean nothing on another.
    endpoint: Mapped[str] = mapped_column(String(200))
    title: Mapped[str] = mapped_column(String(128))
    description: Mapped[str] = mapped_column(String(2000))
    keywords: Mapped[str] = mapped_column(String(1000))
    reward: Mapped[Decimal] = mapped_column(UsdCents())
    #: Paid per verified fooling example; 0.00 for validation batches.
    bonus: Mapped[Decimal] = mapped_column(UsdCents())
    #: What is paid besides, as payments.rules.Extras writes it; None when nothing is.
    extras: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    tries: Mapped[int] = mapped_column(default=1)
    minutes: Mapped[int] = mapped_column(default=5)
    assignment_seconds: Mapped[int]
    auto_approval_seconds: Mapped[int]
    lifetime_seconds: Mapped[int]
    qualification_type_id: Mapped[str | None] = mapped_column(String(64))
    #: Further requirements of the HIT type, as hits.mturk.client.Requirement.as_json.
    requirements: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    #: How many of a new writer's examples a reviewer grades before validators see any.
    practice: Mapped[int] = mapped_column(default=0, server_default="0")
    #: How its contexts were chosen (hits.contexts.selection), and how many HITs of the round one may have; None: any.
    contexts_by: Mapped[str | None] = mapped_column(String(40))
    per_context: Mapped[int | None]
    #: Why it was launched though it pays less than the floor.
    wage_reason: Mapped[str | None] = mapped_column(String(500))
    #: Of validation batches: the items that one assignment shows, and the value that its readers must hold if it is for
    #: seniors.
    items: Mapped[int | None]
    senior_value: Mapped[int | None]
    hit_type_id: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: How many of its HITs are the pilot, after which the others wait until ``released_at``; None: no pilot.
    pilot: Mapped[int | None]
    released_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    round: Mapped[Round] = relationship()


class Hit(Base):
    """One HIT. The row and its request token exist before the marketplace is asked to create it."""

    __tablename__ = "hit"
    __table_args__ = (
        UniqueConstraint("batch_id", "position"),
        # What stands how, counted without reading a row.
        Index("ix_hit_standing", "batch_id", "state"),
        CheckConstraint("state != 'created' OR mturk_hit_id IS NOT NULL", name="created_has_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    batch_id: Mapped[int] = mapped_column(ForeignKey("hit_batch.id"))
    position: Mapped[int]
    #: Unguessable; stands in the ExternalURL and in RequesterAnnotation, by which a lost HIT is found again.
    reference: Mapped[str] = mapped_column(String(40), unique=True)
    request_token: Mapped[str] = mapped_column(String(64), unique=True)
    #: When the token was first sent; the marketplace remembers it for 24 hours from then.
    token_sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    state: Mapped[HitState] = mapped_column(by_value(HitState), default=HitState.PLANNED, index=True)
    mturk_hit_id: Mapped[str | None] = mapped_column(String(64), unique=True)
    max_assignments: Mapped[int] = mapped_column(default=1)
    context_id: Mapped[int | None] = mapped_column(ForeignKey("context.id"))
    goal_label: Mapped[str | None] = mapped_column(String(40))
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    created_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    batch: Mapped[HitBatch] = relationship()
    context: Mapped[Context | None] = relationship()


class GoldItem(Base):
    """An item with a known label, shown to validators among the others and by nothing to be told from them."""

    __tablename__ = "gold_item"
    __table_args__ = (UniqueConstraint("round_id", "digest"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    public_id: Mapped[str] = mapped_column(String(40), unique=True)
    #: As Context.fields and Attempt.answer.
    context: Mapped[dict[str, str]] = mapped_column(JSON)
    answer: Mapped[dict[str, str]] = mapped_column(JSON)
    digest: Mapped[str] = mapped_column(String(64))
    label: Mapped[str] = mapped_column(String(40))
    #: The example that it was copied from; its writer and its readers know it and don't get it.
    example_id: Mapped[int | None] = mapped_column(ForeignKey("example.id"), index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: No longer shown; what was answered stays.
    retired_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    round: Mapped[Round] = relationship()
