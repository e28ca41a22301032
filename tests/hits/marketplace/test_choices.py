"""Choices of docs/marketplace-choices.md that belong to no module in particular."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question, refused


def test_a_returned_assignments_id_is_not_given_to_the_next_worker(market: Market) -> None:
    hit_id, first = market.create_hit(), market.worker()
    returned = market.accepted(hit_id, first)
    market.engine.return_assignment(first, returned)

    again = [market.accepted(hit_id), returned]

    assert len(set(again)) == 2


def test_the_review_status_of_a_hit_is_never_another(market: Market) -> None:
    hit_id = market.create_hit()
    market.client.approve_assignment(AssignmentId=market.submitted(hit_id))
    market.client.update_hit_review_status(HITId=hit_id)

    assert (market.hit(hit_id)["HITStatus"], market.hit(hit_id)["HITReviewStatus"]) == ("Reviewing", "NotReviewed")


def test_a_bonus_can_be_paid_years_after_the_work(market: Market) -> None:
    assignment_id = market.submitted(market.create_hit())
    worker_id = market.worker_of(assignment_id)
    market.clock.advance(days=800)

    market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount="1.00", Reason="Late thanks")

    assert market.client.list_bonus_payments(AssignmentId=assignment_id)["NumResults"] == 1


@pytest.mark.parametrize("again", [False, True], ids=["stays inactive", "is active again"])
def test_no_new_hits_of_a_type_that_requires_an_inactive_qualification(market: Market, again: bool) -> None:
    kind = market.client.create_qualification_type(Name="n", Description="d", QualificationTypeStatus="Active")
    type_id = kind["QualificationType"]["QualificationTypeId"]
    made = market.client.create_hit_type(
        **HIT_PROPERTIES, QualificationRequirements=[{"QualificationTypeId": type_id, "Comparator": "Exists"}]
    )
    market.client.update_qualification_type(QualificationTypeId=type_id, QualificationTypeStatus="Inactive")
    wanted = {"HITTypeId": made["HITTypeId"], "LifetimeInSeconds": 60, "Question": external_question()}
    with refused("RequestError", "InvalidQualificationTypeState"):
        market.client.create_hit_with_hit_type(**wanted)  # type: ignore[arg-type]
    if again:
        market.client.update_qualification_type(QualificationTypeId=type_id, QualificationTypeStatus="Active")

        assert market.client.create_hit_with_hit_type(**wanted)["HIT"]["HITStatus"] == "Assignable"  # type: ignore[arg-type]


def test_a_preview_names_neither_worker_nor_where_to_submit(market: Market) -> None:
    view = market.engine.preview(market.worker(), market.create_hit())

    query = parse_qs(urlsplit(view.frame_url or "").query)
    assert query["assignmentId"] == ["ASSIGNMENT_ID_NOT_AVAILABLE"]
    assert query["hitId"] == [view.hit_id]
    assert not {"workerId", "turkSubmitTo"} & set(query)
