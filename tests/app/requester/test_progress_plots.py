"""How a round comes along, drawn."""

from __future__ import annotations

import pytest
from lxml import etree
from sqlalchemy.orm import Session

from app.requester.dashboard import PLOT_NAMES
from app.requester.progress_plots import PLOTS
from tests.factories import NOON, make_example, make_round

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def test_every_plot_is_a_picture_of_full_and_of_empty_rounds(session: Session) -> None:
    make_example(session)
    empty = make_round(session, number=2)

    assert set(PLOTS) == set(PLOT_NAMES)
    for name, draw in PLOTS.items():
        for round_ in (make_round(session), empty):
            picture = draw(session, round_, NOON)
            assert etree.fromstring(picture.encode()).tag.endswith("svg"), name
            assert "style=" not in picture
    assert ">verified<" in PLOTS["labels"](session, make_round(session), NOON)
