"""Pictures of a round's readers, drawn from its figures."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from lxml import etree
from sqlalchemy.orm import Session

from app.operations.round_stats import RoundStats, round_stats
from app.requester.plots import PLOTS
from app.requester.readers import PLOT_NAMES
from hits.rates import Rate
from hits.validations.readers import Reader
from tests.factories import make_round
from tests.launched import ROOT


def reader(number: int, **fields: object) -> Reader:
    known = {
        "pseudonym": f"w-{number:04d}",
        "votes": 30,
        "flags": 1,
        "gold": Rate(4, 5),
        "agreed": Rate(20, 25),
        "seconds": 8.0 + number,
        "seconds_later": 7.0,
        "drift": -3.0,
        "warnings": (),
    }
    return Reader(**{**known, **fields})  # type: ignore[arg-type]


@pytest.fixture
def stats(session: Session) -> RoundStats:
    make_round(session)
    session.commit()
    return round_stats(session, "sentiment", 1)


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("people", [0, 1, 60])
def test_each_picture_is_sound_with_nobody_one_and_many(stats: RoundStats, name: str, people: int) -> None:
    some = (reader(1, gold=Rate(0, 0), seconds=None), reader(2, gold=Rate(5, 5)), reader(3, agreed=Rate(0, 9)))
    full = replace(stats, readers=(*some, *(reader(number) for number in range(4, people)))[:people])

    picture = PLOTS[name](full)

    assert etree.fromstring(picture.encode()).tag.endswith("svg")
    assert picture == PLOTS[name](full)
    assert "style=" not in picture


def test_validators_are_named_in_the_picture(stats: RoundStats) -> None:
    picture = PLOTS["gold-and-agreement"](replace(stats, readers=(reader(7),)))

    assert "w-0007" in picture
    assert "the line is at 70%" in picture


def test_the_page_knows_the_pictures_without_loading_the_library() -> None:
    assert list(PLOTS) == list(PLOT_NAMES)
    # numpy is there: the figures of arms and of models are reckoned with it, and it takes a tenth of matplotlib's time.
    code = "import sys, app.requester.routes; assert 'matplotlib' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
