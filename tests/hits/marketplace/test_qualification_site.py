"""What a worker sees of qualifications."""

from __future__ import annotations

import pytest

from hits.marketplace.errors import QualificationUnknown
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.test_qualification_requests import WITH_TEST
from tests.hits.marketplace.test_qualifications import create


def test_a_worker_sees_what_they_hold_asked_for_and_the_system_computes(market: Market) -> None:
    worker_id = market.worker()
    asked, held, _other = create(market, Name="asked"), create(market, Name="held"), create(market, Name="other")
    market.engine.request_qualification(worker_id, asked)
    market.client.associate_qualification_with_worker(QualificationTypeId=held, WorkerId=worker_id, IntegerValue=3)

    shown = market.engine.worker_qualifications(worker_id)

    assert [(item.name, item.value, item.can_request) for item in shown[:2]] == [
        ("asked", None, False),
        ("held", 3, False),
    ]
    assert shown[0].request is not None
    assert shown[0].request.state == "Pending"
    values = {item.name: item.value for item in shown[2:]}
    assert values == {
        "Masters": None,
        "Worker_NumberHITsApproved": 0,
        "Worker_Locale": None,
        "Worker_Adult": 0,
        "Worker_PercentAssignmentsApproved": 100,
    }


def test_active_types_can_be_found(market: Market) -> None:
    worker_id = market.worker()
    create(market, Name="Reading")
    create(market, Name="Gone", QualificationTypeStatus="Inactive")
    test = create(market, Name="Writing", **WITH_TEST)

    found = market.engine.requestable_qualifications(worker_id)

    assert [(item.name, item.has_test, item.can_request) for item in found] == [
        ("Reading", False, True),
        ("Writing", True, True),
    ]
    assert [item.name for item in market.engine.requestable_qualifications(worker_id, " WRIT ")] == ["Writing"]
    assert market.engine.worker_qualification(worker_id, test).test_duration_seconds == 600
    for type_id in ("3NONE", "\x00"):
        with pytest.raises(QualificationUnknown):
            market.engine.worker_qualification(worker_id, type_id)


def test_a_revoked_qualification_shows_no_value(market: Market) -> None:
    worker_id, type_id = market.worker(), create(market)
    market.client.associate_qualification_with_worker(QualificationTypeId=type_id, WorkerId=worker_id)
    market.client.disassociate_qualification_from_worker(
        QualificationTypeId=type_id, WorkerId=worker_id, Reason="Moved on"
    )

    shown = market.engine.worker_qualification(worker_id, type_id)

    assert (shown.status, shown.value) == ("Revoked", None)
    assert "Moved on" in market.engine.messages(worker_id).messages[0].text
