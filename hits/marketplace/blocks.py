"""Workers whom a requester takes no work from."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import exists, func, select

from hits.marketplace import paging
from hits.marketplace.errors import PARAMETER_OUT_OF_RANGE, invalid_parameter, request_error, unfit_parameter
from hits.marketplace.tables import WorkerBlockRow, WorkerRow
from hits.marketplace.transactions import Transaction

Params = dict[str, Any]
MOST_BLOCKS: Final = 100_000


def is_blocked(transaction: Transaction, requester_id: str, worker_id: str) -> bool:
    """Return whether this requester takes no work from this worker."""
    query = select(exists().where(WorkerBlockRow.requester_id == requester_id, WorkerBlockRow.worker_id == worker_id))
    return bool(transaction.session.scalar(query))


def create_block(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out CreateWorkerBlock; blocking again replaces the reason."""
    worker_id = params["WorkerId"]
    if transaction.session.get(WorkerRow, worker_id) is None:
        raise invalid_parameter("WorkerId", worker_id)
    row = _block(transaction, requester_id, worker_id)
    if row is not None:
        row.reason = params["Reason"]
        return {}
    count = transaction.session.scalar(
        select(func.count()).select_from(WorkerBlockRow).where(WorkerBlockRow.requester_id == requester_id)
    )
    if (count or 0) >= MOST_BLOCKS:
        raise request_error(PARAMETER_OUT_OF_RANGE, reason=f"A requester can block at most {MOST_BLOCKS} workers.")
    transaction.session.add(
        WorkerBlockRow(
            requester_id=requester_id, worker_id=worker_id, reason=params["Reason"], created_at=transaction.now
        )
    )
    return {}


def delete_block(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out DeleteWorkerBlock; a worker who is not blocked stays so without an error."""
    worker_id = params["WorkerId"]
    if transaction.session.get(WorkerRow, worker_id) is None:
        raise unfit_parameter("WorkerId is invalid.")
    row = _block(transaction, requester_id, worker_id)
    if row is not None:
        transaction.session.delete(row)
    return {}


def list_blocks(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListWorkerBlocks, oldest block first."""
    query = select(WorkerBlockRow).where(WorkerBlockRow.requester_id == requester_id)
    last = paging.after(params, "ListWorkerBlocks")
    if last is not None:
        query = query.where(WorkerBlockRow.seq > last[0])
    rows = transaction.session.scalars(query.order_by(WorkerBlockRow.seq).limit(paging.page_size(params))).all()
    return paging.page(
        "ListWorkerBlocks",
        "WorkerBlocks",
        rows,
        lambda row: {"WorkerId": row.worker_id, "Reason": row.reason},
        lambda row: (row.seq,),
    )


def _block(transaction: Transaction, requester_id: str, worker_id: str) -> WorkerBlockRow | None:
    return transaction.session.scalar(
        select(WorkerBlockRow).where(WorkerBlockRow.requester_id == requester_id, WorkerBlockRow.worker_id == worker_id)
    )
