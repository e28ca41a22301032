"""Events over the real protocols: queues and topics of moto's server, HTTP, SMTP."""

from __future__ import annotations

import email
import email.policy
import json
import smtplib
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from hits.marketplace.deliveries import Outgoing
from hits.marketplace.mails import Letter, Undeliverable
from hits.marketplace.transports import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    DeliveryRefused,
    DeliverySettings,
    Mail,
    Webhook,
    is_outside,
    mail,
    transports,
    webhook_signature,
)
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.test_notifications import subscribed

MOTO = """
import sys
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""
KEYS: Any = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}


def outgoing(destination: str) -> Outgoing:
    return Outgoing(destination, '{"Events": []}', "3DOCUMENT", "Ping", "the secret")


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    """The address of moto's server, in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", MOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        yield f"http://127.0.0.1:{int(run.stdout.readline())}"
        run.communicate("")


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Receiver(ThreadingHTTPServer):
    def __init__(self, status: int = 204, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Hook)
        self.status = status
        self.got: list[tuple[str, dict[str, str], bytes]] = []


class _Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_parts: Any) -> None:
        pass


class Mailbox(socketserver.ThreadingTCPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Smtp)
        self.got: list[str] = []


class _Smtp(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        self.wfile.write(b"220 ready\r\n")
        for line in self.rfile:
            command = line.split()[0].upper()
            if command == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = []
                while (text := self.rfile.readline()) != b".\r\n":
                    lines.append(text.decode())
                self.server.got.append("".join(lines))
            self.wfile.write(b"250 ok\r\n" if command != b"QUIT" else b"221 bye\r\n")
            if command == b"QUIT":
                return


def test_events_reach_a_queue_and_a_topic_with_a_queue_behind_it(market: Market, aws: str) -> None:
    sqs: Any = boto3.client("sqs", region_name="us-east-1", endpoint_url=aws, **KEYS)
    sns: Any = boto3.client("sns", region_name="us-east-1", endpoint_url=aws, **KEYS)
    queue, behind, ordered = (
        sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        for name, attributes in (("direct", {}), ("behind", {}), ("ordered.fifo", {"FifoQueue": "true"}))
    )
    topic = sns.create_topic(Name="events")["TopicArn"]
    arn = sqs.get_queue_attributes(QueueUrl=behind, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    ways = transports(DeliverySettings(aws_region="us-east-1", aws_endpoint_url=aws, **KEYS))

    for changes in ({"Destination": queue}, {"Destination": ordered}, {"Transport": "SNS", "Destination": topic}):
        subscribed(market, EventTypes=["HITCreated"], **changes)
        hit_id = market.create_hit()
        assert market.engine.deliver_due(ways).delivered == 1
        there = behind if "Transport" in changes else changes["Destination"]
        (message,) = sqs.receive_message(QueueUrl=there)["Messages"]
        body = json.loads(message["Body"])
        document = json.loads(body["Message"]) if "Transport" in changes else body
        assert document["Events"][0]["HITId"] == hit_id


def test_a_queue_that_is_not_there_is_a_failed_attempt(market: Market, aws: str) -> None:
    subscribed(market, Destination=f"{aws}/123456789012/missing")
    market.create_hit()

    report = market.engine.deliver_due(
        transports(DeliverySettings(aws_region="us-east-1", aws_endpoint_url=aws, **KEYS))
    )

    assert (report.failed, report.waiting) == (1, 1)


def test_webhooks_are_signed_with_the_requesters_secret(market: Market) -> None:
    ways = transports(DeliverySettings(allow_private_webhooks=True))
    with serving(server := Receiver()) as port:
        subscribed(
            market, Transport="SNS", Destination=f"http://127.0.0.1:{port}/hook?lab=1", EventTypes=["HITCreated"]
        )
        market.create_hit()
        assert market.engine.deliver_due(ways).delivered == 1

    ((path, headers, body),) = server.got
    assert path == "/hook?lab=1"
    assert json.loads(body)["CustomerId"] == market.requester_id
    secret = market.engine.webhook_secret(market.requester_id)
    assert headers[SIGNATURE_HEADER] == f"v1={webhook_signature(secret, headers[TIMESTAMP_HEADER], body)}"
    assert secret != market.engine.webhook_secret(market.other_requester())


@pytest.mark.parametrize("status", [301, 404, 500])
def test_a_webhook_that_is_not_taken_is_refused_and_no_redirect_followed(status: int) -> None:
    with serving(server := Receiver(status)) as port, pytest.raises(DeliveryRefused, match=str(status)):
        Webhook(allow_private=True).send(outgoing(f"http://127.0.0.1:{port}"))
    assert [path for path, _headers, _body in server.got] == ["/"]


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.0.0.1",
            "[::1]",
            "10.0.0.1",
            "169.254.169.254",
            "[::ffff:10.0.0.1]",
            "224.0.0.1",
            "[ff02::1]",
            "[fd00::1]",
        ),
        # IPv4 addresses inside of IPv6 ones: by translation, by the operator's own translation, 6to4, Teredo.
        *("[64:ff9b::a00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a00:1]", "[2002:7f00:1::]"),
        "[2001:0:7f00:1::f5ff:fffe]",
    ],
)
def test_webhooks_stay_out_of_the_operators_network(host: str) -> None:
    with pytest.raises(DeliveryRefused, match="private network"):
        Webhook(allow_private=False).send(outgoing(f"https://{host}/hook"))


@pytest.mark.parametrize("address", ["9.9.9.9", "2620:fe::fe", "64:ff9b::909:909"])
def test_the_open_internet_is_outside(address: str) -> None:
    assert is_outside(address)


