"""Put a batch's planned HITs on the marketplace, each exactly once, whatever is interrupted and whenever it goes on."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.settings import Settings
from hits.clock import Clock
from hits.errors import Refused
from hits.models import Hit, HitBatch, RetiredContext, Round
from hits.money import ZERO
from hits.mturk.client import HitSeen, MTurk, Requirement
from hits.mturk.errors import HitAlreadyExists, HitTypeMismatch, RequirementsMismatch
from hits.mturk.questions import external_question, notice_form
from hits.states import HitKind, HitState, RoundState
from payments.budgets import reserve, reserve_for_validation
from payments.errors import OverBudget
from payments.fees import for_masters, worst_case
from payments.models import Reservation
from payments.rules import ReaderTerms
from qualification.requirements import check_requirements, from_json
from qualification.validators import validator_requirement

#: The marketplace remembers a request token for 24 hours; one hour is left for clocks that differ.
TOKEN_LIFE = timedelta(hours=23)
ANNOTATION_PREFIX = "dynahit:"
_PAGES: Mapping[HitKind, str] = {
    HitKind.CREATION: "work",
    HitKind.VALIDATION: "validate",
    HitKind.QUALIFICATION: "quiz",
}

#: Of a round, those in which writers are offered work.
OPEN_STATES = (RoundState.PILOTING, RoundState.COLLECTING)

#: Called after each HIT with how many of the batch exist and how many it has.
OnCreated = Callable[[int, int], None]


def new_reference() -> str:
    """Return an unguessable name for a HIT, for its address and its annotation."""
    return secrets.token_hex(16)


def new_token() -> str:
    """Return a fresh request token."""
    return secrets.token_hex(24)


def requirements_of(batch: HitBatch) -> tuple[Requirement, ...]:
    """Return who may see and take the batch's HITs."""
    further = tuple(from_json(one) for one in batch.requirements or ())
    if batch.qualification_type_id is None:
        return further
    return (validator_requirement(batch.qualification_type_id, batch.senior_value), *further)


@dataclass(frozen=True)
class _Terms:
    """What a batch's HITs have in common, read once so that no transaction is open while the marketplace works."""

    kind: HitKind
    title: str
    description: str
    hit_type_id: str
    lifetime_seconds: int
    requirements: tuple[Requirement, ...]


@dataclass(frozen=True)
class _Wanted:
    """One HIT that has no marketplace id yet."""

    id: int
    reference: str
    token: str
    sent_at: datetime | None
    max_assignments: int


def create_hits(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    batch_id: int,
    *,
    on_created: OnCreated | None = None,
) -> int:
    """Create the batch's missing HITs and return how many there were. Commits before and after every call.

    A HIT whose creation was begun before is first looked for by its annotation; if it is not there and its token is
    still remembered, the same token is sent again, and a new one otherwise. Money is set aside first for a batch that
    has none: OverBudget when there is no room for it. Raises MTurkError; what was created by then is stored, and the
    next run goes on behind it. Of a batch with a pilot only that is created until it is released. A HIT whose context
    was retired since it was planned is closed instead. Raises Refused for creation HITs of a round that is closed, also
    when it is closed meanwhile.
    """
    _reserve(session, batch_id, clock.now())
    _withdraw_retired(session, batch_id)
    terms = _terms(session, mturk, batch_id)
    total, existing, wanted = _missing(session, batch_id)
    known: dict[str, HitSeen] | None = None
    for number, hit in enumerate(wanted, start=1):
        seen: HitSeen | None = None
        if hit.sent_at is not None:
            if known is None:
                known = mturk.find_hits_by_annotation(ANNOTATION_PREFIX)
            seen = known.get(ANNOTATION_PREFIX + hit.reference)
        if seen is None:
            current = _announce(session, hit, clock.now())
            # Without one, another process that creates this batch was faster.
            seen = _create(mturk, settings, terms, current) if current is not None else None
        if seen is not None:
            _store(session, hit.id, seen, clock.now())
            _check_requirements(mturk, terms, seen)
        if on_created is not None:
            on_created(existing + number, total)
    return len(wanted)


