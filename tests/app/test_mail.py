"""Mail to the people who run the instance: whole, in their own letters, and refusals in words."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from app.mail import MailNotSent, can_send, send_alert
from app.settings import Settings
from hits.clock import FixedClock
from tests.market import settings


class Sink:
    """An SMTP server's inside: keeps what arrives, or refuses an address."""

    def __init__(self, refused: str = "") -> None:
        self.messages: list[EmailMessage] = []
        self.refused = refused

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802  # aiosmtpd's
        if address == self.refused:
            return "550 no such person"
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802  # aiosmtpd's
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        return "250 ok"


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture
def sink() -> Iterator[tuple[Sink, int]]:
    inside, port = Sink(refused="gone@example.org"), free_port()
    controller = Controller(inside, "127.0.0.1", port)
    controller.start()
    yield inside, port
    controller.stop()


def mailing(port: int, to: str = "kim@example.org, robin@example.org") -> Settings:
    return settings(alert_mail=to, mail_from="dynahit@example.org", smtp_host="127.0.0.1", smtp_port=port)


def test_a_mail_arrives_whole_at_everybody(sink: tuple[Sink, int], clock: FixedClock) -> None:
    inside, port = sink

    send_alert(mailing(port), clock, "Größe\nBcc: x@example.org", "Line one\n\n– line three ü\n")

    [message] = inside.messages
    assert message["Subject"] == "Größe Bcc: x@example.org"
    assert message["To"] == "kim@example.org, robin@example.org"
    assert message["Bcc"] is None
    assert message["Message-ID"].endswith("@example.org>")
    assert message["Date"].datetime == clock.now()
    assert message.get_content().replace("\r\n", "\n") == "Line one\n\n– line three ü\n"


def test_a_server_that_is_not_there_and_an_address_that_is_refused_are_named(
    sink: tuple[Sink, int], clock: FixedClock
) -> None:
    _, port = sink

    with pytest.raises(MailNotSent, match=r"did not take it: .*refused"):
        send_alert(mailing(free_port()), clock, "s", "t")
    with pytest.raises(MailNotSent, match=r"gone@example.org"):
        send_alert(mailing(port, "gone@example.org"), clock, "s", "t")
    with pytest.raises(MailNotSent, match=r"refused gone@example.org\."):
        send_alert(mailing(port, "kim@example.org,gone@example.org"), clock, "s", "t")


def test_an_instance_without_mail_sends_none(clock: FixedClock) -> None:
    assert not can_send(settings())
    send_alert(settings(), clock, "s", "t")
    assert can_send(mailing(25))
