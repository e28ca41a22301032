"""The ways out for events: SQS and SNS by boto3, signed webhooks, e-mail by SMTP."""

from __future__ import annotations

import email.utils
import hashlib
import hmac
import http.client
import ipaddress
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from hits.marketplace.mails import Undeliverable

if TYPE_CHECKING:
    from hits.marketplace.deliveries import Outgoing, Transport
    from hits.marketplace.mails import Letter

SIGNATURE_HEADER: Final = "X-Marketplace-Signature"
TIMESTAMP_HEADER: Final = "X-Marketplace-Timestamp"
_SECONDS: Final = 10
#: IPv6 addresses that stand for IPv4 ones (RFC 6052, RFC 8215).
_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")
_TRANSLATED_LOCALLY: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
#: How a connection to the SMTP server is protected; "none" is for a server on the same machine.
SmtpSecurity = Literal["none", "starttls", "tls"]


class DeliveryRefused(Exception):
    """A destination that answered with an error, or that this marketplace does not send to."""


@dataclass(frozen=True)
class DeliverySettings:
    """How events leave; a transport whose settings are missing is not there.

    Queues and topics need `aws_region`; without an endpoint they are Amazon's, and without keys boto3 looks for its
    own. Webhooks to private and loopback addresses are refused unless `allow_private_webhooks`; one has
    `webhook_seconds` for everything, and `webhook_ca_file` holds the authorities that are trusted instead of the
    system's. Mail needs `smtp_host` and `mail_from`.
    """

    aws_region: str | None = None
    aws_endpoint_url: str | None = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: str | None = field(default=None, repr=False)
    webhooks: bool = True
    allow_private_webhooks: bool = False
    webhook_seconds: float = 10.0
    webhook_ca_file: Path | None = None
    smtp_host: str | None = None
    smtp_port: int = 25
    smtp_security: SmtpSecurity = "none"
    smtp_user: str | None = None
    smtp_password: str | None = field(default=None, repr=False)
    mail_from: str | None = None


def transports(settings: DeliverySettings) -> Mapping[str, Transport]:
    """Return the transports that these settings allow, by the names that the outbox uses."""
    found: dict[str, Transport] = {}
    if settings.aws_region is not None:
        found |= {"SQS": Queue(settings), "SNS": Topic(settings)}
    if settings.webhooks:
        found["Webhook"] = Webhook(
            allow_private=settings.allow_private_webhooks,
            seconds=settings.webhook_seconds,
            ca_file=settings.webhook_ca_file,
        )
    post = mail(settings)
    if post is not None:
        found["Email"] = post
    return found


def mail(settings: DeliverySettings) -> Mail | None:
    """Return the way out for mail, None if these settings have none."""
    return Mail(settings) if settings.smtp_host is not None and settings.mail_from is not None else None


class Queue:
    """Sends to queues of SQS."""

    def __init__(self, settings: DeliverySettings) -> None:
        """Make the client."""
        self._client = _aws("sqs", settings)

    def send(self, outgoing: Outgoing) -> None:
        """Send the document as a message's body; a FIFO queue gets the document's id against duplicates."""
        fifo: dict[str, str] = {}
        if outgoing.destination.endswith(".fifo"):
            fifo = {"MessageGroupId": "mturk", "MessageDeduplicationId": outgoing.document_id}
        self._client.send_message(QueueUrl=outgoing.destination, MessageBody=outgoing.document, **fifo)


class Topic:
    """Publishes to topics of SNS."""

    def __init__(self, settings: DeliverySettings) -> None:
        """Make the client."""
        self._client = _aws("sns", settings)

    def send(self, outgoing: Outgoing) -> None:
        """Publish the document as the message."""
        fifo: dict[str, str] = {}
        if outgoing.destination.endswith(".fifo"):
            fifo = {"MessageGroupId": "mturk", "MessageDeduplicationId": outgoing.document_id}
        self._client.publish(TopicArn=outgoing.destination, Message=outgoing.document, **fifo)


