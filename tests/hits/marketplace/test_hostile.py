"""Requests that no honest client sends: each is answered in MTurk's error form, none with a fault."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest
from botocore.model import Shape
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hits.marketplace import wire
from hits.marketplace.model_check import operation_names, service_model
from tests.hits.marketplace.contract import DOCUMENTED, MODEL, TYPES, label
from tests.hits.marketplace.forms_for_tests import KEY, TEST
from tests.hits.marketplace.market import Market, external_question

BOMB: Final = (
    '<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]>'
    "<l>&c;&c;&c;&c;</l>"
)
OUTSIDE: Final = '<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><QuestionForm>&x;</QuestionForm>'
DEEP: Final = "<a>" * 5000 + "</a>" * 5000
TEXTS: Final = [
    "",
    " ",
    "3NONE",
    "A1",
    "-1",
    "\x7f",
    "é",
    "😀",
    "x" * 70_000,
    BOMB,
    OUTSIDE,
    DEEP,
    "${x}",
    "' OR 1=1 --",
]
TEXTS_NO_DATABASE_TAKES: Final = ["\x00", "\ud800", "a\x00b"]
NUMBERS: Final = [0, 1, -1, 30, 101, 2**31 - 1, 2**31, 2**63 - 1, 2**70]
WRONG: Final = [None, True, 3, "s", [], {}, [[]], 1.5, {"a": 1}, -(10**400)]


class Attacker:
    """Makes up parameters of about the right shape, with a seed of its own."""

    def __init__(self, seed: str, known: dict[str, list[str]]) -> None:
        self.random = random.Random(seed)
        self.known = known

    def value(self, shape: Shape, name: str = "") -> Any:
        chance = self.random.random()
        if chance < 0.02:
            return self.random.choice(WRONG)
        if shape.type_name == "structure":
            return self.structure(shape)
        if shape.type_name == "list":
            return [self.value(shape.member, name) for _ in range(self.random.choice([0, 1, 1, 3]))]  # type: ignore[attr-defined]
        if shape.type_name in {"integer", "long"}:
            return self.random.choice(NUMBERS)
        if shape.type_name == "boolean":
            return chance < 0.5
        if shape.type_name == "timestamp":
            return self.random.choice([0, 1.8e9, -1, 1e20, "2027-01-01", "x"])
        if name in self.known and chance < 0.8:
            return self.random.choice(self.known[name])
        if getattr(shape, "enum", None) and chance < 0.9:
            return self.random.choice(shape.enum)  # type: ignore[attr-defined]
        return self.random.choice(TEXTS + TEXTS_NO_DATABASE_TAKES)

    def structure(self, shape: Any) -> dict[str, Any]:
        return {
            name: self.value(member, name)
            for name, member in shape.members.items()
            if self.random.random() < (0.97 if name in shape.required_members else 0.3)
        }


@pytest.fixture
def known(market: Market) -> dict[str, list[str]]:
    """Real ids and texts that mean something, so that requests get past the first checks."""
    hit_id, form = market.create_hit(MaxAssignments=5), market.create_hit(Question=TEST)
    assignment_id = market.submitted(hit_id)
    kind = market.client.create_qualification_type(
        Name="n",
        Description="d",
        QualificationTypeStatus="Active",
        Test=TEST,
        TestDurationInSeconds=60,
    )["QualificationType"]["QualificationTypeId"]
    worker_id = market.worker_of(assignment_id)
    request = market.engine.request_qualification(worker_id, kind)
    return {
        "HITId": [hit_id, form],
        "HITTypeId": [market.hit(hit_id)["HITTypeId"]],
        "HITLayoutId": [market.engine.create_layout(market.requester_id, "l", "<form>${a}</form>").layout_id],
        "AssignmentId": [assignment_id],
        "WorkerId": [worker_id],
        "QualificationTypeId": [kind, "00000000000000000071", "00000000000000000040"],
        "QualificationRequestId": [request.request_id],
        "Question": [TEST, external_question()],
        "Test": [TEST],
        "AnswerKey": [KEY],
        "Reward": ["0.10"],
        "BonusAmount": ["0.10"],
        "PolicyName": ["SimplePlurality/2011-09-01", "ScoreMyKnownAnswers/2011-09-01"],
        "Version": ["2006-05-05"],
        "Destination": ["https://example.org/q", "lab@example.org"],
    }


@pytest.mark.parametrize("operation", operation_names())
def test_no_made_up_request_is_a_fault(market: Market, known: dict[str, list[str]], operation: str) -> None:
    attacker = Attacker(operation, known)
    shape = service_model().operation_model(operation).input_shape
    headers = {"X-Amz-Target": wire.TARGET_PREFIX + operation}
    for _ in range(25):
        params = attacker.structure(shape) if shape is not None else {}
        status, _headers, body = wire.handle(
            market.engine, "POST", headers, json.dumps(params).encode(), authenticate=lambda: market.requester_id
        )
        assert status in {200, 400}, (params, body)
        answer = json.loads(body)
        assert (status == 200) == ("__type" not in answer)
        if status == 400:
            told = label(answer["__type"], answer.get("TurkErrorCode"))
            assert told in DOCUMENTED[operation] | {MODEL, TYPES}, (params, body)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    # Of about the right form, so that some get past the first checks.
    | st.sampled_from(["3NONE", "A1", "0.10", "Active", "2026-12-01", "00000000000000000040", "Exists"])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def of_shape(shape: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a shape of the service model, each of whose parts may be any other JSON instead."""
    right: st.SearchStrategy[Any]
    if shape.type_name == "structure":
        right = st.fixed_dictionaries(
            {}, optional={name: of_shape(member, depth + 1) for name, member in shape.members.items()}
        )
    elif shape.type_name == "list":
        right = st.lists(of_shape(shape.member, depth + 1), max_size=3)
    else:
        right = SCALARS
    return right if depth == 0 else right | JSON


@pytest.fixture(scope="module")
def shared_market() -> Iterator[Market]:
    """One for all of hypothesis' examples, which leave in it what they like."""
    opened = Market()
    yield opened
    opened.engine.close()


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize("operation", operation_names())
def test_no_value_of_a_wrong_type_is_a_fault(shared_market: Market, operation: str, data: st.DataObject) -> None:
    shape = service_model().operation_model(operation).input_shape
    body = data.draw(JSON | of_shape(shape) if shape is not None else JSON)
    status, _headers, answer = wire.handle(
        shared_market.engine,
        "POST",
        {"X-Amz-Target": wire.TARGET_PREFIX + operation},
        json.dumps(body).encode(),
        authenticate=lambda: shared_market.requester_id,
    )

    assert status in {200, 400}, (body, answer)
    if status == 400:
        said = json.loads(answer)
        assert label(said["__type"], said.get("TurkErrorCode")) in DOCUMENTED[operation] | {MODEL, TYPES}, (body, said)