def _reserve(session: Session, batch_id: int, now: datetime) -> None:
    """Set the worst case of what is not created yet aside, once; a launch has done it with its rows."""
    if session.scalar(select(Reservation.id).where(Reservation.batch_id == batch_id)) is not None:
        session.commit()
        return
    batch = session.get_one(HitBatch, batch_id, populate_existing=True)
    places = session.scalars(
        select(Hit.max_assignments).where(Hit.batch_id == batch_id, Hit.mturk_hit_id.is_(None))
    ).all()
    masters = for_masters(batch.requirements)
    readers = ReaderTerms.of(batch)
    worst = [
        worst_case(1, count, batch.reward, batch.bonus, on=now.date(), masters=masters, further=readers.most(count))
        for count in places
    ]
    amount = sum((one.total for one in worst), ZERO)
    bonuses = sum((one.bonuses + one.bonus_fees for one in worst), ZERO)
    try:
        if batch.kind is HitKind.VALIDATION:
            reserve_for_validation(session, batch, amount, now=now, bonuses=bonuses)
        else:
            reserve(session, batch, amount, now=now, bonuses=bonuses)
    except OverBudget:
        session.rollback()
        raise
    session.commit()


def _terms(session: Session, mturk: MTurk, batch_id: int) -> _Terms:
    batch = session.get_one(HitBatch, batch_id, populate_existing=True)
    requirements = requirements_of(batch)
    terms = _Terms(
        batch.kind, batch.title, batch.description, batch.hit_type_id or "", batch.lifetime_seconds, requirements
    )
    properties: dict[str, Any] = {
        "title": batch.title,
        "description": batch.description,
        "keywords": batch.keywords,
        "reward": batch.reward,
        "assignment_seconds": batch.assignment_seconds,
        "auto_approval_seconds": batch.auto_approval_seconds,
    }
    session.commit()
    if terms.hit_type_id:
        return terms
    check_requirements(requirements)
    # Equal properties give the same type again, so a crash before the commit costs nothing.
    hit_type_id = mturk.create_hit_type(**properties, requirements=requirements)
    # A HIT type can't be read. But if it is the same as without its requirements, they were left out.
    if requirements and mturk.create_hit_type(**properties) == hit_type_id:
        raise HitTypeMismatch(hit_type_id, _listed(frozenset(map(str, requirements))))
    session.get_one(HitBatch, batch_id, populate_existing=True).hit_type_id = hit_type_id
    session.commit()
    return replace(terms, hit_type_id=hit_type_id)


def _withdraw_retired(session: Session, batch_id: int) -> None:
    """Close the HITs that were never sent to the marketplace and whose context no further HIT may have."""
    retired = select(RetiredContext.context_id).where(RetiredContext.context_id == Hit.context_id).exists()
    session.execute(
        update(Hit)
        .where(Hit.batch_id == batch_id, Hit.state == HitState.PLANNED, Hit.token_sent_at.is_(None), retired)
        .values(state=HitState.CLOSED)
        .execution_options(synchronize_session=False)
    )
    session.commit()


def _missing(session: Session, batch_id: int) -> tuple[int, int, list[_Wanted]]:
    rows = session.scalars(
        select(Hit).where(Hit.batch_id == batch_id).order_by(Hit.position).execution_options(populate_existing=True)
    ).all()
    most = held_from(session.get_one(HitBatch, batch_id, populate_existing=True))
    rows = [row for row in rows if row.mturk_hit_id is not None or row.state is not HitState.CLOSED]
    rows = [row for row in rows if most is None or row.position <= most]
    missing = [
        _Wanted(row.id, row.reference, row.request_token, row.token_sent_at, row.max_assignments)
        for row in rows
        if row.state in (HitState.PLANNED, HitState.CREATING)
    ]
    session.commit()
    return len(rows), len(rows) - len(missing), missing


def held_from(batch: HitBatch) -> int | None:
    """Return the position of the batch's last HIT that may be created, None when all may: a pilot holds the others."""
    return batch.pilot if batch.released_at is None else None


