"""When a round stops by itself: set, shown, and looked at in every pass of the jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from hits.clock import Clock
from hits.errors import Refused
from hits.export import find_round
from hits.frozen import require_open
from hits.models import Round
from hits.money import ZERO
from hits.rounds import Facts, StopRules, move, rules_of
from hits.rounds.stop_rules import Rule, series_of, standing, store_rules, validated_of
from hits.states import RoundState
from payments.models import Reservation

#: In these a rule can end the collecting.
STOPPABLE = (RoundState.PILOTING, RoundState.COLLECTING)


def spent_of(session: Session, round_id: int) -> Decimal:
    """Return what is paid for a round and what is owed in bonuses, fees included. Reads only."""
    rows = session.execute(
        select(Reservation.spent, Reservation.promised).where(Reservation.round_id == round_id)
    ).all()
    return sum((spent + promised for spent, promised in rows), ZERO)


def rules_standing(session: Session, round_: Round, now: datetime, rules: StopRules | None = None) -> list[Rule]:
    """Return the rules that are set for a round, or others, with how it stands to each. Reads only."""
    rules = rules_of(round_) if rules is None else rules
    if rules.is_empty:
        return []
    facts = Facts(
        validated=validated_of(session, round_.id),
        spent=spent_of(session, round_.id),
        now=now,
        series=None if rules.window is None else series_of(session, round_.id, rules.window),
    )
    return standing(rules, facts)


def fired(session: Session, round_: Round, now: datetime) -> list[Rule]:
    """Return the rules that are fulfilled, so that the round stops. Reads only."""
    return [rule for rule in rules_standing(session, round_, now) if rule.fired]


def why_it_would_stop(session: Session, round_: Round, now: datetime) -> list[str]:
    """Return the rules that would close the round with the next pass, each as what stands in its way. Reads only."""
    return [
        f"its stop rule is fulfilled, {rule.words} ({rule.standing}), so that it would close at once;"
        f" `dynahit round stop-rules {round_.task_code} {round_.number}` changes it"
        for rule in fired(session, round_, now)
    ]


def set_rules(
    session: Session, clock: Clock, task_code: str, number: int, change: Callable[[StopRules], StopRules], *, by: str
) -> StopRules:
    """Store what ``change`` makes of the rules that a round has now, and return it.

    Somebody else's change of another rule at the same moment is kept. A rule that is fulfilled already stops the round
    with the next pass. Raises NotFound, and Refused for a round that is closed.
    """
    found = find_round(session, task_code, number)
    round_ = session.get_one(Round, found.id, populate_existing=True, with_for_update=True)
    require_open(session, round_.id)
    before = rules_of(round_)
    if round_.state not in (RoundState.DRAFT, *STOPPABLE, RoundState.VALIDATING) or round_.origin is not None:
        state = round_.state
        session.rollback()
        raise Refused(f"Round {number} of the {task_code} task is {state.value}: nothing is collected that could stop.")
    wanted = change(before)
    store_rules(round_, wanted)
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by[:80],
            action="round.stop_rules",
            subject=f"{task_code} round {number}",
            detail={"before": before.as_json(), "after": wanted.as_json()},
        )
    )
    session.commit()
    return wanted


def about_to_stop(session: Session, now: datetime) -> list[str]:
    """Return in words which rounds the next pass of the jobs stops, and why. Changes nothing."""
    found = [
        f"round {round_.number} of {round_.task_code}: {rules[0].words} ({rules[0].standing})"
        for round_ in _with_rules(session)
        if (rules := fired(session, round_, now))
    ]
    session.rollback()
    return found


def _with_rules(session: Session) -> Sequence[Round]:
    has_rule = (
        Round.stop_validated.is_not(None)
        | Round.stop_spent.is_not(None)
        | Round.stop_at.is_not(None)
        | Round.stop_window.is_not(None)
    )
    return session.scalars(select(Round).where(Round.state.in_(STOPPABLE), has_rule).order_by(Round.id)).all()


def stop_rounds(session: Session, clock: Clock) -> list[str]:
    """Close the rounds of which a rule is fulfilled, and return in words which and why. Commits each by itself.

    Their HITs are taken off the site by app.operations.close_round.finish_closing, which the same pass runs next.
    """
    waiting = [round_.id for round_ in _with_rules(session)]
    session.commit()
    stopped = []
    for round_id in waiting:
        round_ = session.get_one(Round, round_id, populate_existing=True)
        found = fired(session, round_, clock.now())
        if not found or round_.state not in STOPPABLE:
            session.commit()
            continue
        why = "; ".join(f"{rule.words} ({rule.standing})" for rule in found)
        by = f"stop rule {found[0].name}"
        try:
            move(session, round_, RoundState.VALIDATING, by=by, now=clock.now(), note=why)
        except Refused:
            # Somebody moved it in this moment; the next pass looks again, and the other rounds stop now.
            session.rollback()
            continue
        code, number = round_.task_code, round_.number
        session.add(
            AuditEntry(
                at=clock.now(),
                staff_name=by,
                action="round.close",
                subject=f"{code} round {number}",
                detail={"reason": why},
            )
        )
        session.commit()
        stopped.append(f"round {number} of {code} stopped: {why}")
    return stopped
