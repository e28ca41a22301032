"""What the pages show of payouts: every state in one figure or named elsewhere, pages, postings in order."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from app.finance.figures import GROUPS, STATE_WORDS, payout_detail, payout_page, standing_now
from app.operations.settle import settle
from hits.clock import FixedClock
from hits.errors import NotFound
from hits.money import usd
from payments.models import PayoutState
from payments.planning import plan_bonuses
from payments.report import Amount
from tests import factories
from tests.payments.builders import verified_example
from tests.payments.senders import BonusDesk


def test_every_state_has_words_and_all_that_is_owed_or_paid_stands_in_exactly_one_figure() -> None:
    counted = [state for _, states in GROUPS.values() for state in states]

    assert set(STATE_WORDS) == set(PayoutState)
    assert len(counted) == len(set(counted))
    assert set(PayoutState) - set(counted) == {PayoutState.NOT_DUE}


def test_a_page_holds_its_rows_and_the_total_of_the_whole_table(
    session: Session, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.finance.figures.PAGE_SIZE", 2)
    batch = factories.make_batch(session, bonus=usd("0.30"))
    for _ in range(3):
        verified_example(session, batch=batch)
    planned = plan_bonuses(session, clock.now())

    page = payout_page(session, (PayoutState.PLANNED,), 2)

    assert [line.reference for line in page.lines] == [planned[0].reference]
    assert (page.number, page.pages, page.total) == (2, 2, Amount(3, usd("0.90")))


@pytest.mark.parametrize("number", [0, 2, -1])
def test_a_page_that_is_not_there_is_refused(session: Session, number: int) -> None:
    with pytest.raises(NotFound, match="has 1"):
        payout_page(session, (PayoutState.PLANNED,), number)


def test_a_payout_shows_its_promise_before_its_payment(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session), votes=2)
    session.commit()
    before = standing_now(session)
    settle(session, BonusDesk(clock), clock)
    [line] = payout_page(session, (PayoutState.CONFIRMED,), 1).lines

    detail = payout_detail(session, line.reference)

    assert before.not_planned.count == 1
    assert [one.what for one in detail.postings] == ["Promised"] * 2 + ["Paid"] * 7
    assert sum(one.cents for one in detail.postings) == 0
    assert detail.confirmed_at == clock.now()


def test_a_payout_that_is_not_there_is_refused_with_its_reference(session: Session) -> None:
    with pytest.raises(NotFound, match="DH-NOWHERE"):
        payout_detail(session, "DH-NOWHERE")
