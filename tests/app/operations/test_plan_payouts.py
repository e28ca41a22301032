"""Planning in pages: every bonus once, whoever is killed in between, and without a question for each example."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.plan_payouts import Planned, plan_payouts
from hits.clock import FixedClock
from hits.money import usd
from hits.states import HitKind, HitState
from payments import planning
from payments.budgets import reserve
from payments.due import DueBonus, due_pages
from payments.models import Payout, PayoutState
from payments.rules import GOLD_ACCURACY, VALIDATION_BATCH, ReaderTerms
from tests import factories
from tests.app.operations.crashes import Killed, killed_at
from tests.payments.builders import fooling_example, judge, verified_example
from tests.payments.senders import ENDPOINT


def owed(session: Session, count: int) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    for _ in range(count):
        verified_example(session, batch=batch)
    session.commit()


def test_all_pages_are_planned_and_approved(
    session: Session, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "PAGE", 2)
    owed(session, 5)

    done = plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)
    again = plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)

    assert (done, again) == (Planned(5, 0, 5, 0), Planned(0, 0, 0, 0))


def test_a_closed_validation_batch_owes_its_readers_by_hit_and_for_gold_once(
    session: Session, clock: FixedClock
) -> None:
    terms = ReaderTerms(75, usd("0.20"), usd("0.05")).as_json()
    judge(session, factories.make_batch(session, kind=HitKind.VALIDATION, items=4, extras=terms), 3, 1)
    session.commit()

    done = plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)
    again = plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)

    assert (done.new, done.approved, again.new) == (2, 2, 0)
    assert session.scalars(select(Payout.rule).order_by(Payout.id)).all() == [VALIDATION_BATCH, GOLD_ACCURACY]


def test_a_batch_that_is_closed_while_bonuses_are_planned_keeps_its_money_for_gold(
    session: Session, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = ReaderTerms(75, usd("0.20")).as_json()
    batch = factories.make_batch(session, kind=HitKind.VALIDATION, items=4, extras=terms)
    reservation = reserve(session, batch, usd("10.00"), now=clock.now(), bonuses=usd("0.24"))
    hit = judge(session, batch, 4, 0, hit_state=HitState.CREATED).hit
    session.commit()

    def closed_behind(*given: object) -> Iterator[list[DueBonus]]:
        yield from due_pages(*given)  # type: ignore[arg-type]
        hit.state = HitState.CLOSED
        session.commit()

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("app.operations.plan_payouts.due_pages", closed_behind)
        first = plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)
    assert (first.new, first.released, reservation.bonuses) == (0, 0, usd("0.24"))

    then = plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)

    assert (then.new, then.approved, then.released) == (1, 1, 1)


def test_above_the_limit_it_waits_for_people(session: Session, clock: FixedClock) -> None:
    owed(session, 1)

    done = plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=usd("0.29"))

    assert done.approved == 0
    assert session.scalars(select(Payout.state)).one() is PayoutState.PLANNED


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_a_kill_between_pages_loses_nothing(
    session_factory: sessionmaker[Session], clock: FixedClock, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(planning, "PAGE", 2)
    with session_factory() as session:
        owed(session, 5)
    for number in (1, 2):
        with session_factory() as session, killed_at(session, moment, number), pytest.raises(Killed):
            plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)

    with session_factory() as session:
        plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)
        assert session.scalar(select(func.count()).select_from(Payout)) == 5


def test_examples_that_earn_nothing_cost_no_question_each(session: Session, clock: FixedClock) -> None:
    owed(session, 1)
    plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)
    statements: list[str] = []
    event.listen(session.get_bind(), "before_cursor_execute", lambda *given: statements.append(given[2]))

    def asked() -> int:
        statements.clear()
        plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=None)
        return len(statements)

    few = asked()
    batch = factories.make_batch(session, bonus=usd("0.30"), round=session.scalars(select(Payout)).one().round)
    for _ in range(20):
        fooling_example(session, batch=batch)
    session.commit()
    asked()

    assert asked() == few
