"""How unequally much the writers of a round have written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Concentration:
    """How the examples of a round spread over its writers.

    ``top_5`` and ``top_10`` are the shares of those who wrote most: of the first 5 and 10 per cent of the writers,
    rounded up to whole people (``top_5_writers``, ``top_10_writers``). ``gini`` is 0 when all wrote as much and nears 1
    when one wrote everything. ``effective`` is how many writers who write alike would give as even a spread: one over
    the sum of the squared shares. All None while there is no example.
    """

    writers: int
    examples: int
    top_5_writers: int
    top_10_writers: int
    top_5: float | None
    top_10: float | None
    gini: float | None
    effective: float | None


def concentration(counts: Iterable[int]) -> Concentration:
    """Return the concentration of the writers' numbers of examples; writers without one don't count."""
    written = sorted((count for count in counts if count > 0), reverse=True)
    people, total = len(written), sum(written)
    if not total:
        return Concentration(0, 0, 0, 0, None, None, None, None)
    first_5, first_10 = math.ceil(people / 20), math.ceil(people / 10)
    # Of counts in rising order, the usual sum; here the order falls, so that ranks count from the end.
    ranked = sum((people - place) * count for place, count in enumerate(written))
    return Concentration(
        writers=people,
        examples=total,
        top_5_writers=first_5,
        top_10_writers=first_10,
        top_5=sum(written[:first_5]) / total,
        top_10=sum(written[:first_10]) / total,
        gini=max(0.0, 2 * ranked / (people * total) - (people + 1) / people),
        effective=total * total / sum(count * count for count in written),
    )


def spread(counts: Sequence[int], points: int = 50) -> list[tuple[float, float]]:
    """Return the curve of shares: the part of the writers, those who wrote most first, and what part they wrote."""
    written = sorted((count for count in counts if count > 0), reverse=True)
    total = sum(written)
    found, so_far, done = [(0.0, 0.0)], 0, 0
    for point in range(1, min(points, len(written)) + 1):
        upto = round(len(written) * point / min(points, len(written)))
        so_far += sum(written[done:upto])
        done = upto
        found.append((done / len(written), so_far / total))
    return found
