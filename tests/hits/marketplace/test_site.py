"""What the worker site shows."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from hits.marketplace.errors import AlreadyWorkedOn, AssignmentUnknown, HitNotAvailable, HitUnknown
from hits.marketplace.views import DayEarnings
from tests.hits.marketplace.market import Market


def test_groups_show_what_is_left_for_this_worker(market: Market) -> None:
    first, second, _third = (market.create_hit(MaxAssignments=2) for _ in range(3))
    worker_id = market.worker()
    market.submitted(first, worker_id)
    for _ in range(2):
        market.accepted(second)

    [group] = market.engine.hit_groups(worker_id)

    assert group.available == 1
    assert group.hit_id == _third
    assert group.hit_group_id == market.hit(first)["HITGroupId"]
    assert (group.reward, group.requester_name) == (Decimal("0.30"), "Language Lab")
    assert (group.duration_seconds, group.auto_approval_seconds) == (600, 2_592_000)
    assert group.qualified
    assert group.reasons == ()
    assert group.created_at == market.clock.now()
    [for_another] = market.engine.hit_groups(market.worker())
    assert for_another.available == 2


def test_a_hit_that_a_worker_returned_is_offered_after_the_others(market: Market) -> None:
    first, second = (market.create_hit() for _ in range(2))
    worker_id = market.worker()
    market.engine.return_assignment(worker_id, market.accepted(first, worker_id), "nothing in it for me")

    [group] = market.engine.hit_groups(worker_id)

    assert (group.hit_id, group.available) == (second, 2)
    [for_another] = market.engine.hit_groups(market.worker())
    assert for_another.hit_id == first
    taken = [market.engine.accept_next(worker_id, group.hit_group_id).hit_id for _ in range(2)]
    assert taken == [second, first]


def test_groups_are_sorted_and_searched(market: Market) -> None:
    worker_id = market.worker()
    for title, reward, seconds in (("Cheap", "0.05", 60), ("Rich", "2.00", 900), ("Quick", "0.50", 30)):
        market.clock.advance(seconds=1)
        market.create_hit(Title=title, Reward=reward, AssignmentDurationInSeconds=seconds)

    def titles(**options: str) -> list[str]:
        return [group.title for group in market.engine.hit_groups(worker_id, **options)]  # type: ignore[arg-type]

    assert titles() == ["Quick", "Rich", "Cheap"]
    assert titles(sort="reward") == ["Rich", "Quick", "Cheap"]
    assert titles(sort="time") == ["Quick", "Cheap", "Rich"]
    assert titles(query="rICH") == ["Rich"]
    assert titles(query="language lab") == titles()
    assert titles(query="100%") == []


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


def test_history_and_earnings_agree(market: Market) -> None:
    worker_id = market.worker()
    approved, rejected = (market.submitted(market.create_hit(), worker_id) for _ in range(2))
    market.client.approve_assignment(AssignmentId=approved, RequesterFeedback="Good.")
    market.client.reject_assignment(AssignmentId=rejected, RequesterFeedback="Empty.")
    market.clock.advance(days=1)
    pending = market.submitted(market.create_hit(Reward="0.50"), worker_id)
    market.client.send_bonus(WorkerId=worker_id, AssignmentId=approved, BonusAmount="0.25", Reason="Fooled it")

    history = market.engine.work_history(worker_id)
    earnings = market.engine.earnings(worker_id)

    assert [(entry.assignment_id, entry.state, entry.feedback) for entry in history] == [
        (pending, "Submitted", None),
        (rejected, "Rejected", "Empty."),
        (approved, "Approved", "Good."),
    ]
    assert [bonus.reason for bonus in history[2].bonuses] == ["Fooled it"]
    assert (earnings.approved, earnings.pending, earnings.bonuses) == (
        Decimal("0.30"),
        Decimal("0.50"),
        Decimal("0.25"),
    )
    assert earnings.days == (
        DayEarnings(date(2026, 12, 1), Decimal("0.00"), Decimal("0.25")),
        DayEarnings(date(2026, 11, 30), Decimal("0.30"), Decimal("0.00")),
    )
