"""What is owed and why: pure functions whose amounts carry the sentence that the worker and finance both see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any, Final

from hits.errors import InvalidInput
from hits.models import Example, HitBatch
from hits.money import CENT, ZERO, display, usd
from hits.states import HitKind
from hits.tasks import task
from hits.validations import writer_confirmed

VERIFIED_FOOLING_EXAMPLE: Final = "verified_fooling_example"
DIFFICULT_EXAMPLE: Final = "difficult_example"
FOOLING_STREAK: Final = "fooling_streak"
VALIDATION_BATCH: Final = "validation_batch"
GOLD_ACCURACY: Final = "gold_accuracy"
WAGE_TOPUP: Final = "wage_topup"
COMPENSATION: Final = "compensation"

#: What a batch's own terms promise, so that its reservation counts on it from the launch.
IN_WORST_CASE: Final = frozenset(
    {VERIFIED_FOOLING_EXAMPLE, DIFFICULT_EXAMPLE, FOOLING_STREAK, VALIDATION_BATCH, GOLD_ACCURACY}
)
_MOST_STREAK: Final = 100
_SECONDS_PER_HOUR: Final = 3600


@dataclass(frozen=True)
class Bonus:
    """An amount that is owed, the rule that says so and the sentence that explains it.

    A sentence of a bonus ends with the reference of its payout, which is added when it is planned.
    """

    rule: str
    amount: Decimal
    reason: str


@dataclass(frozen=True)
class Extras:
    """What a batch pays besides its bonus for a verified fooling example; amounts of $0.00 pay nothing.

    ``streak_bonus`` for every ``streak_length`` HITs in a row, each with a verified fooling example.
    ``sure_bonus`` for a verified fooling example of whose wrong label the model was at least ``sure_percent`` % sure.
    Raises InvalidInput, MoneyError.
    """

    streak_length: int = 0
    streak_bonus: Decimal = ZERO
    sure_percent: int = 0
    sure_bonus: Decimal = ZERO

    def __post_init__(self) -> None:
        object.__setattr__(self, "streak_bonus", usd(self.streak_bonus))
        object.__setattr__(self, "sure_bonus", usd(self.sure_bonus))
        if self.streak_bonus and not 2 <= self.streak_length <= _MOST_STREAK:
            raise InvalidInput(f"The streak is {self.streak_length} HITs long; it must be from 2 to {_MOST_STREAK}.")
        if self.sure_bonus and not 1 <= self.sure_percent <= 100:
            raise InvalidInput(f"The model's certainty is {self.sure_percent} %; it must be from 1 to 100.")

    @classmethod
    def of(cls, batch: HitBatch) -> Extras:
        """Return what a batch pays besides."""
        stored: Mapping[str, Any] = batch.extras or {}
        return cls(
            streak_length=int(stored.get("streak_length", 0)),
            streak_bonus=usd(stored.get("streak_bonus", ZERO)),
            sure_percent=int(stored.get("sure_percent", 0)),
            sure_bonus=usd(stored.get("sure_bonus", ZERO)),
        )

    def as_json(self) -> dict[str, Any] | None:
        """Return what is stored with a batch, None when nothing is paid besides."""
        if not self.streak_bonus and not self.sure_bonus:
            return None
        return {
            "streak_length": self.streak_length,
            "streak_bonus": str(self.streak_bonus),
            "sure_percent": self.sure_percent,
            "sure_bonus": str(self.sure_bonus),
        }

    def most(self, assignments: int) -> list[tuple[int, Decimal]]:
        """Return how many bonuses of which amount so many assignments can earn at most."""
        found = [(assignments, self.sure_bonus)] if self.sure_bonus else []
        if self.streak_bonus:
            found.append((assignments // self.streak_length, self.streak_bonus))
        return found

    @property
    def sentences(self) -> list[str]:
        """What workers are told before they take the HIT."""
        found = []
        if self.sure_bonus:
            found.append(
                f"You get {display(self.sure_bonus)} more if the model was at least {self.sure_percent} % sure of its"
                " wrong answer."
            )
        if self.streak_bonus:
            found.append(
                f"You get {display(self.streak_bonus)} more for every {self.streak_length} of these HITs in a row in"
                " which you fooled the model."
            )
        return found


@dataclass(frozen=True)
class ReaderTerms:
    """What a validation batch pays its readers besides the reward; amounts of $0.00 pay nothing.

    ``hit_bonus`` for each of its HITs whose items were all judged. ``gold_bonus`` once for the whole batch to a reader
    who judged at least ``gold_percent`` % of the gold items rightly.
    """

    gold_percent: int = 0
    gold_bonus: Decimal = ZERO
    hit_bonus: Decimal = ZERO

    @classmethod
    def of(cls, batch: HitBatch) -> ReaderTerms:
        """Return what a batch was opened with."""
        stored: Mapping[str, Any] = batch.extras or {}
        return cls(
            gold_percent=int(stored.get("gold_percent", 0)),
            gold_bonus=usd(stored.get("gold_bonus", ZERO)),
            hit_bonus=usd(stored.get("hit_bonus", ZERO)),
        )

    def as_json(self) -> dict[str, Any] | None:
        """Return what is stored with a batch, None when nothing is paid besides."""
        found: dict[str, Any] = {}
        if self.gold_bonus:
            found |= {"gold_percent": self.gold_percent, "gold_bonus": str(self.gold_bonus)}
        if self.hit_bonus:
            found["hit_bonus"] = str(self.hit_bonus)
        return found or None

    def most(self, assignments: int) -> list[tuple[int, Decimal]]:
        """Return how many bonuses of which amount so many assignments can earn at most.

        A reader has one bonus for gold items in a whole batch, and at least one assignment.
        """
        return [(assignments, amount) for amount in (self.hit_bonus, self.gold_bonus) if amount]

    @property
    def sentences(self) -> list[str]:
        """What readers are told before they take the HIT."""
        found = []
        if self.hit_bonus:
            found.append(
                f"You get {display(self.hit_bonus)} more for each of these HITs in which you judge every item."
            )
        if self.gold_bonus:
            found.append(
                f"You get {display(self.gold_bonus)} more, once for all HITs that were opened with this one, if at"
                f" least {self.gold_percent} % of those items are right whose answer is known."
            )
        return found


def base_reward(batch: HitBatch) -> Bonus:
    """Return what every assignment of a batch earns whose work was done, whatever is decided about it."""
    reasons = {
        HitKind.QUALIFICATION: f"For answering the quiz, passed or not: {display(batch.reward)}.",
        # Says what was owed and why.
        HitKind.COMPENSATION: batch.description,
    }
    reason = reasons.get(batch.kind, f"For this HIT, whatever others say about your work: {display(batch.reward)}.")
    return Bonus("base_reward", batch.reward, reason)


def bonus_owed(example: Example, batch: HitBatch, *, readers: int) -> Bonus | None:
    """Return the bonus that an example earns its writer under its batch's terms; None while or because it earns none.

    ``readers`` is how many agreed with the writer's label.
    """
    if not writer_confirmed(example) or not batch.bonus:
        return None
    agreed = {0: "it was confirmed", 1: "1 reader agreed"}.get(readers, f"{readers} readers agreed")
    return Bonus(
        rule=VERIFIED_FOOLING_EXAMPLE,
        amount=batch.bonus,
        reason=f"{_named(example)} fooled the model and {agreed}: {display(batch.bonus)}.",
    )


def difficulty_owed(example: Example, batch: HitBatch) -> Bonus | None:
    """Return what an example earns because the model was sure of its wrong label; None if or while it earns none."""
    extras = Extras.of(batch)
    if not writer_confirmed(example) or not extras.sure_bonus:
        return None
    sure = certainty(example)
    if sure is None or sure < extras.sure_percent:
        return None
    return Bonus(
        rule=DIFFICULT_EXAMPLE,
        amount=extras.sure_bonus,
        reason=f"{_named(example)} fooled the model though it was {sure} % sure: {display(extras.sure_bonus)}.",
    )


def certainty(example: Example) -> int | None:
    """Return how sure the model was of its label, in whole percent rounded down; None where it gave no figure."""
    attempt = example.attempt
    share = attempt.confidence
    if share is None and attempt.probabilities:
        share = attempt.probabilities.get(example.model_label)
    return None if share is None else min(int(Decimal(str(share)) * 100), 100)


def streaks_completed(outcomes: Iterable[bool | None], length: int) -> list[int]:
    """Return the places, counted from 0, at which a streak of ``length`` is completed.

    ``outcomes`` tells of each of a writer's HITs, in order, whether it fooled the model and was verified; None is not
    decided yet, and nothing behind it counts before it is. A HIT belongs to one streak at most.
    """
    found, run = [], 0
    for place, outcome in enumerate(outcomes):
        if outcome is None:
            break
        run = run + 1 if outcome else 0
        if run == length:
            found.append(place)
            run = 0
    return found


def streak_owed(batch: HitBatch, number: int) -> Bonus | None:
    """Return what the writer's ``number``-th streak in a batch earns; None where streaks earn nothing."""
    extras = Extras.of(batch)
    if not extras.streak_bonus:
        return None
    return Bonus(
        rule=FOOLING_STREAK,
        amount=extras.streak_bonus,
        reason=f"You fooled the model in {extras.streak_length} HITs in a row (streak {number} of this batch): "
        f"{display(extras.streak_bonus)}.",
    )


