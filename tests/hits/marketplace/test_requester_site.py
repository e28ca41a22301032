"""What the requester console reads: its own things, in order, by page."""

from __future__ import annotations

import pytest

from hits.marketplace import requester_site
from hits.marketplace.errors import MarketplaceError
from tests.hits.marketplace.market import Market


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requester_site, "PAGE_SIZE", 2)


def test_waiting_work_is_ordered_by_when_it_is_approved_by_itself(stored_market: Market) -> None:
    market, engine = stored_market, stored_market.engine
    slow = market.submitted(market.create_hit(AutoApprovalDelayInSeconds=9000))
    quick = market.submitted(market.create_hit(AutoApprovalDelayInSeconds=60))
    middle = market.submitted(market.create_hit(AutoApprovalDelayInSeconds=600))
    done = market.submitted(market.create_hit())
    market.client.approve_assignment(AssignmentId=done)

    pages = [engine.waiting_assignments(market.requester_id, page=page) for page in (1, 2)]

    assert [one.assignment_id for page in pages for one in page.entries] == [quick, middle, slow]
    assert (pages[0].total, pages[0].pages) == (3, 2)
    assert "It was fine" in (pages[0].entries[0].answer or "")
    only = engine.waiting_assignments(market.requester_id, hit_id=pages[0].entries[1].hit_id)
    assert [one.assignment_id for one in only.entries] == [middle]


def test_hits_by_status_and_type(market: Market) -> None:
    engine, me = market.engine, market.requester_id
    first, second = market.create_hit(), market.create_hit(Title="Another")
    market.submitted(first)
    gone = market.create_hit(LifetimeInSeconds=30)
    market.clock.advance(seconds=31)
    market.client.delete_hit(HITId=gone)

    def ids(**wanted: str) -> list[str]:
        return [one.hit_id for one in engine.requester_hits(me, **wanted).entries]

    assert ids() == [second, first]
    assert ids(status="Reviewable") == [first]
    assert ids(status="Disposed") == [gone]
    assert ids(hit_type_id=market.hit(second)["HITTypeId"]) == [second]
    shown = engine.requester_hit(me, first)
    assert (shown.submitted, shown.completed, shown.available, shown.status) == (1, 0, 0, "Reviewable")


def test_types_say_how_many_hits_they_have_and_where_events_go(market: Market) -> None:
    engine, me = market.engine, market.requester_id
    hits = [market.create_hit() for _ in range(2)]
    kind = market.hit(hits[0])["HITTypeId"]
    market.client.update_notification_settings(
        HITTypeId=kind,
        Notification={
            "Destination": "lab@example.org",
            "Transport": "Email",
            "Version": "2014-08-15",
            "EventTypes": ["HITReviewable"],
        },
    )

    (found,) = engine.hit_types(me).entries

    assert (found.hit_type_id, found.hits, found.transport, found.notifies) == (kind, 2, "Email", True)
    assert found.event_types == ("HITReviewable",)
    assert engine.hit_type(me, kind) == found


def test_lines_of_the_account_newest_first(market: Market) -> None:
    hit_id = market.create_hit()

    lines = market.engine.account_lines(market.requester_id)

    assert [one.kind for one in lines.entries] == ["hold", "deposit"]
    assert lines.entries[0].hit_id == hit_id
    assert market.engine.account_lines(market.requester_id, kind="deposit").total == 1


def test_holders_of_a_qualification(market: Market) -> None:
    made = market.client.create_qualification_type(Name="Fluent", Description="d", QualificationTypeStatus="Active")[
        "QualificationType"
    ]["QualificationTypeId"]
    workers = [market.worker() for _ in range(3)]
    for value, worker_id in enumerate(workers):
        market.clock.advance(seconds=1)
        market.client.associate_qualification_with_worker(
            QualificationTypeId=made, WorkerId=worker_id, IntegerValue=value
        )
    market.client.disassociate_qualification_from_worker(QualificationTypeId=made, WorkerId=workers[2])

    found = market.engine.qualification_holders(market.requester_id, made)

    assert [(one.worker_id, one.value, one.status) for one in found.entries] == [
        (workers[2], 2, "Revoked"),
        (workers[1], 1, "Granted"),
    ]
    assert found.total == 3


def test_another_requesters_things_do_not_exist(market: Market) -> None:
    engine, other = market.engine, market.other_requester()
    hit_id = market.create_hit()
    market.submitted(hit_id)
    kind = market.hit(hit_id)["HITTypeId"]
    made = market.client.create_qualification_type(Name="Fluent", Description="d", QualificationTypeStatus="Active")[
        "QualificationType"
    ]["QualificationTypeId"]

    assert engine.requester_hits(other).total == 0
    assert engine.hit_types(other).total == 0
    assert engine.waiting_assignments(other).total == 0
    assert engine.waiting_assignments(other, hit_id=hit_id).total == 0
    for call in (
        lambda: engine.requester_hit(other, hit_id),
        lambda: engine.hit_type(other, kind),
        lambda: engine.qualification_holders(other, made),
    ):
        with pytest.raises(MarketplaceError, match=r"does not exist|DoesNotExist"):
            call()
