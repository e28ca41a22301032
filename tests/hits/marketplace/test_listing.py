"""The worker's list: what is in it, in which order, on which page."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hits.marketplace.errors import HitNotAvailable, HitUnknown, WorkerUnknown
from tests.hits.marketplace.market import Market


def test_groups_show_what_is_left_for_this_worker(market: Market) -> None:
    first, second, _third = (market.create_hit(MaxAssignments=2) for _ in range(3))
    worker_id = market.worker()
    market.submitted(first, worker_id)
    for _ in range(2):
        market.accepted(second)

    [group] = market.engine.hit_groups(worker_id).groups

    assert group.available == 1
    assert group.hit_id == _third
    assert group.hit_group_id == market.hit(first)["HITGroupId"]
    assert (group.reward, group.requester_name) == (Decimal("0.30"), "Language Lab")
    assert (group.duration_seconds, group.auto_approval_seconds) == (600, 2_592_000)
    assert group.qualified
    assert group.reasons == ()
    assert group.created_at == market.clock.now()
    [for_another] = market.engine.hit_groups(market.worker()).groups
    assert for_another.available == 2


def test_a_hit_that_a_worker_returned_is_offered_after_the_others(market: Market) -> None:
    first, second = (market.create_hit() for _ in range(2))
    worker_id = market.worker()
    market.engine.return_assignment(worker_id, market.accepted(first, worker_id), "nothing in it for me")

    [group] = market.engine.hit_groups(worker_id).groups

    assert (group.hit_id, group.available) == (second, 2)
    [for_another] = market.engine.hit_groups(market.worker()).groups
    assert for_another.hit_id == first
    taken = [market.engine.accept_next(worker_id, group.hit_group_id).hit_id for _ in range(2)]
    assert taken == [second, first]


def test_groups_are_sorted_and_searched(market: Market) -> None:
    worker_id = market.worker()
    for title, reward, seconds in (("Cheap", "0.05", 60), ("Rich", "2.00", 900), ("Quick", "0.50", 30)):
        market.clock.advance(seconds=1)
        market.create_hit(Title=title, Reward=reward, AssignmentDurationInSeconds=seconds)

    def titles(**options: str) -> list[str]:
        return [group.title for group in market.engine.hit_groups(worker_id, **options).groups]  # type: ignore[arg-type]

    assert titles() == ["Quick", "Rich", "Cheap"]
    assert titles(sort="reward") == ["Rich", "Quick", "Cheap"]
    assert titles(sort="time") == ["Quick", "Cheap", "Rich"]
    assert titles(query="rICH") == ["Rich"]
    assert titles(query="language lab") == titles()
    assert titles(query="100%") == []


def test_groups_come_in_pages(market: Market) -> None:
    worker_id = market.worker()
    for number in range(5):
        market.create_hit(Title=f"Kind {number}", Reward=f"0.0{number + 1}")

    pages = [market.engine.hit_groups(worker_id, sort="reward", page=page, page_size=2) for page in (1, 2, 3)]

    assert [[group.title for group in page.groups] for page in pages] == [
        ["Kind 4", "Kind 3"],
        ["Kind 2", "Kind 1"],
        ["Kind 0"],
    ]
    assert [(page.page, page.pages, page.total) for page in pages] == [(1, 3, 5), (2, 3, 5), (3, 3, 5)]
    assert market.engine.hit_groups(worker_id, sort="reward", page=9, page_size=2) == pages[2]
    assert market.engine.hit_groups(worker_id, query="Kind 3", page=2, page_size=2).total == 1


def test_groups_with_most_hits_left_can_come_first(market: Market) -> None:
    for title, count in (("Few", 1), ("Many", 3), ("Some", 2)):
        for _ in range(count):
            market.create_hit(Title=title)

    groups = market.engine.hit_groups(market.worker(), sort="most").groups

    assert [(group.title, group.available) for group in groups] == [("Many", 3), ("Some", 2), ("Few", 1)]


def test_groups_that_a_worker_does_not_qualify_for_can_be_left_out(market: Market) -> None:
    masters = {"QualificationTypeId": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "Comparator": "Exists"}
    market.create_hit(Title="For masters", QualificationRequirements=[masters])
    market.create_hit(Title="For all")

    def titles(worker_id: str) -> set[str]:
        return {group.title for group in market.engine.hit_groups(worker_id, qualified_only=True).groups}

    assert titles(market.worker()) == {"For all"}
    assert titles(market.worker(is_master=True)) == {"For all", "For masters"}


def test_a_wage_is_measured_once_three_workers_have_handed_in_five_times(market: Market) -> None:
    looking, *workers = (market.worker() for _ in range(4))
    market.create_hit(Title="Never done", Reward="9.00")
    hit_ids = [market.create_hit(Reward="0.10") for _ in range(3)]
    market.create_hit(Reward="0.10", MaxAssignments=9)

    def wages() -> list[Decimal | None]:
        return [group.hourly_wage for group in market.engine.hit_groups(looking, sort="wage").groups]

    def work(worker_id: str, hit_id: str, seconds: int) -> None:
        assignment_id = market.accepted(hit_id, worker_id)
        market.clock.advance(seconds=seconds)
        market.engine.external_submit(assignment_id, {"a": ["1"]})

    many = market.engine.hit_groups(looking, query="Fool").groups[0].hit_group_id
    for hit_id, seconds in zip(hit_ids, (10, 60, 500), strict=True):
        work(workers[0], hit_id, seconds)
    last = market.engine.hit_of_group(looking, many)
    work(workers[1], last, 40)
    assert wages() == [None, None]
    work(workers[2], last, 30)

    # The median of 10, 60, 500, 40 and 30 seconds for ten cents.
    assert wages() == [Decimal("9.00"), None]
    assert market.engine.preview(looking, last).hourly_wage == Decimal("9.00")


def test_a_group_leads_to_a_hit_that_is_open(market: Market) -> None:
    first, second = (market.create_hit() for _ in range(2))
    hit, worker_id = market.hit(first), market.worker()
    for asked in (hit["HITGroupId"], hit["HITTypeId"]):
        assert market.engine.hit_of_group(worker_id, asked) == first
        assert market.engine.hit_of_group(None, asked) == first

    market.engine.return_assignment(worker_id, market.accepted(first, worker_id))
    assert market.engine.hit_of_group(worker_id, hit["HITGroupId"]) == second
    market.submitted(second, worker_id)
    assert market.engine.hit_of_group(worker_id, hit["HITGroupId"]) == first
    market.submitted(first, worker_id)

    for asked_by in (worker_id, None):
        with pytest.raises(HitNotAvailable):
            market.engine.hit_of_group(asked_by, hit["HITGroupId"])
    with pytest.raises(HitUnknown):
        market.engine.hit_of_group(worker_id, "3NOTHERE")
    with pytest.raises(WorkerUnknown):
        market.engine.hit_of_group("ANOTHERE", hit["HITGroupId"])
