"""Open validation HITs for the examples that want votes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.operations.create_hits import create_hits, new_reference, new_token, unfinished_batches
from app.settings import Settings
from hits import validations
from hits.clock import Clock
from hits.models import Example, Hit, HitBatch, HitItem, Round
from hits.money import ZERO, usd
from hits.mturk.client import MTurk
from hits.states import HitKind, HitState, Verdict
from hits.tasks import TaskSpec, task
from hits.validations import Shortage
from qualification.validators import validator_type

log = logging.getLogger(__name__)

LIFETIME = timedelta(days=7)
AUTO_APPROVAL = timedelta(days=3)
#: Time per statement that is stated to validators, and the time they have for the whole HIT.
SECONDS_PER_ITEM = 20
ASSIGNMENT_TIME = timedelta(minutes=30)


@dataclass(frozen=True)
class Group:
    """Examples that go into one validation HIT, and how many people are to judge them."""

    wanted: int
    example_ids: tuple[int, ...]


def open_validation_hits(session: Session, mturk: MTurk, settings: Settings, clock: Clock) -> int:
    """Create the validation HITs that are due and return how many; HITs that a crash left half-made come first.

    Raises MTurkError; what was created by then is stored.
    """
    unfinished = list(unfinished_batches(session, mturk.endpoint, HitKind.VALIDATION))
    session.commit()
    opened = sum(create_hits(session, mturk, settings, clock, batch_id) for batch_id in unfinished)
    due = groups_due(session, settings, clock.now())
    session.commit()
    if not due:
        return opened
    qualification = validator_type(mturk, settings.validator_qualification)
    for round_id, _ in due:
        batch_id = _store_rows(session, mturk.endpoint, settings, clock.now(), round_id, qualification)
        if batch_id is not None:
            opened += create_hits(session, mturk, settings, clock, batch_id)
    return opened


def grouped(shortages: Sequence[Shortage], *, items: int, wait: timedelta, now: datetime) -> list[Group]:
    """Return the HITs that are due: full ones at once, a smaller one when its oldest example has waited long enough.

    Examples that want the same number of votes share a HIT, oldest first.
    """
    found = []
    for wanted in sorted({shortage.wanted for shortage in shortages}, reverse=True):
        waiting = sorted(
            (shortage for shortage in shortages if shortage.wanted == wanted),
            key=lambda shortage: (shortage.waiting_since, shortage.example_id),
        )
        for start in range(0, len(waiting), items):
            part = waiting[start : start + items]
            if len(part) == items or now - part[0].waiting_since >= wait:
                found.append(Group(wanted, tuple(shortage.example_id for shortage in part)))
    return found


def groups_due(session: Session, settings: Settings, now: datetime) -> list[tuple[int, list[Group]]]:
    """Return the validation HITs that are due, by round id; rounds without any are left out."""
    pending = select(Example.round_id).where(Example.verdict == Verdict.PENDING)
    rounds = session.scalars(select(Round).where(Round.id.in_(pending)).order_by(Round.id)).all()
    by_round = [(round_.id, _groups(session, round_, settings, now)) for round_ in rounds]
    return [(round_id, groups) for round_id, groups in by_round if groups]


def _groups(session: Session, round_: Round, settings: Settings, now: datetime) -> list[Group]:
    return grouped(
        validations.shortages(session, round_, now),
        items=settings.validation_items,
        wait=timedelta(seconds=settings.validation_wait_seconds),
        now=now,
    )


def _store_rows(
    session: Session,
    endpoint: str,
    settings: Settings,
    now: datetime,
    round_id: int,
    qualification_type_id: str,
) -> int | None:
    """Commit a batch with the planned HITs that are due, and their items; None when another process was faster."""
    # The lock makes looking and writing one step, so that two processes don't open the same HITs.
    round_ = session.get_one(Round, round_id, populate_existing=True, with_for_update=True)
    groups = _groups(session, round_, settings, now)
    if not groups:
        session.rollback()
        return None
    spec = task(round_.task_code)
    of_round = (HitBatch.round_id == round_id) & (HitBatch.kind == HitKind.VALIDATION)
    sequence = (session.scalar(select(func.count()).select_from(HitBatch).where(of_round)) or 0) + 1
    most = max(len(group.example_ids) for group in groups)
    batch = HitBatch(
        round_id=round_id,
        kind=HitKind.VALIDATION,
        key=f"validation:{round_id}:{sequence}",
        endpoint=endpoint,
        title=_title(spec),
        description=_description(spec, settings.validation_items),
        keywords=", ".join(("reading", *spec.keywords)),
        reward=usd(settings.validation_reward),
        bonus=ZERO,
        minutes=minutes_for(most),
        assignment_seconds=int(ASSIGNMENT_TIME.total_seconds()),
        auto_approval_seconds=int(AUTO_APPROVAL.total_seconds()),
        lifetime_seconds=int(LIFETIME.total_seconds()),
        qualification_type_id=qualification_type_id,
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
        hit = Hit(
            batch_id=batch.id,
            position=position,
            reference=new_reference(),
            request_token=new_token(),
            state=HitState.PLANNED,
            max_assignments=group.wanted,
        )
        session.add(hit)
        session.flush()
        session.add_all(
            HitItem(hit_id=hit.id, example_id=example_id, position=place)
            for place, example_id in enumerate(group.example_ids, start=1)
        )
    batch_id = batch.id
    session.commit()
    return batch_id


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
