"""Messages from requesters to workers, read on the worker site."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import select

from hits.marketplace.errors import PARAMETER_OUT_OF_RANGE, request_error
from hits.marketplace.tables import AssignmentRow, MessageRow, RequesterRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import Message

Params = dict[str, Any]
MOST_RECIPIENTS: Final = 100
_NO_WORK: Final = "Cannot send a notification to a worker who has not done any work for you"


def notify_workers(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out NotifyWorkers: a message to each worker whose work this requester has reviewed, else a failure."""
    recipients = list(dict.fromkeys(params["WorkerIds"]))
    if not 1 <= len(recipients) <= MOST_RECIPIENTS:
        raise request_error(
            PARAMETER_OUT_OF_RANGE, reason=f"WorkerIds must name 1 to {MOST_RECIPIENTS} workers, got {len(recipients)}."
        )
    known = set(
        transaction.session.scalars(
            select(AssignmentRow.worker_id)
            .where(
                AssignmentRow.requester_id == requester_id,
                AssignmentRow.worker_id.in_(recipients),
                AssignmentRow.state.in_(("Approved", "Rejected")),
            )
            .distinct()
        )
    )
    for worker_id in recipients:
        if worker_id in known:
            send(transaction, requester_id, worker_id, params["Subject"], params["MessageText"])
    return {
        "NotifyWorkersFailureStatuses": [
            {
                "WorkerId": worker_id,
                "NotifyWorkersFailureCode": "HardFailure",
                "NotifyWorkersFailureMessage": _NO_WORK,
            }
            for worker_id in recipients
            if worker_id not in known
        ]
    }


def send(transaction: Transaction, requester_id: str, worker_id: str, subject: str, text: str) -> None:
    """Put a message into a worker's inbox on the site."""
    transaction.session.add(
        MessageRow(worker_id=worker_id, requester_id=requester_id, sent_at=transaction.now, subject=subject, text=text)
    )


def inbox(transaction: Transaction, worker_id: str) -> list[Message]:
    """Return a worker's messages, newest first."""
    rows = transaction.session.execute(
        select(MessageRow, RequesterRow.name)
        .join(RequesterRow, RequesterRow.requester_id == MessageRow.requester_id)
        .where(MessageRow.worker_id == worker_id)
        .order_by(MessageRow.seq.desc())
    )
    return [
        Message(row.seq, row.requester_id, name, row.sent_at, row.subject, row.text, row.read_at is not None)
        for row, name in rows
    ]


def mark_read(transaction: Transaction, worker_id: str) -> int:
    """Mark all of a worker's messages as read and return how many were not."""
    unread = transaction.session.scalars(
        select(MessageRow).where(MessageRow.worker_id == worker_id, MessageRow.read_at.is_(None))
    ).all()
    for row in unread:
        row.read_at = transaction.now
    return len(unread)
