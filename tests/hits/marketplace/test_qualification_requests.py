"""Asking for qualifications, taking tests, deciding on requests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hits.marketplace.errors import (
    AlreadyQualified,
    AlreadyRequested,
    BlockedByRequester,
    FormIncomplete,
    NoRetry,
    QualificationNotRequestable,
    QualificationRequestUnknown,
    QualificationUnknown,
    RetryTooSoon,
    TestOver,
)
from tests.hits.marketplace.forms_for_tests import KEY, TEST, free_text, question, question_form
from tests.hits.marketplace.market import Market, refused
from tests.hits.marketplace.test_qualifications import create
from tests.hits.marketplace.test_work import all_at_once

WITH_TEST = {"Test": TEST, "TestDurationInSeconds": 600}
RIGHT = {"question-1": ["blue"], "question-2": ["2", "3"]}


def value(market: Market, type_id: str, worker_id: str) -> int:
    return market.client.get_qualification_score(QualificationTypeId=type_id, WorkerId=worker_id)["Qualification"][
        "IntegerValue"
    ]


def waiting(market: Market, **filters: Any) -> list[Any]:
    pages = market.client.get_paginator("list_qualification_requests").paginate(**filters)
    return [request for page in pages for request in page["QualificationRequests"]]


def test_an_automatic_grant_comes_at_once_with_its_value(market: Market) -> None:
    type_id, worker_id = create(market, AutoGranted=True, AutoGrantedValue=7), market.worker()

    request = market.engine.request_qualification(worker_id, type_id)

    assert (request.state, request.value, value(market, type_id, worker_id)) == ("Granted", 7, 7)
    assert waiting(market) == []
    with pytest.raises(AlreadyQualified):
        market.engine.request_qualification(worker_id, type_id)


def test_a_request_waits_and_is_accepted(market: Market) -> None:
    type_id, worker_id = create(market), market.worker()
    assert market.engine.request_qualification(worker_id, type_id).state == "Pending"
    with pytest.raises(AlreadyRequested):
        market.engine.request_qualification(worker_id, type_id)

    (request,) = waiting(market)
    assert request == {
        "QualificationRequestId": request["QualificationRequestId"],
        "QualificationTypeId": type_id,
        "WorkerId": worker_id,
        "SubmitTime": market.clock.now(),
    }
    market.client.accept_qualification_request(QualificationRequestId=request["QualificationRequestId"], IntegerValue=5)

    assert value(market, type_id, worker_id) == 5
    assert waiting(market) == []
    assert "value 5" in market.engine.messages(worker_id).messages[0].text
    for decide in (market.client.accept_qualification_request, market.client.reject_qualification_request):
        with refused("RequestError", "InvalidQualificationRequestState", says="'Granted'"):
            decide(QualificationRequestId=request["QualificationRequestId"])


def test_accepting_grants_1_unless_told(market: Market) -> None:
    type_id, worker_id = create(market), market.worker()
    request = market.engine.request_qualification(worker_id, type_id)

    market.client.accept_qualification_request(QualificationRequestId=request.request_id)

    assert value(market, type_id, worker_id) == 1


def test_a_request_is_declined_with_a_reason(market: Market) -> None:
    type_id, worker_id = create(market), market.worker()
    request = market.engine.request_qualification(worker_id, type_id)

    market.client.reject_qualification_request(QualificationRequestId=request.request_id, Reason="Too few HITs yet.")

    shown = market.engine.qualification_request(worker_id, request.request_id)
    assert (shown.state, shown.reason) == ("Rejected", "Too few HITs yet.")
    assert "Too few HITs yet." in market.engine.messages(worker_id).messages[0].text
    with pytest.raises(NoRetry):
        market.engine.request_qualification(worker_id, type_id)


def test_requests_are_their_owners_only(market: Market) -> None:
    type_id, worker_id = create(market), market.worker()
    request = market.engine.request_qualification(worker_id, type_id)
    other = market.client_for(market.other_requester())

    assert other.list_qualification_requests()["QualificationRequests"] == []
    with refused("RequestError", "QualificationTypeDoesNotExist"):
        other.list_qualification_requests(QualificationTypeId=type_id)
    for decide in (other.accept_qualification_request, other.reject_qualification_request):
        for request_id in (request.request_id, "nonsense"):
            with refused("RequestError", "QualificationRequestDoesNotExist"):
                decide(QualificationRequestId=request_id)
    with pytest.raises(QualificationRequestUnknown):
        market.engine.qualification_request(market.worker(), request.request_id)


def test_requests_are_listed_oldest_first_and_paged(market: Market) -> None:
    first, second = create(market), create(market, Name="second")
    for type_id in (first, second, first, second, first):
        market.engine.request_qualification(market.worker(), type_id)

    pages = list(market.client.get_paginator("list_qualification_requests").paginate(PaginationConfig={"PageSize": 2}))

    assert [page["NumResults"] for page in pages] == [2, 2, 1, 0]
    types = [item["QualificationTypeId"] for page in pages for item in page["QualificationRequests"]]
    assert types == [first, second, first, second, first]
    assert len(waiting(market, QualificationTypeId=second)) == 2


def test_the_delay_before_another_request_counts_from_the_last_one(market: Market) -> None:
    type_id, worker_id = create(market, RetryDelayInSeconds=3600), market.worker()
    request = market.engine.request_qualification(worker_id, type_id)
    market.clock.advance(minutes=59)
    market.client.reject_qualification_request(QualificationRequestId=request.request_id)

    with pytest.raises(RetryTooSoon) as caught:
        market.engine.request_qualification(worker_id, type_id)
    assert caught.value.retry_at == request.requested_at + timedelta(hours=1)
    assert not market.engine.worker_qualification(worker_id, type_id).can_request
    market.clock.advance(minutes=1)
    assert market.engine.worker_qualification(worker_id, type_id).can_request
    assert market.engine.request_qualification(worker_id, type_id).state == "Pending"


def test_what_cannot_be_requested(market: Market) -> None:
    worker_id = market.worker()
    inactive = create(market, QualificationTypeStatus="Inactive")
    for type_id in (inactive, "00000000000000000040"):
        with pytest.raises(QualificationNotRequestable):
            market.engine.request_qualification(worker_id, type_id)
    for type_id in ("3NONE", "\x00", "“"):
        with pytest.raises(QualificationUnknown):
            market.engine.request_qualification(worker_id, type_id)
    active = create(market, Name="active")
    market.client.create_worker_block(WorkerId=worker_id, Reason="x")
    with pytest.raises(BlockedByRequester):
        market.engine.request_qualification(worker_id, active)


def test_a_test_with_a_key_is_scored_and_granted(stored_market: Market) -> None:
    market = stored_market
    type_id, worker_id = create(market, **WITH_TEST, AnswerKey=KEY), market.worker()

    request = market.engine.request_qualification(worker_id, type_id)
    assert request.state == "Testing"
    assert request.form is not None
    assert request.deadline == market.clock.now() + timedelta(minutes=10)
    assert waiting(market) == [], "nothing is to be decided before the test is handed in"
    with pytest.raises(FormIncomplete):
        market.engine.submit_qualification_test(worker_id, request.request_id, {"question-2": ["2"]})
    market.clock.advance(minutes=9)
    assert market.engine.request_qualification(worker_id, type_id) == request, "the test that was begun"

    done = market.engine.submit_qualification_test(worker_id, request.request_id, {**RIGHT, "question-2": ["2"]})

    assert (done.state, done.value, done.form) == ("Granted", 50, None)
    assert value(market, type_id, worker_id) == 50
    with pytest.raises(TestOver, match="already handed in"):
        market.engine.submit_qualification_test(worker_id, request.request_id, RIGHT)
    assert value(market, type_id, worker_id) == 50


def test_a_test_without_a_key_waits_with_its_answers(market: Market) -> None:
    form = question_form(question("why", free_text()))
    type_id, worker_id = create(market, Test=form, TestDurationInSeconds=60), market.worker()
    request = market.engine.request_qualification(worker_id, type_id)
    market.client.update_qualification_type(QualificationTypeId=type_id, Test=TEST, TestDurationInSeconds=5)
    market.clock.advance(seconds=30)

    market.engine.submit_qualification_test(worker_id, request.request_id, {"question-1": ["Because."]})

    (listed,) = waiting(market)
    assert listed["Test"] == form, "the test of the moment of the request"
    assert "<FreeText>Because.</FreeText>" in listed["Answer"]
    assert listed["SubmitTime"] == market.clock.now()


def test_a_test_lapses_at_its_deadline_and_can_be_retaken(market: Market) -> None:
    type_id, worker_id = create(market, **WITH_TEST, AnswerKey=KEY, RetryDelayInSeconds=900), market.worker()
    request = market.engine.request_qualification(worker_id, type_id)
    market.clock.advance(seconds=600)

    with pytest.raises(TestOver, match="time for this test is over"):
        market.engine.submit_qualification_test(worker_id, request.request_id, RIGHT)
    assert market.engine.qualification_request(worker_id, request.request_id).state == "Lapsed"
    with refused("RequestError", "QualificationRequestDoesNotExist"):
        market.client.accept_qualification_request(QualificationRequestId=request.request_id)
    with pytest.raises(RetryTooSoon):
        market.engine.request_qualification(worker_id, type_id)
    market.clock.advance(seconds=300)
    again = market.engine.request_qualification(worker_id, type_id)
    assert market.engine.submit_qualification_test(worker_id, again.request_id, RIGHT).value == 100
    market.clock.advance(seconds=900)
    assert market.engine.request_qualification(worker_id, type_id).state == "Testing", "a better score is possible"


def test_deleting_a_type_rejects_what_waits(market: Market) -> None:
    pending, testing = create(market), create(market, Name="t", **WITH_TEST)
    worker_id = market.worker()
    requests = [market.engine.request_qualification(worker_id, type_id) for type_id in (pending, testing)]

    for type_id in (pending, testing):
        market.client.delete_qualification_type(QualificationTypeId=type_id)

    for request in requests:
        assert market.engine.qualification_request(worker_id, request.request_id).state == "Rejected"
    with pytest.raises(TestOver):
        market.engine.submit_qualification_test(worker_id, requests[1].request_id, RIGHT)
    with pytest.raises(QualificationUnknown):
        market.engine.request_qualification(worker_id, pending)


def test_ten_requests_at_once_are_one(stored_market: Market) -> None:
    type_id, worker_id = create(stored_market), stored_market.worker()

    results = all_at_once([lambda: stored_market.engine.request_qualification(worker_id, type_id)] * 10)

    assert sum(not isinstance(result, Exception) for result in results) == 1
    assert len(waiting(stored_market)) == 1
