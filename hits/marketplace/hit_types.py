"""HIT types: the properties that HITs share, found again when equal ones are given."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from sqlalchemy import bindparam, select

from hits.marketplace import accounts, eligibility, events
from hits.marketplace.errors import HIT_TYPE_DOES_NOT_EXIST, request_error
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.limits import amount_cents
from hits.marketplace.tables import HitGroupRow, HitTypeRow, NotificationRow
from hits.marketplace.transactions import Transaction

Params = dict[str, Any]
DEFAULT_AUTO_APPROVAL_SECONDS: Final = 2_592_000
_FIND: Final = (
    select(HitTypeRow, NotificationRow)
    .outerjoin(NotificationRow, NotificationRow.hit_type_id == HitTypeRow.hit_type_id)
    .where(
        HitTypeRow.requester_id == bindparam("requester_id"),
        HitTypeRow.fingerprint == bindparam("fingerprint"),
        HitTypeRow.deleted_at.is_(None),
    )
)


def create_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out CreateHITType."""
    return {"HITTypeId": find_or_create(transaction, requester_id, params).hit_type_id}


def find_or_create(transaction: Transaction, requester_id: str, params: Params) -> HitTypeRow:
    """Return the requester's HIT type with these properties; only to make a new one, the account is locked.

    Raises MarketplaceError for a reward out of range and requirements that cannot be.
    """
    parts: Params = {
        "title": params["Title"],
        "description": params["Description"],
        "keywords": params.get("Keywords", ""),
        "reward_cents": amount_cents("Reward", params["Reward"]),
        "duration_seconds": params["AssignmentDurationInSeconds"],
        "auto_approval_seconds": params.get("AutoApprovalDelayInSeconds", DEFAULT_AUTO_APPROVAL_SECONDS),
        "requirements": eligibility.canonical(transaction, params.get("QualificationRequirements", [])),
    }
    fingerprint = hashlib.sha256(json.dumps(parts, sort_keys=True).encode("ascii")).hexdigest()
    row = _find(transaction, requester_id, fingerprint)
    if row is None:
        accounts.lock(transaction, requester_id)
        row = _find(transaction, requester_id, fingerprint)
    if row is None:
        row = HitTypeRow(
            hit_type_id=new_entity_id(),
            hit_group_id=new_entity_id(),
            requester_id=requester_id,
            fingerprint=fingerprint,
            created_at=transaction.now,
            **parts,
        )
        transaction.session.add(row)
        transaction.session.flush()
        transaction.session.add(HitGroupRow(hit_type_id=row.hit_type_id, is_open=False, open_hits=0, open_html_hits=0))
    return row


def _find(transaction: Transaction, requester_id: str, fingerprint: str) -> HitTypeRow | None:
    given = {"requester_id": requester_id, "fingerprint": fingerprint}
    found = transaction.session.execute(_FIND, given).first()
    if found is None:
        return None
    events.note(transaction, found[0].hit_type_id, found[1])
    return found[0]


def own_type(transaction: Transaction, requester_id: str, hit_type_id: str) -> HitTypeRow:
    """Return one of the requester's own HIT types.

    Raises MarketplaceError: another requester's type does not exist.
    """
    row = transaction.session.scalar(
        select(HitTypeRow).where(
            HitTypeRow.hit_type_id == hit_type_id,
            HitTypeRow.requester_id == requester_id,
            HitTypeRow.deleted_at.is_(None),
        )
    )
    if row is None:
        raise request_error(HIT_TYPE_DOES_NOT_EXIST, id=hit_type_id)
    return row
