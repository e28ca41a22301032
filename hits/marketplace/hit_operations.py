"""The operations of the API that create, show, list, extend, expire and delete HITs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Select, String, cast, exists, insert, select

from hits.marketplace import (
    accounts,
    eligibility,
    events,
    fees,
    groups,
    hit_types,
    layouts,
    lifecycle,
    paging,
    qualifications,
    questions,
    review_policies,
    tokens,
)
from hits.marketplace.errors import (
    DUPLICATE_REQUEST,
    HIT_ALREADY_EXISTS,
    HIT_ALREADY_TAKEN,
    HIT_TAKEN_DOWN,
    INVALID_HIT_STATE,
    INVALID_MAXIMUM_ASSIGNMENTS_INCREASE,
    MISSING_PARAMETERS,
    PARAMETER_OUT_OF_RANGE,
    MarketplaceError,
    request_error,
    unfit_parameter,
)
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.money import wire
from hits.marketplace.system_qualifications import MASTERS
from hits.marketplace.tables import AssignmentRow, HitRow, HitTypeRow
from hits.marketplace.transactions import Transaction

Params = dict[str, Any]
LONGEST_LIFE: Final = timedelta(seconds=31_536_000)
_FEW: Final = 10
_INSERT: Final = insert(HitRow)


def create_hit(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out CreateHIT."""
    return _create(
        transaction,
        requester_id,
        "CreateHIT",
        params,
        lambda: hit_types.find_or_create(transaction, requester_id, params),
    )


def create_hit_with_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out CreateHITWithHITType."""
    return _create(
        transaction,
        requester_id,
        "CreateHITWithHITType",
        params,
        lambda: _usable_type(transaction, requester_id, params["HITTypeId"]),
    )


def _usable_type(transaction: Transaction, requester_id: str, hit_type_id: str) -> HitTypeRow:
    hit_type = hit_types.own_type(transaction, requester_id, hit_type_id)
    eligibility.require_active_types(transaction, hit_type.requirements)
    return hit_type


def get_hit(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out GetHIT; a disposed HIT answers, with that status."""
    hit = lifecycle.own_hit(transaction, requester_id, params["HITId"])
    return {"HIT": hit_form(hit, hit_type_of(transaction, hit))}