def _announce(session: Session, hit: _Wanted, now: datetime) -> _Wanted | None:
    """Commit that the token is about to be sent; one that the marketplace has forgotten is replaced first.

    None when the HIT has its id by now.
    """
    row = session.get_one(Hit, hit.id, populate_existing=True, with_for_update=True)
    if row.mturk_hit_id is not None:
        row.state = HitState.CLOSED if row.state is HitState.CLOSED else HitState.CREATED
        session.commit()
        return None
    _require_open(session, row)
    row.state = HitState.CREATING
    if row.token_sent_at is None or now - row.token_sent_at >= TOKEN_LIFE:
        if row.token_sent_at is not None:
            row.request_token = new_token()
        row.token_sent_at = now
    announced = replace(hit, token=row.request_token, sent_at=row.token_sent_at)
    session.commit()
    return announced


def _require_open(session: Session, row: Hit) -> None:
    """Raise Refused for a creation HIT whose round takes no more work, or that was withdrawn."""
    # The lock keeps the round from being closed between this look and the commit.
    round_ = session.get_one(Round, row.batch.round_id, populate_existing=True, with_for_update={"read": True})
    if row.batch.kind is not HitKind.CREATION or (round_.state in OPEN_STATES and row.state is not HitState.CLOSED):
        return
    code, number, state = round_.task_code, round_.number, round_.state
    session.rollback()
    raise Refused(
        f"Round {number} of the {code} task is {state.value}: no more HITs are created, and those that exist stay. "
        f"`dynahit round open {code} {number}` opens it again, if it was closed too early."
    )


def _create(mturk: MTurk, settings: Settings, terms: _Terms, hit: _Wanted) -> HitSeen:
    try:
        return mturk.create_hit(
            terms.hit_type_id,
            question_xml=_question(settings, terms, hit),
            max_assignments=hit.max_assignments,
            lifetime_seconds=terms.lifetime_seconds,
            annotation=ANNOTATION_PREFIX + hit.reference,
            request_token=hit.token,
        )
    except HitAlreadyExists as error:
        # The first answer was lost on its way to us.
        return mturk.hit(error.hit_id)


def _question(settings: Settings, terms: _Terms, hit: _Wanted) -> str:
    if terms.kind is HitKind.COMPENSATION:
        # It may be owed because our pages failed, so that none of them stands in its way.
        return notice_form(terms.title, terms.description, "Do you want to tell us anything? You may leave this empty.")
    return external_question(f"{settings.service_url.rstrip('/')}/{_PAGES[terms.kind]}/{hit.reference}")


def _store(session: Session, hit_id: int, seen: HitSeen, now: datetime) -> None:
    row = session.get_one(Hit, hit_id, populate_existing=True, with_for_update=True)
    if row.mturk_hit_id is None:
        row.mturk_hit_id = seen.hit_id
        row.created_at = now
    if row.state is not HitState.CLOSED:
        row.state = HitState.CREATED
    row.expires_at = seen.expires_at
    session.commit()


def _check_requirements(mturk: MTurk, terms: _Terms, seen: HitSeen) -> None:
    wanted = frozenset(str(requirement) for requirement in terms.requirements)
    if seen.requirements != wanted:
        mturk.expire(seen.hit_id)
        raise RequirementsMismatch(seen.hit_id, _listed(wanted), _listed(seen.requirements))


def _listed(requirements: frozenset[str]) -> str:
    return "; ".join(sorted(requirements)) or "none"


def unfinished_batches(session: Session, endpoint: str, kind: HitKind) -> Iterator[int]:
    """Yield the ids of the endpoint's batches of this kind that still have HITs to create, oldest first."""
    yield from session.scalars(
        select(HitBatch.id)
        .where(HitBatch.endpoint == endpoint, HitBatch.kind == kind)
        .where(
            select(Hit.id)
            .where(Hit.batch_id == HitBatch.id, Hit.state.in_((HitState.PLANNED, HitState.CREATING)))
            .exists()
        )
        .order_by(HitBatch.id)
    ).all()
