"""The JSON 1.1 form of the Requester API: one HTTP request in, one HTTP answer out."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from hits.marketplace.errors import SERIALIZATION_EXCEPTION, SERVICE_FAULT, UNKNOWN_OPERATION, MarketplaceError

if TYPE_CHECKING:
    from hits.marketplace.engine import Marketplace

CONTENT_TYPE: Final = "application/x-amz-json-1.1"
TARGET_PREFIX: Final = "MTurkRequesterServiceV20170117."
LARGEST_BODY: Final = 1024 * 1024
_log = logging.getLogger(__name__)

Answer = tuple[int, dict[str, str], bytes]


def handle(
    marketplace: Marketplace,
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    authenticate: Callable[[], str],
) -> Answer:
    """Answer one request of the Requester API as (status, headers, body).

    `authenticate` is called once and returns the requester's id or raises MarketplaceError; a door with real
    signatures passes `lambda: marketplace.authenticate_request(method, path, query, headers, body)`. Every failure
    becomes an error answer: a fault of the marketplace itself is logged and answered with ServiceFault, 500.
    """
    request_id = str(uuid.uuid4())
    try:
        requester_id, operation, params = _read(method, headers, body, authenticate)
        return _answer(200, marketplace.call(requester_id, operation, params), request_id)
    except MarketplaceError as error:
        return error_answer(error, request_id)
    except Exception:
        _log.exception("request %s failed", request_id)
        fault = MarketplaceError(
            SERVICE_FAULT, "The marketplace failed to answer this request. Try again.", "AWS.ServiceUnavailable", 500
        )
        return error_answer(fault.stamped(marketplace.clock.now()), request_id)


def error_answer(error: MarketplaceError, request_id: str | None = None) -> Answer:
    """Return the answer that carries one error; for doors that refuse before the engine is asked."""
    content = {"__type": error.type, "Message": error.message}
    if error.turk_code is not None:
        content["TurkErrorCode"] = error.turk_code
    status, headers, body = _answer(error.http_status, content, request_id or str(uuid.uuid4()))
    return status, {**headers, "x-amzn-ErrorType": error.type}, body


def _read(
    method: str, headers: Mapping[str, str], body: bytes, authenticate: Callable[[], str]
) -> tuple[str, str, dict[str, Any]]:
    if method.upper() != "POST":
        raise MarketplaceError(UNKNOWN_OPERATION, f"The Requester API takes POST, not {method[:20]}.", None, 405)
    if len(body) > LARGEST_BODY:
        raise MarketplaceError(
            "RequestEntityTooLargeException", f"A request has at most {LARGEST_BODY} bytes.", None, 413
        )
    requester_id = authenticate()
    target = next((value for name, value in headers.items() if name.lower() == "x-amz-target"), "")
    if not target.startswith(TARGET_PREFIX):
        raise MarketplaceError(
            UNKNOWN_OPERATION, f"The header X-Amz-Target must be {TARGET_PREFIX}<Operation>, got {target[:100]!r}."
        )
    return requester_id, target.removeprefix(TARGET_PREFIX), _read_json(body)


def _read_json(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        params = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MarketplaceError(SERIALIZATION_EXCEPTION, "The body of the request is not JSON.") from error
    if not isinstance(params, dict):
        raise MarketplaceError(SERIALIZATION_EXCEPTION, "The body of the request must be a JSON object.")
    return params


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _answer(status: int, content: Mapping[str, Any], request_id: str) -> Answer:
    body = json.dumps(content, default=_timestamp, separators=(",", ":")).encode("ascii")
    headers = {"Content-Type": CONTENT_TYPE, "x-amzn-RequestId": request_id, "Content-Length": str(len(body))}
    return status, headers, body


def _timestamp(value: object) -> float:
    if isinstance(value, datetime):
        return round(value.timestamp(), 3)
    raise TypeError(f"{value!r} has no form on the wire")
