"""How a round's readers and votes stand: error rates, agreement, validators, and why what is open is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.agreement import Agreement, agreement
from hits.error_rates import ErrorRates, error_rates
from hits.export import find_round
from hits.likeness import RoundLikeness, likeness_of
from hits.models import Round
from hits.rates import Rate
from hits.states import Verdict
from hits.validations import Policy, gold_left, policy_of
from hits.validations.readers import Reader, readers, why_waiting


@dataclass(frozen=True)
class RoundStats:
    """The figures of one round; ``task_agreement`` is over all rounds of its task."""

    task_code: str
    number: int
    policy: Policy
    non_fooling_percent: int
    gold_items: int
    gold_in_use: int
    gold_warning_percent: int
    pair_percent: int
    rates: ErrorRates
    round_agreement: Agreement
    task_agreement: Agreement
    readers: tuple[Reader, ...]
    waiting: Mapping[str, int]
    likeness: RoundLikeness

    def as_json(self) -> dict[str, Any]:
        """Return the figures as they are printed by ``dynahit round stats --json``."""
        return {
            "task": self.task_code,
            "round": self.number,
            "policy": {
                **asdict(self.policy),
                "non_fooling_percent": self.non_fooling_percent,
                "gold_items": self.gold_items,
                "gold_warning_percent": self.gold_warning_percent,
                "pair_percent": self.pair_percent,
            },
            "collected": self.rates.collected,
            "retracted": self.rates.retracted,
            "fooled": self.rates.fooled,
            "verdicts": {verdict.value: self.rates.verdicts.get(verdict, 0) for verdict in Verdict},
            "waiting": dict(self.waiting),
            "vmer": _rate(self.rates.vmer, self.rates.denominators["vmer"]),
            "mer": _rate(self.rates.mer, self.rates.denominators["mer"]),
            "resolved_vmer": _rate(self.rates.resolved_vmer, self.rates.denominators["resolved_vmer"]),
            "agreement": {"round": asdict(self.round_agreement), "task": asdict(self.task_agreement)},
            "gold_in_use": self.gold_in_use,
            "texts": self.likeness.as_json(),
            "validators": [
                {
                    "validator": one.pseudonym,
                    "votes": one.votes,
                    "flags": one.flags,
                    "gold": _rate(one.gold),
                    "agreed": _rate(one.agreed),
                    "seconds": one.seconds,
                    "seconds_later": one.seconds_later,
                    "drift": one.drift,
                    "warnings": list(one.warnings),
                }
                for one in self.readers
            ],
        }


def round_stats(session: Session, task_code: str, number: int) -> RoundStats:
    """Return the figures of a round. Reads only. Raises NotFound with the rounds that there are."""
    round_ = find_round(session, task_code, number)
    of_task = session.scalars(select(Round.id).where(Round.task_code == round_.task_code)).all()
    stats = RoundStats(
        task_code=round_.task_code,
        number=round_.number,
        policy=policy_of(round_),
        non_fooling_percent=round_.non_fooling_percent,
        gold_items=round_.gold_items,
        gold_in_use=gold_left(session, round_),
        gold_warning_percent=round_.gold_warning_percent,
        pair_percent=round_.pair_percent,
        rates=error_rates(session, round_),
        round_agreement=agreement(session, [round_.id]),
        task_agreement=agreement(session, of_task),
        readers=tuple(readers(session, round_)),
        waiting=why_waiting(session, round_),
        likeness=likeness_of(session, round_.id),
    )
    session.rollback()
    return stats


def _rate(rate: Rate, denominator: str = "") -> dict[str, Any]:
    bounds = rate.bounds
    found: dict[str, Any] = {
        "of": rate.of,
        "count": rate.hits,
        "share": rate.hits / rate.of if rate.of else None,
        "interval": list(bounds) if bounds is not None else None,
    }
    return {**found, "is": denominator} if denominator else found
