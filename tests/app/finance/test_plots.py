"""The pictures: every name and amount is in them as text, and nothing that the content policy forbids."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lxml import etree

from app.finance.plots import PLOTS, cost_per_verified, promised_and_paid, spent_by_month, without_styles
from hits.money import usd
from payments.overview import Money, Overview
from payments.report import Figures

FOUND = Overview(
    {
        "": Money(rewards=usd("1.00")),
        "nli/1": Money(rewards=usd("2.00"), promised=usd("1.00"), verified=4),
        "sentiment/1": Money(rewards=usd("12.00"), bonuses=usd("3.00"), promised=usd("4.50"), verified=3),
        "sentiment/2": Money(rewards=usd("5.00")),
    }
)
MONTHS = {
    f"2026-{n:02d}": Figures(rewards=usd("10.00") * n, bonuses=usd("2.00"), bonus_fees=usd("0.40")) for n in (1, 2)
}


def texts(svg: str) -> list[str]:
    root = etree.fromstring(svg.encode())
    return ["".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize(
    ("svg", "words"),
    [
        (spent_by_month(MONTHS), ["2026-01", "2026-02", "rewards", "bonuses", "fees"]),
        (promised_and_paid(FOUND), ["nli/1", "sentiment/1", "sentiment/2", "promised", "paid"]),
        (cost_per_verified(FOUND), ["nli/1", "sentiment/1"]),
    ],
)
def test_a_picture_names_what_it_shows_as_text_without_styles(svg: str, words: list[str]) -> None:
    found = texts(svg)

    assert [word for word in words if word not in found] == []
    assert any(text.startswith("$") for text in found)
    assert "style" not in svg
    assert "<script" not in svg


def test_a_round_without_a_verified_example_has_no_cost() -> None:
    assert "sentiment/2" not in texts(cost_per_verified(FOUND))


def test_the_same_figures_give_the_same_picture_and_none_give_an_empty_one() -> None:
    assert spent_by_month(MONTHS) == spent_by_month(MONTHS)
    for draw in PLOTS.values():
        assert etree.fromstring(draw(Overview({})).encode()).tag.endswith("svg")


def test_a_style_becomes_attributes() -> None:
    svg = '<svg x="1"><style>*{a: b}</style><g style="fill: #fff; font: 12px &quot;DejaVu Sans&quot;, serif"/></svg>'

    assert without_styles(svg) == (
        '<svg stroke-linejoin="round" stroke-linecap="butt" x="1">'
        '<g fill="#fff" font-size="12px" font-family="\'DejaVu Sans\', serif"/></svg>'
    )


def test_the_service_starts_without_the_drawing_and_table_libraries() -> None:
    slow = "matplotlib", "pyarrow", "xlsxwriter"
    code = f"import sys; import app.finance.views; print([name for name in {slow!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
