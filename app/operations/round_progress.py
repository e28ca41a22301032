"""How a round comes along: examples, error rates, pace, writers, money, and when its target is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.concentration import Concentration, concentration
from hits.error_rates import ErrorRates
from hits.forecast import Forecast, forecast
from hits.models import Round
from hits.money import from_cents, rounded
from hits.progress import (
    LabelCounts,
    Span,
    busiest_writers,
    lately_verified,
    latest_days,
    latest_work,
    tally,
    written_counts,
)
from payments.models import LEFT, LedgerTransaction, Posting
from qualification.wages import counted_times

#: How many days and how many writers are listed.
DAYS, BUSIEST = 14, 10


@dataclass(frozen=True)
class Pace:
    """What one example takes, by the latest submitted assignments of writing.

    ``tries_fooling`` and ``tries_verified`` are collected examples for each that fooled the model, and for each
    verified one; ``seconds`` is for one collected example, from accepting to submitting, and ``seconds_verified`` that
    times the tries for a verified one. None while there is nothing to divide by. ``left_open`` of the ``assignments``
    counted with the median (qualification.wages).
    """

    tries_fooling: float | None
    tries_verified: float | None
    seconds: float | None
    seconds_verified: float | None
    assignments: int
    left_open: int


@dataclass(frozen=True)
class Progress:
    """The figures of a round's dashboard. ``verified`` counts those that fooled the model and readers confirmed."""

    at: datetime
    rates: ErrorRates
    verified: int
    labels: Mapping[str, LabelCounts]
    pace: Pace
    writers: Concentration
    busiest: tuple[tuple[str, int], ...]
    spent: Decimal
    cost_per_verified: Decimal | None
    target: int | None
    forecast: Forecast | None
    days: tuple[Span, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as ``dynahit round progress --json`` prints them; money as text in dollars."""
        rates = {"vmer": self.rates.vmer, "mer": self.rates.mer, "resolved_vmer": self.rates.resolved_vmer}
        return {
            "at": self.at.isoformat(),
            "collected": self.rates.collected,
            "retracted": self.rates.retracted,
            "fooled": self.rates.fooled,
            "verified": self.verified,
            "verdicts": {verdict.value: count for verdict, count in self.rates.verdicts.items()},
            "rates": {
                name: {"count": rate.hits, "of": rate.of, "interval": rate.bounds, "is": self.rates.denominators[name]}
                for name, rate in rates.items()
            },
            "labels": {label: asdict(counts) for label, counts in self.labels.items()},
            "pace": asdict(self.pace),
            "writers": asdict(self.writers),
            "busiest": [{"writer": pseudonym, "examples": count} for pseudonym, count in self.busiest],
            "spent": str(self.spent),
            "cost_per_verified": None if self.cost_per_verified is None else str(self.cost_per_verified),
            "target": self.target,
            "forecast": None if self.forecast is None else _times_as_text(asdict(self.forecast)),
            "days": [_times_as_text(asdict(day)) for day in self.days],
        }


def round_progress(session: Session, round_: Round, now: datetime, *, target: int | None = None) -> Progress:
    """Return the figures of a round. Reads only, and only what the database adds up.

    ``target`` is how many verified examples are wanted; None takes what the round's stop rules say.
    """
    counted = tally(session, round_)
    spent = spent_on(session, round_.id)
    wanted = target if target is not None else round_.stop_validated
    written = written_counts(session, round_)
    parts, part = lately_verified(session, round_, now)
    return Progress(
        at=now,
        rates=counted.rates,
        verified=counted.verified_fooling,
        labels=counted.labels,
        pace=_pace(session, round_, counted.rates, counted.verified_fooling),
        writers=concentration(written.values()),
        busiest=tuple(busiest_writers(session, written, BUSIEST)),
        spent=spent,
        cost_per_verified=rounded(spent / counted.verified_fooling) if counted.verified_fooling else None,
        target=wanted,
        forecast=None if wanted is None else forecast(wanted, counted.verified_fooling, parts, part, now),
        days=tuple(latest_days(session, round_, now, DAYS)),
    )


def spent_on(session: Session, round_id: int) -> Decimal:
    """Return what left the account for a round: rewards, bonuses and fees, less what was reversed."""
    cents = session.scalar(
        select(func.sum(Posting.cents))
        .join(LedgerTransaction, Posting.transaction_id == LedgerTransaction.id)
        .where(LedgerTransaction.round_id == round_id, LEFT)
    )
    return from_cents(-int(cents or 0))


def _pace(session: Session, round_: Round, rates: ErrorRates, verified: int) -> Pace:
    work = latest_work(session, round_)
    times = counted_times([(one.assignment_id, one.seconds) for one in work])
    examples = sum(one.examples for one in work)
    seconds = sum(one.counted for one in times) / examples if examples else None
    tries_verified = rates.kept / verified if verified else None
    return Pace(
        tries_fooling=rates.kept / rates.fooled if rates.fooled else None,
        tries_verified=tries_verified,
        seconds=seconds,
        seconds_verified=seconds * tries_verified if seconds is not None and tries_verified is not None else None,
        assignments=len(work),
        left_open=sum(one.left_open for one in times),
    )


def _times_as_text(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()}
