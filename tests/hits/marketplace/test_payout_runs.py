"""Payout runs: each earning in one run, paid or cancelled once, whatever happens at the same time."""

from __future__ import annotations

import csv
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import OperatorError, PasswordWrong, PayoutDetailsUnfit
from hits.marketplace.payout_runs import cell
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import PayoutItemRow, WorkerRow
from tests.hits.marketplace.market import WORKERS_PASSWORD, Market
from tests.hits.marketplace.people import PASSWORD, house
from tests.hits.marketplace.test_work import all_at_once

OLGA, OTTO = Actor.operator("olga"), Actor.operator("otto")


def earn(market: Market, worker_id: str, *, reward: str = "0.30", bonus: str | None = None) -> str:
    assignment_id = market.submitted(market.create_hit(Reward=reward), worker_id)
    market.client.approve_assignment(AssignmentId=assignment_id)
    if bonus is not None:
        market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount=bonus, Reason="Thanks.")
    return assignment_id


def sums(market: Market, worker_id: str) -> tuple[str, str, str, str]:
    """Earned, open, being paid, paid."""
    found = market.engine.worker_payouts(worker_id)
    return f"{found.earned}", f"{found.open}", f"{found.being_paid}", f"{found.paid}"


def test_a_run_takes_what_is_open_and_is_paid_once(stored_market: Market) -> None:
    market, engine = stored_market, stored_market.engine
    ada, bob = market.worker(), market.worker()
    earn(market, ada, bonus="1.05")
    earn(market, ada)
    earn(market, bob)
    market.clock.advance(seconds=1)

    run = engine.draft_payout_run(by=OLGA)
    earn(market, ada, reward="0.07")

    assert (run.state, run.workers, run.earnings, f"{run.total}") == ("Drafted", 2, 4, "1.95")
    assert sums(market, ada) == ("1.72", "0.07", "1.65", "0.00")
    paid = engine.mark_payout_run_paid(run.run_id, "SEPA 2026-12", by=OTTO)
    assert (paid.state, paid.ended_by, paid.reference) == ("Paid", "otto", "SEPA 2026-12")
    assert sums(market, ada) == ("1.72", "0.07", "0.00", "1.65")
    for again in (
        lambda: engine.mark_payout_run_paid(run.run_id, "again", by=OLGA),
        lambda: engine.cancel_payout_run(run.run_id, by=OLGA),
    ):
        with pytest.raises(OperatorError, match="was paid by otto on"):
            again()
    market.clock.advance(seconds=1)
    assert f"{engine.draft_payout_run(by=OLGA).total}" == "0.07"
    with pytest.raises(OperatorError, match="left to pay out"):
        engine.draft_payout_run(by=OLGA)


def test_a_cancelled_run_frees_its_earnings(market: Market) -> None:
    engine, ada = market.engine, market.worker()
    earn(market, ada)
    market.clock.advance(seconds=1)
    first = engine.draft_payout_run(by=OLGA)

    engine.cancel_payout_run(first.run_id, by=OLGA)

    assert sums(market, ada) == ("0.30", "0.30", "0.00", "0.00")
    second = engine.draft_payout_run(by=OLGA)
    assert f"{second.total}" == "0.30"
    assert engine.payout_run(first.run_id).state == "Cancelled"
    assert f"{engine.payout_run(first.run_id).total}" == "0.30"
    with pytest.raises(OperatorError, match="was cancelled"):
        engine.mark_payout_run_paid(first.run_id, "late", by=OLGA)


def test_operators_who_draft_at_once_share_nothing(stored_market: Market) -> None:
    market, engine = stored_market, stored_market.engine
    workers = [market.worker() for _ in range(3)]
    for worker_id in workers:
        earn(market, worker_id, bonus="0.10")
    market.clock.advance(seconds=1)

    outcomes = all_at_once([lambda: engine.draft_payout_run(by=OLGA) for _ in range(6)])

    drafted = [one for one in outcomes if not isinstance(one, BaseException)]
    assert all(isinstance(one, OperatorError) for one in outcomes if isinstance(one, BaseException)), outcomes
    assert [f"{one.total}" for one in drafted] == ["1.20"]
    assert engine.payout_runs().total == 1


