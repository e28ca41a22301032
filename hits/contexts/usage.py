"""What became of a round's contexts: HITs that hold or used them, examples, verdicts, scores. Reads only.

A HIT leases its context from when it is planned. The lease ends when the HIT has brought work, and the context is used
then; or when it is closed, or its time on the market is over and nobody works on it any more, and the context is free.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.contexts.selection import Candidate
from hits.models import Assignment, Context, ContextScore, Example, Hit, HitBatch, RetiredContext, Round
from hits.states import COLLECTED, AssignmentState, HitKind, HitState, Verdict

_SOUND: Final = (Verdict.VALID_AND_MODEL_WRONG, Verdict.VALID_AND_MODEL_RIGHT)
_FAILED: Final = (Verdict.INVALID, Verdict.UNRESOLVED)
_WAITING: Final = (Verdict.PENDING, Verdict.FLAGGED)


@dataclass(frozen=True)
class Usage:
    """What is known of a round's contexts by their digests, and how often each goal was asked for with each."""

    candidates: Mapping[str, Candidate]
    goals: Counter[tuple[str, str | None]]
    #: Of which model and revision the scores are, with how many contexts have one; None without scores.
    scored_by: tuple[str, str] | None = None
    scored: int = 0


def usage_of(session: Session, round_id: int, now: datetime) -> Usage:
    """Return what is known of the round's contexts at this moment, of scores those of the model asked last."""
    # A context may be stored, and have a HIT, between two of these statements.
    facts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for digest in session.scalars(select(Context.digest).where(Context.round_id == round_id)):
        facts[digest]
    goals: Counter[tuple[str, str | None]] = Counter()
    for row in session.execute(_hits(round_id)):
        if row.worked:
            facts[row.digest]["used"] += 1
        elif row.state is not HitState.CLOSED and (_until(row) > now or (row.busy_until or now) > now):
            facts[row.digest]["held"] += 1
        else:
            continue
        goals[row.digest, row.goal_label] += 1
    for row in session.execute(_examples(round_id)):
        found = facts[row.digest]
        found["asked"] += row.examples
        found["fooled"] += row.examples if row.fooled else 0
        for name, verdicts in (("sound", _SOUND), ("failed", _FAILED), ("waiting", _WAITING)):
            found[name] += row.examples if row.verdict in verdicts else 0
    scored_by, scores = _scores(session, round_id)
    retired = set(
        session.scalars(
            select(Context.digest)
            .join(RetiredContext, RetiredContext.context_id == Context.id)
            .where(Context.round_id == round_id)
        )
    )
    candidates = {
        digest: Candidate(**found, uncertainty=scores.get(digest), retired=digest in retired)
        for digest, found in facts.items()
    }
    return Usage(candidates, goals, scored_by, len(scores))


def lock_contexts(session: Session, round_id: int) -> None:
    """Let nobody else choose or store contexts of the round before this transaction ends."""
    session.execute(select(Round.id).where(Round.id == round_id).with_for_update(key_share=True)).one()


def _hits(round_id: int) -> Any:
    of_hit = Assignment.hit_id == Hit.id
    worked = select(Assignment.id).where(of_hit, Assignment.state.in_((AssignmentState.SAVED, *COLLECTED))).exists()
    busy_until = (
        select(func.max(Assignment.deadline_at))
        .where(of_hit, Assignment.state == AssignmentState.OPENED)
        .scalar_subquery()
    )
    return (
        select(
            Context.digest,
            Hit.goal_label,
            Hit.state,
            Hit.expires_at,
            HitBatch.created_at,
            HitBatch.lifetime_seconds,
            worked.label("worked"),
            busy_until.label("busy_until"),
        )
        .join(Hit, Hit.context_id == Context.id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .where(Context.round_id == round_id, HitBatch.kind == HitKind.CREATION)
    )


def _until(row: Any) -> datetime:
    """Return when a HIT's time on the market is over; one that was planned and never created has as long."""
    planned: datetime = row.created_at + timedelta(seconds=row.lifetime_seconds)
    return row.expires_at or planned


def _examples(round_id: int) -> Any:
    return (
        select(Context.digest, Example.fooled, Example.verdict, func.count().label("examples"))
        .join(Context, Context.id == Example.context_id)
        .where(Example.round_id == round_id, Example.retracted_at.is_(None))
        .group_by(Context.digest, Example.fooled, Example.verdict)
    )


def _scores(session: Session, round_id: int) -> tuple[tuple[str, str] | None, dict[str, float]]:
    of_round = (
        select(ContextScore.model_id, ContextScore.model_revision)
        .join(Context, Context.id == ContextScore.context_id)
        .where(Context.round_id == round_id)
    )
    last = session.execute(of_round.order_by(ContextScore.at.desc(), ContextScore.id.desc()).limit(1)).first()
    if last is None:
        return None, {}
    rows = session.execute(
        select(Context.digest, ContextScore.uncertainty)
        .join(ContextScore, ContextScore.context_id == Context.id)
        .where(
            Context.round_id == round_id,
            ContextScore.model_id == last.model_id,
            ContextScore.model_revision == last.model_revision,
        )
    )
    return (last.model_id, last.model_revision), {row[0]: row[1] for row in rows}
