"""Requests for qualifications: workers ask and take tests, requesters decide."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import select

from hits.marketplace import accounts, blocks, messages, paging, qualifications, workers
from hits.marketplace.answer_keys import read_answer_key
from hits.marketplace.errors import (
    INVALID_QUALIFICATION_REQUEST_STATE,
    QUALIFICATION_REQUEST_DOES_NOT_EXIST,
    AlreadyQualified,
    AlreadyRequested,
    BlockedByRequester,
    NoRetry,
    QualificationNotRequestable,
    QualificationRequestUnknown,
    QualificationUnknown,
    RetryTooSoon,
    TestOver,
    request_error,
)
from hits.marketplace.form_answers import Fields, collect
from hits.marketplace.form_reader import read_form
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.system_qualifications import SYSTEM_TYPES
from hits.marketplace.tables import QualificationRequestRow, QualificationTypeRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import QualificationRequestView

Params = dict[str, Any]
_Row = QualificationRequestRow
_LIST: Final = "ListQualificationRequests"


def request(transaction: Transaction, worker_id: str, type_id: str) -> QualificationRequestView:
    """Ask for a qualification: it is granted, waits for its requester, or begins a test.

    An unfinished test is given back as it is. Raises WorkerUnknown, QualificationUnknown,
    QualificationNotRequestable, BlockedByRequester, AlreadyQualified, AlreadyRequested, RetryTooSoon, NoRetry.
    """
    worker = workers.find(transaction, worker_id)
    kind = _lock_type(transaction, type_id)
    last = last_request(transaction, worker.worker_id, kind.qualification_type_id)
    if last is not None and state_of(last, transaction.now) == "Testing":
        return view(transaction, last, kind)
    if kind.status != "Active":
        raise QualificationNotRequestable
    if blocks.is_blocked(transaction, kind.requester_id, worker.worker_id):
        raise BlockedByRequester
    _check_history(transaction, kind, worker.worker_id, last)
    row = _Row(
        request_id=new_entity_id(),
        qualification_type_id=kind.qualification_type_id,
        worker_id=worker.worker_id,
        state="Testing" if kind.test is not None else "Pending",
        requested_at=transaction.now,
        test=kind.test,
        answer_key=kind.answer_key,
    )
    transaction.session.add(row)
    if kind.test is not None:
        row.deadline = transaction.now + timedelta(seconds=kind.test_duration_seconds or 0)
    elif kind.auto_granted:
        row.submitted_at = transaction.now
        _grant(transaction, row, kind.auto_granted_value or 1)
    else:
        row.submitted_at = transaction.now
    return view(transaction, row, kind)


def submit_test(transaction: Transaction, worker_id: str, request_id: str, fields: Fields) -> QualificationRequestView:
    """Hand in a test: with a key it is scored and granted at once, else its requester decides.

    Raises QualificationRequestUnknown, TestOver, FormIncomplete, AnswerTooLarge.
    """
    found = own_request(transaction, worker_id, request_id)
    kind = _lock_type(transaction, found.qualification_type_id, deleted=True)
    row = _lock_request(transaction, found)
    state = state_of(row, transaction.now)
    if state != "Testing" or row.test is None:
        raise TestOver(state)
    form = read_form("Test", row.test)
    answers = collect(form, fields)
    row.answer, row.submitted_at = answers.xml, transaction.now
    if row.answer_key is None:
        row.state = "Pending"
    else:
        _grant(transaction, row, read_answer_key(row.answer_key, form).score(answers.selections))
    return view(transaction, row, kind)


def list_requests(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListQualificationRequests: what waits for this requester, oldest first."""
    query = (
        select(_Row)
        .join(QualificationTypeRow, QualificationTypeRow.qualification_type_id == _Row.qualification_type_id)
        .where(QualificationTypeRow.requester_id == requester_id, _Row.state == "Pending")
    )
    if "QualificationTypeId" in params:
        kind = qualifications.own_type(transaction, requester_id, params["QualificationTypeId"])
        query = query.where(_Row.qualification_type_id == kind.qualification_type_id)
    last = paging.after(params, _LIST)
    if last is not None:
        query = query.where(_Row.seq > last[0])
    rows = transaction.session.scalars(query.order_by(_Row.seq).limit(paging.page_size(params))).all()
    return paging.page(_LIST, "QualificationRequests", rows, _form, lambda row: (row.seq,))