def test_paying_and_cancelling_at_once_does_one_of_the_two(stored_market: Market) -> None:
    market, engine, ada = stored_market, stored_market.engine, stored_market.worker()
    earn(market, ada)
    market.clock.advance(seconds=1)
    run = engine.draft_payout_run(by=OLGA)

    outcomes = all_at_once(
        [
            lambda: engine.mark_payout_run_paid(run.run_id, "one", by=OLGA),
            lambda: engine.cancel_payout_run(run.run_id, by=OTTO),
            lambda: engine.mark_payout_run_paid(run.run_id, "two", by=OTTO),
        ]
    )

    assert sum(isinstance(one, OperatorError) for one in outcomes) == 2
    state = engine.payout_run(run.run_id).state
    assert sums(market, ada)[1:] == (("0.00", "0.00", "0.30") if state == "Paid" else ("0.30", "0.00", "0.00"))


def test_the_database_keeps_an_earning_out_of_a_second_run(stored_market: Market) -> None:
    market, engine, ada = stored_market, stored_market.engine, stored_market.worker()
    earn(market, ada, bonus="0.10")
    market.clock.advance(seconds=1)
    run = engine.draft_payout_run(by=OLGA)
    with engine.store.session(writes=False) as session:
        items = session.scalars(select(PayoutItemRow)).all()
    assert len(items) == 2

    for item in items:
        with pytest.raises(IntegrityError), engine.store.session(writes=True) as session:
            session.add(
                PayoutItemRow(
                    run_id=run.run_id,
                    worker_id=ada,
                    assignment_id=item.assignment_id,
                    bonus_seq=item.bonus_seq,
                    amount_cents=1,
                    earned_at=item.earned_at,
                )
            )


def test_the_same_form_twice_drafts_one_run(market: Market) -> None:
    engine, ada = market.engine, market.worker()
    earn(market, ada)
    market.clock.advance(seconds=1)

    first, second = (engine.draft_payout_run(by=OLGA, token="form-token-0123456") for _ in range(2))

    assert first == second
    assert engine.payout_runs().total == 1


def test_only_what_was_earned_before_the_end_is_in_it(market: Market) -> None:
    engine, ada = market.engine, market.worker()
    earn(market, ada)
    end = market.clock.now()
    market.clock.advance(seconds=60)

    with pytest.raises(OperatorError, match="left to pay out"):
        engine.draft_payout_run(end, by=OLGA)
    with pytest.raises(OperatorError, match="now at the latest"):
        engine.draft_payout_run(market.clock.now() + timedelta(seconds=1), by=OLGA)
    assert f"{engine.open_earnings(end).total}" == "0.00"
    assert f"{engine.open_earnings().total}" == "0.30"
    assert engine.draft_payout_run(end + timedelta(microseconds=1), by=OLGA).earnings == 1


def test_workers_without_details_can_be_left_for_later(market: Market) -> None:
    engine, ada, bob = market.engine, market.worker(), market.worker()
    for worker_id in (ada, bob):
        earn(market, worker_id)
    engine.set_payout_details(bob, WORKERS_PASSWORD, "IBAN DE00 1234")
    market.clock.advance(seconds=1)
    assert engine.open_earnings().without_details == 1

    run = engine.draft_payout_run(only_with_details=True, by=OLGA)

    (line,) = engine.payout_lines(run.run_id).entries
    assert (line.worker_id, line.payout_details, line.amount_cents) == (bob, "IBAN DE00 1234", 30)
    assert sums(market, ada) == ("0.30", "0.30", "0.00", "0.00")


def test_the_file_has_cents_and_no_formulas(market: Market) -> None:
    engine, ada, bob = market.engine, market.worker(user_name="=cmd()"), market.worker(user_name="bob")
    earn(market, ada, bonus="1.05")
    earn(market, bob)
    engine.set_payout_details(ada, WORKERS_PASSWORD, ' +HYPERLINK("https://example.org")')
    engine.set_payout_details(bob, WORKERS_PASSWORD, "ordinary, with a comma\nand a line")
    market.clock.advance(seconds=1)
    run = engine.draft_payout_run(by=OLGA)

    rows = list(csv.DictReader("".join(engine.payout_csv(run.run_id)).splitlines(keepends=True)))

    first, second = rows
    assert (first["user_name"], first["pay_to"]) == ("'=cmd()", '\'+HYPERLINK("https://example.org")')
    assert (first["rewards_cents"], first["bonuses_cents"], first["amount_cents"]) == ("30", "105", "135")
    assert first["amount_usd"] == "1.35"
    assert (second["pay_to"], second["bonuses"]) == ("ordinary, with a comma\nand a line", "0")
    assert {row["run_id"] for row in rows} == {run.run_id}
    assert sum(int(row["amount_cents"]) for row in rows) == run.total * 100


