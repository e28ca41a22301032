"""Where a round is, what comes next, and what that lacks; opens and archives rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.freeze import missing_to_freeze, open_hits
from app.operations.pilot import missing_to_release
from app.operations.stop_rules import rules_standing, why_it_would_stop
from hits.clock import Clock
from hits.errors import Refused
from hits.export import find_round
from hits.models import Example, Round
from hits.rounds import MOVES, NotReady, move, moves_of
from hits.rounds.stop_rules import Rule
from hits.states import RoundState

#: By the states before and after, the command that makes the move; {0} is the task, {1} the number.
COMMANDS: Final[Mapping[tuple[RoundState, RoundState], str]] = {
    (RoundState.DRAFT, RoundState.PILOTING): "dynahit hits launch {0} --round {1} --pilot N …",
    (RoundState.DRAFT, RoundState.COLLECTING): "dynahit hits launch {0} --round {1} …",
    (RoundState.DRAFT, RoundState.ARCHIVED): "dynahit round archive {0} {1}",
    (RoundState.PILOTING, RoundState.COLLECTING): "dynahit round release {0} {1}",
    (RoundState.PILOTING, RoundState.VALIDATING): "dynahit round close {0} {1}",
    (RoundState.COLLECTING, RoundState.VALIDATING): "dynahit round close {0} {1}",
    (RoundState.VALIDATING, RoundState.FROZEN): "dynahit round freeze {0} {1}",
    (RoundState.VALIDATING, RoundState.COLLECTING): "dynahit round open {0} {1}",
    (RoundState.VALIDATING, RoundState.ARCHIVED): "dynahit round archive {0} {1}",
    (RoundState.FROZEN, RoundState.TRAINED): "dynahit round train {0} --round {1}",
    (RoundState.FROZEN, RoundState.ARCHIVED): "dynahit round archive {0} {1}",
    (RoundState.TRAINED, RoundState.ARCHIVED): "dynahit round archive {0} {1}",
}


@dataclass(frozen=True)
class Moved:
    """A move that was made, as it is shown."""

    before: str | None
    after: str
    at: datetime
    by: str
    note: str


@dataclass(frozen=True)
class NextMove:
    """A state that may follow, how it is reached, and what is missing for it."""

    to: RoundState
    command: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Standing:
    """Where a round is: how it came there, what may come next, and when it stops by itself."""

    task_code: str
    number: int
    state: RoundState
    moves: tuple[Moved, ...]
    next_moves: tuple[NextMove, ...]
    rules: tuple[Rule, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the standing as it is printed by ``dynahit round status --json``."""
        return {
            "task": self.task_code,
            "round": self.number,
            "state": self.state.value,
            "moves": [
                {"from": one.before, "to": one.after, "at": one.at.isoformat(), "by": one.by, "note": one.note}
                for one in self.moves
            ],
            "next": [
                {"to": one.to.value, "command": one.command, "missing": list(one.missing)} for one in self.next_moves
            ],
            "stop_rules": [
                {"rule": one.name, "words": one.words, "standing": one.standing, "fired": one.fired}
                for one in self.rules
            ],
        }


@dataclass(frozen=True)
class Line:
    """A round in the list of all; ``then`` is the state that comes next, ``lacks`` how much is missing for it."""

    task_code: str
    number: int
    state: RoundState
    since: datetime
    examples: int
    then: RoundState | None
    lacks: tuple[str, ...]


def standing_of(session: Session, task_code: str, number: int, now: datetime) -> Standing:
    """Return where the round is. Reads only, and ends the transaction. Raises NotFound."""
    found = standing(session, find_round(session, task_code, number), now)
    session.rollback()
    return found


def standing(session: Session, round_: Round, now: datetime) -> Standing:
    """Return where the round is. Reads only."""
    return Standing(
        task_code=round_.task_code,
        number=round_.number,
        state=round_.state,
        moves=tuple(
            Moved(one.from_state, one.to_state.value, one.at, one.by, one.note) for one in moves_of(session, round_.id)
        ),
        next_moves=tuple(
            NextMove(to, command_for(round_, to), tuple(missing_for(session, round_, to, now)))
            for to in MOVES[round_.state]
        ),
        rules=tuple(rules_standing(session, round_, now)),
    )


def command_for(round_: Round, to: RoundState) -> str:
    """Return the command that takes the round into a state that may follow."""
    return COMMANDS[round_.state, to].format(round_.task_code, round_.number)


