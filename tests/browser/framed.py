"""A worker site of another origin that frames HIT pages, and what a browser test does with its pages."""

from __future__ import annotations

import threading
from typing import Any

from flask import Flask, render_template_string, request
from werkzeug.serving import WSGIRequestHandler, make_server

SITE_PAGE = """<!doctype html><html lang="en"><head><title>Site</title><link rel="icon" href="data:,"></head><body>
<main><h1>The worker site</h1><iframe title="The HIT" width="{{ width }}" height="{{ height }}" src="{{ src }}"
 sandbox="allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox allow-modals allow-same-origin"
></iframe></main>
<script>addEventListener("message", ({origin, data}) => { document.title = origin + JSON.stringify(data); });</script>
</body></html>"""


class Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


def worker_site(submitted: list[dict[str, str]]) -> Flask:
    """Return a site that frames an address and keeps what is submitted to it."""
    site = Flask("worker_site")

    @site.get("/frame")
    def frame() -> str:
        return render_template_string(SITE_PAGE, **request.args)

    @site.post("/mturk/externalSubmit")
    def external_submit() -> str:
        submitted.append(dict(request.form))
        return "<!doctype html><html lang=en><title>Done</title><h1>Submitted</h1>"

    return site


def served(app: Flask, host: str) -> tuple[Any, str]:
    server = make_server(host, 0, app, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://{host}:{server.server_port}"


def opened(page: Any, address: str) -> Any:
    """Go to the worker site's page and return the HIT's frame, loaded; who is asked to agree or warned goes on."""
    page.goto(address)
    page.frames[1].wait_for_load_state("load")
    return gone_on(page.frames[1])


def gone_on(frame: Any) -> Any:
    """Agree and go on behind a warning, where the frame's page asks for that; return the frame."""
    for words in ("I agree, go on", "I have read this, go on"):
        button = frame.get_by_role("button", name=words)
        if button.count():
            with frame.expect_navigation():
                button.click()
    return frame


def press(page: Any, frame: Any, words: str) -> None:
    """Walk with Tab to the button of these words and press it, as somebody without a mouse does."""
    for _ in range(60):
        page.keyboard.press("Tab")
        said = frame.evaluate("document.hasFocus() ? document.activeElement.innerText : ''")
        if " ".join(said.split()) == words:
            break
    else:
        raise AssertionError(f"Tab does not lead to {words!r}: {frame.inner_text('main')[:1500]}")
    page.keyboard.press("Enter")


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]
