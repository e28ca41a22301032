"""What an event looks like on its way out."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hits.marketplace.events import document
from hits.marketplace.tables import EventRow


def test_an_event_of_a_hit_has_no_assignment() -> None:
    row = EventRow(
        document_id="3D",
        requester_id="A1",
        hit_type_id="3T",
        hit_id="3H",
        event_type="HITExpired",
        at=datetime(2026, 11, 30, 9, 0, 0, 999_999, tzinfo=UTC),
    )

    assert json.loads(document(row))["Events"] == [
        {"EventType": "HITExpired", "EventTimestamp": "2026-11-30T09:00:00Z", "HITTypeId": "3T", "HITId": "3H"}
    ]
