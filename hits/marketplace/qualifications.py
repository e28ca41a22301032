"""Qualification types, and the values that workers hold of them."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import func, or_, select

from hits.marketplace import messages, paging
from hits.marketplace.answer_keys import read_answer_key
from hits.marketplace.errors import (
    INVALID_QUALIFICATION_STATE,
    INVALID_QUALIFICATION_TYPE_STATE,
    QUALIFICATION_DOES_NOT_EXIST,
    QUALIFICATION_TYPE_ALREADY_EXISTS,
    QUALIFICATION_TYPE_DOES_NOT_EXIST,
    invalid_parameter,
    request_error,
    unfit_parameter,
)
from hits.marketplace.form_reader import read_form
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.system_qualifications import SYSTEM_TYPES
from hits.marketplace.tables import (
    HitTypeRow,
    QualificationRequestRow,
    QualificationRow,
    QualificationTypeRow,
    WorkerRow,
)
from hits.marketplace.transactions import Transaction

Params = dict[str, Any]
_OURS: Final = QualificationTypeRow.deleted_at.is_(None)


def create_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out CreateQualificationType."""
    auto = params.get("AutoGranted", False)
    _check_auto_grant(params)
    _check_test(params.get("Test"), params.get("TestDurationInSeconds"), params.get("AnswerKey"), auto=auto)
    taken = select(QualificationTypeRow.seq).where(
        QualificationTypeRow.requester_id == requester_id, QualificationTypeRow.name == params["Name"], _OURS
    )
    if transaction.session.scalar(taken) is not None:
        raise request_error(QUALIFICATION_TYPE_ALREADY_EXISTS)
    row = QualificationTypeRow(
        qualification_type_id=new_entity_id(),
        requester_id=requester_id,
        name=params["Name"],
        description=params["Description"],
        keywords=params.get("Keywords"),
        status=params["QualificationTypeStatus"],
        retry_delay_seconds=params.get("RetryDelayInSeconds"),
        auto_granted=auto,
        auto_granted_value=params.get("AutoGrantedValue", 1) if auto else None,
        test=params.get("Test"),
        test_duration_seconds=params.get("TestDurationInSeconds"),
        answer_key=params.get("AnswerKey"),
        created_at=transaction.now,
    )
    transaction.session.add(row)
    return {"QualificationType": _type_form(row)}


def get_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out GetQualificationType; any requester's type and the system's answer, as they do on MTurk."""
    type_id = params["QualificationTypeId"]
    if type_id in SYSTEM_TYPES:
        return {"QualificationType": SYSTEM_TYPES[type_id].form()}
    row = _any_type(transaction, type_id)
    return {"QualificationType": _type_form(row, shows_key=row.requester_id == requester_id)}


def update_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out UpdateQualificationType; what is not given stays, but a new test without a key is not scored."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    _check_auto_grant({"AutoGranted": row.auto_granted, **params})
    auto = params.get("AutoGranted", row.auto_granted)
    test, key = params.get("Test", row.test), params.get("AnswerKey", None if "Test" in params else row.answer_key)
    duration = params.get("TestDurationInSeconds", None if "Test" in params else row.test_duration_seconds)
    _check_test(test, duration, key, auto=auto)
    row.test, row.test_duration_seconds, row.answer_key = test, duration, key
    row.description = params.get("Description", row.description)
    row.status = params.get("QualificationTypeStatus", row.status)
    row.retry_delay_seconds = params.get("RetryDelayInSeconds", row.retry_delay_seconds)
    row.auto_granted = auto
    value = params.get("AutoGrantedValue", row.auto_granted_value or 1)
    row.auto_granted_value = value if row.auto_granted else None
    return {"QualificationType": _type_form(row)}


def delete_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out DeleteQualificationType: HIT types that require it go with it, grants stay for the record."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    row.deleted_at = transaction.now
    hit_types = transaction.session.scalars(select(HitTypeRow).where(HitTypeRow.deleted_at.is_(None)))
    for hit_type in hit_types:
        if any(item["QualificationTypeId"] == row.qualification_type_id for item in hit_type.requirements):
            hit_type.deleted_at = transaction.now
    requests = transaction.session.scalars(
        select(QualificationRequestRow).where(
            QualificationRequestRow.qualification_type_id == row.qualification_type_id,
            QualificationRequestRow.state.in_(("Pending", "Testing")),
        )
    )
    for request in requests:
        request.state, request.decided_at = "Rejected", transaction.now
        request.reason = "The qualification was deleted."
    return {}


def list_types(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListQualificationTypes: requesters' types, newest first; the text must occur in name or words."""
    query = select(QualificationTypeRow).where(_OURS)
    if params.get("MustBeOwnedByCaller", False):
        query = query.where(QualificationTypeRow.requester_id == requester_id)
    if text := params.get("Query"):
        columns = (QualificationTypeRow.name, QualificationTypeRow.description, QualificationTypeRow.keywords)
        query = query.where(or_(*(func.lower(column).contains(text.lower(), autoescape=True) for column in columns)))
    last = paging.after(params, "ListQualificationTypes")
    if last is not None:
        query = query.where(QualificationTypeRow.seq < last[0])
    query = query.order_by(QualificationTypeRow.seq.desc()).limit(paging.page_size(params))
    rows = transaction.session.scalars(query).all()
    return paging.page(
        "ListQualificationTypes",
        "QualificationTypes",
        rows,
        lambda row: _type_form(row, shows_key=row.requester_id == requester_id),
        lambda row: (row.seq,),
    )


