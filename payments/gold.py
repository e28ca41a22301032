"""Validators' bonus for gold items: once for each validator and batch, when nothing of the batch is open any more."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session

from hits.models import Assignment, GoldItem, Hit, HitBatch, Vote, Worker
from hits.states import HitKind, HitState
from payments.due import PAYABLE
from payments.models import Payout
from payments.obligations import owe
from payments.rules import GOLD_ACCURACY, GoldTerms, gold_bonus


def plan_gold_bonuses(session: Session, now: datetime) -> int:
    """Plan what validators earned by gold items in batches whose HITs are all closed; return how many are new.

    Counted are votes of work that was not rejected, by the terms that the batch was opened with; it is paid on the
    validator's last assignment of the batch. Flushes, never commits.
    """
    planned = 0
    for batch_id, validator_id, assignment_id, right, gold in session.execute(_judged()).all():
        batch = session.get_one(HitBatch, batch_id)
        terms = GoldTerms.of(batch)
        bonus = gold_bonus(right, gold, terms.percent, terms.bonus)
        if bonus is None:
            continue
        payout = owe(
            session,
            rule=bonus.rule,
            subject=f"gold:{batch.round_id}:{validator_id}:{batch_id}",
            round_id=batch.round_id,
            worker_id=validator_id,
            assignment_id=assignment_id,
            amount=bonus.amount,
            reason=bonus.reason,
            now=now,
        )
        planned += payout is not None
    return planned


def _judged() -> Select[int, int, int, int, int]:
    open_hit = exists().where(Hit.batch_id == HitBatch.id, Hit.state != HitState.CLOSED).correlate(HitBatch)
    planned = exists().where(
        Payout.rule == GOLD_ACCURACY, Payout.batch_id == HitBatch.id, Payout.worker_id == Vote.validator_id
    )
    return (
        select(
            HitBatch.id,
            Vote.validator_id,
            func.max(Assignment.id),
            func.count().filter(Vote.label == GoldItem.label),
            func.count(),
        )
        .select_from(Vote)
        .join(GoldItem, GoldItem.id == Vote.gold_item_id)
        .join(Assignment, Assignment.id == Vote.assignment_id)
        .join(Hit, Hit.id == Assignment.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .join(Worker, Worker.id == Vote.validator_id)
        .where(HitBatch.kind == HitKind.VALIDATION, HitBatch.extras["gold_percent"].as_integer() > 0, ~open_hit)
        .where(Vote.counted_at.is_not(None), Assignment.worker_id == Vote.validator_id)
        .where(Assignment.state.in_(PAYABLE), Worker.erased_at.is_(None), ~planned)
        .group_by(HitBatch.id, Vote.validator_id)
        .order_by(HitBatch.id, Vote.validator_id)
    )
