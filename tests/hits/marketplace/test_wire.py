"""The JSON form: every hostile request gets an answer of the right form, never a 500."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from hits.marketplace import wire
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.model_check import operation_names
from hits.marketplace.operations import OPERATIONS
from tests.hits.marketplace.market import Market


def send(market: Market, operation: str, body: bytes | dict[str, Any], **options: Any) -> tuple[int, dict[str, Any]]:
    status, headers, answer = wire.handle(
        market.engine,
        options.get("method", "POST"),
        {"X-Amz-Target": options.get("target", f"MTurkRequesterServiceV20170117.{operation}")},
        body if isinstance(body, bytes) else json.dumps(body).encode(),
        authenticate=lambda: market.requester_id,
    )
    assert headers["Content-Type"] == "application/x-amz-json-1.1"
    assert headers["x-amzn-RequestId"]
    assert int(headers["Content-Length"]) == len(answer)
    return status, json.loads(answer)


def test_an_answer_carries_epoch_times(market: Market) -> None:
    hit_id = market.create_hit()

    status, answer = send(market, "GetHIT", {"HITId": hit_id})

    assert status == 200
    assert answer["HIT"]["CreationTime"] == market.clock.now().timestamp()


def test_an_empty_result_is_an_empty_object(market: Market) -> None:
    hit_id = market.create_hit()

    assert send(market, "UpdateExpirationForHIT", {"HITId": hit_id, "ExpireAt": 0}) == (200, {})


def test_an_error_has_mturks_form(market: Market) -> None:
    status, answer = send(market, "GetHIT", {"HITId": "3X"})

    milliseconds = round(market.clock.now().timestamp() * 1000)
    assert status == 400
    assert answer == {
        "__type": "RequestError",
        "Message": f"Hit 3X does not exist. ({milliseconds})",
        "TurkErrorCode": "AWS.MechanicalTurk.HITDoesNotExist",
    }


@pytest.mark.parametrize(
    ("body", "type"),
    [
        (b"{", "SerializationException"),
        (b"\xff\xfe", "SerializationException"),
        (b"[]", "SerializationException"),
        (b'"text"', "SerializationException"),
        (b'{"HITId": NaN}', "SerializationException"),
        (b"[" * 100_000, "SerializationException"),
        (b'{"HITId":' * 50_000, "SerializationException"),
        (b'{"HITId": ' + b"9" * 10_000 + b"}", "SerializationException"),
        (b'{"HITId": {"a": 1}}', "SerializationException"),
        (b'{"HITId": 7}', "SerializationException"),
        (b'{"HITId": "\\ud800"}', "SerializationException"),
        (b'{"HITId": "A\\u0000"}', "SerializationException"),
        (b'{"HITId": null}', "ValidationException"),
        (b"{}", "ValidationException"),
        (b"", "ValidationException"),
        (b'{"HITId": "x y"}', "ValidationException"),
        (b'{"HITId": "' + b"A" * 65 + b'"}', "ValidationException"),
        (b" " * (1024 * 1024 + 1), "RequestEntityTooLargeException"),
    ],
)
def test_bad_bodies(market: Market, body: bytes, type: str) -> None:
    status, answer = send(market, "GetHIT", body)

    assert 400 <= status < 500
    assert answer["__type"] == type
    assert len(answer["Message"]) < 1000


@pytest.mark.parametrize("moment", ['"never"', "1e400", "1e18", "-1e18", "true", "[]", '"2026-13-01"'])
def test_times_that_are_none(market: Market, moment: str) -> None:
    hit_id = market.create_hit()

    status, answer = send(market, "UpdateExpirationForHIT", f'{{"HITId":"{hit_id}","ExpireAt":{moment}}}'.encode())

    assert (status, answer["__type"]) == (400, "SerializationException")


def test_unknown_targets_and_methods(market: Market) -> None:
    for target in ("", "GetHIT", "MTurkRequesterServiceV20170117.", "MTurkRequesterServiceV20170117.__init__"):
        status, answer = send(market, "", {}, target=target)
        assert (status, answer["__type"]) == (400, "UnknownOperationException")
    status, answer = send(market, "GetHIT", {}, method="GET")
    assert (status, answer["__type"]) == (405, "UnknownOperationException")


def test_every_operation_of_the_api_is_served(market: Market) -> None:
    assert len(operation_names()) == 39
    assert set(OPERATIONS) == set(operation_names())

    for operation in operation_names():
        status, answer = send(market, operation, {"Unknown": 1})
        assert status in {200, 400}, operation
        assert answer.get("__type") in {None, "ValidationException", "RequestError"}, (operation, answer)
        assert answer.get("TurkErrorCode") != "AWS.MechanicalTurk.OperationNotSupported"


def test_the_operations_are_those_of_the_installed_botocore(market: Market) -> None:
    assert set(market.client.meta.service_model.operation_names) == set(OPERATIONS)


def test_a_refused_signature_is_answered_before_anything_is_looked_at(market: Market) -> None:
    def refuse() -> str:
        raise MarketplaceError("InvalidSignatureException", "No.")

    status, _headers, answer = wire.handle(market.engine, "POST", {}, b"{", authenticate=refuse)

    assert (status, json.loads(answer)) == (400, {"__type": "InvalidSignatureException", "Message": "No."})


def test_a_fault_of_our_own_is_logged_and_told_as_a_service_fault(
    market: Market, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> str:
        raise RuntimeError("the disk is full")

    with caplog.at_level(logging.ERROR):
        status, _headers, answer = wire.handle(market.engine, "POST", {}, b"{}", authenticate=fail)

    content = json.loads(answer)
    assert (status, content["__type"], content["TurkErrorCode"]) == (500, "ServiceFault", "AWS.ServiceUnavailable")
    assert "disk" not in content["Message"]
    assert "the disk is full" in caplog.text
