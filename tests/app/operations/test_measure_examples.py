"""New examples are compared some at a time, and each once."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.operations import measure_examples
from app.operations.measure_examples import measure_new_examples
from hits.models import Likeness
from tests.factories import make_example


def test_a_pass_measures_what_is_new_up_to_its_limit(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_examples, "CHUNK", 2)
    for _ in range(5):
        make_example(session)
    session.commit()

    assert measure_new_examples(session, most=3) == 3
    assert measure_new_examples(session) == 2
    assert measure_new_examples(session) == 0
    assert session.scalar(select(func.count()).select_from(Likeness)) == 5