def test_mail_goes_out_by_smtp(market: Market) -> None:
    with serving(server := Mailbox()) as port:
        ways = transports(DeliverySettings(smtp_host="127.0.0.1", smtp_port=port, mail_from="market@example.org"))
        subscribed(market, Transport="Email", Destination="lab@example.org", EventTypes=["HITCreated"])
        hit_id = market.create_hit()
        assert market.engine.deliver_due(ways).delivered == 1

    (sent,) = server.got
    assert "To: lab@example.org" in sent
    assert "Subject: Marketplace event: HITCreated" in sent
    assert hit_id in sent.replace("=\r\n", "")


def test_only_what_is_configured_is_there() -> None:
    assert set(transports(DeliverySettings())) == {"Webhook"}
    assert set(transports(DeliverySettings(webhooks=False))) == set()
    assert "secret" not in repr(DeliverySettings(aws_secret_access_key="secret", smtp_password="secret"))


@contextmanager
def trusted(folder: Path) -> Iterator[tuple[ssl.SSLContext, Path]]:
    """Yield a server's side of TLS for 127.0.0.1, and the file of the authority that vouches for it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    yield context, folder / "ca.pem"


def test_webhooks_over_tls_trust_only_the_authorities_that_are_named(tmp_path: Path) -> None:
    with trusted(tmp_path) as (context, ca_file):
        server = Receiver()
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with serving(server) as port:
            destination = outgoing(f"https://127.0.0.1:{port}/hook")
            Webhook(allow_private=True, ca_file=ca_file).send(destination)
            with pytest.raises(ssl.SSLCertVerificationError):
                Webhook(allow_private=True).send(destination)

    ((path, headers, _body),) = server.got
    assert (path, headers["Host"]) == ("/hook", f"127.0.0.1:{port}")


class _Dribble(socketserver.StreamRequestHandler):
    """Answers one byte of a header now and then, for as long as somebody listens."""

    def handle(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        with suppress(OSError):
            while True:
                self.wfile.write(b"a")
                time.sleep(0.05)


def test_a_receiver_that_dribbles_is_cut_off() -> None:
    began = time.monotonic()
    with (
        serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Dribble)) as port,
        pytest.raises((OSError, HTTPException)),
    ):
        Webhook(allow_private=True, seconds=0.5).send(outgoing(f"http://127.0.0.1:{port}"))
    assert time.monotonic() - began < 5


def test_letters_go_to_people_with_a_date_and_no_answer_wanted() -> None:
    with serving(server := Mailbox()) as port:
        post = mail(DeliverySettings(smtp_host="127.0.0.1", smtp_port=port, mail_from="Market <m@example.org>"))
        assert post is not None
        post.post(Letter("ada@example.org", "Größe zählt", "Hello,\n\nhttps://work.example.org/x?token=abc\n"))

    message = email.message_from_string(server.got[0], policy=email.policy.default)
    assert (message["To"], message["From"]) == ("ada@example.org", "Market <m@example.org>")
    assert message["Subject"] == "Größe zählt"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"]
    assert message["Message-ID"].endswith("@example.org>")
    assert message.get_content().replace("\r\n", "\n") == "Hello,\n\nhttps://work.example.org/x?token=abc\n"


class Sink:
    """An SMTP server's inside: notes who sent."""

    def __init__(self) -> None:
        self.senders: list[str] = []

    async def handle_DATA(self, _server: Any, session: Any, _envelope: Any) -> str:  # noqa: N802  # aiosmtpd's
        self.senders.append(session.auth_data.login.decode() if session.auth_data else "nobody")
        return "250 ok"


@contextmanager
def smtp_server(sink: Sink, **options: Any) -> Iterator[int]:
    # The server's own first check connects to the port that it was told, so it needs a real one.
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    controller = Controller(sink, "127.0.0.1", port, **options)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def mail_by(port: int, security: Any, **given: Any) -> Mail:
    return Mail(
        DeliverySettings(
            smtp_host="127.0.0.1", smtp_port=port, smtp_security=security, mail_from="m@example.org", **given
        )
    )


def test_mail_signs_in_after_starttls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        return AuthResult(success=data.password == b"good", handled=False, auth_data=data)

    letter = Letter("ada@example.org", "Hello", "x\n")
    with (
        trusted(tmp_path) as (context, ca_file),
        smtp_server(
            sink := Sink(), tls_context=context, require_starttls=True, authenticator=check, auth_required=True
        ) as port,
    ):
        with pytest.raises(ssl.SSLCertVerificationError):
            mail_by(port, "starttls", smtp_user="market", smtp_password="good").post(letter)
        monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
        mail_by(port, "starttls", smtp_user="market", smtp_password="good").post(letter)
        with pytest.raises(smtplib.SMTPAuthenticationError):
            mail_by(port, "starttls", smtp_user="market", smtp_password="bad").post(letter)
        with pytest.raises(smtplib.SMTPException):
            mail_by(port, "none").post(letter)
    assert sink.senders == ["market"]


def test_mail_over_tls_from_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with trusted(tmp_path) as (context, ca_file), smtp_server(sink := Sink(), ssl_context=context) as port:
        monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
        mail_by(port, "tls").post(Letter("ada@example.org", "Hello", "x\n"))
    assert sink.senders == ["nobody"]


@pytest.mark.parametrize(("answer", "is_final"), [("550 no such user", True), ("451 try later", False)])
def test_an_address_that_will_never_do_is_told_apart_from_one_that_may(answer: str, is_final: bool) -> None:
    class Refusing(Sink):
        async def handle_RCPT(self, *_parts: Any) -> str:  # noqa: N802  # aiosmtpd's
            return answer

    refusal = Undeliverable if is_final else smtplib.SMTPRecipientsRefused
    with smtp_server(Refusing()) as port, pytest.raises(refusal):
        mail_by(port, "none").post(Letter("ada@example.org", "Hello", "x\n"))
