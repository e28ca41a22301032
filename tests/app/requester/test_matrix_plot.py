"""The matrix as a picture: the newest models only, and nothing that the content policy forbids."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from app.operations.compare_models import read_matrix
from app.requester.matrix_plot import drawn
from app.requester.matrix_size import MOST_MODELS, inches_high
from tests.measured import always, measured, sentiment_set


@pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
def test_the_newest_models_are_drawn(session: Session) -> None:
    models = [always("positive", f"model {number}") for number in range(MOST_MODELS + 1)]
    measured(session, *models, sets=[sentiment_set(6)])
    matrix = read_matrix(session, "sentiment")

    picture = drawn(matrix)

    assert "model 0 one" not in picture
    assert all(f"model {number} one" in picture for number in range(1, MOST_MODELS + 1))
    assert "made up (6)" in picture
    assert "style=" not in picture
    assert inches_high(matrix) == pytest.approx(1.1 + 0.22 * MOST_MODELS + 0.22 + 0.16 * MOST_MODELS)
