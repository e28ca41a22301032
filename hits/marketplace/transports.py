"""The ways out for events: SQS and SNS by boto3, signed webhooks, e-mail by SMTP."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import smtplib
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from hits.marketplace.deliveries import Outgoing, Transport

SIGNATURE_HEADER: Final = "X-Marketplace-Signature"
TIMESTAMP_HEADER: Final = "X-Marketplace-Timestamp"
_SECONDS: Final = 10


class DeliveryRefused(Exception):
    """A destination that answered with an error, or that this marketplace does not send to."""


@dataclass(frozen=True)
class DeliverySettings:
    """How events leave; a transport whose settings are missing is not there.

    Queues and topics need `aws_region`; without an endpoint they are Amazon's, and without keys boto3 looks for its
    own. Webhooks to private and loopback addresses are refused unless `allow_private_webhooks`.
    """

    aws_region: str | None = None
    aws_endpoint_url: str | None = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: str | None = field(default=None, repr=False)
    webhooks: bool = True
    allow_private_webhooks: bool = False
    smtp_host: str | None = None
    smtp_port: int = 25
    smtp_starttls: bool = False
    smtp_user: str | None = None
    smtp_password: str | None = field(default=None, repr=False)
    mail_from: str | None = None


def transports(settings: DeliverySettings) -> Mapping[str, Transport]:
    """Return the transports that these settings allow, by the names that the outbox uses."""
    found: dict[str, Transport] = {}
    if settings.aws_region is not None:
        found |= {"SQS": Queue(settings), "SNS": Topic(settings)}
    if settings.webhooks:
        found["Webhook"] = Webhook(allow_private=settings.allow_private_webhooks)
    if settings.smtp_host is not None and settings.mail_from is not None:
        found["Email"] = Mail(settings)
    return found


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

    def __init__(self, *, allow_private: bool) -> None:
        """Refuse addresses inside the operator's own network unless they are allowed."""
        self._allow_private = allow_private

    def send(self, outgoing: Outgoing) -> None:
        """Post the document.

        Raises DeliveryRefused for an address that is not allowed, and an answer that is not 2xx.
        """
        parts = urlsplit(outgoing.destination)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = self._resolve(parts.hostname or "", port)
        body, timestamp = outgoing.document.encode(), str(int(time.time()))
        connection = _connection(parts.scheme, parts.hostname or "", port, address)
        try:
            connection.request(
                "POST",
                (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                body,
                {
                    "Content-Type": "application/json",
                    TIMESTAMP_HEADER: timestamp,
                    SIGNATURE_HEADER: f"v1={webhook_signature(outgoing.secret, timestamp, body)}",
                },
            )
            status = connection.getresponse().status
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise DeliveryRefused(f"{parts.hostname} answered {status}.")

    def _resolve(self, host: str, port: int) -> str:
        address = str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
        if not self._allow_private and not ipaddress.ip_address(address).is_global:
            raise DeliveryRefused(f"{host} is an address inside a private network; the operator can allow those.")
        return address


class Mail:
    """Sends e-mail through one SMTP server."""

    def __init__(self, settings: DeliverySettings) -> None:
        """Keep the settings."""
        self._settings = settings

    def send(self, outgoing: Outgoing) -> None:
        """Send the document as a message's text."""
        settings = self._settings
        message = EmailMessage()
        message["From"], message["To"] = settings.mail_from, outgoing.destination
        message["Subject"] = f"Marketplace event: {outgoing.event_type}"
        message["X-Event-Document-Id"] = outgoing.document_id
        message.set_content(f"{outgoing.document}\n")
        with smtplib.SMTP(settings.smtp_host or "", settings.smtp_port, timeout=_SECONDS) as server:
            if settings.smtp_starttls:
                server.starttls(context=ssl.create_default_context())
            if settings.smtp_user is not None:
                server.login(settings.smtp_user, settings.smtp_password or "")
            server.send_message(message)


def webhook_signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a webhook: the hex HMAC-SHA256 of "<timestamp>.<body>"."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _connection(scheme: str, host: str, port: int, address: str) -> http.client.HTTPConnection:
    # The name was looked up and judged before, so that another look-up cannot lead elsewhere.
    connection: http.client.HTTPConnection
    if scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
        raw = socket.create_connection((address, port), timeout=_SECONDS)
        connection.sock = context.wrap_socket(raw, server_hostname=host)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
        connection.sock = socket.create_connection((address, port), timeout=_SECONDS)
    return connection


def _aws(service: str, settings: DeliverySettings) -> Any:
    return boto3.client(
        service,
        region_name=settings.aws_region,
        endpoint_url=settings.aws_endpoint_url,
        aws_access_key_id=settings.aws_access_key_id,
        aws_secret_access_key=settings.aws_secret_access_key,
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=_SECONDS, read_timeout=_SECONDS),
    )
