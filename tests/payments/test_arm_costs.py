"""What the texts of each arm cost: their writers, and the readers' part that fell to them."""

from __future__ import annotations

from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.models import ArmAssignment, ArmPlan, Example, Round
from hits.money import usd
from hits.states import HitKind
from payments.arm_costs import ArmCost, arm_costs
from payments.ledger import record_reward, reverse
from tests import factories
from tests.payments.builders import assignment_of, verified_example


def drawn(session: Session, round_: Round, *writers: int) -> None:
    plan = ArmPlan(round_id=round_.id, version=1, arms=[], seed=1, created_at=factories.NOON, created_by="ann")
    session.add(plan)
    session.flush()
    for place, worker_id in enumerate(writers):
        session.add(
            ArmAssignment(
                round_id=round_.id,
                worker_id=worker_id,
                plan_id=plan.id,
                place=place,
                arm=f"arm {place}",
                drawn_at=factories.NOON,
            )
        )
    session.flush()


def read_together(session: Session, clock: FixedClock, *examples: Example) -> None:
    """Judge examples in one HIT that costs $0.24 with its fee, all votes counted."""
    batch = factories.make_batch(
        session, round=examples[0].round, kind=HitKind.VALIDATION, reward=usd("0.20"), bonus=usd("0.00")
    )
    assignment = factories.make_assignment(session, hit=factories.make_hit(session, batch=batch))
    for example in examples:
        factories.make_vote(session, example=example, assignment=assignment, counted_at=factories.NOON)
    record_reward(session, assignment, clock.now())


def test_writers_cost_what_they_were_paid_and_a_readers_hit_is_shared_by_its_judgements(
    session: Session, clock: FixedClock
) -> None:
    batch = factories.make_batch(session, reward=usd("0.50"), bonus=usd("0.00"))
    first, second, undrawn = (verified_example(session, batch=batch) for _ in range(3))
    drawn(session, batch.round, first.writer_id, second.writer_id)
    for example in (first, second, undrawn):
        record_reward(session, assignment_of(session, example), clock.now())
    read_together(session, clock, first, second, undrawn)
    read_together(session, clock, first)

    found = arm_costs(session, batch.round)

    # $0.50 and 20 % fee for a text; $0.20 and 20 % for a judging HIT, a third of the first one each.
    assert found == {
        "": ArmCost(usd("0.60"), usd("0.08")),
        "arm 0": ArmCost(usd("0.60"), usd("0.32")),
        "arm 1": ArmCost(usd("0.60"), usd("0.08")),
    }
    assert found["arm 0"].total == usd("0.92")


def test_what_was_reversed_costs_nothing(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, reward=usd("0.50"), bonus=usd("0.00"))
    kept, reversed_ = (verified_example(session, batch=batch) for _ in range(2))
    drawn(session, batch.round, kept.writer_id, reversed_.writer_id)
    record_reward(session, assignment_of(session, kept), clock.now())
    booked = record_reward(session, assignment_of(session, reversed_), clock.now())
    reverse(session, booked.key, reason="It was booked twice.", now=clock.now())

    assert arm_costs(session, batch.round) == {"arm 0": ArmCost(usd("0.60"), usd("0.00"))}


def test_a_round_without_payments_costs_nothing(session: Session) -> None:
    assert arm_costs(session, factories.make_round(session)) == {}
