"""What the rows of money tell of themselves, and which states count as what."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.money import usd
from payments.models import NOT_PROMISED, OWED, PAID, UNSURE, Payout, PayoutState, Reservation
from tests import factories
from tests.payments.builders import plan, verified_example


def test_what_is_open_is_neither_spent_nor_given_back_and_what_is_free_is_kept_for_nobody() -> None:
    reservation = Reservation(
        held=usd("10.00"),
        spent=usd("1.00"),
        released=usd("2.00"),
        moved_out=usd("0.50"),
        promised=usd("0.36"),
        bonuses=usd("3.00"),
        validation=usd("1.00"),
    )

    assert (reservation.open, reservation.free) == (usd("6.50"), usd("2.14"))


def test_every_state_is_owed_paid_or_not_promised_but_for_what_a_hit_of_its_own_has_paid() -> None:
    rest = set(PayoutState) - (OWED | PAID | NOT_PROMISED)

    assert rest == {PayoutState.COMPENSATED}
    assert not OWED & PAID
    assert not OWED & NOT_PROMISED
    assert UNSURE < OWED


@pytest.mark.parametrize(
    ("name", "value"),
    [("state", PayoutState.SENT), ("state", PayoutState.FAILED), ("amount", usd(0)), ("assignment_id", None)],
)
def test_the_database_refuses_a_payout_that_can_not_be(
    session: Session, clock: FixedClock, name: str, value: object
) -> None:
    verified_example(session, batch=factories.make_batch(session))
    [payout] = plan(session, clock.now())
    session.refresh(payout)

    setattr(payout, name, value)

    with pytest.raises(IntegrityError):
        session.flush()


def test_the_same_rule_and_subject_is_there_once(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session))
    [payout] = plan(session, clock.now())
    columns = {column.name: getattr(payout, column.name) for column in Payout.__table__.columns}

    session.add(Payout(**{**columns, "id": None, "reference": "DH-OTHER", "request_token": "other"}))

    with pytest.raises(IntegrityError):
        session.flush()
