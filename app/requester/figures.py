"""The figures of a round, each from its rows: what was collected, what fooled the model, what readers confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.operations.round_progress import spent_on
from hits.error_rates import error_rates
from hits.models import Assignment, Hit, HitBatch, Round
from hits.money import rounded
from hits.rates import Rate
from hits.states import AssignmentState, HitKind, HitState, Verdict


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
    retracted: int
    fooled: int
    verified: int
    vmer: Rate
    spent: Decimal
    cost_per_verified: Decimal | None
    verdicts: Mapping[Verdict, int]


def figures(session: Session, round_: Round) -> Figures:
    """Return the figures of a round. Verified is what readers found sound and the model got wrong."""
    rates = error_rates(session, round_)
    spent = spent_on(session, round_.id)
    return Figures(
        collected=rates.collected,
        retracted=rates.retracted,
        fooled=rates.fooled,
        verified=rates.verified,
        vmer=rates.vmer,
        spent=spent,
        cost_per_verified=rounded(spent / rates.verified) if rates.verified else None,
        verdicts=rates.verdicts,
    )


def kinds(session: Session, round_: Round) -> tuple[Kind, ...]:
    """Return how a round's HITs and assignments stand, by kind."""
    return tuple(_kind(session, round_, kind) for kind in HitKind)


_NAMES = {
    HitKind.CREATION: "writing",
    HitKind.VALIDATION: "judging",
    HitKind.QUALIFICATION: "quiz",
    HitKind.COMPENSATION: "making good",
}


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
        name=_NAMES[kind],
        planned=hits.get(HitState.PLANNED, 0) + hits.get(HitState.CREATING, 0),
        open=hits.get(HitState.CREATED, 0),
        closed=hits.get(HitState.CLOSED, 0),
        opened=work.get(AssignmentState.OPENED, 0),
        saved=work.get(AssignmentState.SAVED, 0),
        submitted=work.get(AssignmentState.SUBMITTED, 0),
        approved=work.get(AssignmentState.APPROVED, 0),
        rejected=work.get(AssignmentState.REJECTED, 0),
    )
