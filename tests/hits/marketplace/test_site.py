"""What the worker site shows."""

from __future__ import annotations

import pytest

from hits.marketplace.errors import AlreadyWorkedOn, AssignmentUnknown, HitNotAvailable, HitUnknown
from tests.hits.marketplace.market import Market


def test_a_preview_holds_nothing_and_names_no_worker(market: Market) -> None:
    hit_id, worker_id = market.create_hit(), market.worker()

    view = market.engine.preview(worker_id, hit_id)

    assert view.frame_url == (
        f"http://localhost:8001/hits?batch=1&round=1&assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId={hit_id}"
    )
    assert view == market.engine.preview(None, hit_id)
    assert view.held_assignment_id is None
    assert market.counters(hit_id) == ("Assignable", 1, 0, 0)


def test_previews_that_are_refused(market: Market) -> None:
    hit_id, worker_id = market.create_hit(), market.worker()
    assignment_id = market.accepted(hit_id, worker_id)

    assert market.engine.preview(worker_id, hit_id).held_assignment_id == assignment_id
    with pytest.raises(HitNotAvailable):
        market.engine.preview(market.worker(), hit_id)
    with pytest.raises(HitUnknown):
        market.engine.preview(worker_id, "3NOTHERE")
    market.engine.external_submit(assignment_id, {"a": ["1"]})
    with pytest.raises(AlreadyWorkedOn):
        market.engine.preview(worker_id, hit_id)


def test_held_work_comes_first_deadline_first(market: Market) -> None:
    worker_id = market.worker()
    long, short = (
        market.accepted(market.create_hit(AssignmentDurationInSeconds=seconds), worker_id) for seconds in (900, 60)
    )
    market.submitted(market.create_hit(), worker_id)
    market.accepted(market.create_hit())

    assert [view.assignment_id for view in market.engine.held(worker_id)] == [short, long]


def test_an_assignment_is_shown_to_its_worker_only(market: Market) -> None:
    worker_id = market.worker()
    assignment_id = market.submitted(market.create_hit(), worker_id)

    view = market.engine.assignment(worker_id, assignment_id)

    assert (view.state, view.frame_url) == ("Submitted", None)
    with pytest.raises(AssignmentUnknown):
        market.engine.assignment(market.worker(), assignment_id)
    with pytest.raises(AssignmentUnknown):
        market.engine.assignment(worker_id, "3NOTHERE")
