"""What the worker site shows of qualifications: what a worker holds, and what they may ask for."""

from __future__ import annotations

from sqlalchemy import or_, select

from hits.marketplace import qualification_requests as requests
from hits.marketplace import qualifications, workers
from hits.marketplace import system_qualifications as system
from hits.marketplace.errors import QualificationUnknown
from hits.marketplace.tables import (
    QualificationRequestRow,
    QualificationRow,
    QualificationTypeRow,
    RequesterRow,
    WorkerRow,
)
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import QualificationView


def of_worker(transaction: Transaction, worker_id: str) -> list[QualificationView]:
    """Return what a worker holds, held or asked for, by name; then the system's."""
    worker = workers.find(transaction, worker_id)
    held = select(QualificationRow.qualification_type_id).where(QualificationRow.worker_id == worker.worker_id)
    asked = select(QualificationRequestRow.qualification_type_id).where(
        QualificationRequestRow.worker_id == worker.worker_id
    )
    type_id = QualificationTypeRow.qualification_type_id
    found = _views(transaction, worker, or_(type_id.in_(held), type_id.in_(asked)))
    return found + [
        QualificationView(
            qualification_type_id=item.type_id,
            name=item.name,
            description=item.description,
            requester_id=None,
            requester_name=None,
            value=system.value_of(transaction, worker, item.type_id),
            status=None,
            granted_at=None,
            has_test=False,
            test_duration_seconds=None,
            can_request=False,
            retry_at=None,
            request=None,
        )
        for item in system.SYSTEM_TYPES.values()
        if item.type_id != system.MASTERS_SANDBOX
    ]


def requestable(transaction: Transaction, worker_id: str, query: str) -> list[QualificationView]:
    """Return the active types of all requesters whose name or description has the text, by name."""
    worker = workers.find(transaction, worker_id)
    found = _views(transaction, worker, QualificationTypeRow.status == "Active")
    text = query.strip().casefold()
    return [item for item in found if text in f"{item.name} {item.description} {item.requester_name}".casefold()]


def one(transaction: Transaction, worker_id: str, type_id: str) -> QualificationView:
    """Return one type as a worker sees it.

    Raises QualificationUnknown, WorkerUnknown.
    """
    worker = workers.find(transaction, worker_id)
    fits = type_id.isascii() and type_id.isalnum()
    found = _views(transaction, worker, QualificationTypeRow.qualification_type_id == type_id) if fits else []
    if not found:
        raise QualificationUnknown
    return found[0]


def _views(transaction: Transaction, worker: WorkerRow, condition: object) -> list[QualificationView]:
    rows = transaction.session.execute(
        select(QualificationTypeRow, RequesterRow.name)
        .join(RequesterRow, RequesterRow.requester_id == QualificationTypeRow.requester_id)
        .where(condition, QualificationTypeRow.deleted_at.is_(None))  # type: ignore[arg-type]
        .order_by(QualificationTypeRow.name, QualificationTypeRow.seq)
    )
    return [_view(transaction, worker, kind, requester_name) for kind, requester_name in rows]


def _view(
    transaction: Transaction, worker: WorkerRow, kind: QualificationTypeRow, requester_name: str
) -> QualificationView:
    held = qualifications.qualification(transaction, kind.qualification_type_id, worker.worker_id)
    last = requests.last_request(transaction, worker.worker_id, kind.qualification_type_id)
    again = requests.retry_at(kind, last) if last is not None else None
    has_it = held is not None and held.status == "Granted"
    open_again = last is None or (last.state != "Pending" and again is not None and again <= transaction.now)
    in_test = last is not None and requests.state_of(last, transaction.now) == "Testing"
    return QualificationView(
        qualification_type_id=kind.qualification_type_id,
        name=kind.name,
        description=kind.description,
        requester_id=kind.requester_id,
        requester_name=requester_name,
        value=held.value if held is not None and has_it else None,
        status=held.status if held is not None else None,
        granted_at=held.granted_at if held is not None else None,
        has_test=kind.test is not None,
        test_duration_seconds=kind.test_duration_seconds,
        can_request=in_test or (kind.status == "Active" and open_again and (not has_it or kind.test is not None)),
        retry_at=again,
        request=requests.view(transaction, last, kind) if last is not None else None,
    )
