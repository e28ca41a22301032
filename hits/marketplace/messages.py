"""Messages to workers from requesters and from the operator, read on the worker site."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import func, select, update

from hits.marketplace.errors import PARAMETER_OUT_OF_RANGE, request_error
from hits.marketplace.pages import counted, existing, number_of_pages
from hits.marketplace.tables import AssignmentRow, MessageRow, RequesterMessageRow, RequesterRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import Message, MessagePage

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


def send(
    transaction: Transaction,
    requester_id: str | None,
    worker_id: str,
    subject: str,
    text: str,
    *,
    question_id: str | None = None,
) -> None:
    """Put a message into a worker's inbox on the site; without a requester it is the operator's."""
    transaction.session.add(
        MessageRow(
            worker_id=worker_id,
            requester_id=requester_id,
            question_id=question_id,
            sent_at=transaction.now,
            subject=subject,
            text=text,
        )
    )


def inbox(transaction: Transaction, worker_id: str, *, page: int, page_size: int) -> MessagePage:
    """Return one page of a worker's messages, newest first; a page that does not exist is the nearest one."""
    session = transaction.session
    mine = MessageRow.worker_id == worker_id
    count = counted(session, select(MessageRow).where(mine), page=page, page_size=page_size)
    pages = number_of_pages(count.total, page_size)
    number = existing(page, pages)
    rows = session.execute(
        select(MessageRow, RequesterRow.name, RequesterMessageRow.text)
        .outerjoin(RequesterRow, RequesterRow.requester_id == MessageRow.requester_id)
        .outerjoin(RequesterMessageRow, RequesterMessageRow.message_id == MessageRow.question_id)
        .where(mine)
        .order_by(MessageRow.seq.desc())
        .limit(page_size)
        .offset((number - 1) * page_size)
    )
    found = tuple(
        Message(row.seq, row.requester_id, name, row.sent_at, row.subject, row.text, row.read_at is not None, question)
        for row, name, question in rows
    )
    return MessagePage(found, number, pages, count.total, count.has_more)


def unread(transaction: Transaction, worker_id: str) -> int:
    """Return how many of a worker's messages are not read yet."""
    query = select(func.count()).select_from(MessageRow)
    return transaction.session.scalar(query.where(MessageRow.worker_id == worker_id, MessageRow.read_at.is_(None))) or 0


def mark_read(transaction: Transaction, worker_id: str) -> int:
    """Mark all of a worker's messages as read and return how many were not."""
    marked = transaction.session.execute(
        update(MessageRow)
        .where(MessageRow.worker_id == worker_id, MessageRow.read_at.is_(None))
        .values(read_at=transaction.now)
        .returning(MessageRow.seq)
    )
    return len(marked.all())
