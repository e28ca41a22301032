"""How like other texts an example is, the index that finds such texts, and how a text was written."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from hits.db import Base


class Likeness(Base):
    """What one example shares with an earlier one of its round, and with its context (hits.duplicates)."""

    __tablename__ = "likeness"
    __table_args__ = (
        CheckConstraint("(near_example_id IS NULL) = (similarity IS NULL)", name="near_has_similarity"),
        CheckConstraint("similarity BETWEEN 0 AND 1", name="similarity"),
        CheckConstraint("copied_share BETWEEN 0 AND 1 AND longest_run >= 0", name="copied"),
    )

    example_id: Mapped[int] = mapped_column(ForeignKey("example.id"), primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    #: The first example of the round that it nearly repeats, and how like they are.
    near_example_id: Mapped[int | None] = mapped_column(ForeignKey("example.id"))
    similarity: Mapped[float | None]
    #: The share of its words that stand in the context in stretches of three or more, and the longest such stretch.
    copied_share: Mapped[float]
    longest_run: Mapped[int]
    copied: Mapped[bool]


class TextBand(Base):
    """One band of an example's MinHash signature; texts that share a band are looked at more closely.

    Only the first of texts that are nearly the same is in here, so that no band fills up with repeats.
    """

    __tablename__ = "text_band"

    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), primary_key=True)
    band: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    example_id: Mapped[int] = mapped_column(ForeignKey("example.id"), primary_key=True)


class Writing(Base):
    """How an attempt was written, as the browser said, and what its writer was told. Nothing is decided by it."""

    __tablename__ = "writing"
    __table_args__ = (
        CheckConstraint(
            "pastes >= 0 AND pasted_characters >= 0 AND keystrokes >= 0 AND typing_seconds >= 0", name="measures"
        ),
    )

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempt.id"), primary_key=True)
    #: None where the browser said nothing, as one without JavaScript does.
    pastes: Mapped[int | None]
    pasted_characters: Mapped[int | None]
    keystrokes: Mapped[int | None]
    typing_seconds: Mapped[int | None]
    #: Whether the page said that the text is like one that was handed in before, and that it copies the context.
    told_near: Mapped[bool]
    told_copied: Mapped[bool]
