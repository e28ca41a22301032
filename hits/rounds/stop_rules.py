"""When collecting stops by itself: enough validated, money spent, a date, or an error rate that has settled.

The settled rate follows the fixed-width idea of sequential estimation (Chow and Robbins 1965, Annals of Mathematical
Statistics 36; for proportions Frey 2010, The American Statistician 64): go on until the interval is as narrow as it is
wanted. Looking again and again makes such an interval a little too sure of itself, and writers and readers learn, so
that the newest examples must besides not differ from those just before them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from hits.errors import InvalidInput
from hits.models import Example, Round
from hits.money import CENT, display, usd
from hits.rates import Rate, wilson
from hits.states import Verdict

#: Fewer examples tell two windows apart only when they differ a lot.
SMALLEST_WINDOW: Final = 20
LARGEST_WINDOW: Final = 100_000


@dataclass(frozen=True)
class StopRules:
    """When a round stops; None: never for this reason. ``points`` is in percentage points.

    Raises InvalidInput or MoneyError for values that can't be meant.
    """

    #: So many verified fooling examples.
    validated: int | None = None
    #: So many dollars paid or owed, fees included.
    spent: Decimal | None = None
    at: datetime | None = None
    #: Examples in each of the two windows whose vMER is compared.
    window: int | None = None
    #: How wide half of the interval of the whole round's vMER may be.
    points: int = 5

    def __post_init__(self) -> None:
        if self.validated is not None and not 1 <= self.validated <= 10_000_000:
            raise InvalidInput(f"The number of validated examples must be 1 to 10,000,000, not {self.validated:,}.")
        if self.spent is not None:
            object.__setattr__(self, "spent", usd(self.spent))
            if self.spent < CENT:
                raise InvalidInput(f"The money to stop at must be $0.01 or more, not {display(self.spent)}.")
        if self.at is not None and self.at.tzinfo is None:
            raise InvalidInput(f"{self.at.isoformat()} has no time zone. Write it as 2026-12-24T18:00+00:00.")
        if self.window is not None and not SMALLEST_WINDOW <= self.window <= LARGEST_WINDOW:
            raise InvalidInput(
                f"A window of the plateau must hold {SMALLEST_WINDOW} to {LARGEST_WINDOW:,} examples,"
                f" not {self.window:,}."
            )
        if not 1 <= self.points <= 50:
            raise InvalidInput(f"Half of the interval may be 1 to 50 percentage points wide, not {self.points}.")

    @property
    def is_empty(self) -> bool:
        """Whether the round never stops by itself."""
        return replace(self, points=5) == StopRules()

    def as_json(self) -> dict[str, Any]:
        """Return every rule by name; money as text in dollars, the date in ISO 8601."""
        return {
            **asdict(self),
            "spent": None if self.spent is None else str(self.spent),
            "at": None if self.at is None else self.at.isoformat(),
        }


@dataclass(frozen=True)
class Series:
    """What the settled examples of a round say in the order in which they were collected; each a share verified."""

    whole: Rate
    earlier: Rate
    newest: Rate


@dataclass(frozen=True)
class Facts:
    """How a round stands. ``series`` is None where the rules have no window."""

    validated: int
    spent: Decimal
    now: datetime
    series: Series | None = None


@dataclass(frozen=True)
class Rule:
    """One rule in words, how far the round is, and whether it is fulfilled."""

    name: str
    words: str
    standing: str
    fired: bool


def standing(rules: StopRules, facts: Facts) -> list[Rule]:
    """Return every rule that is set with how the round stands to it."""
    found = []
    if rules.validated is not None:
        found.append(
            Rule(
                "validated",
                f"{rules.validated:,} verified fooling examples",
                f"{facts.validated:,} of {rules.validated:,}",
                facts.validated >= rules.validated,
            )
        )
    if rules.spent is not None:
        found.append(
            Rule(
                "spent",
                f"{display(rules.spent)} paid or owed, fees included",
                f"{display(facts.spent)} of {display(rules.spent)}",
                facts.spent >= rules.spent,
            )
        )
    if rules.at is not None:
        found.append(
            Rule(
                "date",
                f"{rules.at:%Y-%m-%d %H:%M} UTC",
                f"now {facts.now:%Y-%m-%d %H:%M} UTC",
                facts.now >= rules.at,
            )
        )
    if rules.window is not None and facts.series is not None:
        found.append(
            Rule(
                "plateau",
                f"vMER known to {rules.points} points and the same in the last two windows"
                f" of {rules.window:,} examples",
                plateau_in_words(facts.series, rules.window),
                is_plateau(facts.series, rules.window, rules.points),
            )
        )
    return found


def is_plateau(series: Series, window: int, points: int) -> bool:
    """Tell whether the error rate has settled.

    Both must hold: half of the 95 % Wilson interval of the whole is at most ``points`` percentage points, and the 95 %
    interval of the difference between the two newest windows holds zero.
    """
    if series.earlier.of < window or series.newest.of < window:
        return False
    low, high = wilson(series.whole.hits, series.whole.of)
    least, most = difference(series.earlier, series.newest)
    return (high - low) / 2 <= points / 100 and least <= 0 <= most


def difference(one: Rate, other: Rate) -> tuple[float, float]:
    """Return the 95 % interval of ``other`` minus ``one``, each share of at least one.

    Newcombe 1998, Statistics in Medicine 17:873-890, method 10: from the two Wilson intervals.
    """
    share_one, share_other = one.hits / one.of, other.hits / other.of
    (low_one, high_one), (low_other, high_other) = wilson(one.hits, one.of), wilson(other.hits, other.of)
    middle = share_other - share_one
    below = math.sqrt((share_other - low_other) ** 2 + (high_one - share_one) ** 2)
    above = math.sqrt((high_other - share_other) ** 2 + (share_one - low_one) ** 2)
    return middle - below, middle + above


def plateau_in_words(series: Series, window: int) -> str:
    """Return how near the error rate is to having settled."""
    if series.earlier.of < window or series.newest.of < window:
        return f"{series.whole.of:,} settled examples, {2 * window:,} are needed"
    low, high = wilson(series.whole.hits, series.whole.of)
    least, most = difference(series.earlier, series.newest)
    return (
        f"vMER {series.whole.percent} ± {50 * (high - low):.1f} points; {series.earlier.percent}, then"
        f" {series.newest.percent}, a difference of {100 * least:+.1f} to {100 * most:+.1f} points"
    )


def rules_of(round_: Round) -> StopRules:
    """Return the rules that are stored with a round."""
    return StopRules(
        validated=round_.stop_validated,
        spent=round_.stop_spent,
        at=round_.stop_at,
        window=round_.stop_window,
        points=round_.stop_points,
    )


def store_rules(round_: Round, rules: StopRules) -> None:
    """Put the rules into the round's row. Flushes nothing."""
    round_.stop_validated, round_.stop_spent, round_.stop_at = rules.validated, rules.spent, rules.at
    round_.stop_window, round_.stop_points = rules.window, rules.points


