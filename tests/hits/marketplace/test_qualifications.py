"""Qualification types and grants through boto3."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hits.marketplace.forms_for_tests import KEY, TEST, question_form
from tests.hits.marketplace.market import Market, refused

VALIDATOR = {"Name": "dynahit validator", "Description": "May check statements.", "QualificationTypeStatus": "Active"}

OVERVIEW = question_form("<Overview><Text>Read this.</Text></Overview>")


def create(market: Market, **properties: Any) -> str:
    answer = market.client.create_qualification_type(**{**VALIDATOR, **properties})
    return answer["QualificationType"]["QualificationTypeId"]


def test_a_type_is_created_and_shown(market: Market) -> None:
    made = market.client.create_qualification_type(
        **VALIDATOR, Keywords="check", RetryDelayInSeconds=60, AutoGranted=True, AutoGrantedValue=7
    )["QualificationType"]

    shown = market.client.get_qualification_type(QualificationTypeId=made["QualificationTypeId"])["QualificationType"]

    assert shown == made
    assert shown["Name"] == "dynahit validator"
    assert shown["IsRequestable"]
    assert (shown["Keywords"], shown["RetryDelayInSeconds"], shown["AutoGrantedValue"]) == ("check", 60, 7)
    assert shown["CreationTime"] == market.clock.now()


def test_a_name_is_unique_per_requester(market: Market) -> None:
    create(market)

    with refused(
        "RequestError",
        "QualificationTypeAlreadyExists",
        says="You have already created a QualificationType with this name. A QualificationType's name must be unique "
        "among all of the QualificationTypes created by the same user. (",
    ):
        create(market, Description="another")
    other = market.client_for(market.other_requester())
    assert other.create_qualification_type(**VALIDATOR)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("properties", "type", "code"),
    [
        ({"Test": "<QuestionForm/>", "TestDurationInSeconds": 60}, "ParameterValidationError", None),
        ({"Test": TEST}, "ParameterValidationError", None),
        ({"Test": TEST, "TestDurationInSeconds": 60, "AutoGranted": True}, "ParameterValidationError", None),
        ({"Test": TEST, "TestDurationInSeconds": 60, "AnswerKey": "<AnswerKey/>"}, "ParameterValidationError", None),
        ({"Test": OVERVIEW, "TestDurationInSeconds": 60}, "ParameterValidationError", None),
        ({"Test": TEST, "TestDurationInSeconds": 0}, "RequestError", "ParameterOutOfRange"),
        ({"Test": "x" * 65536, "TestDurationInSeconds": 60}, "RequestError", "ParameterOutOfRange"),
        ({"AnswerKey": KEY}, "ParameterValidationError", None),
        ({"TestDurationInSeconds": 60}, "ParameterValidationError", None),
        ({"AutoGrantedValue": 3}, "ParameterValidationError", None),
        ({"QualificationTypeStatus": "Sleeping"}, "ValidationException", None),
        ({"Name": "n" * 201}, "RequestError", "ParameterOutOfRange"),
        ({"Description": "d" * 2001}, "RequestError", "ParameterOutOfRange"),
        ({"RetryDelayInSeconds": -1}, "RequestError", "ParameterOutOfRange"),
    ],
)
def test_types_that_cannot_be(market: Market, properties: dict[str, Any], type: str, code: str | None) -> None:
    with refused(type, code):
        create(market, **properties)


def test_update_changes_what_is_given(market: Market) -> None:
    type_id = create(market, Keywords="kept")

    market.client.update_qualification_type(
        QualificationTypeId=type_id, Description="New words.", QualificationTypeStatus="Inactive", AutoGranted=True
    )

    shown = market.client.get_qualification_type(QualificationTypeId=type_id)["QualificationType"]
    assert (shown["Description"], shown["QualificationTypeStatus"]) == ("New words.", "Inactive")
    assert (shown["Keywords"], shown["AutoGrantedValue"]) == ("kept", 1)


def test_tests_are_shown_and_checked_when_they_are_given(market: Market) -> None:
    plain, type_id = create(market), create(market, Name="t", Test=TEST, TestDurationInSeconds=60, AnswerKey=KEY)
    other = market.client_for(market.other_requester())

    shown = market.client.get_qualification_type(QualificationTypeId=type_id)["QualificationType"]
    assert (shown["Test"], shown["TestDurationInSeconds"], shown["AnswerKey"]) == (TEST, 60, KEY)
    assert "AnswerKey" not in other.get_qualification_type(QualificationTypeId=type_id)["QualificationType"]
    listed = other.list_qualification_types(MustBeRequestable=True)["QualificationTypes"]
    assert not any("AnswerKey" in item for item in listed)

    def update(**changes: Any) -> Any:
        return market.client.update_qualification_type(QualificationTypeId=type_id, **changes)["QualificationType"]

    assert update(TestDurationInSeconds=90)["TestDurationInSeconds"] == 90
    for changes in ({"AutoGranted": True}, {"Test": TEST}, {"AnswerKey": "<x/>"}, {"AnswerKey": ""}):
        with refused("ParameterValidationError"):
            update(**changes)
    assert update(Description="new")["AnswerKey"] == KEY
    assert "AnswerKey" not in update(Test=TEST, TestDurationInSeconds=30)
    assert update(AnswerKey=KEY)["AnswerKey"] == KEY
    for extra in ({"AnswerKey": KEY}, {"TestDurationInSeconds": 60}):
        with refused("ParameterValidationError", says="need a Test"):
            market.client.update_qualification_type(QualificationTypeId=plain, **extra)  # type: ignore[arg-type]


def test_a_deleted_type_is_gone_and_so_are_hit_types_that_need_it(market: Market) -> None:
    type_id = create(market)
    requirement = {"QualificationTypeId": type_id, "Comparator": "Exists"}
    hit = market.hit(market.create_hit(QualificationRequirements=[requirement]))

    market.client.delete_qualification_type(QualificationTypeId=type_id)

    with refused("RequestError", "QualificationTypeDoesNotExist"):
        market.client.get_qualification_type(QualificationTypeId=type_id)
    with refused("RequestError", "QualificationTypeDoesNotExist"):
        market.create_hit(QualificationRequirements=[requirement])
    with refused("RequestError", "HITTypeDoesNotExist"):
        market.client.create_hit_with_hit_type(
            HITTypeId=hit["HITTypeId"], LifetimeInSeconds=60, Question=hit["Question"]
        )
    assert market.hit(hit["HITId"])["HITStatus"] == "Assignable"
    assert create(market) != type_id


def test_types_are_listed_found_and_paged(market: Market) -> None:
    ids = [create(market, Name=f"type {number:02}") for number in range(22)]
    create(market, Name="100% Wörter_", Description="odd", Keywords="Needle")
    market.client_for(market.other_requester()).create_qualification_type(**VALIDATOR)  # type: ignore[arg-type]

    def names(**filters: Any) -> list[str]:
        pages = market.client.get_paginator("list_qualification_types").paginate(MustBeRequestable=True, **filters)
        return [item["Name"] for page in pages for item in page["QualificationTypes"]]

    assert len(names()) == 24
    assert len(names(MustBeOwnedByCaller=True)) == 23
    assert names(Query="TYPE 07") == ["type 07"]
    assert names(Query="needle") == ["100% Wörter_"]
    assert names(Query="0% w") == ["100% Wörter_"]
    assert names(Query="nothing%") == []
    assert names(Query="dynahit", MustBeOwnedByCaller=True) == []
    assert names(MustBeOwnedByCaller=True)[-1] == "type 00"
    assert len(set(ids)) == 22


def test_a_grant_is_shown_overwritten_and_revoked(market: Market) -> None:
    type_id, worker_id = create(market), market.worker()
    of_worker: Any = {"QualificationTypeId": type_id, "WorkerId": worker_id}
    with refused(
        "RequestError", "QualificationDoesNotExist", says="You requested a Qualification that does not exist. ("
    ):
        market.client.get_qualification_score(**of_worker)

    market.client.associate_qualification_with_worker(**of_worker)
    assert market.client.get_qualification_score(**of_worker)["Qualification"]["IntegerValue"] == 1
    market.clock.advance(hours=1)
    market.client.associate_qualification_with_worker(**of_worker, IntegerValue=-5, SendNotification=False)
    score = market.client.get_qualification_score(**of_worker)["Qualification"]
    assert score == {**of_worker, "IntegerValue": -5, "Status": "Granted", "GrantTime": market.clock.now()}

    market.client.disassociate_qualification_from_worker(**of_worker, Reason="Left the team")
    with refused("RequestError", "InvalidQualificationState", says="operation can be called with a status of: Granted"):
        market.client.get_qualification_score(**of_worker)
    with refused("RequestError", "QualificationDoesNotExist"):
        market.client.disassociate_qualification_from_worker(**of_worker)
    market.client.associate_qualification_with_worker(**of_worker, IntegerValue=2)
    assert market.client.get_qualification_score(**of_worker)["Qualification"]["IntegerValue"] == 2


def test_grants_need_an_own_type_and_a_known_worker(market: Market) -> None:
    type_id, worker_id = create(market), market.worker()
    other = market.client_for(market.other_requester())

    with refused("RequestError", "QualificationTypeDoesNotExist"):
        other.associate_qualification_with_worker(QualificationTypeId=type_id, WorkerId=worker_id)
    with refused("RequestError", "QualificationTypeDoesNotExist"):
        market.client.associate_qualification_with_worker(
            QualificationTypeId="00000000000000000040", WorkerId=worker_id
        )
    with refused("ParameterValidationError", says="is not valid for the parameter WorkerId"):
        market.client.associate_qualification_with_worker(QualificationTypeId=type_id, WorkerId="A1NOBODY")
    with refused("SerializationException"):
        market.client.associate_qualification_with_worker(
            QualificationTypeId=type_id, WorkerId=worker_id, IntegerValue=2**31
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda client, type_id: client.update_qualification_type(QualificationTypeId=type_id, Description="d"),
        lambda client, type_id: client.delete_qualification_type(QualificationTypeId=type_id),
        lambda client, type_id: client.list_workers_with_qualification_type(QualificationTypeId=type_id),
        lambda client, type_id: client.get_qualification_score(QualificationTypeId=type_id, WorkerId="A1"),
        lambda client, type_id: client.disassociate_qualification_from_worker(
            QualificationTypeId=type_id, WorkerId="A1"
        ),
    ],
)
def test_another_requesters_type_does_not_exist(market: Market, call: Any) -> None:
    type_id = create(market)

    with refused("RequestError", "QualificationTypeDoesNotExist", says=f"QualificationType {type_id} does not exist."):
        call(market.client_for(market.other_requester()), type_id)


def test_workers_with_a_type_are_listed_by_status(market: Market) -> None:
    type_id, workers = create(market), [market.worker() for _ in range(12)]
    for worker_id in workers:
        market.client.associate_qualification_with_worker(QualificationTypeId=type_id, WorkerId=worker_id)
    market.client.disassociate_qualification_from_worker(QualificationTypeId=type_id, WorkerId=workers[0])

    def listed(**filters: Any) -> list[str]:
        paginator = market.client.get_paginator("list_workers_with_qualification_type")
        pages = paginator.paginate(QualificationTypeId=type_id, **filters)
        return [item["WorkerId"] for page in pages for item in page["Qualifications"]]

    assert listed() == listed(Status="Granted") == workers[1:]
    assert listed(Status="Revoked") == workers[:1]


def test_system_types_answer(market: Market) -> None:
    shown = market.client.get_qualification_type(QualificationTypeId="000000000000000000L0")["QualificationType"]

    assert shown["Name"] == "Worker_PercentAssignmentsApproved"
    assert not shown["IsRequestable"]
