"""Creating, showing, listing, extending, expiring and deleting HITs through boto3."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ParamValidationError

from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question, refused

LONG_AGO = datetime(2015, 1, 1, tzinfo=UTC)


def test_create_hit_answers_with_the_full_hit(market: Market) -> None:
    answer = market.client.create_hit(
        **HIT_PROPERTIES,
        LifetimeInSeconds=3600,
        MaxAssignments=3,
        RequesterAnnotation="round-1/context-7",
        Question=external_question(),
    )
    hit = answer["HIT"]

    assert hit == market.hit(hit["HITId"])
    assert hit["Title"] == HIT_PROPERTIES["Title"]
    assert hit["Reward"] == "0.30"
    assert hit["Question"] == external_question()
    assert hit["RequesterAnnotation"] == "round-1/context-7"
    assert hit["HITStatus"] == "Assignable"
    assert hit["HITReviewStatus"] == "NotReviewed"
    assert hit["MaxAssignments"] == hit["NumberOfAssignmentsAvailable"] == 3
    assert hit["AutoApprovalDelayInSeconds"] == 2_592_000
    assert hit["CreationTime"] == market.clock.now()
    assert hit["Expiration"] == market.clock.now() + timedelta(hours=1)
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-amzn-requestid"]
    for name in ("HITId", "HITTypeId", "HITGroupId"):
        assert len(hit[name]) == 30
        assert hit[name].startswith("3")
    assert hit["HITGroupId"] != hit["HITTypeId"]


def test_create_hit_holds_reward_and_fee_of_every_assignment(market: Market) -> None:
    market.create_hit(Reward="0.30", MaxAssignments=5)

    assert market.balance() == ("998.20", "1.80")


def test_create_hit_without_money_creates_nothing(market: Market) -> None:
    with refused("RequestError", "InsufficientFunds", says="insufficient funds in their account"):
        market.create_hit(Reward="900.00", UniqueRequestToken="one")

    assert market.client.list_hits()["NumResults"] == 0
    assert market.balance() == ("1000.00", "0.00")
    # The refused request has not used up its token.
    assert market.create_hit(UniqueRequestToken="one")


def test_a_request_token_makes_one_hit_in_24_hours(market: Market) -> None:
    hit_id = market.create_hit(UniqueRequestToken="launch-7")

    market.clock.advance(hours=23, minutes=59)
    with refused("RequestError", "HitAlreadyExists", says=f'The HIT with ID "{hit_id}" already exists. (') as refusal:
        market.create_hit(UniqueRequestToken="launch-7", Title="Something else")
    assert refusal.message.endswith(f"({round(market.clock.now().timestamp() * 1000)})")

    market.clock.advance(minutes=1)
    assert market.create_hit(UniqueRequestToken="launch-7") != hit_id


def test_request_tokens_are_per_requester_and_operation(market: Market) -> None:
    hit_id = market.create_hit(UniqueRequestToken="same")
    other = market.client_for(market.other_requester())

    other.create_hit(**HIT_PROPERTIES, LifetimeInSeconds=60, Question=external_question(), UniqueRequestToken="same")
    market.client.create_hit_with_hit_type(
        HITTypeId=market.hit(hit_id)["HITTypeId"],
        LifetimeInSeconds=60,
        Question=external_question(),
        UniqueRequestToken="same",
    )

    assert market.client.list_hits()["NumResults"] == 2


def test_create_hit_with_type_takes_its_properties(market: Market) -> None:
    type_id = market.client.create_hit_type(**HIT_PROPERTIES)["HITTypeId"]

    hit = market.client.create_hit_with_hit_type(
        HITTypeId=type_id, LifetimeInSeconds=60, Question=external_question(), UniqueRequestToken="a"
    )["HIT"]

    assert hit["HITTypeId"] == type_id
    assert hit["Title"] == HIT_PROPERTIES["Title"]
    with refused("RequestError", "HitAlreadyExists"):
        market.client.create_hit_with_hit_type(
            HITTypeId=type_id, LifetimeInSeconds=60, Question=external_question(), UniqueRequestToken="a"
        )
    with refused("RequestError", "HITTypeDoesNotExist"):
        market.client.create_hit_with_hit_type(HITTypeId="3NOTHERE", LifetimeInSeconds=60, Question=external_question())


@pytest.mark.parametrize(
    ("properties", "type", "code"),
    [
        ({"Reward": "0.001"}, "ValidationException", None),
        ({"Reward": "-1"}, "ValidationException", None),
        ({"Reward": "1,00"}, "ValidationException", None),
        ({"Reward": "9999999999"}, "RequestError", "ParameterOutOfRange"),
        ({"Title": "t" * 129}, "RequestError", "ParameterOutOfRange"),
        ({"Title": " "}, "RequestError", "InvalidParameterValue"),
        ({"Title": "bell\x07"}, "RequestError", "InvalidParameterValue"),
        ({"Title": "nul\x00"}, "SerializationException", None),
        ({"Description": "d" * 2001}, "RequestError", "ParameterOutOfRange"),
        ({"Keywords": "k" * 1001}, "RequestError", "ParameterOutOfRange"),
        ({"MaxAssignments": 0}, "RequestError", "ParameterOutOfRange"),
        ({"MaxAssignments": 1_000_000_001}, "RequestError", "ParameterOutOfRange"),
        ({"AssignmentDurationInSeconds": 29}, "RequestError", "ParameterOutOfRange"),
        ({"LifetimeInSeconds": 31_536_001}, "RequestError", "ParameterOutOfRange"),
        ({"AutoApprovalDelayInSeconds": 2_592_001}, "RequestError", "ParameterOutOfRange"),
        ({"RequesterAnnotation": "a" * 256}, "RequestError", "ParameterOutOfRange"),
        ({"UniqueRequestToken": "u" * 65}, "ValidationException", None),
        ({"Question": "q" * 70_000}, "RequestError", "ParameterOutOfRange"),
        ({"Question": external_question("é" * 40_000)}, "RequestError", "ParameterOutOfRange"),
        ({"Question": "<nonsense"}, "ParameterValidationError", None),
        ({"HITLayoutId": "3LAYOUT"}, "ParameterValidationError", None),
        ({"HITReviewPolicy": {"PolicyName": "SimplePlurality/2011-09-01"}}, "ParameterValidationError", None),
    ],
)
def test_bad_properties_are_refused_and_change_nothing(
    market: Market, properties: dict[str, Any], type: str, code: str | None
) -> None:
    with refused(type, code):
        market.create_hit(**properties)

    assert market.client.list_hits()["NumResults"] == 0
    assert market.balance() == ("1000.00", "0.00")


def test_a_hit_needs_a_question(market: Market) -> None:
    with refused("RequestError", "MissingParameters", says="needs a Question"):
        market.client.create_hit(**HIT_PROPERTIES, LifetimeInSeconds=60)


def test_boto3_itself_refuses_what_its_model_knows() -> None:
    with pytest.raises(ParamValidationError):
        Market().client.create_hit(Title="only a title")  # type: ignore[call-arg]


def test_get_hit_of_nobody_and_of_somebody_else(market: Market) -> None:
    hit_id = market.create_hit()
    other = market.client_for(market.other_requester())

    with refused("RequestError", "HITDoesNotExist", says="Hit 3NOTHERE does not exist. ("):
        market.client.get_hit(HITId="3NOTHERE")
    with refused("RequestError", "HITDoesNotExist", says=f"Hit {hit_id} does not exist."):
        other.get_hit(HITId=hit_id)
    with refused("ValidationException", says="at 'hitId' failed to satisfy constraint"):
        market.client.get_hit(HITId="lower")


@pytest.mark.parametrize(
    "call",
    [
        lambda client, hit_id: client.get_hit(HITId=hit_id),
        lambda client, hit_id: client.delete_hit(HITId=hit_id),
        lambda client, hit_id: client.list_assignments_for_hit(HITId=hit_id),
        lambda client, hit_id: client.list_bonus_payments(HITId=hit_id),
        lambda client, hit_id: client.update_expiration_for_hit(HITId=hit_id, ExpireAt=LONG_AGO),
        lambda client, hit_id: client.update_hit_review_status(HITId=hit_id),
        lambda client, hit_id: client.create_additional_assignments_for_hit(
            HITId=hit_id, NumberOfAdditionalAssignments=1
        ),
    ],
)
def test_another_requesters_hit_does_not_exist(market: Market, call: Any) -> None:
    hit_id = market.create_hit()
    before = market.hit(hit_id)

    with refused("RequestError", "HITDoesNotExist"):
        call(market.client_for(market.other_requester()), hit_id)

    assert market.hit(hit_id) == before


def test_list_hits_pages_newest_first_without_disposed_ones(market: Market) -> None:
    ids = [market.create_hit(LifetimeInSeconds=30) for _ in range(25)]
    market.clock.advance(seconds=30)
    market.client.delete_hit(HITId=ids[3])
    expected = [hit_id for hit_id in reversed(ids) if hit_id != ids[3]]

    pages = list(market.client.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": 10}))

    assert [hit["HITId"] for page in pages for hit in page["HITs"]] == expected
    # As on MTurk, the last page with rows carries a token, and an empty page without one follows.
    assert [page["NumResults"] for page in pages] == [10, 10, 4, 0]
    assert ["NextToken" in page for page in pages] == [True, True, True, False]
    assert market.client.list_hits()["NumResults"] == 10


def test_list_hits_refuses_sizes_and_tokens_that_cannot_be(market: Market) -> None:
    market.create_hit()
    token = market.client.list_hits()["NextToken"]

    with refused("ValidationException", says="at 'maxResults'"):
        market.client.list_hits(MaxResults=101)
    for bad in ("nonsense", "e30=", "W10=", "WyJMaXN0SElUcyIsIngiXQ==", "é", "WyJMaXN0SElUcyIsMTVdXQ=="):
        with refused("ParameterValidationError", says="is not valid for the parameter NextToken"):
            market.client.list_hits(NextToken=bad)
    with refused("ParameterValidationError"):
        market.client.list_reviewable_hits(NextToken=token)


def test_list_reviewable_hits_by_status_and_type(market: Market) -> None:
    reviewable, reviewing, other_type = (market.create_hit(), market.create_hit(), market.create_hit(Title="Other"))
    market.create_hit(LifetimeInSeconds=7200)
    market.clock.advance(hours=1)
    market.client.update_hit_review_status(HITId=reviewing)

    def listed(**filters: Any) -> set[str]:
        return {hit["HITId"] for hit in market.client.list_reviewable_hits(**filters)["HITs"]}

    assert listed() == {reviewable, other_type}
    assert listed(Status="Reviewing") == {reviewing}
    assert listed(HITTypeId=market.hit(other_type)["HITTypeId"]) == {other_type}
    with refused("RequestError", "HITTypeDoesNotExist"):
        listed(HITTypeId="3NOTHERE")
    with refused("ValidationException", says="enum value set"):
        listed(Status="Assignable")


def test_expiring_a_hit_releases_free_places_only(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=3)
    market.accepted(hit_id)

    market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=LONG_AGO)

    assert market.counters(hit_id) == ("Unassignable", 0, 1, 0)
    assert market.hit(hit_id)["Expiration"] == market.clock.now()
    assert market.balance() == ("999.64", "0.36")


def test_an_expired_hit_can_live_again_if_there_is_money(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=2)
    market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=LONG_AGO)
    assert market.counters(hit_id) == ("Reviewable", 0, 0, 0)

    later = market.clock.now() + timedelta(days=1)
    market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=later)

    assert market.counters(hit_id) == ("Assignable", 2, 0, 0)
    assert market.hit(hit_id)["Expiration"] == later
    assert market.balance() == ("999.28", "0.72")
    market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=market.clock.now())
    market.create_hit(Reward="833.00")
    with refused("RequestError", "InsufficientFunds"):
        market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=later + timedelta(seconds=1))
    assert market.counters(hit_id) == ("Reviewable", 0, 0, 0)


def test_the_same_expiration_twice_is_the_duplicate_that_mturk_made_of_it(market: Market) -> None:
    hit_id = market.create_hit()
    moment = datetime(2021, 7, 14, 20, 26, 6, tzinfo=UTC)
    market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=moment)

    with refused("RequestError", "DuplicateRequest", says=f'"{hit_id}Wed Jul 14 20:26:06 UTC 2021" has already been'):
        market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=moment)

    market.clock.advance(hours=24)
    market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=moment)


def test_an_expiration_more_than_a_year_ahead_is_refused(market: Market) -> None:
    hit_id = market.create_hit()

    with refused("RequestError", "ParameterOutOfRange"):
        market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=datetime(2028, 1, 1, tzinfo=UTC))


def test_additional_assignments_add_places_and_hold_for_them(market: Market) -> None:
    hit_id = market.create_hit()
    market.submitted(hit_id)
    assert market.counters(hit_id) == ("Reviewable", 0, 0, 0)

    market.client.create_additional_assignments_for_hit(
        HITId=hit_id, NumberOfAdditionalAssignments=2, UniqueRequestToken="more"
    )

    assert market.counters(hit_id) == ("Assignable", 2, 0, 0)
    assert market.hit(hit_id)["MaxAssignments"] == 3
    assert market.balance() == ("998.92", "1.08")
    with refused("RequestError", "DuplicateRequest", says='The idempotency token "more" has already been processed.'):
        market.client.create_additional_assignments_for_hit(
            HITId=hit_id, NumberOfAdditionalAssignments=2, UniqueRequestToken="more"
        )


def test_a_small_hit_cannot_become_one_of_ten(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=9)

    with refused("RequestError", "InvalidMaximumAssignmentsIncrease"):
        market.client.create_additional_assignments_for_hit(HITId=hit_id, NumberOfAdditionalAssignments=1)
    large = market.create_hit(MaxAssignments=10)
    market.client.create_additional_assignments_for_hit(HITId=large, NumberOfAdditionalAssignments=5)

    assert market.hit(hit_id)["MaxAssignments"] == 9
    assert market.hit(large)["MaxAssignments"] == 15


def test_additional_assignments_without_money_add_nothing(market: Market) -> None:
    hit_id = market.create_hit(Reward="400.00")

    with refused("RequestError", "InsufficientFunds"):
        market.client.create_additional_assignments_for_hit(
            HITId=hit_id, NumberOfAdditionalAssignments=2, UniqueRequestToken="again"
        )
    assert market.hit(hit_id)["MaxAssignments"] == 1
    market.client.create_additional_assignments_for_hit(
        HITId=hit_id, NumberOfAdditionalAssignments=1, UniqueRequestToken="again"
    )


def test_review_status_goes_to_reviewing_and_back(market: Market) -> None:
    hit_id = market.create_hit()
    with refused("RequestError", "InvalidHITState", says="currently in the state 'Assignable'.  This operation can"):
        market.client.update_hit_review_status(HITId=hit_id)
    market.submitted(hit_id)

    market.client.update_hit_review_status(HITId=hit_id)
    assert market.hit(hit_id)["HITStatus"] == "Reviewing"
    with refused("RequestError", "InvalidHITState"):
        market.client.update_hit_review_status(HITId=hit_id)
    market.client.update_hit_review_status(HITId=hit_id, Revert=True)
    assert market.hit(hit_id)["HITStatus"] == "Reviewable"
    with refused("RequestError", "InvalidHITState"):
        market.client.update_hit_review_status(HITId=hit_id, Revert=True)


def test_a_hit_is_deleted_only_when_all_is_reviewed(market: Market) -> None:
    hit_id = market.create_hit()
    with refused("RequestError", "InvalidHITState", says="a status of: Reviewing, Reviewable"):
        market.client.delete_hit(HITId=hit_id)
    assignment_id = market.submitted(hit_id)
    with refused("RequestError", "InvalidHITState", says="currently in the state 'Reviewable'"):
        market.client.delete_hit(HITId=hit_id)
    market.client.approve_assignment(AssignmentId=assignment_id)

    market.client.delete_hit(HITId=hit_id)

    assert market.counters(hit_id) == ("Disposed", 0, 0, 1)
    with refused("RequestError", "InvalidHITState", says="currently in the state 'Disposed'"):
        market.client.delete_hit(HITId=hit_id)
    with refused("RequestError", "AssignmentDoesNotExist"):
        market.client.get_assignment(AssignmentId=assignment_id)
    with refused("RequestError", "InvalidHITState"):
        market.client.list_assignments_for_hit(HITId=hit_id)
    with refused("RequestError", "InvalidHITState"):
        market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=market.clock.now() + timedelta(days=1))
    with refused("RequestError", "InvalidHITState"):
        market.client.create_additional_assignments_for_hit(HITId=hit_id, NumberOfAdditionalAssignments=1)


def test_a_reviewing_hit_can_be_deleted(market: Market) -> None:
    hit_id = market.create_hit()
    market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=LONG_AGO)
    market.client.update_hit_review_status(HITId=hit_id)

    market.client.delete_hit(HITId=hit_id)

    assert market.hit(hit_id)["HITStatus"] == "Disposed"


def test_the_documented_counters_of_a_hit_with_five_places(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=5)
    assert market.counters(hit_id) == ("Assignable", 5, 0, 0)
    held = [market.accepted(hit_id) for _ in range(3)]
    assert market.counters(hit_id) == ("Assignable", 2, 3, 0)
    held += [market.accepted(hit_id) for _ in range(2)]
    assert market.counters(hit_id) == ("Unassignable", 0, 5, 0)
    for assignment_id in held[:2]:
        market.engine.external_submit(assignment_id, {"a": ["1"]})
    assert market.counters(hit_id) == ("Unassignable", 0, 3, 0)
    market.client.approve_assignment(AssignmentId=held[0])
    market.client.reject_assignment(AssignmentId=held[1], RequesterFeedback="Empty.")
    assert market.counters(hit_id) == ("Unassignable", 0, 3, 2)
    for assignment_id in held[2:]:
        market.engine.external_submit(assignment_id, {"a": ["1"]})
    assert market.counters(hit_id) == ("Reviewable", 0, 0, 2)


def test_a_hit_moves_to_another_type_and_its_hold_follows(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=2)
    other = market.client.create_hit_type(**{**HIT_PROPERTIES, "Title": "Dearer", "Reward": "0.50"})["HITTypeId"]
    assert market.balance() == ("999.28", "0.72")

    market.client.update_hit_type_of_hit(HITId=hit_id, HITTypeId=other)

    hit = market.hit(hit_id)
    assert (hit["HITTypeId"], hit["Title"], hit["Reward"]) == (other, "Dearer", "0.50")
    assert market.balance() == ("998.80", "1.20")
    market.client.approve_assignment(AssignmentId=market.submitted(hit_id))
    assert market.balance() == ("998.80", "0.60")


def test_a_type_is_changed_only_before_the_first_assignment(market: Market) -> None:
    other = market.client.create_hit_type(**{**HIT_PROPERTIES, "Title": "Other"})["HITTypeId"]
    returned, disposed = market.create_hit(), market.create_hit()
    worker_id = market.worker()
    market.engine.return_assignment(worker_id, market.accepted(returned, worker_id))
    market.client.update_expiration_for_hit(HITId=disposed, ExpireAt=0)
    market.client.delete_hit(HITId=disposed)

    for hit_id in (returned, disposed):
        with refused("RequestError", "InvalidHITState"):
            market.client.update_hit_type_of_hit(HITId=hit_id, HITTypeId=other)
    with refused("RequestError", "HITDoesNotExist"):
        market.client.update_hit_type_of_hit(HITId="3NONE", HITTypeId=other)
    with refused("RequestError", "HITTypeDoesNotExist"):
        market.client.update_hit_type_of_hit(HITId=market.create_hit(), HITTypeId="3NONE")
    dear = market.client.create_hit_type(**{**HIT_PROPERTIES, "Reward": "5000.00"})["HITTypeId"]
    with refused("RequestError", "InsufficientFunds"):
        market.client.update_hit_type_of_hit(HITId=market.create_hit(), HITTypeId=dear)


def test_hits_are_found_by_the_qualification_they_require(stored_market: Market) -> None:
    market = stored_market
    type_id = market.client.create_qualification_type(Name="n", Description="d", QualificationTypeStatus="Active")[
        "QualificationType"
    ]["QualificationTypeId"]
    wanted: Any = [{"QualificationTypeId": type_id, "Comparator": "Exists"}]
    adult: Any = [{"QualificationTypeId": "00000000000000000060", "Comparator": "EqualTo", "IntegerValues": [1]}]
    market.create_hit()
    found = [market.create_hit(QualificationRequirements=wanted) for _ in range(5)]
    last = market.create_hit(QualificationRequirements=adult)
    gone = market.create_hit(QualificationRequirements=wanted)
    market.client.update_expiration_for_hit(HITId=gone, ExpireAt=0)
    market.client.delete_hit(HITId=gone)

    pages = list(
        market.client.get_paginator("list_hits_for_qualification_type").paginate(
            QualificationTypeId=type_id, PaginationConfig={"PageSize": 2}
        )
    )

    assert [page["NumResults"] for page in pages] == [2, 2, 1, 0]
    assert [hit["HITId"] for page in pages for hit in page["HITs"]] == found[::-1]
    by_system = market.client.list_hits_for_qualification_type(QualificationTypeId="00000000000000000060")
    assert [hit["HITId"] for hit in by_system["HITs"]] == [last]
    other = market.client_for(market.other_requester())
    assert other.list_hits_for_qualification_type(QualificationTypeId=type_id)["HITs"] == []
    with refused("RequestError", "QualificationTypeDoesNotExist"):
        market.client.list_hits_for_qualification_type(QualificationTypeId="3NONE")