class Webhook:
    """Posts to http(s) addresses, signed, without following redirects."""

    def __init__(self, *, allow_private: bool, seconds: float = _SECONDS, ca_file: Path | None = None) -> None:
        """Refuse addresses inside the operator's own network unless they are allowed."""
        self._allow_private = allow_private
        self._seconds = seconds
        self._trust = ssl.create_default_context(cafile=ca_file)

    def send(self, outgoing: Outgoing) -> None:
        """Post the document.

        Raises DeliveryRefused for an address that is not allowed, and an answer that is not 2xx; OSError and
        HTTPException for a destination that is not there, is not trusted or does not answer in time.
        """
        parts = urlsplit(outgoing.destination)
        host, is_https = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if is_https else 80)
        body, timestamp = outgoing.document.encode(), str(int(time.time()))
        with self._connected(host, port) as raw, closing(http.client.HTTPConnection(host, port)) as connection:
            connection.sock = self._trust.wrap_socket(raw, server_hostname=host) if is_https else raw
            connection.request(
                "POST",
                (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                body,
                {
                    "Host": parts.netloc,
                    "Content-Type": "application/json",
                    TIMESTAMP_HEADER: timestamp,
                    SIGNATURE_HEADER: f"v1={webhook_signature(outgoing.secret, timestamp, body)}",
                },
            )
            with closing(connection.getresponse()) as response:
                status = response.status
        if not 200 <= status < 300:
            raise DeliveryRefused(f"{parts.hostname} answered {status}.")

    @contextmanager
    def _connected(self, host: str, port: int) -> Iterator[socket.socket]:
        """Yield a connection that is cut when the time is over, however slowly the other side dribbles."""
        # The name is looked up once, judged and used, so that another look-up cannot lead elsewhere.
        address = str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
        if not self._allow_private and not is_outside(address):
            raise DeliveryRefused(f"{host} is an address inside a private network; the operator can allow those.")
        with socket.create_connection((address, port), timeout=self._seconds) as raw:
            # TLS takes over the socket, and this second handle of it can still be cut.
            handle = raw.dup()
            is_cut = threading.Event()
            alarm = threading.Timer(self._seconds, _cut, [handle, is_cut])
            alarm.daemon = True
            alarm.start()
            try:
                yield raw
            finally:
                alarm.cancel()
                alarm.join()
                handle.close()
            # An answer that was cut off can look like one that ended.
            if is_cut.is_set():
                raise TimeoutError(f"{host} took longer than {self._seconds:g} seconds.")


class Mail:
    """Sends e-mail through one SMTP server."""

    def __init__(self, settings: DeliverySettings) -> None:
        """Keep the settings."""
        self._settings = settings

    def send(self, outgoing: Outgoing) -> None:
        """Send an event's document as a message's text."""
        message = EmailMessage()
        message["To"] = outgoing.destination
        message["Subject"] = f"Marketplace event: {outgoing.event_type}"
        message["X-Event-Document-Id"] = outgoing.document_id
        message.set_content(f"{outgoing.document}\n")
        self._send(message)

    def post(self, letter: Letter) -> None:
        """Send a letter to a person.

        Raises Undeliverable if the server says that the address will never do.
        """
        message = EmailMessage()
        message["To"], message["Subject"] = letter.address, letter.subject
        # Nobody reads answers, and no machine should send any.
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(letter.text)
        try:
            self._send(message)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _answer in error.recipients.values()]
            if all(500 <= code < 600 for code in codes):
                raise Undeliverable(f"The mail server refused the address with {codes[0]}.") from error
            raise

    def _send(self, message: EmailMessage) -> None:
        settings = self._settings
        message["From"], message["Date"] = settings.mail_from, email.utils.localtime()
        message["Message-ID"] = email.utils.make_msgid(domain=(settings.mail_from or "").rpartition("@")[2].strip(">"))
        host, port, trust = settings.smtp_host or "", settings.smtp_port, ssl.create_default_context()
        server: smtplib.SMTP
        if settings.smtp_security == "tls":
            server = smtplib.SMTP_SSL(host, port, timeout=_SECONDS, context=trust)
        else:
            server = smtplib.SMTP(host, port, timeout=_SECONDS)
        with server:
            if settings.smtp_security == "starttls":
                server.starttls(context=trust)
            if settings.smtp_user is not None:
                server.login(settings.smtp_user, settings.smtp_password or "")
            server.send_message(message)


def is_outside(address: str) -> bool:
    """Return whether an IP address is of the open internet, and so is any IPv4 address that is wrapped in it."""
    found = ipaddress.ip_address(address)
    every: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = [found]
    if isinstance(found, ipaddress.IPv6Address):
        every += [one for one in (found.ipv4_mapped, found.sixtofour, *(found.teredo or ())) if one is not None]
        if found in _TRANSLATED:
            every.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        if found in _TRANSLATED_LOCALLY:
            return False
    return all(one.is_global and not one.is_multicast for one in every)


def webhook_signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a webhook: the hex HMAC-SHA256 of "<timestamp>.<body>"."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _cut(handle: socket.socket, is_cut: threading.Event) -> None:
    is_cut.set()
    # The other side may have gone by itself.
    with suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)


def _aws(service: str, settings: DeliverySettings) -> Any:
    return boto3.client(
        service,
        region_name=settings.aws_region,
        endpoint_url=settings.aws_endpoint_url,
        aws_access_key_id=settings.aws_access_key_id,
        aws_secret_access_key=settings.aws_secret_access_key,
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=_SECONDS, read_timeout=_SECONDS),
    )
