"""What was measured is read back in order, and two sets of one name can be told apart."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from hits.measures.stored import classes_of, outcomes_of, stored_scores
from tests.measured import LABELS, always, measured, sentiment_set

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def test_figures_come_by_model_as_they_were_measured(session: Session) -> None:
    sets = [sentiment_set(30), sentiment_set(6), sentiment_set(9, "other")]
    measured(session, always("positive"), always("neutral"), sets=sets)

    found = stored_scores(session, "sentiment")

    assert [one.model.model_id for one in found[::9]] == ["always positive", "always neutral"]
    names = list(dict.fromkeys(one.set.name for one in found))
    assert names == [f"made up ({sets[0].sha256[:6]})", f"made up ({sets[1].sha256[:6]})", "other"]
    first = found[0]
    outcomes = outcomes_of(session, first.set.id, first.model.key)
    assert outcomes[:3] == [[0, 1], [1, 1], [2, 1]]
    assert classes_of(session, first.set.id, first.model.key) == LABELS
    assert classes_of(session, first.set.id, "nobody") == ()
    assert first.model.handle == first.model.key[:12]
    assert stored_scores(session, "nli") == []
