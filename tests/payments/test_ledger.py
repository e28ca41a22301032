"""The books: zero sums, replays, and a database that refuses to change what is booked."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, func, select, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session, sessionmaker

from hits.db import Base
from hits.money import from_cents, usd
from hits.states import AssignmentState
from payments.errors import AlreadyReversed, LedgerConflict, UnbalancedTransaction
from payments.ledger import Account, booked_balance, booked_deposits, post, record_deposit, record_reward, reverse
from payments.models import LEDGER_GUARDS, LEDGER_GUARDS_DROPPED, LedgerTransaction, Posting, TransactionKind
from tests import factories

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def book(session: Session, round_id: int, key: str = "k", amount: str = "0.30") -> LedgerTransaction:
    return post(
        session,
        key=key,
        kind=TransactionKind.REWARD,
        reference="A1",
        round_id=round_id,
        postings={"rewards:sentiment/1:w-1": usd(amount), "marketplace": -usd(amount)},
        now=NOON,
    )


def test_a_transaction_that_does_not_sum_to_zero_is_refused(session: Session) -> None:
    round_ = factories.make_round(session)

    with pytest.raises(UnbalancedTransaction, match=r"\$0\.10"):
        post(
            session,
            key="k",
            kind=TransactionKind.REWARD,
            reference="A1",
            round_id=round_.id,
            postings={"rewards": usd("0.30"), "marketplace": -usd("0.20")},
            now=NOON,
        )

    assert session.scalar(select(func.count()).select_from(LedgerTransaction)) == 0


def test_a_known_key_returns_what_is_booked(session: Session) -> None:
    round_ = factories.make_round(session)
    first = book(session, round_.id)

    again = book(session, round_.id)

    assert again.id == first.id
    assert session.scalar(select(func.count()).select_from(Posting)) == 2


def test_a_known_key_with_other_contents_is_refused_and_shows_both(session: Session) -> None:
    round_ = factories.make_round(session)
    book(session, round_.id)

    with pytest.raises(LedgerConflict, match=r"\+30.*\+40"):
        book(session, round_.id, amount="0.40")


@pytest.mark.parametrize("table", ["ledger_transaction", "posting"])
@pytest.mark.parametrize("change", ["UPDATE {table} SET id = id + 1000", "DELETE FROM {table}"])
def test_the_database_refuses_to_change_what_is_booked(session: Session, table: str, change: str) -> None:
    book(session, factories.make_round(session).id)
    session.commit()

    with pytest.raises(DatabaseError, match="append-only"):
        session.execute(text(change.format(table=table)))

    session.rollback()
    assert session.scalar(select(func.sum(Posting.cents))) == 0
    assert session.scalar(select(func.count()).select_from(Posting)) == 2


def test_the_guards_can_be_taken_away_and_put_back(session: Session) -> None:
    dialect = session.get_bind().dialect.name
    book(session, factories.make_round(session).id)
    for statement in (*LEDGER_GUARDS_DROPPED[dialect], *LEDGER_GUARDS[dialect]):
        session.execute(text(statement))

    with pytest.raises(DatabaseError, match="append-only"):
        session.execute(text("DELETE FROM posting"))


def test_a_reward_is_booked_once_with_its_fee(session: Session) -> None:
    batch = factories.make_batch(session, reward=usd("0.30"))
    hit = factories.make_hit(session, batch=batch)
    assignment = factories.make_assignment(session, hit=hit, state=AssignmentState.APPROVED)

    booked = record_reward(session, assignment, NOON)
    again = record_reward(session, assignment, NOON)

    worker = assignment.worker.pseudonym
    assert again.id == booked.id
    assert {line.account: line.cents for line in booked.postings} == {
        f"rewards:sentiment/1:{worker}": 30,
        f"reward_fees:sentiment/1:{worker}": 6,
        f"marketplace:{batch.endpoint}": -36,
    }
    assert booked.at == assignment.approved_at


def test_work_of_masters_is_booked_with_the_fee_that_it_costs(session: Session) -> None:
    asked = {"qualification_type_id": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "comparator": "Exists"}
    batch = factories.make_batch(session, reward=usd("1.00"), requirements=[asked])
    hit = factories.make_hit(session, batch=batch)

    record_reward(session, factories.make_assignment(session, hit=hit, state=AssignmentState.APPROVED), NOON)

    assert booked_balance(session, batch.endpoint) == -usd("1.25")


def test_a_reward_of_nothing_books_its_fee_only(session: Session) -> None:
    hit = factories.make_hit(session, batch=factories.make_batch(session, reward=usd(0)))
    assignment = factories.make_assignment(session, hit=hit, state=AssignmentState.APPROVED)

    booked = record_reward(session, assignment, NOON)

    assert sorted(line.cents for line in booked.postings) == [-1, 1]


def test_two_processes_that_book_the_same_key_book_it_once(session_factory: sessionmaker[Session]) -> None:
    with session_factory() as first:
        round_id = factories.make_round(first).id
        first.commit()
        book(first, round_id)
        first.commit()
    with session_factory() as second:
        book(second, round_id)
        second.commit()

        assert second.scalar(select(func.count()).select_from(LedgerTransaction)) == 1


def test_an_account_reads_back_as_it_was_written() -> None:
    account = Account("bonuses", "sentiment/1", "w-0123456789abcdef")

    assert Account.parse(str(account)) == account
    assert Account.parse("marketplace") == Account("marketplace", "", "")


def test_the_booked_balance_is_deposits_less_what_was_paid_on_that_marketplace(session: Session) -> None:
    batch = factories.make_batch(session, endpoint="http://here")
    other = factories.make_batch(session, round=batch.round, endpoint="http://there")
    for one in (batch, other):
        hit = factories.make_hit(session, batch=one)
        record_reward(session, factories.make_assignment(session, hit=hit, state=AssignmentState.APPROVED), NOON)

    for _ in range(2):
        record_deposit(session, "http://here", usd("500.00"), reference="invoice 7", now=NOON)

    assert booked_deposits(session, "http://here") == usd("500.00")
    assert booked_balance(session, "http://here") == usd("499.64")
    assert booked_balance(session, "http://there") == -usd("0.36")


amounts = st.integers(-10_000, 10_000).map(from_cents)
transactions = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.dictionaries(st.sampled_from(["x", "y", "z"]), amounts, min_size=1)),
    max_size=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=transactions)
def test_whatever_is_booked_and_replayed_the_books_sum_to_zero(events: list[tuple[str, dict[str, Decimal]]]) -> None:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        round_id = factories.make_round(session).id
        accepted: dict[str, dict[str, Decimal]] = {}
        for key, lines in events:
            balanced = {**lines, "rest": -sum(lines.values(), Decimal(0))}
            wanted = {account: amount for account, amount in balanced.items() if amount}
            try:
                post(
                    session,
                    key=key,
                    kind=TransactionKind.REWARD,
                    reference=key,
                    round_id=round_id,
                    postings=balanced,
                    now=NOON,
                )
            except LedgerConflict:
                assert accepted[key] != wanted
            else:
                assert accepted.setdefault(key, wanted) == wanted

        assert session.scalar(select(func.sum(Posting.cents))) in (0, None)
        assert session.scalar(select(func.count()).select_from(LedgerTransaction)) == len(accepted)
        assert session.scalar(select(func.count()).select_from(Posting)) == sum(map(len, accepted.values()))
    engine.dispose()


def test_a_mistake_is_turned_round_once_and_says_why(session: Session) -> None:
    book(session, factories.make_round(session).id)

    first = reverse(session, "k", reason="Booked for the wrong worker.", now=NOON)
    again = reverse(session, "k", reason="Booked for the wrong worker.", now=NOON)

    assert again.id == first.id
    assert (first.kind, first.key) == (TransactionKind.REVERSAL, "reversal:k")
    sums = session.execute(select(Posting.account, func.sum(Posting.cents)).group_by(Posting.account)).all()
    assert [int(row[1]) for row in sums] == [0, 0]


def test_a_reversal_needs_something_to_turn_round_and_is_never_turned_round_itself(session: Session) -> None:
    book(session, factories.make_round(session).id)
    reverse(session, "k", reason="One reason.", now=NOON)

    with pytest.raises(LookupError, match="'none'"):
        reverse(session, "none", reason="One reason.", now=NOON)
    with pytest.raises(AlreadyReversed, match="another reason"):
        reverse(session, "k", reason="Another reason.", now=NOON)
    with pytest.raises(AlreadyReversed, match="reversal itself"):
        reverse(session, "reversal:k", reason="One reason.", now=NOON)
