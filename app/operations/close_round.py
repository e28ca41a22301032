"""Ends the collecting of a round: no more work is offered to writers; work in hand is still taken and paid."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.create_hits import ANNOTATION_PREFIX
from hits.clock import Clock
from hits.errors import Refused
from hits.export import find_round
from hits.models import Hit, HitBatch, Round
from hits.mturk.client import HitSeen, MTurk
from hits.mturk.errors import HitMissing, MTurkRefused
from hits.rounds import move
from hits.states import HitKind, HitState, RoundState

#: So long after a creation was begun its answer may still come; every call has ended by then.
IN_FLIGHT: Final = timedelta(minutes=15)


@dataclass
class Closed:
    """What was taken off the site, and what was never made. ``findings`` is what has to wait, in words."""

    expired: int = 0
    withdrawn: int = 0
    findings: list[str] = field(default_factory=list)


def close_round(session: Session, mturk: MTurk, clock: Clock, task_code: str, number: int, *, by: str) -> Closed:
    """Take the round from collecting to validating and its open creation HITs off the site.

    The move is committed first, so that nothing new is launched meanwhile; what is interrupted behind it, the next pass
    of the jobs goes on with. Doing it again is harmless. Raises NotFound, Refused, MTurkError.
    """
    round_ = find_round(session, task_code, number)
    if round_.state is not RoundState.VALIDATING:
        if round_.state is RoundState.DRAFT:
            raise Refused(
                f"Round {number} of the {task_code} task is a draft: nothing is on offer that could be closed."
                f" `dynahit round archive {task_code} {number}` puts it away."
            )
        now = clock.now()
        move(session, round_, RoundState.VALIDATING, by=by, now=now, note="closed")
        session.add(
            AuditEntry(
                at=now, staff_name=by[:80], action="round.close", subject=f"{task_code} round {number}", detail={}
            )
        )
    round_id = round_.id
    session.commit()
    return _take_off(session, mturk, clock, [round_id])


def plan_close(session: Session, endpoint: str, clock: Clock, task_code: str, number: int) -> tuple[int, int]:
    """Return how many HITs closing would take off the site, and how many it would never create. Changes nothing."""
    round_ = find_round(session, task_code, number)
    offered = _offered(session, endpoint, [round_.id], clock.now())
    made = sum(hit.mturk_hit_id is not None for hit in offered)
    return made, len(offered) - made


def finish_closing(session: Session, mturk: MTurk, clock: Clock) -> Closed:
    """Take what closed rounds still offer to writers off the site, whoever closed them. Commits each HIT by itself.

    Raises MTurkUnavailable; the next pass goes on.
    """
    rounds = session.scalars(
        select(Round.id).where(Round.state == RoundState.VALIDATING, Round.origin.is_(None)).order_by(Round.id)
    ).all()
    session.commit()
    return _take_off(session, mturk, clock, rounds) if rounds else Closed()


@dataclass(frozen=True)
class _Offered:
    """A creation HIT that somebody could still accept, or that may become one."""

    id: int
    state: HitState
    reference: str
    mturk_hit_id: str | None
    sent_at: datetime | None


def _take_off(session: Session, mturk: MTurk, clock: Clock, round_ids: Collection[int]) -> Closed:
    done = Closed()
    offered = _offered(session, mturk.endpoint, round_ids, clock.now())
    begun = [hit for hit in offered if hit.state is HitState.CREATING]
    there: dict[str, HitSeen] = mturk.find_hits_by_annotation(ANNOTATION_PREFIX) if begun else {}
    for hit in offered:
        seen = there.get(ANNOTATION_PREFIX + hit.reference)
        if hit.mturk_hit_id is None and seen is None:
            if hit.sent_at is not None and clock.now() - hit.sent_at < IN_FLIGHT:
                done.findings.append(f"HIT {hit.reference[:8]}… was being created; it is looked for again soon.")
            else:
                done.withdrawn += _withdraw(session, hit)
            continue
        hit_id = hit.mturk_hit_id or (seen.hit_id if seen is not None else "")
        try:
            mturk.expire(hit_id)
            expires_at = mturk.hit(hit_id).expires_at
        except HitMissing:
            # The next collection says so and closes it.
            continue
        except MTurkRefused as error:
            # The others come off the site all the same; the next pass asks again.
            done.findings.append(f"HIT {hit_id} is still on offer: {error}")
            continue
        row = session.get_one(Hit, hit.id, populate_existing=True, with_for_update=True)
        row.mturk_hit_id, row.expires_at = hit_id, expires_at
        row.created_at = row.created_at or clock.now()
        if row.state is HitState.CREATING:
            row.state = HitState.CREATED
        session.commit()
        done.expired += 1
    return done


def _offered(session: Session, endpoint: str, round_ids: Collection[int], now: datetime) -> list[_Offered]:
    on_site = (Hit.state == HitState.CREATED) & (Hit.expires_at.is_(None) | (Hit.expires_at > now))
    rows = session.execute(
        select(Hit.id, Hit.state, Hit.reference, Hit.mturk_hit_id, Hit.token_sent_at)
        .join(Hit.batch)
        .where(HitBatch.round_id.in_(round_ids), HitBatch.kind == HitKind.CREATION, HitBatch.endpoint == endpoint)
        .where(Hit.state.in_((HitState.PLANNED, HitState.CREATING)) | on_site)
        .order_by(Hit.id)
    ).all()
    session.commit()
    return [_Offered(*row) for row in rows]


def _withdraw(session: Session, hit: _Offered) -> int:
    """Close a HIT that was never made, unless it is being made since we looked."""
    closed = session.execute(
        update(Hit)
        .where(Hit.id == hit.id, Hit.state == hit.state, Hit.mturk_hit_id.is_(None))
        .where(Hit.token_sent_at.is_(None) if hit.sent_at is None else Hit.token_sent_at == hit.sent_at)
        .values(state=HitState.CLOSED)
        .execution_options(synchronize_session=False)
    )
    session.commit()
    return int(closed.rowcount)  # type: ignore[attr-defined]  # an UPDATE's result has it
