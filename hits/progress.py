"""What a round's examples add up to, counted by the database from its indexes: with a million no row is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, literal, select, union_all
from sqlalchemy.orm import InstrumentedAttribute, Session

from hits.error_rates import ErrorRates
from hits.forecast import LOOKED_BACK, PARTS
from hits.models import Assignment, Attempt, Example, Round, Worker
from hits.states import Verdict

#: How many of the latest examples tell the present pace.
LATEST = 1000


@dataclass(frozen=True)
class LabelCounts:
    """The examples that writers wrote for one label, the retracted ones left out."""

    collected: int = 0
    fooled: int = 0
    verified: int = 0


@dataclass(frozen=True)
class Tally:
    """A round's examples by verdict and by label. ``verified_fooling`` is what is paid for and what a target counts."""

    rates: ErrorRates
    labels: Mapping[str, LabelCounts]
    verified_fooling: int


@dataclass(frozen=True)
class Span:
    """What came in one stretch of time: after ``since``, up to ``until``. Collected ones count even if retracted."""

    since: datetime
    until: datetime
    collected: int
    verified: int


@dataclass(frozen=True)
class Work:
    """One assignment of writing that was submitted lately, with how many of the latest examples are from it."""

    assignment_id: int
    examples: int
    seconds: int


def tally(session: Session, round_: Round) -> Tally:
    """Return the counts of a round's examples. Reads only."""
    # Grouped in the order of the index, so that nothing is sorted; what is counted of a column are its values.
    rows = session.execute(
        select(Example.verdict, Example.fooled, Example.goal_label, func.count(), func.count(Example.retracted_at))
        .where(Example.round_id == round_.id)
        .group_by(Example.verdict, Example.fooled, Example.goal_label)
    ).all()
    collected = sum(count for *_, count, _ in rows)
    kept = [(verdict, fooled, label, count - out) for verdict, fooled, label, count, out in rows if count > out]
    verdicts: dict[Verdict, int] = Counter()
    labels: dict[str, LabelCounts] = {}
    for verdict, fooled, label, count in kept:
        verdicts[verdict] += count
        is_verified = fooled and verdict is Verdict.VALID_AND_MODEL_WRONG
        before = labels.get(label, LabelCounts())
        labels[label] = LabelCounts(
            before.collected + count,
            before.fooled + (count if fooled else 0),
            before.verified + (count if is_verified else 0),
        )
    fooled_count = sum(one.fooled for one in labels.values())
    rates = ErrorRates(collected, collected - sum(verdicts.values()), fooled_count, dict(verdicts))
    return Tally(rates, dict(sorted(labels.items())), sum(one.verified for one in labels.values()))


def first_collected(session: Session, round_: Round) -> datetime | None:
    """Return when the first example of a round was collected."""
    found: datetime | None = session.scalar(
        select(Example.collected_at).where(Example.round_id == round_.id).order_by(Example.collected_at).limit(1)
    )
    return found


def latest_days(session: Session, round_: Round, now: datetime, days: int) -> list[Span]:
    """Return what came in each of the last stretches of 24 hours, the latest first."""
    return _spans(session, round_, now, timedelta(days=1), days)


def lately_verified(session: Session, round_: Round, now: datetime) -> tuple[list[int], timedelta]:
    """Return how many were verified in equal parts of the time that a forecast looks back on, and one part's length.

    Of a round that is younger than that, in parts of its age since the first example; nothing while it has none.
    """
    began = first_collected(session, round_)
    if began is None or began >= now:
        return [], LOOKED_BACK / PARTS
    part = min(LOOKED_BACK, now - began) / PARTS
    return [one.verified for one in _spans(session, round_, now, part, PARTS)], part


def _spans(session: Session, round_: Round, now: datetime, length: timedelta, count: int) -> list[Span]:
    borders = [now - number * length for number in range(count + 1)]

    def between(at: InstrumentedAttribute[Any], place: int) -> ColumnElement[bool]:
        return (Example.round_id == round_.id) & (at > borders[place + 1]) & (at <= borders[place])

    # One range of an index each, which takes a tenth of the time of naming every row's day.
    collected = [
        select(literal(place), literal(0), func.count()).where(between(Example.collected_at, place))
        for place in range(count)
    ]
    verified = [
        select(literal(place), literal(1), func.count())
        .where(between(Example.decided_at, place))
        .where(Example.verdict == Verdict.VALID_AND_MODEL_WRONG, Example.retracted_at.is_(None))
        for place in range(count)
    ]
    found = {(place, kind): many for place, kind, many in session.execute(union_all(*collected, *verified))}
    return [
        Span(borders[place + 1], borders[place], found[place, 0], found[place, 1]) for place in range(count)
    ]  # fmt: skip


def latest_work(session: Session, round_: Round) -> list[Work]:
    """Return the assignments that the latest examples are from, as far as their times are known."""
    latest = (
        select(Example.attempt_id)
        .where(Example.round_id == round_.id)
        .order_by(Example.collected_at.desc(), Example.id.desc())
        .limit(LATEST)
        .subquery()
    )
    rows = session.execute(
        select(Assignment.id, func.count(), Assignment.accepted_at, Assignment.submitted_at)
        .join(Attempt, Attempt.assignment_id == Assignment.id)
        .join(latest, latest.c.attempt_id == Attempt.id)
        .where(Assignment.accepted_at.is_not(None), Assignment.submitted_at.is_not(None))
        .group_by(Assignment.id, Assignment.accepted_at, Assignment.submitted_at)
        .order_by(Assignment.id)
    )
    return [
        Work(number, count, max(1, int((done - begun).total_seconds())))
        for number, count, begun, done in rows
        if begun is not None and done is not None
    ]


def written_counts(session: Session, round_: Round) -> dict[int, int]:
    """Return how many examples each writer of a round has, by the writer's row id."""
    rows = session.execute(
        select(Example.writer_id, func.count()).where(Example.round_id == round_.id).group_by(Example.writer_id)
    )
    return {writer_id: count for writer_id, count in rows}  # noqa: C416 - dict() of rows has no types


def busiest_writers(session: Session, counts: Mapping[int, int], most: int) -> list[tuple[str, int]]:
    """Return those who wrote most, by pseudonym, with their numbers of examples."""
    first = sorted(counts, key=lambda writer_id: (-counts[writer_id], writer_id))[:most]
    rows = session.execute(select(Worker.id, Worker.pseudonym).where(Worker.id.in_(first)))
    names = {writer_id: pseudonym for writer_id, pseudonym in rows}  # noqa: C416 - as above
    return [(names[writer_id], counts[writer_id]) for writer_id in first]
