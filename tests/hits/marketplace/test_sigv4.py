"""Signatures made by botocore, verified for real."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from hits.marketplace import sigv4
from hits.marketplace.errors import MarketplaceError

KEY, SECRET = "AKIAEXAMPLEEXAMPLE00", "secret+of/forty=characters"
BODY = b'{"HITId":"3ABC"}'


def signed(
    *, service: str = "mturk-requester", secret: str = SECRET, body: bytes = BODY, **extra: str
) -> dict[str, str]:
    """Sign a request with botocore and return its headers as they arrive at a server."""
    request: Any = AWSRequest(method="POST", url="http://market.example:8000/", data=body)
    request.headers["X-Amz-Target"] = "MTurkRequesterServiceV20170117.GetHIT"
    request.headers["Content-Type"] = "application/x-amz-json-1.1"
    for name, value in extra.items():
        request.headers[name.replace("_", "-")] = value
    SigV4Auth(Credentials(KEY, secret), service, "us-east-1").add_auth(request)
    return {**dict(request.headers.items()), "Host": "market.example:8000"}


def verify(headers: dict[str, str], *, body: bytes = BODY, now: datetime | None = None, **changes: str) -> str:
    def lookup(access_key_id: str) -> str:
        if access_key_id != KEY:
            raise MarketplaceError("UnrecognizedClientException", "Unknown key.")
        return SECRET

    asked = {"method": "POST", "path": "/", "query": "", **changes}
    return sigv4.verify(
        asked["method"],
        asked["path"],
        asked["query"],
        headers,
        body,
        lookup_secret=lookup,
        now=now or datetime.now(UTC),
    )


def refusal(headers: dict[str, str], **changes: Any) -> MarketplaceError:
    with pytest.raises(MarketplaceError) as caught:
        verify(headers, **changes)
    return caught.value


def test_a_good_signature_names_its_key() -> None:
    assert verify(signed()) == KEY
    assert verify({name.lower(): value for name, value in signed().items()}) == KEY
    # Other clients sign more headers than boto3 does, and unsigned ones may be added on the way.
    assert verify({**signed(amz_sdk_invocation_id="123", amz_sdk_request="attempt=1; max=3"), "Via": "proxy"}) == KEY
    assert verify(signed(X_Amz_Content_SHA256=hashlib.sha256(BODY).hexdigest())) == KEY


def test_a_query_string_is_part_of_what_is_signed() -> None:
    assert refusal(signed(), query="a=1").type == "InvalidSignatureException"


@pytest.mark.parametrize(
    "change",
    [
        {"body": b'{"HITId":"3XYZ"}'},
        {"method": "PUT"},
        {"path": "/other"},
    ],
)
def test_a_changed_request_is_refused(change: dict[str, Any]) -> None:
    assert refusal(signed(), **change).type == "InvalidSignatureException"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Amz-Target", "MTurkRequesterServiceV20170117.DeleteHIT"),
        ("Host", "elsewhere.example"),
        ("Content-Type", "text/plain"),
    ],
)
def test_a_changed_header_is_refused(name: str, value: str) -> None:
    assert refusal({**signed(), name: value}).type == "InvalidSignatureException"


def test_another_secret_is_refused() -> None:
    assert refusal(signed(secret="guessed")).type == "InvalidSignatureException"


def test_another_service_is_refused() -> None:
    error = refusal(signed(service="s3"))

    assert error.type == "InvalidSignatureException"
    assert "mturk-requester" in error.message


def test_old_and_early_signatures_are_refused() -> None:
    headers = signed()
    now = datetime.strptime(headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)

    assert verify(headers, now=now + timedelta(minutes=15)) == KEY
    assert verify(headers, now=now - timedelta(minutes=15)) == KEY
    assert "Signature expired" in refusal(headers, now=now + timedelta(minutes=15, seconds=1)).message
    assert "not yet current" in refusal(headers, now=now - timedelta(minutes=15, seconds=1)).message


def test_a_payload_hash_must_be_the_bodys() -> None:
    for digest in ("UNSIGNED-PAYLOAD", "0" * 64, "é"):
        assert refusal({**signed(), "X-Amz-Content-SHA256": digest}).type == "InvalidSignatureException"


def test_a_session_token_is_refused() -> None:
    assert refusal({**signed(), "X-Amz-Security-Token": "t"}).type == "UnrecognizedClientException"


def test_unsigned_and_mangled_requests_are_refused() -> None:
    good = signed()
    authorization = good["Authorization"]

    assert refusal({"Host": "x"}).type == "MissingAuthenticationTokenException"
    for mangled in (
        "Basic abc",
        authorization.replace("/aws4_request", ""),
        authorization.replace(KEY, ""),
        authorization.replace("SignedHeaders=content-type;host;", "SignedHeaders=content-type;"),
        authorization.replace("x-amz-date;", ""),
        authorization.replace("host;", "host;x-missing;"),
        authorization[:-1] + "z",
        authorization + " extra",
    ):
        error = refusal({**good, "Authorization": mangled})
        assert error.type in {
            "IncompleteSignatureException",
            "InvalidSignatureException",
            "UnrecognizedClientException",
        }, mangled
    assert refusal({**good, "X-Amz-Date": "yesterday"}).type == "IncompleteSignatureException"
    assert refusal({**good, "X-Amz-Date": "20000101T000000Z"}).type == "InvalidSignatureException"


def test_the_operation_must_be_signed() -> None:
    request: Any = AWSRequest(method="POST", url="http://market.example:8000/", data=BODY)
    SigV4Auth(Credentials(KEY, SECRET), "mturk-requester", "us-east-1").add_auth(request)
    headers = {**dict(request.headers.items()), "Host": "market.example:8000"}
    assert verify(headers) == KEY

    error = refusal({**headers, "X-Amz-Target": "MTurkRequesterServiceV20170117.DeleteHIT"})

    assert error.type == "IncompleteSignatureException"
    assert "x-amz-target" in error.message


def test_the_order_of_headers_and_their_white_space_change_nothing() -> None:
    good = signed(X_Note="a  b")

    assert verify(dict(reversed(good.items()))) == KEY
    assert verify({**good, "X-Note": " a b "}) == KEY
    assert refusal({**good, "X-Note": "ab"}).type == "InvalidSignatureException"


def test_another_region_is_as_good_but_must_be_the_signed_one() -> None:
    good = signed()

    elsewhere = {**good, "Authorization": good["Authorization"].replace("us-east-1", "eu-west-1")}

    assert refusal(elsewhere).type == "InvalidSignatureException"


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    real = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return real(one, other)

    monkeypatch.setattr(sigv4.hmac, "compare_digest", watched)
    good = signed()

    # A comparison by == would give True for what compare_digest was not asked about.
    assert verify(good) == KEY
    assert good["Authorization"].rpartition("=")[2].encode() in compared
    monkeypatch.setattr(sigv4.hmac, "compare_digest", lambda _one, _other: False)
    assert refusal(good).type == "InvalidSignatureException"
