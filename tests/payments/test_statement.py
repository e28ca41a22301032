"""What one worker was promised and paid: all of it, nothing of anybody else's, with the worker's own sentences."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.errors import NotFound
from hits.money import from_cents, usd
from payments.ledger import record_reward, reverse
from payments.models import Payout, Posting, TransactionKind
from payments.planning import plan_bonuses
from payments.statement import statement, statement_table
from tests import factories
from tests.payments.builders import assignment_of, verified_example
from tests.payments.year import WORKERS, make_year


def test_a_statement_tells_promise_reward_and_bonus_with_their_sentences(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, reward=usd("0.25"), bonus=usd("0.30"), title="Fool the model")
    mine, _other = (verified_example(session, batch=batch) for _ in range(2))
    assignment = assignment_of(session, mine)
    assignment.approved_at = clock.now()
    record_reward(session, assignment, clock.now())
    clock.advance(timedelta(minutes=1))
    plan_bonuses(session, clock.now())

    found = statement(session, mine.writer.pseudonym)

    payout = session.scalars(select(Payout).where(Payout.example_id == mine.id)).one()
    assert [(line.kind, line.reason, line.paid, line.owed) for line in found.lines] == [
        (TransactionKind.REWARD, "For this HIT, whatever others say about your work: $0.25.", usd("0.25"), 0),
        (TransactionKind.PROMISE, payout.reason, 0, usd("0.30")),
    ]
    assert (found.paid, found.owed) == (usd("0.25"), usd("0.30"))
    assert {line.round for line in found.lines} == {"sentiment/1"}


def test_the_statements_add_up_to_the_postings(session: Session) -> None:
    make_year(session)
    for pseudonym in WORKERS:
        factories.make_worker(session, pseudonym=pseudonym)

    found = [statement(session, pseudonym) for pseudonym in WORKERS]

    sums = dict.fromkeys(("rewards", "bonuses", "promised"), 0)
    for account, cents in session.execute(select(Posting.account, Posting.cents)):
        if account.partition(":")[0] in sums:
            sums[account.partition(":")[0]] += cents
    assert sum(one.paid for one in found) == from_cents(sums["rewards"] + sums["bonuses"])
    assert sum(one.owed for one in found) == from_cents(sums["promised"])
    assert all(one.lines == tuple(sorted(one.lines, key=lambda line: line.at)) for one in found)


def test_a_reversal_is_a_line_of_its_own(session: Session, clock: FixedClock) -> None:
    assignment = assignment_of(session, verified_example(session, batch=factories.make_batch(session)))
    booked = record_reward(session, assignment, clock.now())
    reverse(session, booked.key, reason="never approved", now=clock.now() + timedelta(days=1))

    found = statement(session, assignment.worker.pseudonym)

    assert [line.paid for line in found.lines] == [usd("0.30"), -usd("0.30")]
    assert (found.lines[1].reference, found.lines[1].reason) == (assignment.mturk_assignment_id, "never approved")
    assert found.paid == 0


@pytest.mark.parametrize("pseudonym", ["w-0000000000000000", "", "w-%", "w-\0"])
def test_a_pseudonym_that_nobody_has_is_not_found(session: Session, pseudonym: str) -> None:
    with pytest.raises(NotFound, match="There is no worker"):
        statement(session, pseudonym)


def test_a_worker_without_any_money_has_an_empty_statement(session: Session) -> None:
    worker = factories.make_worker(session)

    found = statement(session, worker.pseudonym)

    assert (found.lines, found.paid, found.owed) == ((), 0, 0)
    assert list(statement_table(found).rows) == []


def test_the_table_names_the_worker_by_pseudonym_alone(session: Session, clock: FixedClock) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    plan_bonuses(session, clock.now())

    [row] = statement_table(statement(session, example.writer.pseudonym)).rows

    assert row[1] == example.writer.pseudonym
    assert example.writer.mturk_worker_id not in str(row)