def associate(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out AssociateQualificationWithWorker: grant, or overwrite the value of an earlier grant, and tell them."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    if transaction.session.get(WorkerRow, params["WorkerId"]) is None:
        raise invalid_parameter("WorkerId", params["WorkerId"])
    value = params.get("IntegerValue", 1)
    grant(transaction, row.qualification_type_id, params["WorkerId"], value)
    if params.get("SendNotification", True):
        text = f"You now have the qualification “{row.name}” with the value {value}."
        messages.send(transaction, requester_id, params["WorkerId"], "You were given a qualification", text)
    return {}


def disassociate(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out DisassociateQualificationFromWorker."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    held = qualification(transaction, row.qualification_type_id, params["WorkerId"])
    if held is None or held.status != "Granted":
        raise request_error(QUALIFICATION_DOES_NOT_EXIST)
    held.status = "Revoked"
    reason = f" The requester's reason: {params['Reason']}" if params.get("Reason") else ""
    text = f"You no longer have the qualification “{row.name}”.{reason}"
    messages.send(transaction, requester_id, params["WorkerId"], "A qualification was taken back", text)
    return {}


def get_score(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out GetQualificationScore."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    held = qualification(transaction, row.qualification_type_id, params["WorkerId"])
    if held is None:
        raise request_error(QUALIFICATION_DOES_NOT_EXIST)
    if held.status != "Granted":
        raise request_error(INVALID_QUALIFICATION_STATE, state=held.status)
    return {"Qualification": _qualification_form(held)}


def list_workers(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListWorkersWithQualificationType."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    query = select(QualificationRow).where(
        QualificationRow.qualification_type_id == row.qualification_type_id,
        QualificationRow.status == params.get("Status", "Granted"),
    )
    last = paging.after(params, "ListWorkersWithQualificationType")
    if last is not None:
        query = query.where(QualificationRow.seq > last[0])
    rows = transaction.session.scalars(query.order_by(QualificationRow.seq).limit(paging.page_size(params))).all()
    return paging.page(
        "ListWorkersWithQualificationType", "Qualifications", rows, _qualification_form, lambda held: (held.seq,)
    )


def grant(transaction: Transaction, type_id: str, worker_id: str, value: int) -> None:
    """Give a worker a value; an earlier one, revoked or not, is overwritten."""
    held = qualification(transaction, type_id, worker_id)
    if held is None:
        held = QualificationRow(qualification_type_id=type_id, worker_id=worker_id)
        transaction.session.add(held)
    held.value, held.status, held.granted_at = value, "Granted", transaction.now


def own_type(transaction: Transaction, requester_id: str, type_id: str) -> QualificationTypeRow:
    """Return one of the requester's own types.

    Raises MarketplaceError: another requester's type does not exist.
    """
    query = select(QualificationTypeRow).where(
        QualificationTypeRow.qualification_type_id == type_id,
        QualificationTypeRow.requester_id == requester_id,
        _OURS,
    )
    row = transaction.session.scalar(query)
    if row is None:
        raise request_error(QUALIFICATION_TYPE_DOES_NOT_EXIST, id=type_id)
    return row


def require_active(transaction: Transaction, type_id: str) -> None:
    """Check that a type can be required by new HITs.

    Raises MarketplaceError if it does not exist or is inactive.
    """
    row = _any_type(transaction, type_id)
    if row.status != "Active":
        raise request_error(INVALID_QUALIFICATION_TYPE_STATE, id=type_id, state=row.status)


def _any_type(transaction: Transaction, type_id: str) -> QualificationTypeRow:
    query = select(QualificationTypeRow).where(QualificationTypeRow.qualification_type_id == type_id, _OURS)
    row = transaction.session.scalar(query)
    if row is None:
        raise request_error(QUALIFICATION_TYPE_DOES_NOT_EXIST, id=type_id)
    return row


def qualification(transaction: Transaction, type_id: str, worker_id: str) -> QualificationRow | None:
    """Return what a worker holds or held of a type."""
    query = select(QualificationRow).where(
        QualificationRow.qualification_type_id == type_id, QualificationRow.worker_id == worker_id
    )
    return transaction.session.scalar(query)


def _check_test(test: str | None, duration: int | None, key: str | None, *, auto: bool) -> None:
    if test is None:
        if duration is not None or key is not None:
            raise unfit_parameter("TestDurationInSeconds and AnswerKey need a Test.")
        return
    if auto:
        raise unfit_parameter("A qualification with a Test cannot be AutoGranted.")
    if duration is None:
        raise unfit_parameter("A Test needs TestDurationInSeconds.")
    form = read_form("Test", test)
    if not form.questions:
        raise unfit_parameter("A Test needs at least one Question.")
    if key is not None:
        read_answer_key(key, form)


def _check_auto_grant(params: Params) -> None:
    if "AutoGrantedValue" in params and not params.get("AutoGranted", False):
        raise unfit_parameter("AutoGrantedValue needs AutoGranted to be true.")


def _type_form(row: QualificationTypeRow, *, shows_key: bool = True) -> Params:
    form: Params = {
        "QualificationTypeId": row.qualification_type_id,
        "CreationTime": row.created_at,
        "Name": row.name,
        "Description": row.description,
        "QualificationTypeStatus": row.status,
        "IsRequestable": True,
        "AutoGranted": row.auto_granted,
    }
    optional = {
        "Keywords": row.keywords,
        "RetryDelayInSeconds": row.retry_delay_seconds,
        "AutoGrantedValue": row.auto_granted_value,
        "Test": row.test,
        "TestDurationInSeconds": row.test_duration_seconds,
        "AnswerKey": row.answer_key if shows_key else None,
    }
    return form | {name: value for name, value in optional.items() if value is not None}


def _qualification_form(row: QualificationRow) -> Params:
    return {
        "QualificationTypeId": row.qualification_type_id,
        "WorkerId": row.worker_id,
        "GrantTime": row.granted_at,
        "IntegerValue": row.value,
        "Status": row.status,
    }
