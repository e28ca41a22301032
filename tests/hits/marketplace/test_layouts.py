"""HIT layouts."""

from __future__ import annotations

from typing import Any

import pytest

from hits.marketplace.errors import OperatorError
from hits.marketplace.questions import read_question
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, refused

PAGE = (
    "<html><body><form><p>${ question }</p><img src='${image.url}'><p>${question} costs $5 {x}</p></form></body></html>"
)


def create_hit(market: Market, layout_id: str, **values: str) -> Any:
    parameters: Any = [{"Name": name.replace("_", "."), "Value": value} for name, value in values.items()]
    return market.client.create_hit(
        **HIT_PROPERTIES, LifetimeInSeconds=60, HITLayoutId=layout_id, HITLayoutParameters=parameters
    )["HIT"]


def test_a_hit_is_made_from_a_layout_and_values(market: Market) -> None:
    layout = market.engine.create_layout(market.requester_id, " Pictures ", PAGE, frame_height=300)
    assert (layout.name, layout.placeholders) == ("Pictures", ("question", "image.url"))
    assert market.engine.layouts(market.requester_id) == [layout]

    hit = create_hit(
        market, layout.layout_id, question="Who & <b>why</b>?", image_url="https://example.org/${question}"
    )

    read = read_question(hit["Question"], allow_http_loopback=False)
    assert read.html == (
        "<html><body><form><p>Who & <b>why</b>?</p><img src='https://example.org/${question}'>"
        "<p>Who & <b>why</b>? costs $5 {x}</p></form></body></html>"
    )
    assert read.frame_height == 300
    assert hit["HITLayoutId"] == layout.layout_id
    assert market.hit(hit["HITId"]) == hit


def test_values_must_fit_the_layout(market: Market) -> None:
    layout_id = market.engine.create_layout(market.requester_id, "Pictures", PAGE).layout_id

    with refused("ParameterValidationError", says="lack image.url"):
        create_hit(market, layout_id, question="q")
    with refused("ParameterValidationError", says="no placeholder other"):
        create_hit(market, layout_id, question="q", image_url="u", other="o")
    with refused("ParameterValidationError", says="twice"):
        market.client.create_hit(
            **HIT_PROPERTIES,
            LifetimeInSeconds=60,
            HITLayoutId=layout_id,
            HITLayoutParameters=[{"Name": "question", "Value": "1"}, {"Name": "question", "Value": "2"}],
        )
    with refused("RequestError", "ParameterOutOfRange"):
        create_hit(market, layout_id, question="q" * 40_000, image_url="u")


def test_a_hit_has_one_kind_of_question(market: Market) -> None:
    layout_id = market.engine.create_layout(market.requester_id, "Pictures", PAGE).layout_id
    hit: dict[str, Any] = {**HIT_PROPERTIES, "LifetimeInSeconds": 60}

    with refused("ParameterValidationError", says="not both"):
        market.create_hit(HITLayoutId=layout_id)
    with refused("ParameterValidationError", says="need a HITLayoutId"):
        market.create_hit(HITLayoutParameters=[{"Name": "a", "Value": "b"}])
    with refused("RequestError", "MissingParameters"):
        market.client.create_hit(**hit)
    other = market.client_for(market.other_requester())
    for client, unknown in ((market.client, "3NONE"), (other, layout_id)):
        with refused("ParameterValidationError", says="not valid for the parameter HITLayoutId"):
            client.create_hit(**hit, HITLayoutId=unknown)


@pytest.mark.parametrize(
    ("name", "html", "height"),
    [
        (" ", PAGE, 0),
        ("n" * 201, PAGE, 0),
        ("n", "<p>no form</p>", 0),
        ("n", PAGE + "x" * 66_000, 0),
        ("n", PAGE, -1),
        ("n", PAGE + "\x00", 0),
    ],
)
def test_layouts_that_cannot_be(market: Market, name: str, html: str, height: int) -> None:
    with pytest.raises(OperatorError):
        market.engine.create_layout(market.requester_id, name, html, frame_height=height)


def test_layouts_need_a_requester(market: Market) -> None:
    with pytest.raises(OperatorError):
        market.engine.create_layout("A1NOBODY", "n", PAGE)
