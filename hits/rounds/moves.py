"""Which state of a round follows which, and the one function that takes a round from one into the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from hits.errors import Refused
from hits.models import Round, RoundMove
from hits.states import RoundState

#: By state, the states that may follow it. Whether a round is fit for the move is for the operations to say.
MOVES: Final[Mapping[RoundState, tuple[RoundState, ...]]] = {
    RoundState.DRAFT: (RoundState.PILOTING, RoundState.COLLECTING, RoundState.ARCHIVED),
    RoundState.PILOTING: (RoundState.COLLECTING, RoundState.VALIDATING),
    RoundState.COLLECTING: (RoundState.VALIDATING,),
    # Back, when it was closed too early.
    RoundState.VALIDATING: (RoundState.FROZEN, RoundState.COLLECTING, RoundState.ARCHIVED),
    RoundState.FROZEN: (RoundState.TRAINED, RoundState.ARCHIVED),
    RoundState.TRAINED: (RoundState.ARCHIVED,),
    RoundState.ARCHIVED: (),
}

_BY_CHARACTERS: Final = 80
_NOTE_CHARACTERS: Final = 500


class NotReady(Refused):
    """The round can't be moved yet; ``missing`` lists what stands in the way, each with the next step."""

    def __init__(self, task_code: str, number: int, missing: Sequence[str], *, becoming: str = "frozen") -> None:
        listed = "\n".join(f"  - {one}" for one in missing)
        super().__init__(
            f"Round {number} of the {task_code} task can't be {becoming} yet. Nothing was changed:\n{listed}"
        )
        self.missing = tuple(missing)


def move(session: Session, round: Round, to: RoundState, *, by: str, now: datetime, note: str = "") -> RoundMove | None:
    """Take the round into another state and return the record of it; None when it is there already. Flushes only.

    Of two that move it at once one is refused, whatever the other did. Raises Refused for a move that there is not.
    """
    before = session.scalars(select(Round.state).where(Round.id == round.id)).one()
    if before is to:
        return None
    if to not in MOVES[before]:
        raise Refused(_no_such_move(round, before, to))
    moved = session.execute(
        update(Round)
        .where(Round.id == round.id, Round.state == before)
        .values(state=to)
        .execution_options(synchronize_session=False)
    )
    if moved.rowcount != 1:  # type: ignore[attr-defined]  # an UPDATE's result has it
        raise Refused(
            f"Round {round.number} of the {round.task_code} task was moved by somebody else at this moment. Nothing"
            f" was changed; `dynahit round status {round.task_code} {round.number}` shows where it is."
        )
    session.refresh(round, ["state"])
    return _record(session, round, before, to, by=by, now=now, note=note)


def begun(session: Session, round: Round, *, by: str, now: datetime, note: str = "") -> RoundMove:
    """Keep that the round was made, in the state that it is in. Flushes, never commits."""
    session.flush()
    return _record(session, round, None, round.state, by=by, now=now, note=note)


def moves_of(session: Session, round_id: int) -> list[RoundMove]:
    """Return what was recorded of a round, oldest first. Reads only."""
    return list(session.scalars(select(RoundMove).where(RoundMove.round_id == round_id).order_by(RoundMove.id)))


def _record(
    session: Session, round: Round, before: RoundState | None, to: RoundState, *, by: str, now: datetime, note: str
) -> RoundMove:
    row = RoundMove(
        round_id=round.id,
        from_state=None if before is None else before.value,
        to_state=to,
        at=now,
        by=by[:_BY_CHARACTERS],
        note=note[:_NOTE_CHARACTERS],
    )
    session.add(row)
    session.flush()
    return row


def _no_such_move(round: Round, before: RoundState, to: RoundState) -> str:
    after = " or ".join(one.value for one in MOVES[before])
    return (
        f"Round {round.number} of the {round.task_code} task is {before.value} and can't become {to.value}."
        f" Nothing was changed. {f'It can become {after}' if after else 'Nothing comes after that'};"
        f" `dynahit round status {round.task_code} {round.number}` shows what comes next."
    )
