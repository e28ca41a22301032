"""A worker's way through the engine, from an invitation to a HIT that needs a qualification."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hits.marketplace.errors import NotQualified
from tests.hits.marketplace.forms_for_tests import KEY, TEST
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.test_qualifications import create


def test_a_test_opens_the_hits_that_need_its_score(market: Market) -> None:
    engine = market.engine
    type_id = create(market, Test=TEST, TestDurationInSeconds=60, AnswerKey=KEY, RetryDelayInSeconds=0)
    needs = {"QualificationTypeId": type_id, "Comparator": "GreaterThanOrEqualTo", "IntegerValues": [80]}
    hit_id = market.create_hit(Question=TEST, QualificationRequirements=[needs])
    code = engine.create_invitation("by mail")
    worker = engine.register_worker(code, "Ada", "a good password")
    assert engine.authenticate_worker("ada", "a good password") == worker == engine.worker(worker.worker_id)

    def take_test(**answers: list[str]) -> None:
        request = engine.request_qualification(worker.worker_id, type_id)
        fields = {name.replace("_", "-"): values for name, values in answers.items()}
        engine.submit_qualification_test(worker.worker_id, request.request_id, fields)

    take_test(question_1=["red"])
    (group,) = engine.hit_groups(worker.worker_id).groups
    assert not group.qualified
    with pytest.raises(NotQualified):
        engine.accept(worker.worker_id, hit_id)
    take_test(question_1=["blue"], question_2=["2", "3"])

    held = engine.accept_next(worker.worker_id, group.hit_group_id)
    assert [one.assignment_id for one in engine.held(worker.worker_id)] == [held.assignment_id]
    engine.submit_form(worker.worker_id, held.assignment_id, {"question-1": ["blue"]})
    market.client.approve_assignment(AssignmentId=held.assignment_id)

    assert engine.earnings(worker.worker_id).approved == Decimal("0.30")
    assert [entry.state for entry in engine.work_history(worker.worker_id).entries] == ["Approved"]
