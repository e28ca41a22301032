"""The operations of the API that say where events go."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy import select

from hits.marketplace import events, hit_types
from hits.marketplace.errors import (
    INVALID_TRANSPORT_ENDPOINT,
    MISSING_PARAMETERS,
    MarketplaceError,
    request_error,
    unfit_parameter,
)
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.questions import is_loopback
from hits.marketplace.tables import EventRow, NotificationRow
from hits.marketplace.transactions import Transaction

Params = dict[str, Any]
VERSIONS: Final = ("2006-05-05", "2014-08-15")
WEBHOOK: Final = "Webhook"
#: Test events that one requester can have sent in 24 hours.
MOST_TESTS: Final = 50
_TOPIC: Final = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?")
_ADDRESS: Final = re.compile(r"[^\s@<>\",;:\\()\[\]]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
_TEST_IDS: Final = {"hit_type_id": "3TESTHITTYPE", "hit_id": "3TESTHIT", "assignment_id": "3TESTASSIGNMENT"}


def update_settings(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out UpdateNotificationSettings: replace where a HIT type's events go, switch them on or off."""
    if "Notification" not in params and "Active" not in params:
        raise request_error(MISSING_PARAMETERS, reason="Give Notification, Active or both.")
    hit_type = hit_types.own_type(transaction, requester_id, params["HITTypeId"])
    row = transaction.session.get(NotificationRow, hit_type.hit_type_id)
    if "Notification" in params:
        wanted = params["Notification"]
        transport = checked_transport(transaction, wanted)
        if row is None:
            row = NotificationRow(hit_type_id=hit_type.hit_type_id, is_active=True)
            transaction.session.add(row)
        row.transport, row.destination = transport, wanted["Destination"]
        row.event_types = {"wanted": sorted(set(wanted["EventTypes"]))}
    if row is None:
        raise unfit_parameter("This HITType has no Notification yet that Active could switch; give one.")
    row.is_active = params.get("Active", row.is_active)
    return {}


def send_test(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out SendTestEventNotification: a made-up event goes out whatever EventTypes says."""
    wanted = params["Notification"]
    transport = checked_transport(transaction, wanted)
    _check_number_of_tests(transaction, requester_id)
    events.record(
        transaction,
        params["TestEventType"],
        requester_id=requester_id,
        queue=new_entity_id(),
        transport=transport,
        destination=wanted["Destination"],
        **_TEST_IDS,
    )
    return {}


def _check_number_of_tests(transaction: Transaction, requester_id: str) -> None:
    # Else anybody with a key could fill a stranger's mailbox, or knock at an address again and again.
    sent = (
        select(EventRow.seq)
        .where(
            EventRow.requester_id == requester_id,
            EventRow.hit_id == _TEST_IDS["hit_id"],
            EventRow.recorded_at > transaction.now - timedelta(days=1),
        )
        .limit(MOST_TESTS)
    )
    if len(transaction.session.scalars(sent).all()) >= MOST_TESTS:
        raise MarketplaceError(
            "ThrottlingException",
            f"Rate exceeded: this marketplace sends {MOST_TESTS} test events for a requester in 24 hours.",
        )


def checked_transport(transaction: Transaction, wanted: Params) -> str:
    """Return the transport of a notification; one by SNS to an http(s) address is a webhook.

    Raises MarketplaceError for a version that is not known, no event types, and an unfit destination.
    """
    if wanted["Version"] not in VERSIONS:
        raise unfit_parameter(
            f"The Version of a Notification is {' or '.join(VERSIONS)}, got {wanted['Version'][:40]!r}."
        )
    if not wanted["EventTypes"]:
        raise unfit_parameter("A Notification needs at least one of EventTypes.")
    transport, destination = wanted["Transport"], wanted["Destination"]
    fits, rule = False, "it must be an e-mail address"
    if transport == "Email":
        fits = len(destination) <= 320 and _ADDRESS.fullmatch(destination) is not None
    elif transport == "SQS":
        fits, rule = _is_address(transaction, destination), "it must be the https address of a queue"
    elif transport == "SNS":
        rule = "it must be the ARN of a topic, or an https address for a signed webhook"
        fits = _TOPIC.fullmatch(destination) is not None
        if not fits and _is_address(transaction, destination):
            return WEBHOOK
    if not fits:
        raise request_error(INVALID_TRANSPORT_ENDPOINT, destination=destination[:200], transport=transport, rule=rule)
    return str(transport)


def _is_address(transaction: Transaction, text: str) -> bool:
    if len(text) > 2000 or not text.isascii() or any(character.isspace() or character < " " for character in text):
        return False
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    plain = parts.scheme == "http" and transaction.settings.allow_http_loopback and is_loopback(parts)
    return bool(host) and parts.username is None and (parts.scheme == "https" or plain)
