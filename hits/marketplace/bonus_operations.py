"""The operations of the API about bonuses and the balance."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from hits.marketplace import accounts, audit, fees, lifecycle, paging, tokens
from hits.marketplace.assignment_operations import own_assignment
from hits.marketplace.console_views import Actor
from hits.marketplace.errors import (
    ASSIGNMENT_DOES_NOT_EXIST,
    DUPLICATE_REQUEST,
    MISSING_PARAMETERS,
    invalid_parameter,
    request_error,
)
from hits.marketplace.limits import amount_cents
from hits.marketplace.money import wire
from hits.marketplace.tables import BonusRow
from hits.marketplace.transactions import Transaction

Params = dict[str, Any]


def send_bonus(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out SendBonus: amount and fee leave the account at once; a disposed HIT's worker can still get one."""
    token = params.get("UniqueRequestToken")
    if tokens.first_result(transaction, requester_id, "SendBonus", token) is not None:
        raise request_error(DUPLICATE_REQUEST, token=token)
    amount = amount_cents("BonusAmount", params["BonusAmount"], least=1)
    assignment = own_assignment(transaction, requester_id, params["AssignmentId"])
    if assignment.state == "Accepted":
        raise request_error(ASSIGNMENT_DOES_NOT_EXIST, id=assignment.assignment_id)
    if assignment.worker_id != params["WorkerId"]:
        raise invalid_parameter("WorkerId", params["WorkerId"])
    fee = fees.bonus_fee(amount, at=transaction.now)
    accounts.enter(
        transaction,
        accounts.lock(transaction, requester_id),
        "bonus",
        spent=amount + fee,
        hit_id=assignment.hit_id,
        assignment_id=assignment.assignment_id,
    )
    transaction.session.add(
        BonusRow(
            requester_id=requester_id,
            worker_id=assignment.worker_id,
            hit_id=assignment.hit_id,
            assignment_id=assignment.assignment_id,
            amount_cents=amount,
            fee_cents=fee,
            reason=params["Reason"],
            granted_at=transaction.now,
        )
    )
    audit.record(
        transaction,
        Actor.requester(requester_id),
        "bonus",
        "assignment",
        assignment.assignment_id,
        amount=wire(amount),
    )
    tokens.remember(transaction, requester_id, "SendBonus", token, assignment.assignment_id)
    return {}


def list_bonus_payments(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListBonusPayments: of a HIT or of an assignment, oldest first, after disposal too."""
    if "HITId" not in params and "AssignmentId" not in params:
        raise request_error(MISSING_PARAMETERS, reason="ListBonusPayments needs a HITId or an AssignmentId.")
    query = select(BonusRow).where(BonusRow.requester_id == requester_id)
    if "HITId" in params:
        query = query.where(BonusRow.hit_id == lifecycle.own_hit(transaction, requester_id, params["HITId"]).hit_id)
    if "AssignmentId" in params:
        assignment = own_assignment(transaction, requester_id, params["AssignmentId"])
        query = query.where(BonusRow.assignment_id == assignment.assignment_id)
    last = paging.after(params, "ListBonusPayments")
    if last is not None:
        query = query.where(BonusRow.seq > last[0])
    rows = transaction.session.scalars(query.order_by(BonusRow.seq).limit(paging.page_size(params))).all()
    return paging.page("ListBonusPayments", "BonusPayments", rows, _bonus_form, lambda row: (row.seq,))


def get_account_balance(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out GetAccountBalance."""
    account = accounts.find(transaction, requester_id)
    return {"AvailableBalance": wire(account.available_cents), "OnHoldBalance": wire(account.held_cents)}


def _bonus_form(row: BonusRow) -> Params:
    return {
        "WorkerId": row.worker_id,
        "BonusAmount": wire(row.amount_cents),
        "AssignmentId": row.assignment_id,
        "Reason": row.reason,
        "GrantTime": row.granted_at,
    }
