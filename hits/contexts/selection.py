"""How a launch chooses contexts: small strategies over what is known of each context. Pure; the seed decides ties.

A context is *held* by a HIT that may still bring work, and *used* by one that has. Strategies never look at people.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from hits.errors import InvalidInput

LEAST_USED, UNIFORM, LEAST_FOOLED, REISSUE, UNCERTAINTY = (
    "least-used",
    "uniform",
    "least-fooled",
    "reissue",
    "uncertainty",
)
#: How many examples the round's own share weighs as, for a context with few or none.
PRIOR_EXAMPLES: Final = 2


@dataclass(frozen=True)
class Candidate:
    """What is known of a context in its round.

    ``asked`` and ``fooled`` count collected examples, ``sound``, ``failed`` and ``waiting`` those that were or are to
    be validated: sound ones, invalid or unresolved ones, ones without a decision. ``uncertainty`` is from 0 to 1, None
    where no model was asked.
    """

    used: int = 0
    held: int = 0
    asked: int = 0
    fooled: int = 0
    sound: int = 0
    failed: int = 0
    waiting: int = 0
    uncertainty: float | None = None
    retired: bool = False

    @property
    def taken(self) -> int:
        """How many HITs of the round have it or had it to some use."""
        return self.used + self.held


class Strategy(Protocol):
    """One way to choose. ``fits`` says who may be chosen at all; of those the smallest key is handed out next."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str: ...

    #: The most HITs of one launch that a context gets; None: any number.
    @property
    def most_each(self) -> int | None: ...

    def fits(self, one: Candidate) -> bool:
        """Tell whether the context may be chosen."""
        ...

    def key(self, one: Candidate, given: int, share: float) -> tuple[float, ...]:
        """Return the order; ``given`` HITs of this launch have it already, ``share`` is the round's fooled share."""
        ...


@dataclass(frozen=True)
class LeastUsed:
    """The contexts first that the fewest HITs have or had."""

    name: str = LEAST_USED
    about: str = "the contexts that the fewest HITs have or had, first"
    most_each: int | None = None

    def fits(self, one: Candidate) -> bool:
        return True

    def key(self, one: Candidate, given: int, share: float) -> tuple[float, ...]:
        return (one.taken + given,)


@dataclass(frozen=True)
class Uniform:
    """Each HIT draws from all contexts alike, whatever was drawn before."""

    name: str = UNIFORM
    about: str = "drawn by the seed, each context as likely as any other for every HIT"
    most_each: int | None = None

    def fits(self, one: Candidate) -> bool:
        return True

    def key(self, one: Candidate, given: int, share: float) -> tuple[float, ...]:
        return ()


@dataclass(frozen=True)
class LeastFooled:
    """The contexts first whose examples fooled the model least often; smoothed towards the round's share."""

    name: str = LEAST_FOOLED
    about: str = "the contexts whose examples fooled the model least often, first"
    most_each: int | None = None

    def fits(self, one: Candidate) -> bool:
        return True

    def key(self, one: Candidate, given: int, share: float) -> tuple[float, ...]:
        return (one.held + given, smoothed(one, share))


@dataclass(frozen=True)
class Reissue:
    """Contexts whose validated examples all turned out invalid or unresolved, once each."""

    name: str = REISSUE
    about: str = "contexts whose validated examples all failed, once more each"
    most_each: int | None = 1

    def fits(self, one: Candidate) -> bool:
        return one.failed > 0 and not (one.sound or one.waiting or one.held)

    def key(self, one: Candidate, given: int, share: float) -> tuple[float, ...]:
        return (one.failed,)


@dataclass(frozen=True)
class Uncertainty:
    """The contexts first about which the target model was least sure; those it was not asked about stand between."""

    name: str = UNCERTAINTY
    about: str = "the contexts about which the target model was least sure, first"
    most_each: int | None = None
    #: What counts for a context without a score: the mean of the others.
    mean: float = field(default=0.5)

    def fits(self, one: Candidate) -> bool:
        return True

    def key(self, one: Candidate, given: int, share: float) -> tuple[float, ...]:
        return (one.held + given, -(one.uncertainty if one.uncertainty is not None else self.mean))


