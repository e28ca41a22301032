"""The system's qualification types."""

from __future__ import annotations

import pytest

from hits.marketplace.system_qualifications import (
    ADULT,
    MASTERS,
    MASTERS_SANDBOX,
    NUMBER_APPROVED,
    PERCENT_APPROVED,
    SYSTEM_TYPES,
    value_of,
)
from hits.marketplace.tables import WorkerRow
from hits.marketplace.transactions import Transaction
from tests.hits.marketplace.market import Market


def test_all_six_types_of_mturk_are_there_and_not_requestable() -> None:
    assert len(SYSTEM_TYPES) == 6
    assert set(SYSTEM_TYPES) >= MASTERS
    assert not any(item.form()["IsRequestable"] for item in SYSTEM_TYPES.values())


@pytest.mark.parametrize(
    ("type_id", "value"), [(NUMBER_APPROVED, 2), (PERCENT_APPROVED, 100), (ADULT, 0), (MASTERS_SANDBOX, None)]
)
def test_values_of_a_worker_with_two_approvals(market: Market, type_id: str, value: int | None) -> None:
    worker_id = market.worker()
    for _ in range(2):
        market.client.approve_assignment(AssignmentId=market.submitted(market.create_hit(), worker_id))
    market.submitted(market.create_hit(), worker_id)

    with market.engine.store.session(writes=False) as session:
        transaction = Transaction(session, market.clock.now(), market.settings)
        assert value_of(transaction, session.get_one(WorkerRow, worker_id), type_id) == value