def missing_for(session: Session, round_: Round, to: RoundState, now: datetime) -> list[str]:
    """Return what stands in the way of a move that there is, each with the next step. Reads only."""
    if to is RoundState.FROZEN:
        return missing_to_freeze(session, round_)
    if to is RoundState.TRAINED:
        return [f"no model was trained on it yet; `dynahit round train {round_.task_code} --round {round_.number}`"]
    if to is RoundState.ARCHIVED and round_.state is RoundState.VALIDATING:
        return open_hits(session, round_) + _half_frozen(round_)
    if to is RoundState.COLLECTING and round_.state is RoundState.PILOTING:
        return missing_to_release(session, round_, now)
    if to is not RoundState.COLLECTING or round_.state is not RoundState.VALIDATING:
        return []
    missing = why_it_would_stop(session, round_, now)
    if round_.origin is not None:
        missing.append(f"it was imported from a published set; collect in another round: --round {round_.number + 1}")
    return missing + _half_frozen(round_)


def _half_frozen(round_: Round) -> list[str]:
    name = f"{round_.task_code} {round_.number}"
    return [] if round_.frozen_at is None else [f"it is being frozen; `dynahit round freeze {name}` goes on with it"]


def list_rounds(session: Session, now: datetime, *, archived: bool = False) -> list[Line]:
    """Return the rounds by task and number, those put away only on request. Reads only, and ends the transaction."""
    wanted = select(Round).order_by(Round.task_code, Round.number)
    if not archived:
        wanted = wanted.where(Round.state != RoundState.ARCHIVED)
    rounds = session.scalars(wanted).all()
    counted = select(Example.round_id, func.count()).where(Example.retracted_at.is_(None)).group_by(Example.round_id)
    examples = {round_id: count for round_id, count in session.execute(counted)}  # noqa: C416 - rows have no types
    found = []
    for round_ in rounds:
        moves = moves_of(session, round_.id)
        then = MOVES[round_.state][0] if MOVES[round_.state] else None
        # Of a draft, what comes next is the plain launch.
        then = RoundState.COLLECTING if round_.state is RoundState.DRAFT else then
        found.append(
            Line(
                round_.task_code,
                round_.number,
                round_.state,
                moves[-1].at if moves else round_.created_at,
                examples.get(round_.id, 0),
                then,
                () if then is None else tuple(missing_for(session, round_, then, now)),
            )
        )
    session.rollback()
    return found


def open_round(session: Session, clock: Clock, task_code: str, number: int, *, by: str) -> bool:
    """Let writers' work be launched in a draft, or again in a round that was closed; tell whether it was closed.

    Its HITs that were taken off the site stay so: launch others. Raises NotFound, Refused, NotReady.
    """
    return _moved(session, clock, task_code, number, RoundState.COLLECTING, "opened", by=by)


def archive_round(session: Session, clock: Clock, task_code: str, number: int, *, by: str) -> bool:
    """Put a round away for good; its data and its export stay. Tell whether it was not so before.

    Raises NotFound, Refused, NotReady.
    """
    return _moved(session, clock, task_code, number, RoundState.ARCHIVED, "archived", by=by)


def _moved(
    session: Session, clock: Clock, task_code: str, number: int, to: RoundState, becoming: str, *, by: str
) -> bool:
    found = find_round(session, task_code, number)
    round_ = session.get_one(Round, found.id, populate_existing=True, with_for_update={"key_share": True})
    now = clock.now()
    if round_.state is RoundState.PILOTING and to is RoundState.COLLECTING:
        session.rollback()
        raise Refused(
            f"Round {number} of the {task_code} task is piloting: `dynahit round release {task_code} {number}` lets the"
            " HITs behind the pilot be created. Nothing was changed."
        )
    if to in MOVES[round_.state] and (missing := missing_for(session, round_, to, now)):
        session.rollback()
        raise NotReady(task_code, number, missing, becoming=becoming)
    before = round_.state
    made = move(session, round_, to, by=by, now=now, note=becoming)
    if made is not None:
        session.add(
            AuditEntry(
                at=now,
                staff_name=by[:80],
                action=f"round.{'archive' if to is RoundState.ARCHIVED else 'open'}",
                subject=f"{task_code} round {number}",
                detail={"before": before.value},
            )
        )
    session.commit()
    return made is not None
