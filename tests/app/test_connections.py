"""A browser that went on is noticed while its request is still being worked on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from http.client import HTTPConnection
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from werkzeug.serving import make_server

from app.connections import hung_up


@pytest.mark.parametrize("name", ["gunicorn.socket", "werkzeug.socket"])
def test_a_closed_connection_is_told_from_an_open_one(name: str) -> None:
    here, there = socket.socketpair()
    gone = hung_up({name: here})
    assert gone is not None

    with here:
        assert not gone()
        there.sendall(b"more of the request")
        assert not gone()
        there.close()
        assert gone()
    assert gone()


def test_without_a_socket_nothing_is_told() -> None:
    assert hung_up({"REQUEST_METHOD": "GET"}) is None


def test_a_real_server_notices_that_its_caller_left() -> None:
    noticed, waiting = threading.Event(), threading.Event()

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        gone = hung_up(environ)
        assert gone is not None
        waiting.set()
        pause = threading.Event()
        for _ in range(500):
            if gone():
                noticed.set()
                break
            pause.wait(0.01)
        start_response("200 OK", [])
        return [b""]

    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        caller = HTTPConnection("127.0.0.1", server.port, timeout=10)
        caller.request("GET", "/")
        assert waiting.wait(5)
        assert not noticed.is_set()
        caller.close()
        assert noticed.wait(5)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
