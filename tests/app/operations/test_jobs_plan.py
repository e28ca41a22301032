"""The plan of a pass names what the pass then does and pays, and changes nothing."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from sqlalchemy import select

from app.operations.jobs_pass import jobs_pass
from app.operations.jobs_plan import JobsPlan, plan_jobs
from hits.models import Assignment, Example, Hit, Round
from tests.app.operations.people import Crowd


def planned(crowd: Crowd) -> JobsPlan:
    return plan_jobs(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)


def test_it_names_the_approvals_and_the_work_that_waits_for_a_person(crowd: Crowd, hits: list[str]) -> None:
    crowd.write(crowd.market.person("writer0"), hits[0], {"A treat, cold soup.": True})
    crowd.market.submit(crowd.market.accept(crowd.market.person("stranger"), hits[1]))
    before = [row.state for row in crowd.session.scalars(select(Assignment))]
    crowd.session.commit()

    plan = planned(crowd)

    assert (plan.approvals, plan.approval_cost, plan.to_review) == (1, Decimal("0.36"), 1)
    assert (plan.validation_hits, plan.validation_cost) == (0, Decimal("0.00"))
    assert [row.state for row in crowd.session.scalars(select(Assignment))] == before
    assert crowd.session.scalars(select(Example)).all() == []


def test_it_names_the_validation_hits_and_what_they_cost(crowd: Crowd, hits: list[str]) -> None:
    crowd.write(crowd.market.person("writer0"), hits[0], {"A treat, cold soup.": True})
    jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, open_validation=False)
    crowd.clock.advance(timedelta(minutes=2))
    there = len(crowd.session.scalars(select(Hit)).all())
    crowd.session.commit()

    plan = planned(crowd)

    assert plan.approvals == 0
    assert (plan.validation_hits, plan.validation_places, plan.validation_cost) == (1, 2, Decimal("0.60"))
    assert len(crowd.session.scalars(select(Hit)).all()) == there
    crowd.session.commit()
    jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    assert crowd.market.mturk.balance() == plan.balance - plan.validation_cost


def test_it_names_what_readers_can_earn_besides(crowd: Crowd, hits: list[str]) -> None:
    crowd.write(crowd.market.person("writer0"), hits[0], {"A treat, cold soup.": True})
    jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, open_validation=False)
    crowd.session.scalars(select(Round)).one().gold_items = 1
    crowd.session.commit()
    bonuses = {"validation_bonus": Decimal("0.05"), "gold_bonus": Decimal("0.20")}
    crowd.settings = crowd.settings.model_copy(update=bonuses)
    crowd.clock.advance(timedelta(minutes=2))

    plan = planned(crowd)

    # Two places: $0.05 and $0.01 for judging all, $0.20 and $0.04 for gold items.
    assert (plan.validation_cost, plan.validation_bonuses) == (Decimal("0.60"), Decimal("0.60"))