def test_a_worker_is_told_by_mail_that_the_money_goes_elsewhere() -> None:
    with house() as opened:
        ada, bob = opened.worker(), opened.worker("bob", None)
        for worker_id in (ada, bob):
            opened.engine.set_payout_details(worker_id, PASSWORD, "IBAN DE00 1234")

        opened.post()

        (letter,) = [one for one in opened.box.letters if one.subject == "Where your money goes was changed"]
        assert letter.address == "ada@example.org"
        assert "“ada”" in letter.text
        assert "DE00" not in letter.text


def test_details_are_stored_encrypted(market: Market) -> None:
    engine, ada = market.engine, market.worker()

    engine.set_payout_details(ada, WORKERS_PASSWORD, "IBAN DE00 1234")

    with engine.store.session(writes=False) as session:
        sealed = session.get_one(WorkerRow, ada).payout_details
    assert sealed is not None
    assert b"1234" not in sealed
    assert engine.payout_details(ada) == "IBAN DE00 1234"
    other = Marketplace(market.url, settings=MarketplaceSettings.for_tests(), clock=market.clock)
    other.store = engine.store
    with pytest.raises(OperatorError, match="old secret_key"):
        other.payout_details(ada)
    engine.set_payout_details(ada, WORKERS_PASSWORD, "  ")
    assert engine.payout_details(ada) == ""
    with pytest.raises(PayoutDetailsUnfit):
        engine.set_payout_details(ada, WORKERS_PASSWORD, "x" * 1001)
    with pytest.raises(PasswordWrong):
        engine.set_payout_details(ada, "not the password", "IBAN of a thief")
    assert engine.payout_details(ada) == ""
    assert [one.details["given"] for one in engine.audit_log(about=ada).entries] == [False, True]


def test_what_a_worker_is_shown_adds_up(market: Market) -> None:
    engine, ada = market.engine, market.worker()
    for _ in range(3):
        earn(market, ada, bonus="0.01")
        market.clock.advance(seconds=1)
        run = engine.draft_payout_run(by=OLGA)
    engine.mark_payout_run_paid(run.run_id, "r", by=OLGA)
    earn(market, ada)

    found = engine.worker_payouts(ada)

    assert found.earned == Decimal("1.23") == found.open + found.being_paid + found.paid
    assert [(one.state, f"{one.amount}") for one in found.payouts] == [
        ("Paid", "0.31"), ("Drafted", "0.31"), ("Drafted", "0.31"),
    ]  # fmt: skip


def test_a_reference_is_needed(market: Market) -> None:
    engine, ada = market.engine, market.worker()
    earn(market, ada)
    market.clock.advance(seconds=1)
    run = engine.draft_payout_run(by=OLGA)

    for reference in (" ", "x" * 201):
        with pytest.raises(OperatorError, match="reference"):
            engine.mark_payout_run_paid(run.run_id, reference, by=OLGA)
    with pytest.raises(OperatorError, match="no payout run"):
        engine.mark_payout_run_paid("3NONE", "r", by=OLGA)


def test_a_run_cannot_be_half_ended(stored_market: Market) -> None:
    from hits.marketplace.tables import PayoutRunRow

    earn(stored_market, stored_market.worker())
    stored_market.clock.advance(seconds=1)
    stored_market.engine.draft_payout_run(by=OLGA)

    with pytest.raises(IntegrityError), stored_market.engine.store.session(writes=True) as session:
        session.execute(update(PayoutRunRow).values(state="Paid"))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", " =1+1", "\u00a0@x"])
def test_a_spreadsheet_does_not_run_what_people_wrote(text: str) -> None:
    assert cell(text) == "'" + text
    assert cell("plain") == "plain"
    assert cell("") == ""
