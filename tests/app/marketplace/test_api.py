"""The Requester API over real HTTP with an unmodified boto3 client."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError
from flask import Flask

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace.database import upgrade
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from tests.app.marketplace.conftest import (
    Account,
    Visitor,
    accepted,
    hit_params,
    mturk_client,
    new_worker,
    question,
    serving,
)


@pytest.fixture
def address(app: Flask) -> Iterator[str]:
    with serving(app) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def mturk(address: str, account: Account) -> Any:
    return mturk_client(address, account.access_key_id, account.secret)


def test_a_requester_and_a_worker_go_through_the_whole_of_a_hit(database_url: str, settings: Settings) -> None:
    upgrade(database_url)
    engine = Marketplace(database_url, settings=MarketplaceSettings.for_tests())
    app = create_app(settings, marketplace=engine)
    requester = engine.create_requester("Lab")
    engine.top_up(requester.requester_id, Decimal("10.00"), "seed")
    key = engine.create_access_key(requester.requester_id)
    with serving(app) as server:
        mturk = mturk_client(f"http://127.0.0.1:{server.server_port}", key.access_key_id, key.secret)
        type_id = mturk.create_hit_type(
            Title="Write", Description="Write one", Reward="0.30", AssignmentDurationInSeconds=600, Keywords="a, b"
        )["HITTypeId"]
        hit = mturk.create_hit_with_hit_type(
            HITTypeId=type_id, MaxAssignments=1, LifetimeInSeconds=3600, Question=question(), UniqueRequestToken="one"
        )["HIT"]
        worker = new_worker(app, engine, "ada")
        assignment_id = accepted(worker, hit["HITId"])
        worker.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, "text": "fine"})

        (assignment,) = mturk.list_assignments_for_hit(HITId=hit["HITId"])["Assignments"]
        assert assignment["AssignmentId"] == assignment_id
        assert assignment["AssignmentStatus"] == "Submitted"
        assert "<FreeText>fine</FreeText>" in assignment["Answer"]
        mturk.approve_assignment(AssignmentId=assignment_id, RequesterFeedback="Good")
        mturk.send_bonus(
            WorkerId=assignment["WorkerId"],
            AssignmentId=assignment_id,
            BonusAmount="0.30",
            Reason="Verified",
            UniqueRequestToken="bonus-1",
        )
        (bonus,) = mturk.list_bonus_payments(AssignmentId=assignment_id)["BonusPayments"]
        balance = mturk.get_account_balance()["AvailableBalance"]

    assert (bonus["BonusAmount"], bonus["Reason"]) == ("0.30", "Verified")
    assert Decimal(balance) == engine.balance(requester.requester_id).available
    assert engine.balance(requester.requester_id).on_hold == 0
    earned = engine.earnings(assignment["WorkerId"])
    assert (earned.approved, earned.bonuses) == (Decimal("0.30"), Decimal("0.30"))
    engine.close()


def test_a_wrong_secret_is_refused_and_changes_nothing(address: str, account: Account, engine: Marketplace) -> None:
    forged = mturk_client(address, account.access_key_id, "wrong" * 8)

    with pytest.raises(ClientError) as caught:
        forged.create_hit(**hit_params())

    assert caught.value.response["Error"]["Code"] == "InvalidSignatureException"
    assert engine.call(account.requester_id, "ListHITs", {})["NumResults"] == 0


def test_a_revoked_key_is_refused_at_once(mturk: Any, account: Account, engine: Marketplace) -> None:
    mturk.get_account_balance()

    engine.revoke_access_key(account.requester_id, account.access_key_id)

    with pytest.raises(ClientError) as caught:
        mturk.get_account_balance()
    assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"


def test_an_error_carries_its_turk_error_code(mturk: Any) -> None:
    with pytest.raises(ClientError) as caught:
        mturk.get_hit(HITId="3NOSUCHHIT")

    assert caught.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.HITDoesNotExist"


def test_another_requesters_hit_is_not_found(address: str, engine: Marketplace, hit: dict[str, Any]) -> None:
    other = engine.create_requester("Other")
    key = engine.create_access_key(other.requester_id)

    with pytest.raises(ClientError) as caught:
        mturk_client(address, key.access_key_id, key.secret).get_hit(HITId=hit["HITId"])

    assert caught.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.HITDoesNotExist"


@pytest.mark.parametrize("path", ["/", "/any/path", "/hits"])
def test_an_unsigned_request_gets_awss_own_error_form(address: str, path: str) -> None:
    answer = requests.post(
        address + path,
        data=b"{}",
        headers={"X-Amz-Target": "MTurkRequesterServiceV20170117.GetAccountBalance"},
        timeout=10,
    )

    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/x-amz-json-1.1"
    assert answer.json()["__type"] == "MissingAuthenticationTokenException"
    assert "Set-Cookie" not in answer.headers


def test_a_post_to_the_root_without_a_target_is_the_apis_affair(address: str) -> None:
    answer = requests.post(address + "/", data={"a": "1"}, timeout=10)

    assert answer.status_code == 400
    assert answer.json()["__type"] == "MissingAuthenticationTokenException"


def test_a_signed_in_workers_cookie_opens_nothing_of_the_api(worker: Visitor) -> None:
    response = worker.client.post(
        "/", data=b"{}", headers={"X-Amz-Target": "MTurkRequesterServiceV20170117.GetAccountBalance"}
    )

    assert response.status_code == 400


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 5_000_000])
def test_a_body_over_a_mebibyte_is_refused_in_the_apis_form(app: Flask, size: int) -> None:
    answer = app.test_client().post("/", data=b"x" * size)

    assert answer.status_code == 413
    assert answer.json is None
    assert "RequestEntityTooLargeException" in answer.text


def test_a_question_of_70_kilobytes_gets_an_error_answer(mturk: Any) -> None:
    with pytest.raises(ClientError) as caught:
        mturk.create_hit(**hit_params(Question=question("http://localhost:8001/?x=" + "y" * 70_000)))

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