def list_hits(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListHITs: all but disposed ones, newest first."""
    return _list(transaction, "ListHITs", params, _own_hits(requester_id).where(lifecycle.is_listed()))


def list_reviewable_hits(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListReviewableHITs."""
    query = _own_hits(requester_id).where(HitRow.status == params.get("Status", "Reviewable"))
    if "HITTypeId" in params:
        hit_type = hit_types.own_type(transaction, requester_id, params["HITTypeId"])
        query = query.where(HitRow.hit_type_id == hit_type.hit_type_id)
    return _list(transaction, "ListReviewableHITs", params, query)


def list_hits_for_qualification(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out ListHITsForQualificationType: the requester's own HITs that require the type, newest first."""
    type_id = params["QualificationTypeId"]
    qualifications.get_type(transaction, requester_id, params)
    # Ids are letters and digits that occur nowhere else in a stored requirement.
    query = _own_hits(requester_id).where(
        HitRow.status != "Disposed", cast(HitTypeRow.requirements, String).contains(f'"{type_id}"')
    )
    return _list(transaction, "ListHITsForQualificationType", params, query)


def update_hit_type(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out UpdateHITTypeOfHIT: only before the first assignment; the hold follows the new reward."""
    account = accounts.lock(transaction, requester_id)
    hit = lifecycle.own_hit(transaction, requester_id, params["HITId"], lock=True)
    lifecycle.require_not_disposed(hit)
    hit_type = hit_types.own_type(transaction, requester_id, params["HITTypeId"])
    if transaction.session.scalar(select(exists().where(AssignmentRow.hit_id == hit.hit_id))):
        raise request_error(HIT_ALREADY_TAKEN, id=hit.hit_id)
    held = hit.held_cents
    if hit.status == "Assignable":
        groups.closed(transaction, hit)
    hit.hit_type_id = hit_type.hit_type_id
    if hit.status == "Assignable":
        groups.opened(transaction, hit)
    hit.reward_cents = hit_type.reward_cents
    hit.fee_cents = _fee(transaction, hit_type, hit.max_assignments)
    accounts.enter(transaction, account, "hold_retyped", held=hit.held_cents - held, hit_id=hit.hit_id)
    return {}


def update_expiration(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out UpdateExpirationForHIT: a past time expires the HIT now."""
    hit = lifecycle.own_hit(transaction, requester_id, params["HITId"], lock=True)
    lifecycle.require_not_disposed(hit)
    expire_at: datetime = params["ExpireAt"]
    token = f"{hit.hit_id}{expire_at.astimezone(UTC).strftime('%a %b %d %H:%M:%S UTC %Y')}"
    if transaction.settings.repeated_expiration_is_an_error:
        _refuse_repetition(transaction, requester_id, "UpdateExpirationForHIT", token)
    account = accounts.lock(transaction, requester_id)
    if expire_at <= transaction.now:
        if not hit.is_expired:
            lifecycle.expire(transaction, account, hit)
    else:
        if hit.taken_down_at is not None:
            raise request_error(HIT_TAKEN_DOWN, id=hit.hit_id)
        if expire_at > transaction.now + LONGEST_LIFE:
            raise request_error(PARAMETER_OUT_OF_RANGE, reason=f"ExpireAt must lie within a year, got {expire_at}.")
        hit.expires_at = expire_at
        lifecycle.prolong(transaction, account, hit)
    tokens.remember(transaction, requester_id, "UpdateExpirationForHIT", token, hit.hit_id)
    return {}


def create_additional_assignments(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out CreateAdditionalAssignmentsForHIT."""
    operation = "CreateAdditionalAssignmentsForHIT"
    _refuse_repetition(transaction, requester_id, operation, params.get("UniqueRequestToken"))
    hit = lifecycle.own_hit(transaction, requester_id, params["HITId"], lock=True)
    lifecycle.require_not_disposed(hit)
    added = params["NumberOfAdditionalAssignments"]
    if hit.max_assignments < _FEW <= hit.max_assignments + added:
        raise request_error(INVALID_MAXIMUM_ASSIGNMENTS_INCREASE, maximum=hit.max_assignments, added=added)
    lifecycle.extend(transaction, accounts.lock(transaction, requester_id), hit, added=added)
    tokens.remember(transaction, requester_id, operation, params.get("UniqueRequestToken"), hit.hit_id)
    return {}


def update_review_status(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out UpdateHITReviewStatus: Reviewable to Reviewing, or back."""
    hit = lifecycle.own_hit(transaction, requester_id, params["HITId"], lock=True)
    before, after = ("Reviewing", "Reviewable") if params.get("Revert", False) else ("Reviewable", "Reviewing")
    if hit.status != before:
        raise request_error(INVALID_HIT_STATE, state=hit.status, allowed=before)
    hit.status = after
    return {}


def delete_hit(transaction: Transaction, requester_id: str, params: Params) -> Params:
    """Carry out DeleteHIT: only when nobody works on it and all that was submitted is reviewed."""
    hit = lifecycle.own_hit(transaction, requester_id, params["HITId"], lock=True)
    if hit.status not in {"Reviewable", "Reviewing"} or hit.submitted:
        raise request_error(INVALID_HIT_STATE, state=hit.status, allowed="Reviewing, Reviewable")
    lifecycle.dispose(transaction, hit)
    return {}


def hit_form(hit: HitRow, hit_type: HitTypeRow) -> Params:
    """Return a HIT as the API shows it."""
    form: Params = {
        "HITId": hit.hit_id,
        "HITTypeId": hit_type.hit_type_id,
        "HITGroupId": hit_type.hit_group_id,
        "CreationTime": hit.created_at,
        "Title": hit_type.title,
        "Description": hit_type.description,
        "Question": hit.question,
        "Keywords": hit_type.keywords,
        "HITStatus": hit.status,
        "MaxAssignments": hit.max_assignments,
        "Reward": wire(hit.reward_cents),
        "AutoApprovalDelayInSeconds": hit_type.auto_approval_seconds,
        "Expiration": hit.expires_at,
        "AssignmentDurationInSeconds": hit_type.duration_seconds,
        "QualificationRequirements": [
            {**item, "RequiredToPreview": item["ActionsGuarded"] != "Accept"} for item in hit_type.requirements
        ],
        "HITReviewStatus": "NotReviewed",
        "NumberOfAssignmentsPending": hit.pending,
        "NumberOfAssignmentsAvailable": hit.available,
        "NumberOfAssignmentsCompleted": hit.completed,
    }
    if hit.annotation is not None:
        form["RequesterAnnotation"] = hit.annotation
    if hit.layout_id is not None:
        form["HITLayoutId"] = hit.layout_id
    return form


def hit_type_of(transaction: Transaction, hit: HitRow) -> HitTypeRow:
    """Return the type of a HIT, a deleted one too."""
    return transaction.session.scalars(select(HitTypeRow).where(HitTypeRow.hit_type_id == hit.hit_type_id)).one()


def _create(
    transaction: Transaction,
    requester_id: str,
    operation: str,
    params: Params,
    hit_type_for: Callable[[], HitTypeRow],
) -> Params:
    token = params.get("UniqueRequestToken")
    if token is not None:
        # Of two equal requests at once, the second waits here until the first is done.
        accounts.lock(transaction, requester_id)
    existing = tokens.first_result(transaction, requester_id, operation, token)
    if existing is not None:
        raise request_error(HIT_ALREADY_EXISTS, id=existing)
    text = _question_text(transaction, requester_id, params)
    question = questions.read_question(text, allow_http_loopback=transaction.settings.allow_http_loopback)
    hit_type = hit_type_for()
    maximum = params.get("MaxAssignments", 1)
    properties: Params = {
        "hit_id": new_entity_id(),
        "requester_id": requester_id,
        "hit_type_id": hit_type.hit_type_id,
        "created_at": transaction.now,
        "expires_at": transaction.now + timedelta(seconds=params["LifetimeInSeconds"]),
        "is_expired": False,
        "status": "Assignable",
        "max_assignments": maximum,
        "pending": 0,
        "submitted": 0,
        "completed": 0,
        "reward_cents": hit_type.reward_cents,
        "fee_cents": _fee(transaction, hit_type, maximum),
        "question": text,
        "question_kind": question.kind,
        "missing_elements": " ".join(question.missing_elements) or None,
        "external_url": question.url or "",
        "frame_height": question.frame_height,
        "layout_id": params.get("HITLayoutId"),
        "assignment_policy": review_policies.checked(params.get("AssignmentReviewPolicy"), "Assignment"),
        "hit_policy": review_policies.checked(params.get("HITReviewPolicy"), "HIT"),
        "annotation": params.get("RequesterAnnotation"),
    }
    hit = HitRow(**properties)
    transaction.session.connection().execute(_INSERT, properties)
    groups.opened(transaction, hit)
    events.emit(transaction, "HITCreated", hit)
    tokens.remember(transaction, requester_id, operation, token, hit.hit_id)
    transaction.session.flush()
    # Last, so that the account is locked for the shortest time: others wait with theirs for it.
    accounts.hold(transaction, requester_id, hit.held_cents, hit_id=hit.hit_id)
    return {"HIT": hit_form(hit, hit_type)}


def _fee(transaction: Transaction, hit_type: HitTypeRow, maximum: int) -> int:
    masters = any(
        item["QualificationTypeId"] in MASTERS and item["Comparator"] == "Exists" for item in hit_type.requirements
    )
    return fees.assignment_fee(hit_type.reward_cents, max_assignments=maximum, masters=masters, at=transaction.now)


def _question_text(transaction: Transaction, requester_id: str, params: Params) -> str:
    if "HITLayoutId" in params:
        if "Question" in params:
            raise unfit_parameter("A HIT has either a Question or a HITLayoutId, not both.")
        return layouts.fill(transaction, requester_id, params["HITLayoutId"], params.get("HITLayoutParameters", []))
    if "HITLayoutParameters" in params:
        raise unfit_parameter("HITLayoutParameters need a HITLayoutId.")
    if "Question" not in params:
        raise MarketplaceError("RequestError", "A HIT needs a Question or a HITLayoutId.", MISSING_PARAMETERS.code)
    return str(params["Question"])


def _refuse_repetition(transaction: Transaction, requester_id: str, operation: str, token: str | None) -> None:
    if tokens.first_result(transaction, requester_id, operation, token) is not None:
        raise request_error(DUPLICATE_REQUEST, token=token)


def _own_hits(requester_id: str) -> Select[HitRow, HitTypeRow]:
    return (
        select(HitRow, HitTypeRow)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .where(HitRow.requester_id == requester_id)
    )


def _list(transaction: Transaction, operation: str, params: Params, query: Select[HitRow, HitTypeRow]) -> Params:
    last = paging.after(params, operation)
    if last is not None:
        query = query.where(HitRow.seq < last[0])
    query = query.order_by(HitRow.seq.desc()).limit(paging.page_size(params))
    rows = transaction.session.execute(query).all()
    return paging.page(operation, "HITs", rows, lambda row: hit_form(row[0], row[1]), lambda row: (row[0].seq,))
