"""What is set aside for a batch, row by row: what is promised out of it, spent, given back. Books nothing."""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.money import ZERO
from payments.models import Payout, Reservation


def locked(session: Session, batch_id: int | None) -> Reservation | None:
    """Return a batch's reservation, locked until the transaction ends; None for a batch without one."""
    if batch_id is None:
        return None
    return session.scalar(
        select(Reservation)
        .where(Reservation.batch_id == batch_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )


def keep(reservation: Reservation, payout: Payout, cost: Decimal, *, of_bonuses: Decimal) -> None:
    """Promise ``cost`` to a payout, ``of_bonuses`` of it out of what is kept for bonuses. Flushes nothing."""
    reservation.bonuses -= of_bonuses
    reservation.promised += cost
    payout.kept = cost


def give_back(reservation: Reservation, payout: Payout) -> None:
    """Take a payout's promise back; the money is kept for bonuses again. Flushes nothing."""
    reservation.promised -= payout.kept
    reservation.bonuses += payout.kept
    payout.kept = ZERO


def spend(reservation: Reservation, cost: Decimal, *, kept: Decimal = ZERO) -> Decimal:
    """Spend ``cost``, ``kept`` of which was promised before, and return how much of it nobody had set aside.

    Money that has left is counted even if it was not reserved: the reservation then grows by what is returned. What
    was kept and not needed is free again. Flushes nothing.
    """
    reservation.promised -= kept
    missing = max(cost - reservation.free, ZERO)
    if missing:
        reservation.held += missing
        reservation.closed_at = None
    reservation.spent += cost
    return missing
