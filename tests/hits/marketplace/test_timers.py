"""What time alone brings about, on an injected clock."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hits.marketplace import timers
from hits.marketplace.engine import Marketplace
from tests.hits.marketplace.market import Market, refused


def test_a_lifetime_ends_by_itself_at_its_second(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=2, LifetimeInSeconds=60)

    market.clock.advance(seconds=59)
    assert market.counters(hit_id) == ("Assignable", 2, 0, 0)
    market.clock.advance(seconds=1)

    assert market.counters(hit_id) == ("Reviewable", 0, 0, 0)
    assert market.balance() == ("1000.00", "0.00")


def test_an_expired_hit_waits_for_the_work_that_is_under_way(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=3, LifetimeInSeconds=60)
    worker_id = market.worker()
    returned, abandoned = market.accepted(hit_id, worker_id), market.accepted(hit_id)
    market.clock.advance(seconds=60)
    assert market.counters(hit_id) == ("Unassignable", 0, 2, 0)

    market.engine.return_assignment(worker_id, returned)
    assert market.counters(hit_id) == ("Unassignable", 0, 1, 0)
    assert market.balance() == ("999.64", "0.36")
    market.clock.advance(seconds=540)

    assert market.counters(hit_id) == ("Reviewable", 0, 0, 0)
    assert market.balance() == ("1000.00", "0.00")
    with refused("RequestError", "AssignmentDoesNotExist"):
        market.client.get_assignment(AssignmentId=abandoned)


def test_work_that_was_accepted_in_time_can_be_submitted_after_expiry(market: Market) -> None:
    hit_id = market.create_hit(LifetimeInSeconds=60)
    assignment_id = market.accepted(hit_id)

    market.clock.advance(seconds=599)
    market.engine.external_submit(assignment_id, {"a": ["1"]})

    assert market.counters(hit_id) == ("Reviewable", 0, 0, 0)
    assert market.client.list_assignments_for_hit(HITId=hit_id)["NumResults"] == 1


def test_an_abandoned_place_is_free_again(market: Market) -> None:
    hit_id = market.create_hit()
    market.accepted(hit_id)
    assert market.counters(hit_id) == ("Unassignable", 0, 1, 0)

    market.clock.advance(minutes=10)

    assert market.counters(hit_id) == ("Assignable", 1, 0, 0)
    assert market.balance() == ("999.64", "0.36")


def test_submitted_work_approves_itself_after_the_delay(market: Market) -> None:
    hit_id = market.create_hit(AutoApprovalDelayInSeconds=3600)
    assignment_id = market.submitted(hit_id)
    due = market.clock.now() + timedelta(hours=1)

    market.clock.advance(days=2)

    assignment = market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert assignment["AssignmentStatus"] == "Approved"
    assert assignment["ApprovalTime"] == due
    assert market.balance() == ("999.64", "0.00")
    assert market.counters(hit_id) == ("Reviewable", 0, 0, 1)


def test_a_delay_of_nothing_approves_at_submission(market: Market) -> None:
    hit_id = market.create_hit(AutoApprovalDelayInSeconds=0)

    assignment_id = market.submitted(hit_id)

    assert market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["AssignmentStatus"] == "Approved"
    with refused("RequestError", "InvalidAssignmentState", says="a status of: Submitted"):
        market.client.approve_assignment(AssignmentId=assignment_id)


def test_a_reviewed_hit_is_disposed_120_days_after_its_creation(market: Market) -> None:
    hit_id = market.create_hit()
    market.client.approve_assignment(AssignmentId=market.submitted(hit_id))

    market.clock.advance(days=119)
    assert market.hit(hit_id)["HITStatus"] == "Reviewable"
    market.clock.advance(days=1)

    assert market.hit(hit_id)["HITStatus"] == "Disposed"
    assert market.client.list_hits()["NumResults"] == 0


def test_an_old_hit_is_not_disposed_while_somebody_waits_for_pay(market: Market) -> None:
    hit_id = market.create_hit(LifetimeInSeconds=31_536_000)
    market.clock.advance(days=130)
    assert market.hit(hit_id)["HITStatus"] == "Assignable"
    market.submitted(hit_id)
    assert market.hit(hit_id)["HITStatus"] == "Reviewable"

    market.clock.advance(days=30)

    assert market.hit(hit_id)["HITStatus"] == "Disposed"
    assert market.balance() == ("999.64", "0.00")


def test_years_without_a_look_end_as_if_somebody_had_looked_all_the_time(market: Market) -> None:
    watched = Market()

    def play(target: Market, *, looks: bool) -> list[tuple[str, str, str]]:
        hits = [target.create_hit(MaxAssignments=3, LifetimeInSeconds=life) for life in (60, 3600, 86_400)]
        for hit_id in hits:
            target.accepted(hit_id)
            target.submitted(hit_id)
        for _ in range(200):
            target.clock.advance(days=1)
            if looks:
                target.engine.settle()
        assert {target.hit(hit_id)["HITStatus"] for hit_id in hits} == {"Disposed"}
        return sorted(
            (entry.kind, str(entry.on_hold), str(entry.at))
            for entry in target.engine.account_entries(target.requester_id)
        )

    assert play(market, looks=False) == play(watched, looks=True)


def test_more_timers_than_one_batch_are_settled(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "_BATCH", 3)
    hits = [market.create_hit(MaxAssignments=2, LifetimeInSeconds=60 + number) for number in range(8)]
    for hit_id in hits:
        market.accepted(hit_id)
    market.clock.advance(days=1)

    assert market.engine.settle() == 16

    assert market.engine.settle() == 0
    assert market.balance() == ("1000.00", "0.00")


def test_timers_of_every_requester_are_settled(market: Market) -> None:
    other = market.other_requester()
    hit_id = market.client_for(other).create_hit(
        Title="t",
        Description="d",
        Reward="1",
        LifetimeInSeconds=60,
        AssignmentDurationInSeconds=60,
        Question=market.hit(market.create_hit())["Question"],
    )["HIT"]["HITId"]
    market.clock.advance(seconds=60)
    engine: Marketplace = market.engine

    engine.balance(market.requester_id)

    assert engine.balance(other).on_hold == 0
    assert engine.call(other, "GetHIT", {"HITId": hit_id})["HIT"]["HITStatus"] == "Reviewable"
