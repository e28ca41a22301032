"""Takes events out of the outbox and hands them to their transports: at least once, in order per HIT, with retries."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from sqlalchemy import exists
from sqlalchemy.orm import aliased

from hits.marketplace import events, outbox
from hits.marketplace.clock import Clock
from hits.marketplace.database import Store
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import EventRow

GIVE_UP_AFTER: Final = timedelta(days=3)
# So many destinations are tried side by side, so that a slow one holds back only itself; and no more of them are of one
# requester, so that somebody whose destinations are all slow holds back nobody else.
_AT_ONCE: Final = 8
_OF_ONE_REQUESTER: Final = 4
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


@dataclass(frozen=True)
class _Claimed:
    """An event that this process may try to deliver until its lease ends."""

    seq: int
    requester_id: str
    attempt: int
    give_up_at: datetime
    transport: str
    outgoing: Outgoing


def never() -> bool:
    """Tell that nobody has asked to stop."""
    return False


def deliver_due(
    store: Store,
    clock: Clock,
    settings: MarketplaceSettings,
    transports: Mapping[str, Transport],
    *,
    limit: int,
    stop: Callable[[], bool] = never,
) -> DeliveryReport:
    """Deliver up to `limit` events that are due; no transaction is open while a transport works.

    A transport that is not configured is a failed attempt. Several processes can deliver at the same time. Once `stop`
    says so, what is being sent is finished and nothing else is begun.
    """
    delivered = failed = given_up = 0
    tried = 0
    on_their_way: dict[Future[str | None], _Claimed] = {}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="deliver") as pool:
        while True:
            free = min(_AT_ONCE, limit - tried) - len(on_their_way)
            if free > 0 and not stop() and outbox.is_due(store, EventRow, clock.now()):
                busy = Counter(one.requester_id for one in on_their_way.values())
                for one in _claim(store, clock.now(), settings, free, busy):
                    on_their_way[pool.submit(_attempt, transports, one)] = one
            if not on_their_way:
                break
            for done in wait(on_their_way, return_when=FIRST_COMPLETED).done:
                one, problem = on_their_way.pop(done), done.result()
                ended = outbox.note(
                    store, EventRow, one.seq, one.attempt, problem, now=clock.now(), give_up_at=one.give_up_at
                )
                tried += 1
                delivered += problem is None
                failed += problem is not None
                given_up += ended and problem is not None
    outbox.forget_old(store, EventRow, clock.now())
    return DeliveryReport(delivered, failed, given_up, outbox.waiting(store, EventRow))


def webhook_secret(settings: MarketplaceSettings, requester_id: str) -> str:
    """Return the secret that webhooks to a requester are signed with."""
    return hmac.new(settings.secret_key.encode(), f"webhook\n{requester_id}".encode(), hashlib.sha256).hexdigest()


def _claim(store: Store, now: datetime, settings: MarketplaceSettings, size: int, busy: Counter[str]) -> list[_Claimed]:
    """Take up to `size` events, oldest first; `busy` counts what is on its way by requester."""
    earlier = aliased(EventRow)
    is_first = ~exists().where(
        earlier.queue == EventRow.queue,
        earlier.destination == EventRow.destination,
        earlier.state == "Waiting",
        earlier.seq < EventRow.seq,
    )
    found: list[EventRow] = []
    with store.session(writes=True) as session:
        while len(found) < size:
            full = [one for one, count in busy.items() if count >= _OF_ONE_REQUESTER]
            # So few that even if all are one requester's, they are not too many.
            most = _OF_ONE_REQUESTER - max((count for one, count in busy.items() if one not in full), default=0)
            of_others = EventRow.requester_id.not_in(full)
            rows = outbox.claim(session, EventRow, now, min(most, size - len(found)), is_first, of_others)
            if not rows:
                break
            session.flush()
            found += rows
            busy.update(row.requester_id for row in rows)
        return [
            _Claimed(
                row.seq,
                row.requester_id,
                row.attempts,
                row.recorded_at + GIVE_UP_AFTER,
                row.transport,
                Outgoing(
                    row.destination,
                    events.document(row),
                    row.document_id,
                    row.event_type,
                    webhook_secret(settings, row.requester_id),
                ),
            )
            for row in found
        ]


def _attempt(transports: Mapping[str, Transport], claimed: _Claimed) -> str | None:
    """Return what went wrong, None if nothing did."""
    name, problem = claimed.transport, None
    if name not in transports:
        problem = f"This marketplace has no transport {name} configured."
    else:
        try:
            transports[name].send(claimed.outgoing)
        except Exception as error:  # whatever a transport raises, the event waits for its next attempt
            problem = f"{type(error).__name__}: {error}"[:1000]
    if problem is not None:
        # A destination can name a person, so the log has the event's id, by which the rest is found.
        _log.warning(
            "event %s: attempt %d by %s failed: %s", claimed.outgoing.document_id, claimed.attempt, name, _kind(problem)
        )
    return problem


def _kind(problem: str) -> str:
    return problem.partition(":")[0]
