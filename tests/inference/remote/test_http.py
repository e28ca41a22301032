"""Whatever a model server does, the caller gets JSON or one of our errors, within the deadline."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hits.predictions import ModelUnavailable
from inference.errors import BadModelAnswer, EngineRefused, EngineUnreachable, ModelQueueFull, ModelTimeout
from inference.remote.http import MAX_ANSWER_BYTES, ModelServer, address
from tests.inference.remote.answering import answering, dripping


def test_json_goes_and_comes() -> None:
    with answering(lambda method, path, body, headers: (200, {"got": body})) as server:
        assert ModelServer(server.url + "/", seconds=2).post("/x", {"é": 1}) == {"got": {"é": 1}}
        assert server.asked[0][:3] == ("POST", "/x", {"é": 1})


def test_an_empty_body_is_none() -> None:
    with answering(lambda *_: (200, b"")) as server:
        assert ModelServer(server.url, seconds=2).get("/ready") is None


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (429, {}, ModelQueueFull),
        (503, {"code": 503, "type": "ServiceUnavailableException", "message": "no worker"}, ModelQueueFull),
        (507, {"message": "Worker died."}, EngineRefused),
        (404, {"error": "no such model"}, EngineRefused),
        (422, {"detail": ["x"]}, EngineRefused),
        (302, b"", EngineRefused),
        (500, b"<html>", EngineRefused),
        (200, b"<html>", BadModelAnswer),
        (200, b"[" + b"1," * 3_000_000 + b"1]", BadModelAnswer),
        (200, b"[" * 200_000 + b"]" * 200_000, BadModelAnswer),
        (500, b"[" * 200_000 + b"]" * 200_000, EngineRefused),
    ],
)
def test_every_other_answer_is_an_error(status: int, content: Any, error: type[ModelUnavailable]) -> None:
    with answering(lambda *_: (status, content)) as server, pytest.raises(error):
        ModelServer(server.url, seconds=5).post("/x", {})


def test_the_servers_words_are_kept() -> None:
    with (
        answering(lambda *_: (400, {"code": 400, "type": "InvalidKeyException", "message": "wrong"})) as server,
        pytest.raises(EngineRefused, match="HTTP 400: InvalidKeyException wrong"),
    ):
        ModelServer(server.url, seconds=5).post("/x", {})


def test_a_lost_connection_and_a_died_worker_are_tried_once_more() -> None:
    answers: Iterator[Any] = iter([None, (200, 1), (507, {}), (200, 2)])
    with answering(lambda *_: next(answers)) as server:
        known = ModelServer(server.url, seconds=5)
        assert known.post("/x", {}) == 1
        assert known.post("/x", {}) == 2


def test_a_connection_lost_twice_is_unreachable() -> None:
    with answering(lambda *_: None) as server, pytest.raises(EngineUnreachable):
        ModelServer(server.url, seconds=5).post("/x", {})


def test_nobody_there_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EngineUnreachable, match="DYNAHIT_ENGINE_URL"):
            ModelServer(url, seconds=5).post("/x", {})


def test_a_slow_server_is_a_timeout_and_not_asked_again() -> None:
    def slow(*_: object) -> Any:
        time.sleep(1)
        return 200, 1

    with answering(slow) as server:
        with pytest.raises(ModelTimeout):
            ModelServer(server.url, seconds=0.2).post("/x", {})
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n",
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Slow:",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200",
        b"HTTP/1.1",
        b"",
    ],
)
def test_a_server_that_sends_byte_after_byte_is_left_at_the_deadline(begun: bytes) -> None:
    with dripping(begun) as url:
        started = time.monotonic()
        with pytest.raises(ModelTimeout):
            ModelServer(url, seconds=0.5).post("/x", {})
        assert time.monotonic() - started < 3


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"])
def test_so_it_is_by_tls(certificate: Path, begun: bytes) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n11"
    with dripping(whole, tls=context) as url:
        known = ModelServer(url, seconds=5)
        known._session.verify = str(certificate)
        assert known.post("/x", {}) == 11

    with dripping(begun, tls=context) as url:
        slow = ModelServer(url, seconds=0.7)
        slow._session.verify = str(certificate)
        started = time.monotonic()
        with pytest.raises(ModelTimeout):
            slow.post("/x", {})
        assert time.monotonic() - started < 3


def test_the_deadline_is_of_both_tries_together() -> None:
    connections = 0

    def closing(listening: socket.socket) -> None:
        nonlocal connections
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                connections += 1
                with connection:
                    connection.recv(65_536)
                    time.sleep(2.5 if connections == 1 else 8)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=closing, args=(listening,), daemon=True).start()
        started = time.monotonic()
        with pytest.raises(ModelTimeout):
            ModelServer(f"http://127.0.0.1:{listening.getsockname()[1]}", seconds=4).post("/x", {})
        elapsed = time.monotonic() - started
        listening.shutdown(socket.SHUT_RDWR)

    assert connections == 2
    assert elapsed < 6


def test_a_server_that_takes_no_request_in_is_left_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        started = time.monotonic()
        with pytest.raises(ModelTimeout):
            ModelServer(f"http://127.0.0.1:{listening.getsockname()[1]}", seconds=0.5).post("/x", "x" * 12_000_000)
        assert time.monotonic() - started < 3


def test_a_connection_that_was_kept_has_the_time_of_its_next_question() -> None:
    pauses = iter([0.0, 0.6, 0.6, 0.6])

    def slow(*_: object) -> Any:
        time.sleep(next(pauses))
        return 200, 1

    with answering(slow) as server:
        known = ModelServer(server.url, seconds=1.5)
        assert [known.post("/x", {}) for _ in range(4)] == [1] * 4


def test_an_answer_without_end_is_not_read_whole() -> None:
    sent = 0

    def flood(listening: socket.socket) -> None:
        nonlocal sent
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[")
            while sent < 20 * MAX_ANSWER_BYTES:
                sent += connection.send(b"1," * 50_000)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        flooding = threading.Thread(target=flood, args=(listening,), daemon=True)
        flooding.start()
        with pytest.raises(BadModelAnswer, match="more than 4,000,000 bytes"):
            ModelServer(f"http://127.0.0.1:{listening.getsockname()[1]}", seconds=20).post("/x", {})
        flooding.join(10)
    assert not flooding.is_alive()
    assert sent < 10 * MAX_ANSWER_BYTES


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://x", "http://", "http://x:0", "http://[", "http://x:99999"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(EngineRefused, match="no web address"):
        address(url)
