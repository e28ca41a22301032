"""What the texts of each arm cost so far, from the postings: their writers, and the readers' work on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.models import ArmAssignment, Assignment, Example, Hit, HitBatch, Round, Vote
from hits.money import ZERO, from_cents, rounded
from hits.states import HitKind
from payments.ledger import marketplace_account
from payments.models import LedgerTransaction, Payout, Posting, TransactionKind


@dataclass(frozen=True)
class ArmCost:
    """Dollars with fees: what writers were paid, and of what readers were paid the part that fell to these texts."""

    writing: Decimal = ZERO
    reading: Decimal = ZERO

    @property
    def total(self) -> Decimal:
        """Both together."""
        return self.writing + self.reading


def arm_costs(session: Session, round_: Round) -> dict[str, ArmCost]:
    """Return the costs by arm, "" for what belongs to none. Reads only.

    What one judging HIT cost is shared out equally among its judgements.
    """
    arms = {
        row.worker_id: row.arm
        for row in session.execute(
            select(ArmAssignment.worker_id, ArmAssignment.arm).where(ArmAssignment.round_id == round_.id)
        )
    }
    spent = _spent(session, round_)
    writing: Counter[str] = Counter()
    reading: dict[str, Decimal] = defaultdict(Decimal)
    judging: Counter[int] = Counter()
    for (kind, assignment_id, worker_id), cents in spent.items():
        if kind is HitKind.CREATION:
            writing[arms.get(worker_id, "")] += cents
        elif kind is HitKind.VALIDATION:
            judging[assignment_id] += cents
    judged: dict[int, Counter[str]] = defaultdict(Counter)
    for assignment_id, arm, count in session.execute(
        select(Vote.assignment_id, ArmAssignment.arm, func.count())
        .join(Example, Example.id == Vote.example_id)
        .outerjoin(
            ArmAssignment,
            (ArmAssignment.worker_id == Example.writer_id) & (ArmAssignment.round_id == Example.round_id),
        )
        .where(Example.round_id == round_.id, Vote.counted_at.is_not(None))
        .group_by(Vote.assignment_id, ArmAssignment.arm)
    ):
        judged[assignment_id][arm or ""] += count
    for assignment_id, cents in judging.items():
        votes = judged.get(assignment_id)
        if votes is None:
            continue  # nothing was judged, so that it is no text's cost
        for arm, count in votes.items():
            reading[arm] += Decimal(cents * count) / votes.total()
    names = {*writing, *reading}
    return {name: ArmCost(from_cents(writing[name]), rounded(reading[name] / 100)) for name in sorted(names)}


def _spent(session: Session, round_: Round) -> Counter[tuple[HitKind, int, int]]:
    """Return the cents that left the account by kind of HIT, assignment and worker; reversals are taken off again."""
    left = (
        select(LedgerTransaction.id, func.sum(-Posting.cents).label("cents"))
        .join(Posting, Posting.transaction_id == LedgerTransaction.id)
        .where(LedgerTransaction.round_id == round_.id, Posting.account.startswith(marketplace_account("")))
        .group_by(LedgerTransaction.id)
        .subquery()
    )
    whose = (HitBatch.kind, Assignment.id, Assignment.worker_id)
    rewards = (
        select(LedgerTransaction.key, left.c.cents, *whose)
        .join(left, left.c.id == LedgerTransaction.id)
        .join(Assignment, Assignment.mturk_assignment_id == LedgerTransaction.reference)
        .join(Hit, Hit.id == Assignment.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .where(LedgerTransaction.kind == TransactionKind.REWARD)
    )
    bonuses = (
        select(LedgerTransaction.key, left.c.cents, *whose)
        .join(left, left.c.id == LedgerTransaction.id)
        .join(Payout, Payout.reference == LedgerTransaction.reference)
        .join(Assignment, Assignment.id == Payout.assignment_id)
        .join(HitBatch, HitBatch.id == Payout.batch_id)
        .where(LedgerTransaction.kind == TransactionKind.BONUS)
    )
    reversed_keys = set(
        session.scalars(
            select(LedgerTransaction.key).where(
                LedgerTransaction.round_id == round_.id, LedgerTransaction.kind == TransactionKind.REVERSAL
            )
        )
    )
    found: Counter[tuple[HitKind, int, int]] = Counter()
    for statement in (rewards, bonuses):
        rows: Iterable[Any] = session.execute(statement)
        for key, cents, kind, assignment_id, worker_id in rows:
            if f"reversal:{key}" not in reversed_keys:
                found[kind, assignment_id, worker_id] += int(cents)
    return found
