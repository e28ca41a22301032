"""Verifies AWS Signature Version 4 on a request, with botocore's own signer recomputing the signature."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials

from hits.marketplace.errors import MarketplaceError

SERVICE: Final = "mturk-requester"
CLOCK_SKEW: Final = timedelta(minutes=15)
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<credential>[^,\s]+),\s*"
    r"SignedHeaders=(?P<headers>[^,\s]+),\s*Signature=(?P<signature>[0-9a-f]{64})\s*"
)
_MUST_BE_SIGNED = ("host", "x-amz-date")
#: Where it is there; unsigned, somebody on the way could turn one operation into another.
_MUST_BE_SIGNED_IF_SENT = ("x-amz-target",)


class _Recomputation(SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """botocore's signer, told to sign exactly the headers and the body that it is given."""

    def headers_to_sign(self, request: Any) -> HTTPHeaders:
        headers = HTTPHeaders()
        for name, value in request.headers.items():
            headers[name.lower()] = value
        return headers

    def payload(self, request: Any) -> str:
        return hashlib.sha256(request.data).hexdigest()


@dataclass(frozen=True)
class _Claim:
    access_key_id: str
    day: str
    region: str
    signed_headers: tuple[str, ...]
    signature: str
    amz_date: str


def verify(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    lookup_secret: Callable[[str], str],
    now: datetime,
) -> str:
    """Return the access key id that signed the request.

    `lookup_secret` returns the secret of a key or raises. The date may be 15 minutes off. Raises MarketplaceError
    in AWS' own types: MissingAuthenticationTokenException, IncompleteSignatureException,
    UnrecognizedClientException, InvalidSignatureException.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    claim = _read_claim(lowered)
    _check_date(claim, now)
    if "x-amz-security-token" in lowered:
        raise MarketplaceError("UnrecognizedClientException", "The security token included in the request is invalid.")
    digest = lowered.get("x-amz-content-sha256")
    if digest is not None and not hmac.compare_digest(digest.encode(), hashlib.sha256(body).hexdigest().encode()):
        raise MarketplaceError(
            "InvalidSignatureException", "The header x-amz-content-sha256 does not match the body of the request."
        )
    expected = _recompute(method, path, query, lowered, body, claim, lookup_secret(claim.access_key_id))
    if not hmac.compare_digest(expected.encode(), claim.signature.encode()):
        raise MarketplaceError(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. "
            "Check your AWS Secret Access Key and signing method. Consult the service documentation for details.",
        )
    return claim.access_key_id


def _read_claim(headers: Mapping[str, str]) -> _Claim:
    authorization = headers.get("authorization")
    if not authorization:
        raise MarketplaceError(
            "MissingAuthenticationTokenException", "The request has no Authorization header (AWS4-HMAC-SHA256)."
        )
    match = _AUTHORIZATION.fullmatch(authorization)
    if match is None:
        raise _incomplete(
            "The Authorization header is not of the form AWS4-HMAC-SHA256 Credential=..., "
            "SignedHeaders=..., Signature=..."
        )
    parts = match["credential"].split("/")
    if len(parts) != 5 or parts[4] != "aws4_request":
        raise _incomplete("The credential must be of the form KEY/YYYYMMDD/REGION/mturk-requester/aws4_request.")
    if parts[3] != SERVICE:
        raise MarketplaceError(
            "InvalidSignatureException", f"Credential should be scoped to correct service: '{SERVICE}'."
        )
    signed = tuple(match["headers"].lower().split(";"))
    needed = (*_MUST_BE_SIGNED, *(name for name in _MUST_BE_SIGNED_IF_SENT if name in headers))
    absent = [name for name in needed if name not in signed]
    if absent:
        raise _incomplete(f"These headers must be signed: {', '.join(absent)}.")
    missing = [name for name in signed if name not in headers]
    if missing:
        raise _incomplete(f"These signed headers are not in the request: {', '.join(missing)}.")
    return _Claim(parts[0], parts[1], parts[2], signed, match["signature"], headers["x-amz-date"])


def _check_date(claim: _Claim, now: datetime) -> None:
    try:
        signed_at = datetime.strptime(claim.amz_date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise _incomplete("x-amz-date must be of the form YYYYMMDD'T'HHMMSS'Z'.") from error
    if claim.amz_date[:8] != claim.day:
        raise MarketplaceError(
            "InvalidSignatureException", "Date in Credential scope does not match YYYYMMDD of x-amz-date."
        )
    if signed_at < now - CLOCK_SKEW:
        raise MarketplaceError(
            "InvalidSignatureException",
            f"Signature expired: {claim.amz_date} is now earlier than {_basic(now - CLOCK_SKEW)} "
            f"({_basic(now)} - 15 min.)",
        )
    if signed_at > now + CLOCK_SKEW:
        raise MarketplaceError(
            "InvalidSignatureException",
            f"Signature not yet current: {claim.amz_date} is still later than {_basic(now + CLOCK_SKEW)} "
            f"({_basic(now)} + 15 min.)",
        )


def _recompute(
    method: str, path: str, query: str, headers: Mapping[str, str], body: bytes, claim: _Claim, secret: str
) -> str:
    url = f"https://{headers['host']}{path or '/'}" + (f"?{query}" if query else "")
    request = AWSRequest(method=method, url=url, data=body)
    for name in claim.signed_headers:
        request.headers[name] = headers[name]
    request.context["timestamp"] = claim.amz_date
    signer = _Recomputation(Credentials(claim.access_key_id, secret), SERVICE, claim.region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


def _basic(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _incomplete(reason: str) -> MarketplaceError:
    return MarketplaceError("IncompleteSignatureException", reason)
