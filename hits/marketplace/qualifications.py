"""Qualification types, and the values that workers hold of them."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import func, or_, select

from hits.marketplace import paging
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
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.system_qualifications import SYSTEM_TYPES
from hits.marketplace.tables import HitTypeRow, QualificationRow, QualificationTypeRow, WorkerRow
from hits.marketplace.transactions import Transaction

Params = dict[str, Any]
_OURS: Final = QualificationTypeRow.deleted_at.is_(None)
_TEST_PARAMETERS: Final = ("Test", "AnswerKey", "TestDurationInSeconds")


def create_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out CreateQualificationType."""
    _refuse_tests(params)
    _check_auto_grant(params)
    taken = select(QualificationTypeRow.seq).where(
        QualificationTypeRow.requester_id == requester_id, QualificationTypeRow.name == params["Name"], _OURS
    )
    if transaction.session.scalar(taken) is not None:
        raise request_error(QUALIFICATION_TYPE_ALREADY_EXISTS)
    auto = params.get("AutoGranted", False)
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
        created_at=transaction.now,
    )
    transaction.session.add(row)
    return {"QualificationType": _type_form(row)}


def get_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out GetQualificationType; any requester's type and the system's answer, as they do on MTurk."""
    type_id = params["QualificationTypeId"]
    if type_id in SYSTEM_TYPES:
        return {"QualificationType": SYSTEM_TYPES[type_id].form()}
    return {"QualificationType": _type_form(_any_type(transaction, type_id))}


def update_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out UpdateQualificationType; what is not given stays."""
    _refuse_tests(params)
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    _check_auto_grant({"AutoGranted": row.auto_granted, **params})
    row.description = params.get("Description", row.description)
    row.status = params.get("QualificationTypeStatus", row.status)
    row.retry_delay_seconds = params.get("RetryDelayInSeconds", row.retry_delay_seconds)
    row.auto_granted = params.get("AutoGranted", row.auto_granted)
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
    return paging.page("ListQualificationTypes", "QualificationTypes", rows, _type_form, lambda row: (row.seq,))


def associate(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out AssociateQualificationWithWorker: grant, or overwrite the value of an earlier grant."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    if transaction.session.get(WorkerRow, params["WorkerId"]) is None:
        raise invalid_parameter("WorkerId", params["WorkerId"])
    grant(transaction, row.qualification_type_id, params["WorkerId"], params.get("IntegerValue", 1))
    return {}


def disassociate(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out DisassociateQualificationFromWorker."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    held = _qualification(transaction, row.qualification_type_id, params["WorkerId"])
    if held is None or held.status != "Granted":
        raise request_error(QUALIFICATION_DOES_NOT_EXIST)
    held.status = "Revoked"
    return {}


def get_score(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out GetQualificationScore."""
    row = own_type(transaction, requester_id, params["QualificationTypeId"])
    held = _qualification(transaction, row.qualification_type_id, params["WorkerId"])
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
    held = _qualification(transaction, type_id, worker_id)
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


def _qualification(transaction: Transaction, type_id: str, worker_id: str) -> QualificationRow | None:
    query = select(QualificationRow).where(
        QualificationRow.qualification_type_id == type_id, QualificationRow.worker_id == worker_id
    )
    return transaction.session.scalar(query)


def _refuse_tests(params: Params) -> None:
    given = [name for name in _TEST_PARAMETERS if name in params]
    if given:
        raise unfit_parameter(
            f"This marketplace does not serve qualification tests yet ({', '.join(given)}); "
            "they come with the complete API. Grant the qualification with AssociateQualificationWithWorker."
        )


def _check_auto_grant(params: Params) -> None:
    if "AutoGrantedValue" in params and not params.get("AutoGranted", False):
        raise unfit_parameter("AutoGrantedValue needs AutoGranted to be true.")


def _type_form(row: QualificationTypeRow) -> Params:
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
