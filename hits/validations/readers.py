"""What is known of each validator of a round: gold items, agreement with the verdicts, time, and how these drift."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
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
#: Votes that are read from the database at a time.
AT_A_TIME = 5_000


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


@dataclass
class _Judged:
    """The votes of one validator in order, ten bytes each: those of the busiest one are all that is held at a time."""

    pseudonym: str
    flags: int = 0
    #: Of each vote its seconds, NaN where they are not known.
    seconds: array[float] = field(default_factory=lambda: array("d"))
    #: Of each gold item, and of each label that can be compared, whether it is right.
    gold: bytearray = field(default_factory=bytearray)
    compared: bytearray = field(default_factory=bytearray)


def readers(session: Session, round_: Round) -> list[Reader]:
    """Return the validators of a round with counted votes, those with warnings first, then by number of votes."""
    rows = session.execute(
        select(
            Worker.pseudonym,
            Vote.label,
            func.coalesce(GoldItem.label, Example.final_label),
            Vote.gold_item_id.is_not(None),
            Vote.seconds,
        )
        .join(Worker, Vote.validator_id == Worker.id)
        .outerjoin(Example, Vote.example_id == Example.id)
        .outerjoin(GoldItem, Vote.gold_item_id == GoldItem.id)
        .where((Example.round_id == round_.id) | (GoldItem.round_id == round_.id))
        .where(Vote.counted_at.is_not(None), Example.retracted_at.is_(None))
        .order_by(Vote.validator_id, Vote.created_at, Vote.id)
        .execution_options(yield_per=AT_A_TIME)
    )
    every: list[Reader] = []
    one: _Judged | None = None
    for pseudonym, label, truth, is_gold, seconds in rows:
        if one is None or one.pseudonym != pseudonym:
            if one is not None:
                every.append(_reader(one, round_.gold_warning_percent))
            one = _Judged(pseudonym)
        one.seconds.append(math.nan if seconds is None else seconds)
        one.flags += label is None
        if is_gold:
            one.gold.append(label == truth)
        elif truth is not None and label is not None:
            one.compared.append(label == truth)
    if one is not None:
        every.append(_reader(one, round_.gold_warning_percent))
    return sorted(every, key=lambda reader: (not reader.warnings, -reader.votes, reader.pseudonym))


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


def _reader(one: _Judged, warning_percent: int) -> Reader:
    votes, gold, agreed = len(one.seconds), _rate(one.gold), _rate(one.compared)
    drift = None
    if agreed.of >= VOTES_ENOUGH:
        half = agreed.of // 2
        earlier, later = _rate(one.compared[:half]), _rate(one.compared[half:])
        drift = 100 * (later.hits / later.of - earlier.hits / earlier.of)
    seconds = _median(one.seconds)
    warnings = []
    if gold.of >= GOLD_ENOUGH and 100 * gold.hits < warning_percent * gold.of:
        warnings.append(f"{gold.hits} of {gold.of} gold items right, below {warning_percent}%")
    if drift is not None and drift <= -DRIFT_POINTS:
        warnings.append(f"agrees {-drift:.0f} points less in the later half of the votes")
    if seconds is not None and votes >= VOTES_ENOUGH and seconds < SECONDS_TOO_FAST:
        warnings.append(f"{seconds:.1f} seconds for an item in the middle")
    return Reader(
        pseudonym=one.pseudonym,
        votes=votes,
        flags=one.flags,
        gold=gold,
        agreed=agreed,
        seconds=seconds,
        seconds_later=_median(one.seconds[votes // 2 :]) if votes >= VOTES_ENOUGH else None,
        drift=drift,
        warnings=tuple(warnings),
    )


def _rate(right: bytearray) -> Rate:
    return Rate(sum(right), len(right))


def _median(seconds: array[float]) -> float | None:
    known = [one for one in seconds if not math.isnan(one)]
    return median(known) if known else None
