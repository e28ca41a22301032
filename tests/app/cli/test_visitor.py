"""A visitor without scripts opens pages, sends forms and follows frames, and says what went wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from flask import Flask, abort, request
from werkzeug.serving import make_server

from app.cli.visitor import PageError, Visitor

FORM = """<!doctype html><title>Form</title><main class="narrow page"><h1 id="top">Write  something</h1>
<form method="post" action="/said"><input type="hidden" name="token" value="t1"><textarea name="statement"></textarea>
</form><form method="post" action="/said"><input name="flag"></form><iframe src="/frame?who=me"></iframe></main>"""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    app = Flask("visited")

    @app.get("/")
    def form() -> str:
        return FORM

    @app.post("/said")
    def said() -> str:
        return f"<p>{sorted(request.form.items())}</p>"

    @app.get("/asked")
    def asked() -> str:
        return '<form method="post" action="/care/consent"><input type="hidden" name="version" value="3"></form>'

    @app.post("/care/consent")
    def agreed() -> str:
        return (
            f'<form method="post" action="/care/warning"><input name="token" value="{request.form["version"]}"></form>'
        )

    @app.post("/care/warning")
    def warned() -> str:
        return f"<h1>Work {request.form['token']}</h1>"

    @app.get("/frame")
    def frame() -> str:
        return f"<p>frame of {request.args['who']}</p>"

    @app.get("/refused")
    def refused() -> str:
        abort(403, "Not for you.")

    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def visitor() -> Iterator[Visitor]:
    opened = Visitor()
    yield opened
    opened.close()


def test_words_are_found_by_class_id_and_tag(site: str, visitor: Visitor) -> None:
    page = visitor.open(f"{site}/")

    assert page.text("#top") == page.text("h1") == "Write something"
    assert page.text(".page").startswith("Write something")
    assert page.has("h1")
    assert not page.has(".pag")
    assert page.text(".none") == ""


def test_a_form_is_sent_with_its_hidden_fields(site: str, visitor: Visitor) -> None:
    page = visitor.send(visitor.open(f"{site}/"), "/said", {"statement": "Hello"})

    assert page.text() == "[('statement', 'Hello'), ('token', 't1')]"


def test_one_of_two_forms_is_chosen_by_its_field(site: str, visitor: Visitor) -> None:
    page = visitor.send(visitor.open(f"{site}/"), "/said", {"flag": "odd"}, with_field="flag")

    assert page.text() == "[('flag', 'odd')]"


def test_the_page_in_the_frame_is_opened(site: str, visitor: Visitor) -> None:
    assert visitor.frame(visitor.open(f"{site}/")).text() == "frame of me"


def test_what_is_missing_is_said(site: str, visitor: Visitor) -> None:
    page = visitor.open(f"{site}/frame?who=secret")

    with pytest.raises(PageError, match=r"has no form for /said\. It says: frame of secret"):
        visitor.send(page, "/said")
    with pytest.raises(PageError, match=r"/frame has no frame"):
        visitor.frame(page)


def test_a_refusal_is_said_without_the_addresss_query(site: str, visitor: Visitor) -> None:
    with pytest.raises(PageError, match=r"/refused answered 403: .*Not for you") as caught:
        visitor.open(f"{site}/refused?workerId=SECRET")
    assert "SECRET" not in str(caught.value)


def test_a_site_that_is_away_is_said(visitor: Visitor) -> None:
    with pytest.raises(PageError, match="can't be reached: ConnectionError"):
        visitor.open("http://127.0.0.1:9/")


def test_who_is_asked_to_agree_and_warned_goes_on(site: str, visitor: Visitor) -> None:
    assert visitor.go_on(visitor.open(f"{site}/asked")).text("h1") == "Work 3"
    assert visitor.go_on(visitor.open(f"{site}/")).text("h1") == "Write something"