def validation_bonus(judged: int, amount: Decimal) -> Bonus | None:
    """Return what a HIT earns of which ``judged`` items were judged; None for nothing judged or no bonus."""
    if judged < 1 or not amount:
        return None
    items = "1 item" if judged == 1 else f"{judged} items"
    return Bonus(VALIDATION_BATCH, amount, f"You judged {items} of a HIT: {display(amount)}.")


def gold_bonus(right: int, gold: int, percent: int, amount: Decimal) -> Bonus | None:
    """Return what ``right`` of ``gold`` known answers earn when at least ``percent`` % are asked for.

    None for too few right ones, none asked, or no bonus.
    """
    if gold < 1 or not amount or right * 100 < percent * gold:
        return None
    return Bonus(
        GOLD_ACCURACY, amount, f"{right} of {gold} items whose answer was known were right: {display(amount)}."
    )


def wage_topup(seconds: int, paid: Decimal, hourly: Decimal) -> Bonus | None:
    """Return what ``paid`` lacks of an hourly wage for so many seconds, rounded up to a cent; None if nothing."""
    due = (hourly * seconds / _SECONDS_PER_HOUR - paid).quantize(CENT, rounding=ROUND_UP)
    if due <= ZERO:
        return None
    minutes = max(1, round(seconds / 60))
    return Bonus(
        WAGE_TOPUP,
        due,
        f"This HIT took you about {minutes} {'minute' if minutes == 1 else 'minutes'}, so that its reward came to less"
        f" than {display(hourly)} an hour. This bonus pays the difference, {display(due)}.",
    )


def compensation(amount: Decimal, cause: str) -> Bonus:
    """Return what somebody gets who could not hand in work through our fault; ``cause`` is said to the worker."""
    return Bonus(
        COMPENSATION,
        amount,
        f"You could not hand in your work through our fault ({cause.strip().rstrip('.')}): {display(amount)}.",
    )


def _named(example: Example) -> str:
    what = task(example.round.task_code).answer_fields[0].label
    asked = example.attempt.asked_at
    return f"{what} of {asked.day} {asked:%b}"
