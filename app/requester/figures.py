"""The figures of a round, each from its rows: what was collected, what fooled the model, what readers confirmed."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.models import Assignment, Example, Hit, HitBatch, Round
from hits.money import from_cents, rounded
from hits.states import AssignmentState, HitKind, HitState, Verdict
from payments.ledger import marketplace_account
from payments.models import LedgerTransaction, Posting


@dataclass(frozen=True)
class Rate:
    """A share with its 95 % Wilson interval, or without when nothing was counted."""

    hits: int
    of: int

    @property
    def percent(self) -> str:
        return f"{100 * self.hits / self.of:.1f}%" if self.of else "none yet"

    @property
    def interval(self) -> str:
        """Return the interval in words, empty when nothing was counted."""
        if not self.of:
            return ""
        low, high = wilson(self.hits, self.of)
        return f"{100 * low:.1f}% to {100 * high:.1f}%"


@dataclass(frozen=True)
class Kind:
    """How the HITs of one kind stand."""

    name: str
    planned: int
    open: int
    closed: int
    opened: int
    saved: int
    submitted: int
    approved: int
    rejected: int


@dataclass(frozen=True)
class Figures:
    """The five figures of a round and what they are made of."""

    collected: int
    fooled: int
    verified: int
    vmer: Rate
    spent: Decimal
    cost_per_verified: Decimal | None
    verdicts: dict[Verdict, int]
    kinds: tuple[Kind, ...]


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share of at least one."""
    share = hits / of
    spread = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    middle = share + z * z / (2 * of)
    scale = 1 + z * z / of
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def figures(session: Session, round_: Round) -> Figures:
    """Return the figures of a round. Verified is what readers found sound and the model got wrong."""
    rows = session.execute(
        select(Example.verdict, Example.fooled, func.count())
        .where(Example.round_id == round_.id)
        .group_by(Example.verdict, Example.fooled)
    )
    verdicts: dict[Verdict, int] = Counter()
    collected = fooled = 0
    for verdict, was_fooled, count in rows:
        verdicts[verdict] += count
        collected += count
        fooled += count if was_fooled else 0
    verified = verdicts[Verdict.VALID_AND_MODEL_WRONG]
    spent = _spent(session, round_)
    return Figures(
        collected=collected,
        fooled=fooled,
        verified=verified,
        vmer=Rate(verified, collected),
        spent=spent,
        cost_per_verified=rounded(spent / verified) if verified else None,
        verdicts=dict(verdicts),
        kinds=tuple(_kind(session, round_, kind) for kind in HitKind),
    )


def _spent(session: Session, round_: Round) -> Decimal:
    cents = session.scalar(
        select(func.sum(Posting.cents))
        .join(LedgerTransaction, Posting.transaction_id == LedgerTransaction.id)
        .where(LedgerTransaction.round_id == round_.id, Posting.account.startswith(marketplace_account("")))
    )
    return from_cents(-int(cents or 0))


def _kind(session: Session, round_: Round, kind: HitKind) -> Kind:
    of_kind = (HitBatch.round_id == round_.id, HitBatch.kind == kind)
    hit_counts = session.execute(select(Hit.state, func.count()).join(Hit.batch).where(*of_kind).group_by(Hit.state))
    hits = {state: count for state, count in hit_counts}  # noqa: C416 - dict() of rows has no types
    work_counts = session.execute(
        select(Assignment.state, func.count())
        .join(Assignment.hit)
        .join(Hit.batch)
        .where(*of_kind)
        .group_by(Assignment.state)
    )
    work = {state: count for state, count in work_counts}  # noqa: C416 - dict() of rows has no types
    return Kind(
        name="writing" if kind is HitKind.CREATION else "judging",
        planned=hits.get(HitState.PLANNED, 0) + hits.get(HitState.CREATING, 0),
        open=hits.get(HitState.CREATED, 0),
        closed=hits.get(HitState.CLOSED, 0),
        opened=work.get(AssignmentState.OPENED, 0),
        saved=work.get(AssignmentState.SAVED, 0),
        submitted=work.get(AssignmentState.SUBMITTED, 0),
        approved=work.get(AssignmentState.APPROVED, 0),
        rejected=work.get(AssignmentState.REJECTED, 0),
    )