STRATEGIES: Final[dict[str, Strategy]] = {
    one.name: one for one in (LeastUsed(), Uniform(), LeastFooled(), Reissue(), Uncertainty())
}


def smoothed(one: Candidate, share: float) -> float:
    """Return (fooled + 2 m) / (examples + 2), where m is the share of all the round's examples that fooled."""
    return (one.fooled + PRIOR_EXAMPLES * share) / (one.asked + PRIOR_EXAMPLES)


def strategy(name: str, candidates: Sequence[Candidate] = ()) -> Strategy:
    """Return a strategy, fitted to what is known. Raises InvalidInput for a name that there is not."""
    if name not in STRATEGIES:
        raise InvalidInput(f"Contexts can't be chosen by {name!r}. The ways are {', '.join(STRATEGIES)}.")
    if name == UNCERTAINTY:
        scores = [one.uncertainty for one in candidates if one.uncertainty is not None]
        return Uncertainty(mean=sum(scores) / len(scores)) if scores else Uncertainty()
    return STRATEGIES[name]


def choose(
    by: Strategy,
    candidates: Sequence[Candidate],
    hits: int,
    order: Sequence[int],
    chance: random.Random,
    per_context: int = 0,
) -> list[int]:
    """Return for each HIT which candidate it gets. ``order`` decides between equal ones.

    No context has more than ``per_context`` HITs of the round afterwards; 0: any number. Raises InvalidInput with how
    many HITs could be given one.
    """
    places = {index: place for place, index in enumerate(order)}
    room = {
        index: _room(by, one, per_context, hits)
        for index, one in enumerate(candidates)
        if not one.retired and by.fits(one)
    }
    room = {index: left for index, left in room.items() if left > 0}
    if sum(room.values()) < hits:
        raise InvalidInput(_too_few(by, sum(room.values()), hits, per_context))
    if by.name == UNIFORM:
        return _drawn(room, sorted(room, key=places.__getitem__), hits, chance)
    asked = sum(one.asked for one in candidates)
    share = sum(one.fooled for one in candidates) / asked if asked else 0.5
    queue = [(by.key(candidates[index], 0, share), places[index], index, 0) for index in room]
    heapq.heapify(queue)
    chosen = []
    for _ in range(hits):
        _, place, index, given = heapq.heappop(queue)
        chosen.append(index)
        if given + 1 < room[index]:
            heapq.heappush(queue, (by.key(candidates[index], given + 1, share), place, index, given + 1))
    return chosen


def _room(by: Strategy, one: Candidate, per_context: int, hits: int) -> int:
    limits = [hits]
    if by.most_each is not None:
        limits.append(by.most_each)
    if per_context:
        # A re-issued context was used before, for nothing.
        limits.append(per_context - (one.held if by.name == REISSUE else one.taken))
    return min(limits)


def _drawn(room: dict[int, int], pool: list[int], hits: int, chance: random.Random) -> list[int]:
    chosen = []
    for _ in range(hits):
        at = chance.randrange(len(pool))
        index = pool[at]
        chosen.append(index)
        room[index] -= 1
        if not room[index]:
            pool[at] = pool[-1]
            pool.pop()
    return chosen


def _too_few(by: Strategy, possible: int, hits: int, per_context: int) -> str:
    limit = f", with {per_context} HITs of the round for each" if per_context else ""
    step = (
        "Launch so many HITs"
        if possible
        else "`dynahit contexts list` shows how they stand; choose them another way (--contexts-by)"
    )
    return (
        f"{possible} HITs can be given a context by {by.name} ({by.about}{limit}), and {hits} are wanted. Nothing was"
        f" launched. {step}, or upload more contexts (`dynahit contexts upload`)."
    )
