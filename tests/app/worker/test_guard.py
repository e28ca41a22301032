"""Who is behind a request of a HIT page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flask import Flask, g
from sqlalchemy.orm import Session, sessionmaker

from app.services import services
from app.tokens import Claim, TokenInvalid
from app.worker.guard import claimed_assignment, hit_of, hit_page_guard, token_for
from hits.clock import FixedClock
from hits.errors import NotFound, WrongWorker
from hits.models import Assignment, Hit
from hits.states import HitKind
from tests.factories import make_assignment


@pytest.fixture
def claim(session_factory: sessionmaker[Session], hit: Hit) -> Claim:
    """What a stored assignment of the HIT claims."""
    with session_factory() as session:
        assignment = make_assignment(session, hit=session.get_one(Hit, hit.id))
        session.commit()
        return Claim(assignment.mturk_assignment_id, assignment.worker.mturk_worker_id, hit.reference)


def test_a_post_speaks_for_its_token(app: Flask, claim: Claim, clock: FixedClock) -> None:
    token = app.extensions["dynahit"].tokens.issue(claim, valid_until=clock.now() + timedelta(minutes=1))

    with app.test_request_context("/work/attempts", method="POST", data={"token": token}):
        hit_page_guard()

        assert g.claim == claim
        assert g.limited_assignment == claim.assignment_id
        assert claimed_assignment(HitKind.CREATION).mturk_assignment_id == claim.assignment_id


def test_a_post_without_a_token_in_its_body_speaks_for_nobody(app: Flask, claim: Claim, clock: FixedClock) -> None:
    token = app.extensions["dynahit"].tokens.issue(claim, valid_until=clock.now())
    with app.test_request_context(f"/work/attempts?token={token}", method="POST"), pytest.raises(TokenInvalid):
        hit_page_guard()


@pytest.mark.parametrize("change", [{"assignment_id": "OTHER"}, {"worker_id": "AOTHER"}, {"hit_reference": "other"}])
def test_a_claim_must_fit_the_stored_assignment_in_every_part(app: Flask, claim: Claim, change: dict[str, str]) -> None:
    parts = {"assignment_id": claim.assignment_id, "worker_id": claim.worker_id, "hit_reference": claim.hit_reference}

    with app.test_request_context("/work/attempts", method="POST"):
        g.claim = Claim(**{**parts, **change})
        with pytest.raises(WrongWorker):
            claimed_assignment(HitKind.CREATION)


def test_a_claim_serves_the_pages_of_its_own_kind_only(app: Flask, claim: Claim) -> None:
    with app.test_request_context("/validate/votes", method="POST"):
        g.claim = claim
        with pytest.raises(WrongWorker):
            claimed_assignment(HitKind.VALIDATION)


def test_a_hit_is_found_under_its_own_kind_only(app: Flask, hit: Hit) -> None:
    with app.test_request_context("/"):
        assert hit_of(hit.reference, HitKind.CREATION).id == hit.id
        with pytest.raises(NotFound):
            hit_of(hit.reference, HitKind.VALIDATION)


def test_a_pages_token_stands_for_its_assignment(app: Flask, claim: Claim) -> None:
    with app.test_request_context("/work/attempts", method="POST"):
        g.claim = claim
        assignment = claimed_assignment(HitKind.CREATION)

        assert isinstance(assignment, Assignment)
        assert services().tokens.read(token_for(assignment)) == claim
