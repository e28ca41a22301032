"""Layouts in the console: registered, shown shut in on the second origin."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from flask import Flask

from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor

PAGE = (
    "<!doctype html><html lang='en'><title>t</title><body>"
    "<form action='https://www.mturk.com/mturk/externalSubmit'>${sentence} <script>alert(1)</script></form>"
    "</body></html>"
)


def test_a_layout_is_registered_and_shown(
    app: Flask, console: Visitor, engine: Marketplace, account: Account, clock: TestClock
) -> None:
    console.get("/requester/layouts/new")
    response = console.post("/requester/layouts/new", {"name": "One sentence", "height": "450", "html": PAGE})

    frame = console.page.find("iframe")
    assert frame is not None
    assert "sentence" in console.text()
    assert "&lt;script&gt;alert(1)" in response.text
    address = urlsplit(str(frame["src"]))
    assert f"{address.scheme}://{address.netloc}" in response.headers["Content-Security-Policy"]
    path = f"{address.path}?{address.query}"
    shown = app.test_client().get(path, base_url="http://hits.localhost:8000")
    assert "alert(1)" in shown.text
    assert "sandbox" in shown.headers["Content-Security-Policy"]
    assert app.test_client().get(path).status_code == 404, "never on the site's own host"
    clock.advance(seconds=2 * 86_400)
    assert app.test_client().get(path, base_url="http://hits.localhost:8000").status_code == 404
    (made,) = engine.layouts(account.requester_id)
    assert made.html == PAGE


@pytest.mark.parametrize(
    "changes", [{"name": ""}, {"height": "tall"}, {"height": "999999"}, {"html": "no page"}, {"html": "x" * 70_000}]
)
def test_what_does_not_fit_is_said_and_kept(console: Visitor, changes: dict[str, str]) -> None:
    form = {"name": "One sentence", "height": "450", "html": PAGE, **changes}
    console.get("/requester/layouts/new")

    response = console.post("/requester/layouts/new", form)

    assert response.status_code == 422
    area = console.page.find("textarea")
    assert area is not None
    assert area.get_text().strip("\n") == form["html"]
