"""A person may pay what dynahit would not, and may end a batch; both are safe to repeat."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import select

from app.models import AuditEntry
from app.operations.collect import NEVER_OPENED, collect
from app.operations.launch import launch_batch
from app.operations.review import approve_reviewed, expire_batch, open_hits, plan_review
from hits.errors import NotFound, Refused
from hits.models import HitBatch
from hits.states import AssignmentState
from payments.models import LedgerTransaction, TransactionKind
from tests.app.operations.conftest import CONTEXTS, TERMS
from tests.app.operations.people import Crowd, assignment_row

REWARDS = select(LedgerTransaction).where(LedgerTransaction.kind == TransactionKind.REWARD)


@pytest.fixture
def waiting(crowd: Crowd, hits: list[str]) -> str:
    """An assignment of somebody who never opened our page."""
    assignment_id = crowd.market.accept(crowd.market.person("stranger"), hits[0])
    crowd.market.submit(assignment_id)
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    return assignment_id


def test_a_plan_says_why_and_what_it_costs_and_changes_nothing(crowd: Crowd, waiting: str) -> None:
    plan = plan_review(crowd.session, crowd.clock, waiting)

    assert (plan.reason, plan.reward, plan.fee) == (NEVER_OPENED, Decimal("0.30"), Decimal("0.06"))
    assert assignment_row(crowd.session, waiting).review_reason == NEVER_OPENED


def test_reviewed_work_is_approved_booked_and_audited(crowd: Crowd, waiting: str) -> None:
    done = approve_reviewed(crowd.session, crowd.market.mturk, crowd.clock, waiting, by="finance")

    assert done.approved == 1
    assert assignment_row(crowd.session, waiting).state is AssignmentState.APPROVED
    assert [one.reference for one in crowd.session.scalars(REWARDS)] == [waiting]
    entry = crowd.session.scalars(select(AuditEntry)).one()
    assert (entry.staff_name, entry.subject, entry.detail) == ("finance", waiting, {"reason": NEVER_OPENED})


def test_what_does_not_wait_is_refused(crowd: Crowd, waiting: str) -> None:
    approve_reviewed(crowd.session, crowd.market.mturk, crowd.clock, waiting, by="finance")

    with pytest.raises(Refused, match="it is approved"):
        approve_reviewed(crowd.session, crowd.market.mturk, crowd.clock, waiting, by="finance")
    with pytest.raises(NotFound, match="3NOTHING"):
        plan_review(crowd.session, crowd.clock, "3NOTHING")


def test_an_expired_batch_is_off_the_site_and_its_money_is_free(crowd: Crowd, hits: list[str]) -> None:
    batch = crowd.session.scalars(select(HitBatch)).one()
    batch_id = batch.id
    held = crowd.market.mturk.balance()

    assert open_hits(crowd.session, batch_id) == 3
    assert sorted(expire_batch(crowd.session, crowd.market.mturk, batch_id)) == hits
    assert sorted(expire_batch(crowd.session, crowd.market.mturk, batch_id)) == hits

    assert {hit["HITStatus"] for hit in crowd.market.hits()} == {"Reviewable"}
    assert crowd.market.mturk.balance() == held + 3 * Decimal("0.36")
    assert collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock).closed == 3
    assert open_hits(crowd.session, batch_id) == 0
    # The launch stays made: it is not repeated by running it again.
    again = launch_batch(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, TERMS, CONTEXTS)
    assert again.created == 0


def test_a_batch_of_elsewhere_or_nowhere_is_refused(crowd: Crowd, hits: list[str]) -> None:
    batch = crowd.session.scalars(select(HitBatch)).one()
    batch.endpoint = "https://elsewhere.example.org"
    crowd.session.commit()

    with pytest.raises(Refused, match="elsewhere"):
        expire_batch(crowd.session, crowd.market.mturk, batch.id)
    with pytest.raises(NotFound, match="no batch 99"):
        expire_batch(crowd.session, crowd.market.mturk, 99)
