"""What no honest client sends, over real HTTP: an error in MTurk's form or a plain 4xx, never a failure of ours."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from flask import Flask

from tests.app.marketplace.conftest import Account, hit_params, question, serving

TARGET = "MTurkRequesterServiceV20170117."
BOMB = (
    '<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]>'
    '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/'
    'ExternalQuestion.xsd"><ExternalURL>https://example.org/&c;</ExternalURL><FrameHeight>0</FrameHeight>'
    "</ExternalQuestion>"
)
OUTSIDE = BOMB.replace('<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">', '<!ENTITY c SYSTEM "file:///etc/passwd">')
ATTRIBUTES = question().replace("<FrameHeight>", "<FrameHeight " + " ".join(f'a{n}="1"' for n in range(20_000)) + ">")


class Hand:
    """Writes signed requests by hand, so that everything in them can be wrong."""

    def __init__(self, url: str, account: Account) -> None:
        self.url = url
        self.credentials = Credentials(account.access_key_id, account.secret)

    def headers(self, operation: str, body: bytes, *, path: str = "/", **changes: str) -> dict[str, str]:
        request: Any = AWSRequest(method="POST", url=self.url + path, data=body)
        request.headers["X-Amz-Target"] = TARGET + operation
        request.headers["Content-Type"] = "application/x-amz-json-1.1"
        for name, value in changes.items():
            request.headers[name.replace("_", "-")] = value
        SigV4Auth(self.credentials, "mturk-requester", "us-east-1").add_auth(request)
        return dict(request.headers.items())

    def send(self, operation: str, body: bytes | dict[str, Any], **changes: str) -> requests.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return requests.post(self.url, data=content, headers=self.headers(operation, content, **changes), timeout=30)


@pytest.fixture
def hand(app: Flask, account: Account) -> Iterator[Hand]:
    app.testing = False  # a failure must become an answer here, as in a running marketplace
    with serving(app) as server:
        yield Hand(f"http://127.0.0.1:{server.server_port}", account)


def refused(answer: requests.Response, *types: str) -> None:
    assert answer.status_code == 400, answer.text
    assert answer.headers["Content-Type"] == "application/x-amz-json-1.1"
    assert answer.headers["x-amzn-RequestId"]
    assert answer.json()["__type"] in types, answer.text
    assert answer.json()["Message"]
    assert "Traceback" not in answer.text


def test_a_request_written_by_hand_is_answered(hand: Hand) -> None:
    answer = hand.send("GetAccountBalance", {})

    assert (answer.status_code, answer.json()["AvailableBalance"]) == (200, "100.00")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"1",
        b"\xff\xfe",
        b"\x00" * 100,
        b'{"HITId": NaN}',
        b'{"HITId": "\\ud800"}',
        b'{"HITId": 1e400}',
        b'{"HITId": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"HITId":' * 20_000 + b"1" + b"}" * 20_000,
        b'{"HITId": {"a": [[[[[[]]]]]]}}',
        gzip.compress(b'{"HITId": "3ABC"}', mtime=0),
    ],
)
def test_a_body_that_is_no_request_is_a_serialization_exception(hand: Hand, body: bytes) -> None:
    refused(hand.send("GetHIT", body), "SerializationException")


@pytest.mark.parametrize(
    ("operation", "params", "types"),
    [
        ("NoSuchOperation", {}, ["UnknownOperationException"]),
        ("GetHIT/../DeleteHIT", {}, ["UnknownOperationException"]),
        ("getHIT", {}, ["UnknownOperationException"]),
        ("", {}, ["UnknownOperationException"]),
        ("__class__", {}, ["UnknownOperationException"]),
        ("ListHITs", {"MaxResults": 10**9}, ["ValidationException"]),
        ("ListHITs", {"MaxResults": 10**400}, ["SerializationException"]),
        ("ListHITs", {"MaxResults": -1}, ["ValidationException"]),
        ("ListHITs", {"NextToken": "x" * 256}, ["ValidationException"]),
        ("ListHITs", {"NextToken": "../../etc/passwd"}, ["ParameterValidationError"]),
        ("GetHIT", {"HITId": "' OR 1=1 --"}, ["ValidationException"]),
        ("GetHIT", {"HITId": "A" * 100_000}, ["ValidationException"]),
        ("GetHIT", {"HITId": "3NOSUCHHIT"}, ["RequestError"]),
        ("CreateHIT", hit_params(Question=BOMB), ["ParameterValidationError"]),
        ("CreateHIT", hit_params(Question=OUTSIDE), ["ParameterValidationError"]),
        ("CreateHIT", hit_params(Question="<a>" * 10_000), ["ParameterValidationError"]),
        ("CreateHIT", hit_params(Question=ATTRIBUTES), ["RequestError"]),
        ("CreateHIT", hit_params(Question=question("http://localhost/?x=" + "y" * 70_000)), ["RequestError"]),
        ("CreateHIT", hit_params(Question="\ufeff" + question("javascript:alert(1)")), ["ParameterValidationError"]),
        ("CreateHIT", hit_params(Question=question("http://169.254.169.254/latest")), ["ParameterValidationError"]),
        ("CreateHIT", hit_params(MaxAssignments=2**31), ["SerializationException", "RequestError"]),
        ("CreateHIT", hit_params(Reward="9" * 1000), ["RequestError"]),
        ("CreateHIT", hit_params(Reward="-1.00"), ["ValidationException"]),
        ("CreateHIT", hit_params(Reward="NaN"), ["ValidationException"]),
        ("CreateHIT", hit_params(Title="\u202egnp.exe\x00"), ["SerializationException", "RequestError"]),
    ],
)
def test_what_means_harm_is_refused_in_mturks_form(
    hand: Hand, operation: str, params: dict[str, Any], types: list[str]
) -> None:
    answer = hand.send(operation, params)

    refused(answer, *types)
    assert "root:" not in answer.text


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "MTURK"])
def test_another_method_never_reaches_the_api(hand: Hand, method: str) -> None:
    answer = requests.request(
        method,
        hand.url,
        data=b"{}",
        headers=hand.headers("GetAccountBalance", b"{}"),
        allow_redirects=False,
        timeout=30,
    )

    assert answer.status_code < 500
    assert "AvailableBalance" not in answer.text


def test_a_signed_address_is_no_signature(hand: Hand) -> None:
    request: Any = AWSRequest(method="POST", url=hand.url + "/", data=b"{}")
    request.headers["X-Amz-Target"] = TARGET + "GetAccountBalance"
    SigV4QueryAuth(hand.credentials, "mturk-requester", "us-east-1", expires=3600).add_auth(request)

    answer = requests.post(request.url, data=b"{}", headers=dict(request.headers.items()), timeout=30)

    refused(answer, "MissingAuthenticationTokenException")


def test_a_second_target_is_not_the_one_that_was_signed(hand: Hand) -> None:
    headers = hand.headers("GetAccountBalance", b"{}")
    connection = http.client.HTTPConnection(hand.url.removeprefix("http://"), timeout=30)
    connection.putrequest("POST", "/", skip_host=True)
    connection.putheader("Host", hand.url.removeprefix("http://"))
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.putheader("X-Amz-Target", TARGET + "ListHITs")
    connection.putheader("Content-Length", "2")
    connection.endheaders(b"{}")
    answer = connection.getresponse()

    assert answer.status == 400
    assert json.loads(answer.read())["__type"] in {"InvalidSignatureException", "UnknownOperationException"}
    connection.close()


def test_a_target_that_was_not_signed_is_refused(hand: Hand) -> None:
    request: Any = AWSRequest(method="POST", url=hand.url + "/", data=b"{}")
    SigV4Auth(hand.credentials, "mturk-requester", "us-east-1").add_auth(request)

    answer = requests.post(
        hand.url,
        data=b"{}",
        headers={**dict(request.headers.items()), "X-Amz-Target": TARGET + "GetAccountBalance"},
        timeout=30,
    )

    refused(answer, "IncompleteSignatureException")


def test_a_body_in_chunks_is_verified_like_any_other(hand: Hand) -> None:
    headers = hand.headers("GetAccountBalance", b"{}")

    forged = requests.post(hand.url, data=iter([b'{"a"', b":1}"]), headers=headers, timeout=30)

    refused(forged, "InvalidSignatureException")


@pytest.mark.parametrize("name", ["Authorization", "X-Amz-Date", "Host", "X-Amz-Target", "Content-Type"])
@pytest.mark.parametrize("value", ["", "x" * 20_000, "a, b", "\x7f", "ü"])
def test_a_header_that_is_garbage_is_refused(hand: Hand, name: str, value: str) -> None:
    headers = {**hand.headers("GetAccountBalance", b"{}"), name: value}

    answer = requests.post(hand.url, data=b"{}", headers={k: v.encode() for k, v in headers.items()}, timeout=30)

    assert 400 <= answer.status_code < 500
    assert "AvailableBalance" not in answer.text
