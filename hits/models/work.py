"""What people did: assignments, attempts, examples and votes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UtcDateTime, by_value
from hits.models.people import Worker
from hits.models.rounds import Context, GoldItem, Hit, Round
from hits.states import AssignmentState, AttemptState, Moderation, PracticeState, Split, Verdict


class Assignment(Base):
    """One worker's hold on one HIT. Until the marketplace's own list shows it, it is only a claim of a frame's URL."""

    __tablename__ = "assignment"
    # What stands how, counted without reading a row.
    __table_args__ = (Index("ix_assignment_standing", "hit_id", "state"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    mturk_assignment_id: Mapped[str] = mapped_column(String(64), unique=True)
    hit_id: Mapped[int] = mapped_column(ForeignKey("hit.id"))
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    state: Mapped[AssignmentState] = mapped_column(
        by_value(AssignmentState), default=AssignmentState.OPENED, index=True
    )
    #: None when the page was never opened here and the assignment came from the marketplace's list.
    opened_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    deadline_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    saved_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    accepted_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    submitted_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    auto_approval_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    approved_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    rejected_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: The writer's optional answer to "why is your label right?".
    why: Mapped[str] = mapped_column(Text, default="")
    #: What a writer has typed and not sent, by input; gone once the assignment is saved.
    draft: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    #: Why a person must look before it is approved, for example work that was never done on our page.
    review_reason: Mapped[str | None] = mapped_column(String(200))
    #: The text that the worker had agreed to when the page was opened; None before that, and nothing is kept then.
    consent_text_id: Mapped[int | None] = mapped_column(ForeignKey("consent_text.id"))
    #: When the worker chose to go on behind the warning of a task with disturbing texts.
    warned_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: When the worker handed in what was done so far, before its end, of a task with disturbing texts.
    left_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    hit: Mapped[Hit] = relationship()
    worker: Mapped[Worker] = relationship()


#: In words that the databases find a partial index by.
UNANSWERED: Final = text("state = 'unanswered'")


class Attempt(Base):
    """One text that a writer showed to the model, with what the model said. Written before the model is asked."""

    __tablename__ = "attempt"
    __table_args__ = (
        # Tries belong to the person and the HIT, so that returning and accepting again gives no new ones.
        UniqueConstraint("hit_id", "worker_id", "try_number"),
        UniqueConstraint("hit_id", "worker_id", "answer_digest"),
        CheckConstraint("state != 'answered' OR (predicted_label IS NOT NULL AND fooled IS NOT NULL)", name="answered"),
        CheckConstraint("(state = 'unanswered') = (try_number IS NULL)", name="a_failure_uses_no_try"),
        # What a model left unanswered lately is looked for on every view of a round, among all that was ever asked.
        Index("ix_attempt_unanswered", "asked_at", sqlite_where=UNANSWERED, postgresql_where=UNANSWERED),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    public_id: Mapped[str] = mapped_column(String(40), unique=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"), index=True)
    hit_id: Mapped[int] = mapped_column(ForeignKey("hit.id"), index=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    try_number: Mapped[int | None]
    #: By the task's answer fields.
    answer: Mapped[dict[str, str]] = mapped_column(JSON)
    answer_digest: Mapped[str] = mapped_column(String(64))
    goal_label: Mapped[str] = mapped_column(String(40))
    state: Mapped[AttemptState] = mapped_column(by_value(AttemptState), default=AttemptState.ASKING)
    asked_at: Mapped[datetime] = mapped_column(UtcDateTime())
    answered_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: Seconds from the opening of the page to the question to the model.
    seconds: Mapped[int]
    failure: Mapped[str | None] = mapped_column(String(300))

    model_id: Mapped[str | None] = mapped_column(String(200))
    model_revision: Mapped[str | None] = mapped_column(String(80))
    predicted_label: Mapped[str | None] = mapped_column(String(40))
    probabilities: Mapped[dict[str, float] | None] = mapped_column(JSON)
    fooled: Mapped[bool | None]
    latency_ms: Mapped[float | None]
    truncated: Mapped[bool | None]
    #: How many characters of each model field the model saw, when it did not see all.
    characters_read: Mapped[dict[str, int] | None] = mapped_column(JSON(none_as_null=True))
    #: hits.predictions.AnswerSpan: the model's own answer, of tasks where it marks one.
    predicted_answer: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: SQuAD token F1 of the model's answer against the writer's.
    answer_f1: Mapped[float | None]
    #: The probability of the predicted label, or of the model's span among all spans.
    confidence: Mapped[float | None]
    #: Of an ensemble: its rule, and hits.predictions.MemberAnswer of every member that was asked.
    policy: Mapped[str | None] = mapped_column(String(200))
    members: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))

    #: hits.predictions.Attribution as stored by attempts.store_attribution; None until asked for.
    attribution: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    convergence_delta: Mapped[float | None]
    #: The same for the label that the writer aimed at, where the model said another.
    goal_attribution: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    assignment: Mapped[Assignment] = relationship()
    hit: Mapped[Hit] = relationship()
    worker: Mapped[Worker] = relationship()


class Example(Base):
    """An answered attempt of an assignment that the marketplace has shown to be submitted: it counts."""

    __tablename__ = "example"
    __table_args__ = (
        CheckConstraint("votes_wanted >= 0 AND leased >= 0", name="counters"),
        CheckConstraint("(overridden_at IS NULL) = (override_reason IS NULL)", name="override_has_reason"),
        CheckConstraint("override_label IS NULL OR overridden_at IS NOT NULL", name="override_label"),
        CheckConstraint("(retracted_at IS NULL) = (retraction_reason IS NULL)", name="retraction_has_reason"),
        # The queue: what wants votes, the oldest first.
        Index("ix_example_queue", "round_id", "verdict", "collected_at", "id"),
        # What a round's figures are counted from without reading a row, and the orders in which examples are listed.
        Index("ix_example_figures", "round_id", "verdict", "fooled", "goal_label", "retracted_at"),
        Index("ix_example_decided", "round_id", "decided_at", "verdict", "retracted_at"),
        Index("ix_example_listed", "round_id", "collected_at", "id"),
        Index("ix_example_written", "round_id", "writer_id", "collected_at", "id"),
        Index("ix_example_origin", "round_id", "origin", unique=True),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempt.id"), unique=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"))
    context_id: Mapped[int] = mapped_column(ForeignKey("context.id"))
    writer_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    goal_label: Mapped[str] = mapped_column(String(40))
    model_label: Mapped[str] = mapped_column(String(40))
    fooled: Mapped[bool]
    verdict: Mapped[Verdict] = mapped_column(by_value(Verdict), index=True)
    #: The label that the votes settled on; None while pending and when they settled on none.
    final_label: Mapped[str | None] = mapped_column(String(40))
    moderation: Mapped[Moderation | None] = mapped_column(by_value(Moderation))
    moderation_reason: Mapped[str | None] = mapped_column(String(500))
    #: The decision was about the flags up to here; a later flag waits for another.
    moderated_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: What the requester decided against the votes; without a label the example is out.
    override_label: Mapped[str | None] = mapped_column(String(40))
    override_reason: Mapped[str | None] = mapped_column(String(500))
    overridden_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    retracted_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    retraction_reason: Mapped[str | None] = mapped_column(String(500))
    #: How many further votes could decide it by what was counted, and whether only seniors may give them.
    votes_wanted: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    for_seniors: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    #: How many people hold it at this moment; votes_wanted - leased is what the queue still offers.
    leased: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: Of a new writer's first examples, what the reviewer says; None for all others. Only ones without it and passed
    #: ones go to validators.
    practice_state: Mapped[PracticeState | None] = mapped_column(by_value(PracticeState), index=True)
    collected_at: Mapped[datetime] = mapped_column(UtcDateTime())
    decided_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: Decided when the round is frozen.
    split: Mapped[Split | None] = mapped_column(by_value(Split))
    #: Of an imported example: its name in the published set, and what stands there besides (hits.imports.rows).
    origin: Mapped[str | None] = mapped_column(String(120))
    published: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    attempt: Mapped[Attempt] = relationship()
    round: Mapped[Round] = relationship()
    context: Mapped[Context] = relationship()
    writer: Mapped[Worker] = relationship()


class Lease(Base):
    """An item that was drawn from the queue for an assignment: an example, or a gold item among them.

    ``place`` is one of the votes that the round allows an example; two leases never hold the same one. It is given up
    when the lease ends without a vote, and stays with a counted label.
    """

    __tablename__ = "lease"
    __table_args__ = (
        # Nobody judges anything twice: drawn again after it has ended, the lease moves to the new assignment.
        UniqueConstraint("example_id", "validator_id"),
        UniqueConstraint("gold_item_id", "validator_id"),
        UniqueConstraint("example_id", "place"),
        UniqueConstraint("assignment_id", "position"),
        CheckConstraint("(example_id IS NULL) != (gold_item_id IS NULL)", name="example_or_gold"),
        CheckConstraint("place IS NULL OR (example_id IS NOT NULL AND place BETWEEN 1 AND of_places)", name="place"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"), index=True)
    validator_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    example_id: Mapped[int | None] = mapped_column(ForeignKey("example.id"), index=True)
    gold_item_id: Mapped[int | None] = mapped_column(ForeignKey("gold_item.id"), index=True)
    position: Mapped[int]
    place: Mapped[int | None]
    of_places: Mapped[int]
    drawn_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: When it ends by itself; None once the work is saved, until the marketplace has answered for it.
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime(), index=True)

    assignment: Mapped[Assignment] = relationship()
    validator: Mapped[Worker] = relationship()
    example: Mapped[Example | None] = relationship()
    gold_item: Mapped[GoldItem | None] = relationship()

    @property
    def public_id(self) -> str:
        """The name of the item on the page."""
        return self.example.attempt.public_id if self.example is not None else self._gold.public_id

    @property
    def context_fields(self) -> dict[str, str]:
        """What the item is about, by the task's context fields."""
        return self.example.context.fields if self.example is not None else self._gold.context

    @property
    def answer(self) -> dict[str, str]:
        """What is to be judged, by the task's answer fields."""
        return self.example.attempt.answer if self.example is not None else self._gold.answer

    @property
    def _gold(self) -> GoldItem:
        if self.gold_item is None:
            raise ValueError(f"The lease {self.id} is of nothing.")
        return self.gold_item


class Vote(Base):
    """One validator's judgement of one item: a label, or a flag with its reason. Counts once collected.

    Votes on gold items tell about their validator and decide nothing.
    """

    __tablename__ = "vote"
    __table_args__ = (
        UniqueConstraint("example_id", "validator_id"),
        UniqueConstraint("gold_item_id", "validator_id"),
        CheckConstraint("(example_id IS NULL) != (gold_item_id IS NULL)", name="example_or_gold"),
        CheckConstraint("(label IS NULL) != (flag_reason IS NULL)", name="label_or_flag"),
        CheckConstraint("counted_before IS NULL OR counted_at IS NULL", name="withdrawn_counts_no_more"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    example_id: Mapped[int | None] = mapped_column(ForeignKey("example.id"), index=True)
    gold_item_id: Mapped[int | None] = mapped_column(ForeignKey("gold_item.id"), index=True)
    validator_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"), index=True)
    label: Mapped[str | None] = mapped_column(String(40))
    flag_reason: Mapped[str | None] = mapped_column(String(500))
    #: What was said besides, by the task's vote choices.
    details: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    #: The answer that the validator marked instead, of tasks with marked answers; as Attempt.answer holds it.
    correction: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    #: From the judgement before it, or the opening of the page, to the first one of this item.
    seconds: Mapped[float | None]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: Set when the assignment is collected; before that the vote is a draft that its validator may change.
    counted_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: When it had been counted, of a vote that was withdrawn because its work was rejected as done in bad faith.
    counted_before: Mapped[datetime | None] = mapped_column(UtcDateTime())

    example: Mapped[Example | None] = relationship()
    gold_item: Mapped[GoldItem | None] = relationship()
    validator: Mapped[Worker] = relationship()
    assignment: Mapped[Assignment] = relationship()
