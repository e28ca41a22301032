"""What is owed and why: pure functions whose amounts carry the sentence that the worker and finance both see."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hits.models import Example, HitBatch
from hits.money import display
from hits.tasks import task
from hits.validations import writer_confirmed

VERIFIED_FOOLING_EXAMPLE: Final = "verified_fooling_example"


@dataclass(frozen=True)
class Bonus:
    """An amount that is owed, the rule that says so and the sentence that explains it."""

    rule: str
    amount: Decimal
    reason: str


def bonus_owed(example: Example, batch: HitBatch, *, readers: int, reference: str) -> Bonus | None:
    """Return the bonus that an example earns its writer under its batch's terms; None while or because it earns none.

    ``readers`` is how many agreed with the writer's label. The sentence ends with ``reference``, by which two equal
    bonuses on one assignment are told apart in the marketplace's list.
    """
    if not writer_confirmed(example) or not batch.bonus:
        return None
    what = task(example.round.task_code).answer_fields[0].label
    asked = example.attempt.asked_at
    agreed = {0: "it was confirmed", 1: "1 reader agreed"}.get(readers, f"{readers} readers agreed")
    return Bonus(
        rule=VERIFIED_FOOLING_EXAMPLE,
        amount=batch.bonus,
        reason=f"{what} of {asked.day} {asked:%b} fooled the model and {agreed}: {display(batch.bonus)}. {reference}",
    )
