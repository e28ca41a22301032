"""NUL in any part of a request is no text for PostgreSQL; it is refused in words on every database."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from app.models import StaffUser
from hits.models import Hit
from tests.app.conftest import Judging, csrf_in, frame_query, gone_on, sign_in, token_in

NUL = "a\x00b"


@pytest.mark.parametrize(
    "path", ["/work/%00", "/validate/%00", "/work/%00?assignmentId=3A&hitId=3B&workerId=A1", "/work/x?hitId=%00"]
)
def test_nul_in_the_address_of_a_hit_page(client: FlaskClient, path: str) -> None:
    assert 400 <= client.get(path).status_code < 500


@pytest.mark.parametrize("field", ["assignmentId", "hitId", "workerId"])
def test_nul_in_what_a_frame_claims(client: FlaskClient, hit: Hit, field: str) -> None:
    answer = client.get(f"/work/{hit.reference}", query_string={**frame_query(hit), field: NUL})

    assert 400 <= answer.status_code < 500


def test_nul_in_the_fields_of_a_writer(client: FlaskClient, token: str) -> None:
    assert client.post(f"/work/attempts/{NUL}/explanation", data={"token": token}).status_code in (409, 422)
    assert client.post("/work/attempts", data={"token": token, "statement": NUL}).status_code == 422
    assert client.post("/work/attempts", data={"token": NUL, "statement": "x"}).status_code == 403


def test_nul_in_the_fields_of_a_validator(client: FlaskClient, judging: Judging) -> None:
    query = frame_query(judging.hit, worker="AREADER")
    page = gone_on(client, client.get(f"/validate/{judging.hit.reference}", query_string=query))
    fields = {"token": token_in(page), "statement": judging.public_ids[0]}

    for wrong in ({"statement": NUL, "label": "negative"}, {"label": NUL}, {"flag_reason": NUL}):
        assert 400 <= client.post("/validate/votes", data={**fields, **wrong}).status_code < 500
    assert client.post("/validate/statements", data={**fields, "statement": NUL}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/rounds/%00/1", "/finance/payouts/%00", "/finance/payout/%00", "/finance/month?month=%00"]
)
def test_nul_in_the_address_of_a_staff_page(client: FlaskClient, staff: Callable[..., StaffUser], path: str) -> None:
    staff(roles=("requester", "finance"))
    sign_in(client)

    assert 400 <= client.get(path).status_code < 500


def test_nul_in_what_staff_send(client: FlaskClient, staff: Callable[..., StaffUser]) -> None:
    staff()
    assert sign_in(client, name=NUL).status_code in (403, 422)
    sign_in(client)
    fields = {"csrf_token": csrf_in(client.get("/rounds")), "decision": "uphold", "reason": "x"}

    assert client.post(f"/rounds/flags/{NUL}", data=fields).status_code in (404, 422)
    assert client.post(f"/rounds/assignments/{NUL}/accept", data=fields).status_code in (404, 422)