def accept_request(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out AcceptQualificationRequest."""
    row, kind = _pending(transaction, requester_id, params["QualificationRequestId"])
    value = params.get("IntegerValue", 1)
    _grant(transaction, row, value)
    text = f"You now have the qualification “{kind.name}” with the value {value}."
    messages.send(transaction, requester_id, row.worker_id, "Your request was accepted", text)
    return {}


def reject_request(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out RejectQualificationRequest."""
    row, kind = _pending(transaction, requester_id, params["QualificationRequestId"])
    row.state, row.decided_at, row.reason = "Rejected", transaction.now, params.get("Reason")
    reason = f" The requester's reason: {row.reason}" if row.reason else ""
    text = f"Your request for the qualification “{kind.name}” was declined.{reason}"
    messages.send(transaction, requester_id, row.worker_id, "Your request was declined", text)
    return {}


def last_request(transaction: Transaction, worker_id: str, type_id: str) -> QualificationRequestRow | None:
    """Return a worker's last request for a type."""
    query = select(_Row).where(_Row.worker_id == worker_id, _Row.qualification_type_id == type_id)
    return transaction.session.scalar(query.order_by(_Row.seq.desc()).limit(1))


def own_request(transaction: Transaction, worker_id: str, request_id: str) -> QualificationRequestRow:
    """Return a worker's own request.

    Raises QualificationRequestUnknown.
    """
    worker = workers.find(transaction, worker_id)
    if request_id.isascii() and request_id.isalnum():
        row = transaction.session.scalar(select(_Row).where(_Row.request_id == request_id))
        if row is not None and row.worker_id == worker.worker_id:
            return row
    raise QualificationRequestUnknown


def state_of(row: QualificationRequestRow, now: datetime) -> str:
    """Return Testing, Lapsed (a test whose time is over), Pending, Granted or Rejected."""
    lapsed = row.state == "Testing" and row.deadline is not None and row.deadline <= now
    return "Lapsed" if lapsed else row.state


def retry_at(kind: QualificationTypeRow, last: QualificationRequestRow) -> datetime | None:
    """Return when the qualification can be requested again, None for never."""
    if kind.retry_delay_seconds is None:
        return None
    return last.requested_at + timedelta(seconds=kind.retry_delay_seconds)


def view(
    transaction: Transaction, row: QualificationRequestRow, kind: QualificationTypeRow
) -> QualificationRequestView:
    """Return the record of a request, with its test only while that is being taken."""
    state = state_of(row, transaction.now)
    return QualificationRequestView(
        request_id=row.request_id,
        qualification_type_id=kind.qualification_type_id,
        name=kind.name,
        state=state,
        requested_at=row.requested_at,
        deadline=row.deadline,
        submitted_at=row.submitted_at,
        decided_at=row.decided_at,
        value=row.value,
        reason=row.reason,
        form=read_form("Test", row.test) if state == "Testing" and row.test is not None else None,
    )


def view_of(transaction: Transaction, row: QualificationRequestRow) -> QualificationRequestView:
    """Return the record of a request whose type is not at hand."""
    query = select(QualificationTypeRow).where(QualificationTypeRow.qualification_type_id == row.qualification_type_id)
    return view(transaction, row, transaction.session.scalars(query).one())


def _check_history(
    transaction: Transaction, kind: QualificationTypeRow, worker_id: str, last: QualificationRequestRow | None
) -> None:
    held = qualifications.qualification(transaction, kind.qualification_type_id, worker_id)
    if held is not None and held.status == "Granted" and kind.test is None:
        raise AlreadyQualified
    if last is None:
        return
    if last.state == "Pending":
        raise AlreadyRequested
    again = retry_at(kind, last)
    if again is None:
        raise NoRetry
    if again > transaction.now:
        raise RetryTooSoon(again)


def _grant(transaction: Transaction, row: QualificationRequestRow, value: int) -> None:
    row.state, row.decided_at, row.value = "Granted", transaction.now, value
    qualifications.grant(transaction, row.qualification_type_id, row.worker_id, value)


def _lock_type(transaction: Transaction, type_id: str, *, deleted: bool = False) -> QualificationTypeRow:
    # The owner's account is what every change of its qualifications is ordered by.
    query = select(QualificationTypeRow).where(QualificationTypeRow.qualification_type_id == type_id)
    if type_id in SYSTEM_TYPES:
        raise QualificationNotRequestable
    row = transaction.session.scalar(query) if type_id.isascii() and type_id.isalnum() else None
    if row is None:
        raise QualificationUnknown
    accounts.lock(transaction, row.requester_id)
    row = transaction.session.scalars(query.execution_options(populate_existing=True)).one()
    if row.deleted_at is not None and not deleted:
        raise QualificationUnknown
    return row


def _lock_request(transaction: Transaction, row: QualificationRequestRow) -> QualificationRequestRow:
    query = select(_Row).where(_Row.seq == row.seq).with_for_update()
    return transaction.session.scalars(query.execution_options(populate_existing=True)).one()


def _pending(
    transaction: Transaction, requester_id: str, request_id: str
) -> tuple[QualificationRequestRow, QualificationTypeRow]:
    found = transaction.session.execute(
        select(_Row, QualificationTypeRow)
        .join(QualificationTypeRow, QualificationTypeRow.qualification_type_id == _Row.qualification_type_id)
        .where(_Row.request_id == request_id, QualificationTypeRow.requester_id == requester_id)
    ).one_or_none()
    if found is None or found[0].state == "Testing":
        raise request_error(QUALIFICATION_REQUEST_DOES_NOT_EXIST, id=request_id)
    if found[0].state != "Pending":
        raise request_error(INVALID_QUALIFICATION_REQUEST_STATE, state=found[0].state)
    return found[0], found[1]


def _form(row: QualificationRequestRow) -> Params:
    form: Params = {
        "QualificationRequestId": row.request_id,
        "QualificationTypeId": row.qualification_type_id,
        "WorkerId": row.worker_id,
        "Test": row.test,
        "Answer": row.answer,
        "SubmitTime": row.submitted_at,
    }
    return {name: value for name, value in form.items() if value is not None}
