"""Whether a round is frozen, and the refusal to change one that is. Behind it stand triggers (hits.models.frozen)."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import Refused
from hits.models import Round
from hits.models.frozen import FREEZING


def is_frozen(round_: Round) -> bool:
    """Tell whether the round is frozen, whole."""
    return round_.manifest_sha256 is not None and round_.manifest_sha256 != FREEZING


def require_open(session: Session, round_id: int) -> None:
    """Raise Refused for a round that is frozen, or is being frozen. Reads only."""
    found = session.execute(select(Round.task_code, Round.number, Round.frozen_at).where(Round.id == round_id)).one()
    if found.frozen_at is not None:
        raise Refused(
            f"Round {found.number} of the {found.task_code} task was frozen on {found.frozen_at:%Y-%m-%d}, so that its"
            " data stay as they are. Nothing was changed. Collect in another round."
        )


def require_collecting(session: Session, round_id: int, *, lock: bool = False) -> None:
    """Raise Refused for a round into which nothing can be collected: a frozen one, or one that was imported.

    With ``lock`` it is not frozen before the transaction ends.
    """
    wanted = select(Round.task_code, Round.number, Round.origin).where(Round.id == round_id)
    found = session.execute(wanted.with_for_update(read=True) if lock else wanted).one()
    require_open(session, round_id)
    if found.origin is not None:
        raise Refused(
            f"Round {found.number} of the {found.task_code} task was imported from a published set. Collect in another"
            " round; nothing was launched."
        )
