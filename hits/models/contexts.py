"""Where contexts came from, which of them are no longer handed out, and how unsure a model was about them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from hits.db import Base, UtcDateTime


class ContextUpload(Base):
    """A file of contexts that was stored in a round: whose texts they are, and what was left out."""

    __tablename__ = "context_upload"
    __table_args__ = (CheckConstraint("added >= 0 AND repeats >= 0 AND near >= 0 AND elsewhere >= 0", name="counts"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    file_name: Mapped[str] = mapped_column(String(200))
    file_sha256: Mapped[str] = mapped_column(String(64))
    source: Mapped[str] = mapped_column(String(500))
    licence: Mapped[str] = mapped_column(String(200))
    added: Mapped[int]
    #: Lines that repeat another one of the file or of the round, word for word and nearly, and ones of other rounds.
    repeats: Mapped[int]
    near: Mapped[int]
    elsewhere: Mapped[int]
    by: Mapped[str] = mapped_column(String(80))
    at: Mapped[datetime] = mapped_column(UtcDateTime())


class UploadedContext(Base):
    """The line of an upload that a context came from; one from a launch's own file has none."""

    __tablename__ = "uploaded_context"

    context_id: Mapped[int] = mapped_column(ForeignKey("context.id"), primary_key=True)
    upload_id: Mapped[int] = mapped_column(ForeignKey("context_upload.id"), index=True)
    line: Mapped[int]


class RetiredContext(Base):
    """A context that no further HIT gets."""

    __tablename__ = "retired_context"

    context_id: Mapped[int] = mapped_column(ForeignKey("context.id"), primary_key=True)
    reason: Mapped[str] = mapped_column(String(500))
    by: Mapped[str] = mapped_column(String(80))
    at: Mapped[datetime] = mapped_column(UtcDateTime())


class ContextScore(Base):
    """How unsure one version of a model was about a context, from 0 to 1; made once (app.operations)."""

    __tablename__ = "context_score"
    __table_args__ = (
        UniqueConstraint("context_id", "model_id", "model_revision"),
        CheckConstraint("uncertainty BETWEEN 0 AND 1", name="uncertainty"),
        CheckConstraint("texts >= 1", name="texts"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    context_id: Mapped[int] = mapped_column(ForeignKey("context.id"))
    model_id: Mapped[str] = mapped_column(String(200))
    model_revision: Mapped[str] = mapped_column(String(80))
    uncertainty: Mapped[float]
    #: How many texts the model was asked about.
    texts: Mapped[int]
    at: Mapped[datetime] = mapped_column(UtcDateTime())
