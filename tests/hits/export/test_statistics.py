"""Figures of an export, counted by hand for three examples."""

from __future__ import annotations

from hits.export.statistics import Statistics
from hits.states import Split, Verdict
from tests.hits.export.published import published


def test_figures_are_those_that_one_counts_by_hand() -> None:
    figures = Statistics()
    figures.add(published())
    figures.add(published(split=Split.TRAIN, verdict=Verdict.NOT_VALIDATED, fooled=False, votes=(), final_label=None))
    figures.add(published(split=Split.WITHHELD, verdict=Verdict.INVALID, model=None, fooled=None, writer=None, round=2))

    whole = figures.whole
    assert (whole.examples, whole.verified, whole.fooled, whole.model_known, whole.flags) == (3, 1, 1, 2, 2)
    assert whole.labels == {"negative": 2, "none": 1}
    assert whole.settled_by == {"readers": 1, "writer": 1, "nobody": 1}
    assert whole.votes == {1: 2, 0: 1}
    assert (whole.judged, whole.unanimous, len(whole.writers), len(whole.validators)) == (2, 2, 1, 2)
    assert set(figures.by_split) == {"dev", "train", "withheld"}
    assert (figures.by_round[1].examples, figures.by_round[2].examples) == (2, 1)
    assert whole.words == 3 * 5
