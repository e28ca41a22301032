"""The model's error rates in a round, each with what it is divided by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from hits.models import Example, Round
from hits.rates import Rate
from hits.states import Verdict

#: Nobody can say yet, or ever, whether these are sound.
OPEN_VERDICTS = (Verdict.PENDING, Verdict.FLAGGED, Verdict.UNRESOLVED)


@dataclass(frozen=True)
class ErrorRates:
    """What a round's examples say about its model. ``verdicts`` leaves the retracted ones out."""

    collected: int
    retracted: int
    fooled: int
    verdicts: Mapping[Verdict, int]

    @property
    def verified(self) -> int:
        """How many examples readers found sound and the model wrong about."""
        return self.verdicts.get(Verdict.VALID_AND_MODEL_WRONG, 0)

    @property
    def kept(self) -> int:
        """How many examples there are without the retracted ones."""
        return self.collected - self.retracted

    @property
    def vmer(self) -> Rate:
        """Verified model error rate: valid_and_model_wrong / (collected - retracted)."""
        return Rate(self.verified, self.kept)

    @property
    def mer(self) -> Rate:
        """Model error rate by the writers' labels alone: fooled / (collected - retracted)."""
        return Rate(self.fooled, self.kept)

    @property
    def resolved_vmer(self) -> Rate:
        """Verified model error rate of what is resolved: those that are open or that readers disagree on left out."""
        return Rate(self.verified, self.kept - sum(self.verdicts.get(verdict, 0) for verdict in OPEN_VERDICTS))

    @property
    def denominators(self) -> Mapping[str, str]:
        """By figure, what is divided by what, in words with the numbers."""
        left_out = ", ".join(
            f"{self.verdicts.get(verdict, 0)} {verdict.value}"  # as in every export
            for verdict in OPEN_VERDICTS
        )
        kept = f"({self.collected} collected - {self.retracted} retracted)"
        return {
            "vmer": f"{self.verified} valid_and_model_wrong / {kept}",
            "mer": f"{self.fooled} fooled the model / {kept}",
            "resolved_vmer": f"{self.verified} valid_and_model_wrong / {self.resolved_vmer.of} resolved"
            f" ({self.collected} collected - {self.retracted} retracted - {left_out})",
        }


def error_rates(session: Session, round_: Round) -> ErrorRates:
    """Return the error rates of a round, counted from its examples."""
    return error_rates_where(session, Example.round_id == round_.id)


def error_rates_where(session: Session, condition: ColumnElement[bool]) -> ErrorRates:
    """Return the error rates of the examples for which the condition holds."""
    # Grouped in the order of an index, so that nothing is sorted; what is counted of a column are its values.
    rows = session.execute(
        select(Example.verdict, Example.fooled, func.count(), func.count(Example.retracted_at))
        .where(condition)
        .group_by(Example.verdict, Example.fooled)
    )
    verdicts: dict[Verdict, int] = Counter()
    collected = retracted = fooled = 0
    for verdict, was_fooled, count, out in rows:
        collected += count
        retracted += out
        if count > out:
            verdicts[verdict] += count - out
            fooled += count - out if was_fooled else 0
    return ErrorRates(collected, retracted, fooled, dict(verdicts))
