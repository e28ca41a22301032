"""How far readers agree: Krippendorff's alpha for labels, with a bootstrap interval over the examples."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.models import Example, Vote

#: Samples of the bootstrap, and how many are worked out at a time, which bounds the memory.
SAMPLES, AT_ONCE = 1000, 100
SEED = 20201


@dataclass(frozen=True)
class Agreement:
    """Alpha is 1 for full agreement and 0 for chance; None while there is nothing to compare or only one label.

    ``low`` and ``high`` bound it in 95 of 100 samples of the examples. ``examples`` are those with two labels or more,
    ``votes`` the labels on them.
    """

    alpha: float | None
    low: float | None
    high: float | None
    examples: int
    votes: int


def agreement(session: Session, round_ids: Collection[int]) -> Agreement:
    """Return the agreement of the counted labels of some rounds; flags, gold and retracted examples are left out."""
    rows = session.execute(
        select(Vote.example_id, Vote.validator_id, Vote.label)
        .join(Example, Vote.example_id == Example.id)
        .where(Example.round_id.in_(round_ids), Example.retracted_at.is_(None))
        .where(Vote.counted_at.is_not(None), Vote.label.is_not(None))
        .order_by(Vote.example_id, Vote.id)
    )
    labels: dict[int, list[str]] = {}
    for example_id, _, label in rows:
        labels.setdefault(example_id or 0, []).append(label or "")
    return alpha_of(labels)


def alpha_of(labels: Mapping[int, Sequence[str]]) -> Agreement:
    """Return the agreement of labels by example. The same labels always give the same interval."""
    # Slow to import, and few pages and commands need them.
    import krippendorff
    import numpy as np

    judged = [said for said in labels.values() if len(said) > 1]
    known = sorted({label for said in judged for label in said})
    votes = sum(map(len, judged))
    if len(known) < 2:
        return Agreement(None, None, None, len(judged), votes)
    counts = np.array([[list(said).count(label) for label in known] for said in judged], dtype=float)
    alpha = float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))
    generator = np.random.default_rng(SEED)
    even = np.full(len(judged), 1 / len(judged))
    found = [
        sampled
        for _ in range(SAMPLES // AT_ONCE)
        for sampled in alphas_of_samples(counts, generator.multinomial(len(judged), even, size=AT_ONCE))
    ]
    if not found:
        return Agreement(alpha, None, None, len(judged), votes)
    low, high = (float(bound) for bound in np.percentile(found, [2.5, 97.5]))
    return Agreement(alpha, low, high, len(judged), votes)


def alphas_of_samples(counts: Any, taken: Any) -> list[float]:
    """Return the nominal alpha of each sample: ``counts`` of labels by example, ``taken`` how often each is in it.

    Samples with one label only have none.
    """
    each = counts.sum(axis=1)
    # An example's share of the coincidences of equal labels, so that a sample is a weighted sum.
    same = (counts * (counts - 1) / (each - 1)[:, None]).sum(axis=1)
    totals = taken @ counts
    number = totals.sum(axis=1)
    expected = number * number - (totals * totals).sum(axis=1)
    useful = expected > 0
    disagreeing = (number - taken @ same)[useful]
    return [float(alpha) for alpha in 1 - (number - 1)[useful] * disagreeing / expected[useful]]
