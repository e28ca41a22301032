"""Takes events out of the outbox and hands them to their transports: at least once, in order per HIT, with retries."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from sqlalchemy import delete, exists, func, select
from sqlalchemy.orm import aliased

from hits.marketplace import events
from hits.marketplace.database import Store
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import EventRow

# A process that takes an event and dies leaves it to others after this long.
LEASE: Final = timedelta(minutes=2)
GIVE_UP_AFTER: Final = timedelta(days=3)
KEPT_FOR: Final = timedelta(days=30)
_FIRST_DELAY: Final = 10
_LONGEST_DELAY: Final = 3600
_BATCH: Final = 20
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outgoing:
    """One event document on its way; `secret` is what webhooks of this requester are signed with."""

    destination: str
    document: str
    document_id: str
    event_type: str
    secret: str


class Transport(Protocol):
    """Anything that can deliver; whatever it raises counts as a failed attempt."""

    def send(self, outgoing: Outgoing) -> None:
        """Deliver one document or raise."""
        ...


@dataclass(frozen=True)
class DeliveryReport:
    """What one round of deliveries did, and how many events still wait."""

    delivered: int
    failed: int
    given_up: int
    waiting: int


def deliver_due(
    store: Store, now: datetime, settings: MarketplaceSettings, transports: Mapping[str, Transport], *, limit: int
) -> DeliveryReport:
    """Deliver up to `limit` events that are due; no transaction is open while a transport works.

    A transport that is not configured is a failed attempt. Several processes can deliver at the same time.
    """
    delivered = failed = given_up = 0
    tried = 0
    while tried < limit and (claimed := _claim(store, now, settings, min(_BATCH, limit - tried))):
        for seq, transport, outgoing in claimed:
            tried += 1
            problem = _attempt(transports, transport, outgoing)
            ended = _note(store, now, seq, problem)
            delivered += problem is None
            failed += problem is not None
            given_up += ended and problem is not None
    _forget_old(store, now)
    with store.session(writes=False) as session:
        waiting = session.scalar(select(func.count()).select_from(EventRow).where(EventRow.state == "Waiting")) or 0
    return DeliveryReport(delivered, failed, given_up, waiting)


def webhook_secret(settings: MarketplaceSettings, requester_id: str) -> str:
    """Return the secret that webhooks to a requester are signed with."""
    return hmac.new(settings.secret_key.encode(), f"webhook\n{requester_id}".encode(), hashlib.sha256).hexdigest()


def _claim(store: Store, now: datetime, settings: MarketplaceSettings, size: int) -> list[tuple[int, str, Outgoing]]:
    earlier = aliased(EventRow)
    is_first = ~exists().where(
        earlier.queue == EventRow.queue,
        earlier.destination == EventRow.destination,
        earlier.state == "Waiting",
        earlier.seq < EventRow.seq,
    )
    query = (
        select(EventRow)
        .where(EventRow.state == "Waiting", EventRow.next_attempt_at <= now, is_first)
        .order_by(EventRow.seq)
        .limit(size)
        .with_for_update(skip_locked=True)
    )
    with store.session(writes=True) as session:
        rows = session.scalars(query).all()
        for row in rows:
            row.attempts += 1
            row.next_attempt_at = now + LEASE
        return [
            (
                row.seq,
                row.transport,
                Outgoing(
                    row.destination,
                    events.document(row),
                    row.document_id,
                    row.event_type,
                    webhook_secret(settings, row.requester_id),
                ),
            )
            for row in rows
        ]


def _forget_old(store: Store, now: datetime) -> None:
    old = (EventRow.state != "Waiting", EventRow.ended_at <= now - KEPT_FOR)
    with store.session(writes=False) as session:
        if session.scalar(select(exists().where(*old))) is not True:
            return
    with store.session(writes=True) as session:
        session.execute(delete(EventRow).where(*old))


def _attempt(transports: Mapping[str, Transport], name: str, outgoing: Outgoing) -> str | None:
    if name not in transports:
        return f"This marketplace has no transport {name} configured."
    try:
        transports[name].send(outgoing)
    except Exception as error:  # whatever a transport raises, the event waits for its next attempt
        _log.warning("event %s was not delivered by %s: %s", outgoing.document_id, name, type(error).__name__)
        return f"{type(error).__name__}: {error}"[:1000]
    return None


def _note(store: Store, now: datetime, seq: int, problem: str | None) -> bool:
    """Write down how an attempt went, and return whether the event is done with."""
    with store.session(writes=True) as session:
        row = session.get_one(EventRow, seq)
        row.last_error = problem
        if problem is None:
            row.state = "Delivered"
        elif row.recorded_at + GIVE_UP_AFTER <= now:
            row.state = "Failed"
        else:
            # 10 s, 40 s, 160 s and so on: the exponent is bounded, so that the number is too.
            delay = min(_FIRST_DELAY * 4 ** min(row.attempts - 1, 8), _LONGEST_DELAY)
            row.next_attempt_at = now + timedelta(seconds=delay)
        if row.state != "Waiting":
            row.ended_at = now
        return row.state != "Waiting"
