"""The first look of every call of the API: is the account good, and does something have to be settled first."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from hits.marketplace import timers
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.tables import RequesterRow

_LOOK: Final = select(RequesterRow.disabled_at, timers.SOMETHING_IS_DUE.label("is_due")).where(
    RequesterRow.requester_id == bindparam("requester_id")
)
_LOCK: Final = _LOOK.with_for_update(key_share=True, of=RequesterRow)


def admit(session: Session, now: datetime, requester_id: str, *, lock: bool) -> bool:
    """Return whether timers are due, having seen that the account may call the API, and locked it if asked for.

    It is one statement, since every call waits for it. Raises MarketplaceError if there is no such account, or the
    operator disabled it.
    """
    given = {"requester_id": requester_id, **timers.moments(now)}
    row = session.connection().execute(_LOCK if lock else _LOOK, given).first()
    if row is None:
        raise MarketplaceError(
            "UnrecognizedClientException", "To use the MTurk API, you will need an account on this marketplace."
        )
    if row.disabled_at is not None:
        raise MarketplaceError("AccessDeniedException", "The operator of this marketplace has disabled this account.")
    return bool(row.is_due)
