"""What is known of each validator of a round: gold items, agreement with the verdicts, time, and how these drift."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.models import Example, GoldItem, Round, Vote, Worker
from hits.rates import Rate
from hits.states import PracticeState, Verdict

#: Fewer gold items than these tell too little for a warning, and fewer votes too little for a drift.
GOLD_ENOUGH, VOTES_ENOUGH = 5, 20
#: Time per item that no reading takes.
SECONDS_TOO_FAST = 2.0
#: Points by which the later half of somebody's votes may agree less than the earlier half.
DRIFT_POINTS = 15


@dataclass(frozen=True)
class Reader:
    """One validator, by pseudonym. ``agreed`` counts label votes on examples that have a final label.

    ``drift`` is how many points the later half of those votes agrees more (or, below zero, less) than the earlier one;
    ``seconds`` and ``seconds_later`` are medians of all votes and of the later half. None where too little is known.
    """

    pseudonym: str
    votes: int
    flags: int
    gold: Rate
    agreed: Rate
    seconds: float | None
    seconds_later: float | None
    drift: float | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Judgement:
    label: str | None
    right: bool | None
    is_gold: bool
    seconds: float | None
    at: datetime


def readers(session: Session, round_: Round) -> list[Reader]:
    """Return the validators of a round with counted votes, those with warnings first, then by number of votes."""
    found: dict[str, list[_Judgement]] = defaultdict(list)
    rows = session.execute(
        select(
            Worker.pseudonym,
            Vote.label,
            func.coalesce(GoldItem.label, Example.final_label),
            Vote.gold_item_id.is_not(None),
            Vote.seconds,
            Vote.created_at,
        )
        .join(Worker, Vote.validator_id == Worker.id)
        .outerjoin(Example, Vote.example_id == Example.id)
        .outerjoin(GoldItem, Vote.gold_item_id == GoldItem.id)
        .where((Example.round_id == round_.id) | (GoldItem.round_id == round_.id))
        .where(Vote.counted_at.is_not(None), Example.retracted_at.is_(None))
        .order_by(Vote.created_at, Vote.id)
    )
    for pseudonym, label, truth, is_gold, seconds, at in rows:
        right = None if truth is None or (label is None and not is_gold) else label == truth
        found[pseudonym].append(_Judgement(label, right, is_gold, seconds, at))
    every = [_reader(pseudonym, judged, round_.gold_warning_percent) for pseudonym, judged in found.items()]
    return sorted(every, key=lambda one: (not one.warnings, -one.votes, one.pseudonym))


def why_waiting(session: Session, round_: Round) -> dict[str, int]:
    """Return, by reason in plain words, how many of the round's examples are not resolved yet."""
    rows = session.execute(
        select(
            Example.verdict,
            Example.practice_state,
            Example.for_seniors,
            Example.votes_wanted > Example.leased,
            func.count(),
        )
        .where(Example.round_id == round_.id, Example.retracted_at.is_(None))
        .where(Example.verdict.in_((Verdict.PENDING, Verdict.FLAGGED)))
        .group_by(
            Example.verdict,
            Example.practice_state,
            Example.for_seniors,
            Example.votes_wanted > Example.leased,
        )
    )
    reasons: dict[str, int] = Counter()
    for verdict, practice, for_seniors, offered, count in rows:
        if verdict is Verdict.FLAGGED:
            reason = "a flag waits for the requester"
        elif practice in (PracticeState.WAITING, PracticeState.FAILED):
            reason = "a practice example that no reviewer has passed"
        elif not offered:
            reason = "being read, or about to be decided"
        else:
            reason = "waits for a senior reader" if for_seniors else "waits for readers"
        reasons[reason] += count
    return dict(sorted(reasons.items()))


def _reader(pseudonym: str, judged: Sequence[_Judgement], warning_percent: int) -> Reader:
    gold = _rate([one for one in judged if one.is_gold])
    compared = [one for one in judged if not one.is_gold and one.right is not None]
    agreed = _rate(compared)
    drift = None
    if len(compared) >= VOTES_ENOUGH:
        earlier, later = _rate(compared[: len(compared) // 2]), _rate(compared[len(compared) // 2 :])
        drift = 100 * (later.hits / later.of - earlier.hits / earlier.of)
    seconds = _median(judged)
    warnings = []
    if gold.of >= GOLD_ENOUGH and 100 * gold.hits < warning_percent * gold.of:
        warnings.append(f"{gold.hits} of {gold.of} gold items right, below {warning_percent}%")
    if drift is not None and drift <= -DRIFT_POINTS:
        warnings.append(f"agrees {-drift:.0f} points less in the later half of the votes")
    if seconds is not None and len(judged) >= VOTES_ENOUGH and seconds < SECONDS_TOO_FAST:
        warnings.append(f"{seconds:.1f} seconds for an item in the middle")
    return Reader(
        pseudonym=pseudonym,
        votes=len(judged),
        flags=sum(one.label is None for one in judged),
        gold=gold,
        agreed=agreed,
        seconds=seconds,
        seconds_later=_median(judged[len(judged) // 2 :]) if len(judged) >= VOTES_ENOUGH else None,
        drift=drift,
        warnings=tuple(warnings),
    )


def _rate(judged: Sequence[_Judgement]) -> Rate:
    return Rate(sum(bool(one.right) for one in judged), len(judged))


def _median(judged: Sequence[_Judgement]) -> float | None:
    known = [one.seconds for one in judged if one.seconds is not None]
    return median(known) if known else None