def series_of(session: Session, round_id: int, window: int) -> Series:
    """Return the figures of the settled examples: those before the oldest one that still waits for votes.

    What fooled the model waits for readers, what did not is settled at once: counting the newest of both would show too
    low a rate. Flagged and unresolved ones count as not verified, as in the vMER. Reads only.
    """
    kept = (Example.round_id == round_id) & Example.retracted_at.is_(None)
    oldest = session.scalar(select(func.min(Example.id)).where(kept, Example.verdict == Verdict.PENDING))
    settled = kept if oldest is None else kept & (Example.id < oldest)
    is_verified = Example.verdict == Verdict.VALID_AND_MODEL_WRONG
    count, verified = session.execute(
        select(func.count(), func.sum(case((is_verified, 1), else_=0))).select_from(Example).where(settled)
    ).one()
    newest = session.scalars(select(Example.verdict).where(settled).order_by(Example.id.desc()).limit(2 * window)).all()
    right = [verdict is Verdict.VALID_AND_MODEL_WRONG for verdict in newest]
    return Series(
        whole=Rate(int(verified or 0), count),
        earlier=Rate(sum(right[window:]), len(right[window:])),
        newest=Rate(sum(right[:window]), len(right[:window])),
    )


def validated_of(session: Session, round_id: int) -> int:
    """Return how many verified fooling examples the round has. Reads only."""
    return (
        session.scalar(
            select(func.count())
            .select_from(Example)
            .where(Example.round_id == round_id, Example.verdict == Verdict.VALID_AND_MODEL_WRONG)
            .where(Example.retracted_at.is_(None))
        )
        or 0
    )
