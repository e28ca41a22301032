"""Open validation HITs for the examples that want votes.

A HIT offers places; which examples its readers judge is drawn when they open it (hits.validations.queue).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_UP

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.operations.create_hits import create_hits, new_reference, new_token, unfinished_batches
from app.operations.grant import asked_experts, asked_quiz
from app.operations.requirements import requirements_for
from app.settings import Settings
from hits import validations
from hits.clock import Clock
from hits.errors import Refused
from hits.models import Example, Hit, HitBatch, Round
from hits.money import CENT, ZERO, display, usd
from hits.mturk.client import MTurk, Requirement
from hits.states import HitKind, HitState, Verdict
from hits.tasks import TaskSpec, task
from hits.validations import Shortage
from payments.rules import ReaderTerms
from qualification.quizzes import QuizFor
from qualification.requirements import as_json
from qualification.validators import validator_type
from qualification.wages import stated_wage

log = logging.getLogger(__name__)

LIFETIME = timedelta(days=7)
AUTO_APPROVAL = timedelta(days=3)
#: Time per statement that is stated to validators, and the time they have for the whole HIT.
SECONDS_PER_ITEM = 20
ASSIGNMENT_TIME = timedelta(minutes=30)


class ValidationBelowFloor(Refused):
    """Validation HITs would pay less by the hour than the floor, and nobody has said why."""


@dataclass(frozen=True)
class Group:
    """Examples that are waiting for one validation HIT, and how many people are to judge them."""

    wanted: int
    example_ids: tuple[int, ...]
    for_seniors: bool = False


def open_validation_hits(session: Session, mturk: MTurk, settings: Settings, clock: Clock) -> int:
    """Create the validation HITs that are due and return how many; HITs that a crash left half-made come first.

    Raises MTurkError; what was created by then is stored. Raises ValidationBelowFloor where the pay has fallen below
    the floor and no launch of the round has said why; HITs of other rounds are opened first.
    """
    unfinished = list(unfinished_batches(session, mturk.endpoint, HitKind.VALIDATION))
    session.commit()
    opened = sum(create_hits(session, mturk, settings, clock, batch_id) for batch_id in unfinished)
    due = groups_due(session, settings, clock.now())
    session.commit()
    if not due:
        return opened
    general = validator_type(mturk, settings.validator_qualification)
    low, too_low = below_floor(settings), []
    for round_id, groups in due:
        round_ = session.get_one(Round, round_id)
        reason = _wage_reason(session, round_id) if low is not None else None
        if low is not None and reason is None:
            too_low.append(f"round {round_.number} of {round_.task_code}")
            session.commit()
            continue
        task_code = round_.task_code
        asked = requirements_for(session, mturk, settings, task_code, round_.number, HitKind.VALIDATION, besides=1)
        by_quiz = _asked_quiz(session, mturk, settings, task_code)
        # Another qualification value is another HIT type, so that senior validators have batches of their own.
        for for_seniors in sorted({group.for_seniors for group in groups}):
            # Seniors are the task's experts, or those whom a requester gave the general qualification with a value
            # that says so.
            earned = by_quiz
            if by_quiz is not None and for_seniors:
                earned = asked_experts(session, mturk, settings, task_code)
            batch_id = _store_rows(
                session,
                mturk.endpoint,
                settings,
                clock.now(),
                round_id,
                general if earned is None else None,
                for_seniors=for_seniors,
                asked=asked if earned is None else (earned, *asked),
                wage_reason=reason,
            )
            if batch_id is not None:
                opened += create_hits(session, mturk, settings, clock, batch_id)
    if too_low:
        raise ValidationBelowFloor(f"{low} None is opened for {', '.join(too_low)} until then.")
    return opened


def _wage_reason(session: Session, round_id: int) -> str | None:
    """Return what the round's last launch below the floor gave as its reason; it was shown the readers' pay as well."""
    return session.scalar(
        select(HitBatch.wage_reason)
        .where(HitBatch.round_id == round_id, HitBatch.kind == HitKind.CREATION, HitBatch.wage_reason.is_not(None))
        .order_by(HitBatch.id.desc())
        .limit(1)
    )


def below_floor(settings: Settings) -> str | None:
    """Return in a sentence that validation pays less by the hour than the floor, None where it does not."""
    floor, minutes = settings.wage_floor, minutes_for(settings.validation_items)
    offered = stated_wage(settings.validation_reward, minutes)
    if floor is None or offered >= floor:
        return None
    least = (floor * minutes / 60).quantize(CENT, rounding=ROUND_UP)
    return (
        f"Validation comes to {display(offered)} an hour, and the floor (DYNAHIT_WAGE_FLOOR) is {display(floor)}:"
        f" for {minutes} minutes set DYNAHIT_VALIDATION_REWARD to {least} or more."
    )


def _asked_quiz(session: Session, mturk: MTurk, settings: Settings, task_code: str) -> Requirement | None:
    """Return what validators must have passed, None where the general qualification is asked for instead."""
    if not settings.validators_by_quiz:
        return None
    return asked_quiz(session, mturk, settings, task_code, QuizFor.VALIDATOR)


def grouped(shortages: Sequence[Shortage], *, items: int, wait: timedelta, now: datetime) -> list[Group]:
    """Return the HITs that are due: full ones at once, a smaller one when its oldest example has waited long enough.

    Examples that want the same number of votes share a HIT, oldest first.
    """
    found = []
    kinds = {(shortage.wanted, shortage.for_seniors) for shortage in shortages}
    for wanted, for_seniors in sorted(kinds, reverse=True):
        waiting = sorted(
            (one for one in shortages if (one.wanted, one.for_seniors) == (wanted, for_seniors)),
            key=lambda shortage: (shortage.waiting_since, shortage.example_id),
        )
        for start in range(0, len(waiting), items):
            part = waiting[start : start + items]
            if len(part) == items or now - part[0].waiting_since >= wait:
                found.append(Group(wanted, tuple(shortage.example_id for shortage in part), for_seniors))
    return found


def groups_due(session: Session, settings: Settings, now: datetime) -> list[tuple[int, list[Group]]]:
    """Return the validation HITs that are due, by round id; rounds without any are left out.

    Leases whose time is over are given back first, since what nobody reads any more wants a place again.
    """
    pending = select(Example.round_id).where(Example.verdict == Verdict.PENDING)
    rounds = session.scalars(select(Round).where(Round.id.in_(pending)).order_by(Round.id)).all()
    for round_ in rounds:
        validations.release_expired(session, round_, now)
    by_round = [(round_.id, _groups(session, round_, settings, now)) for round_ in rounds]
    return [(round_id, groups) for round_id, groups in by_round if groups]


def _groups(session: Session, round_: Round, settings: Settings, now: datetime) -> list[Group]:
    return grouped(
        validations.shortages(session, round_, now),
        # Gold items take their room in a batch.
        items=max(settings.validation_items - round_.gold_items, 1),
        wait=timedelta(seconds=settings.validation_wait_seconds),
        now=now,
    )


def _store_rows(
    session: Session,
    endpoint: str,
    settings: Settings,
    now: datetime,
    round_id: int,
    qualification_type_id: str | None,
    *,
    for_seniors: bool,
    asked: Sequence[Requirement],
    wage_reason: str | None,
) -> int | None:
    """Commit a batch with the planned HITs that are due; None when another process was faster."""
    # The lock makes looking and writing one step, so that two processes don't open the same HITs.
    round_ = session.get_one(Round, round_id, populate_existing=True, with_for_update=True)
    groups = [group for group in _groups(session, round_, settings, now) if group.for_seniors is for_seniors]
    if not groups:
        session.rollback()
        return None
    spec = task(round_.task_code)
    terms = reader_terms(settings, with_gold=round_.gold_items > 0)
    of_round = (HitBatch.round_id == round_id) & (HitBatch.kind == HitKind.VALIDATION)
    sequence = (session.scalar(select(func.count()).select_from(HitBatch).where(of_round)) or 0) + 1
    batch = HitBatch(
        round_id=round_id,
        kind=HitKind.VALIDATION,
        key=f"validation:{round_id}:{sequence}",
        endpoint=endpoint,
        title=spec.hit_title(_title(spec)),
        description=" ".join((_description(spec, settings.validation_items), *terms.sentences)),
        keywords=", ".join(("reading", *spec.keywords)),
        reward=usd(settings.validation_reward),
        bonus=ZERO,
        extras=terms.as_json(),
        minutes=minutes_for(settings.validation_items),
        assignment_seconds=int(ASSIGNMENT_TIME.total_seconds()),
        auto_approval_seconds=int(AUTO_APPROVAL.total_seconds()),
        lifetime_seconds=int(LIFETIME.total_seconds()),
        qualification_type_id=qualification_type_id,
        requirements=[as_json(one) for one in asked] or None,
        items=settings.validation_items,
        senior_value=round_.senior_value if for_seniors else None,
        wage_reason=wage_reason,
        created_at=now,
    )
    session.add(batch)
    try:
        session.flush()
    except IntegrityError:
        session.rollback()
        log.info("Another process opens validation HITs for round %s at this moment.", round_id)
        return None
    for position, group in enumerate(groups, start=1):
        session.add(
            Hit(
                batch_id=batch.id,
                position=position,
                reference=new_reference(),
                request_token=new_token(),
                state=HitState.PLANNED,
                max_assignments=group.wanted,
            )
        )
    batch_id = batch.id
    session.commit()
    return batch_id


def reader_terms(settings: Settings, *, with_gold: bool) -> ReaderTerms:
    """Return what validation HITs that are opened now pay besides; ``with_gold``: they have gold items in them."""
    hit_bonus = usd(settings.validation_bonus)
    if not with_gold:
        return ReaderTerms(hit_bonus=hit_bonus)
    return ReaderTerms(settings.gold_bonus_percent, usd(settings.gold_bonus), hit_bonus)


def minutes_for(items: int) -> int:
    """Return how long a validation HIT of so many items takes, as told to validators."""
    return max(1, -(-items * SECONDS_PER_ITEM // 60))


def _title(spec: TaskSpec) -> str:
    return f"Read short {spec.item_name}s and judge them ({spec.code})"


def _description(spec: TaskSpec, items: int) -> str:
    choices = ", ".join(label.name for label in spec.labels)
    return (
        f"Read up to {items} short {spec.item_name}s that other people wrote and choose for each one: {choices}."
        f" You can also flag a {spec.item_name} that breaks the rules."
        + (f" {spec.content_warning}" if spec.content_warning else "")
    )
