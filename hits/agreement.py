"""How far readers agree: Krippendorff's alpha for labels, with a bootstrap interval over the examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from hits.models import Example, Vote

#: Samples of the bootstrap.
SAMPLES = 1000
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
    """Return the agreement of the counted labels of some rounds; flags, gold and retracted examples are left out.

    The database counts how often each pattern of labels occurs on an example, so that memory does not grow with votes.
    """
    counted = (
        Example.round_id.in_(round_ids),
        Example.retracted_at.is_(None),
        Vote.counted_at.is_not(None),
        Vote.label.is_not(None),
    )
    joined = Vote.example_id == Example.id
    labels = session.scalars(select(Vote.label).join(Example, joined).where(*counted).distinct()).all()
    known = sorted(label for label in labels if label is not None)
    if not known:
        return _of_patterns({})
    by_example = (
        select(*(func.sum(case((Vote.label == label, 1), else_=0)).label(f"n{at}") for at, label in enumerate(known)))
        .join(Example, joined)
        .where(*counted)
        .group_by(Vote.example_id)
        .subquery()
    )
    rows = session.execute(select(*by_example.c, func.count()).group_by(*by_example.c))
    return _of_patterns({tuple(map(int, counts)): number for *counts, number in rows})


def alpha_of(labels: Mapping[int, Sequence[str]]) -> Agreement:
    """Return the agreement of labels by example. The same labels always give the same interval."""
    known = sorted({label for said in labels.values() for label in said})
    return _of_patterns(Counter(tuple(list(said).count(label) for label in known) for said in labels.values()))


def _of_patterns(patterns: Mapping[tuple[int, ...], int]) -> Agreement:
    """Return the agreement of so many examples of each pattern, a pattern being how often each label was given.

    A sample of examples draws each pattern with its share of them: to draw how often each pattern is in the sample is
    to draw the examples, and takes the same time for ten as for ten million.
    """
    # Slow to import, and few pages and commands need it.
    import numpy as np

    judged = sorted((counts, number) for counts, number in patterns.items() if sum(counts) > 1)
    if not judged:
        return Agreement(None, None, None, 0, 0)
    examples, votes = sum(number for _, number in judged), sum(sum(counts) * number for counts, number in judged)
    counts = np.array([counts for counts, _ in judged], dtype=float)
    numbers = np.array([number for _, number in judged], dtype=np.int64)
    found = alphas_of_samples(counts, numbers[None, :])
    if not found:
        return Agreement(None, None, None, examples, votes)
    samples = np.random.default_rng(SEED).multinomial(examples, numbers / examples, size=SAMPLES)
    alphas = alphas_of_samples(counts, samples)
    if not alphas:
        return Agreement(found[0], None, None, examples, votes)
    low, high = (float(bound) for bound in np.percentile(alphas, [2.5, 97.5]))
    return Agreement(found[0], low, high, examples, votes)


def alphas_of_samples(counts: Any, taken: Any) -> list[float]:
    """Return the nominal alpha of each sample: ``counts`` of labels by pattern, ``taken`` how often each is in it.

    Samples with one label only have none.
    """
    each = counts.sum(axis=1)
    # A pattern's share of the coincidences of equal labels, so that a sample is a weighted sum.
    same = (counts * (counts - 1) / (each - 1)[:, None]).sum(axis=1)
    totals = taken @ counts
    number = totals.sum(axis=1)
    expected = number * number - (totals * totals).sum(axis=1)
    useful = expected > 0
    disagreeing = (number - taken @ same)[useful]
    return [float(alpha) for alpha in 1 - (number - 1)[useful] * disagreeing / expected[useful]]
