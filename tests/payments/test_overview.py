"""Where the money stands: every amount is the sum of its postings, by round and by task."""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.money import ZERO, from_cents, usd
from payments.ledger import record_reward
from payments.models import LedgerTransaction, Posting
from payments.overview import Money, overview
from payments.planning import plan_bonuses
from payments.report import Figures, month_report, months
from tests import factories
from tests.payments.builders import assignment_of, verified_example
from tests.payments.year import make_year


def booked(session: Session, *names: str, round_: str = "") -> Decimal:
    """Return the sum over accounts, added up one by one."""
    cents = 0
    for account, amount in session.execute(select(Posting.account, Posting.cents)):
        name, _, rest = account.partition(":")
        if name in names and (not round_ or rest.startswith(f"{round_}:")):
            cents += amount
    return from_cents(cents)


def test_every_amount_is_the_sum_of_its_postings(session: Session) -> None:
    make_year(session)

    found = overview(session)

    for code, money in found.by_round.items():
        assert money.rewards == booked(session, "rewards", round_=code) > 0
        assert money.bonuses == booked(session, "bonuses", round_=code) > 0
        assert money.fees == booked(session, "reward_fees", "bonus_fees", round_=code) > 0
        assert money.owed == booked(session, "promised", round_=code) > 0
        assert money.owed == money.promised - money.bonuses
    assert found.by_task == {"sentiment": found.totals}
    spent = session.scalar(
        select(func.sum(Posting.cents))
        .join(LedgerTransaction, LedgerTransaction.id == Posting.transaction_id)
        .where(Posting.account.startswith("marketplace:"), LedgerTransaction.kind != "deposit")
    )
    assert found.totals.total == -from_cents(int(spent or 0))


def test_the_months_add_up_to_the_overview(session: Session) -> None:
    make_year(session)

    totals = overview(session).totals

    by_month = [month_report(session, month).totals for month in months(session)]
    summed = sum(by_month, Figures())
    assert (summed.rewards, summed.bonuses, summed.fees) == (totals.rewards, totals.bonuses, totals.fees)
    assert (summed.promised, summed.total) == (totals.promised, totals.total)


def test_a_verified_example_costs_what_was_spent_for_all_of_them(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, reward=usd("0.25"), bonus=usd("0.30"))
    for _ in range(3):
        example = verified_example(session, batch=batch)
        record_reward(session, assignment_of(session, example), clock.now())
    plan_bonuses(session, clock.now())

    money = overview(session).by_round["sentiment/1"]

    assert (money.total, money.verified, money.cost_per_verified) == (usd("0.90"), 3, usd("0.30"))
    assert (money.promised, money.owed) == (usd("0.90"), usd("0.90"))


def test_what_was_retracted_or_fooled_nothing_is_no_verified_fooling_example(session: Session) -> None:
    batch = factories.make_batch(session)
    verified_example(session, batch=batch)
    retracted = verified_example(session, batch=batch)
    retracted.retracted_at, retracted.retraction_reason = factories.NOON, "The writer asked for it."
    verified_example(session, batch=batch).fooled = False
    session.flush()

    assert overview(session).totals.verified == 1


def test_a_round_without_money_stands_there_with_nothing(session: Session) -> None:
    factories.make_round(session)

    found = overview(session)

    assert found.by_round == {"sentiment/1": Money()}
    assert found.totals.cost_per_verified is None
    assert found.totals.total == ZERO
