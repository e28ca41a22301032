"""Puts events into the outbox, in the transaction that made them happen; delivery comes later and elsewhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.tables import EventRow, HitRow, NotificationRow
from hits.marketplace.transactions import Transaction

DOCUMENT_VERSION = "2014-08-15"


def emit(transaction: Transaction, event_type: str, hit: HitRow, assignment_id: str | None = None) -> None:
    """Record an event of a HIT if its type has asked for events of this kind."""
    if hit.hit_type_id not in transaction.notifications:
        note(transaction, hit.hit_type_id, transaction.session.get(NotificationRow, hit.hit_type_id))
    wanted = transaction.notifications[hit.hit_type_id]
    if wanted is None or not wanted.is_active or event_type not in wanted.event_types["wanted"]:
        return
    record(
        transaction,
        event_type,
        requester_id=hit.requester_id,
        queue=hit.hit_id,
        hit_type_id=hit.hit_type_id,
        hit_id=hit.hit_id,
        assignment_id=assignment_id,
        transport=wanted.transport,
        destination=wanted.destination,
    )


def note(transaction: Transaction, hit_type_id: str, wanted: NotificationRow | None) -> None:
    """Keep what has been read of a HIT type's notification, None if it has none, for the events of this transaction."""
    transaction.notifications[hit_type_id] = wanted


def record(
    transaction: Transaction,
    event_type: str,
    *,
    requester_id: str,
    queue: str,
    hit_type_id: str,
    hit_id: str,
    assignment_id: str | None,
    transport: str,
    destination: str,
) -> None:
    """Record an event for one destination; those of one queue and destination go out in order."""
    transaction.session.add(
        EventRow(
            document_id=new_entity_id(),
            requester_id=requester_id,
            queue=queue,
            event_type=event_type,
            at=transaction.now,
            recorded_at=transaction.now,
            hit_type_id=hit_type_id,
            hit_id=hit_id,
            assignment_id=assignment_id,
            transport=transport,
            destination=destination,
            state="Waiting",
            attempts=0,
            next_attempt_at=transaction.now,
        )
    )


def document(row: EventRow) -> str:
    """Return the JSON that goes out for an event."""
    event = {
        "EventType": row.event_type,
        "EventTimestamp": _iso(row.at),
        "HITTypeId": row.hit_type_id,
        "HITId": row.hit_id,
    }
    if row.assignment_id is not None:
        event["AssignmentId"] = row.assignment_id
    return json.dumps(
        {
            "EventDocVersion": DOCUMENT_VERSION,
            "EventDocId": row.document_id,
            "CustomerId": row.requester_id,
            "Events": [event],
        }
    )


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
