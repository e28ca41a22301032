"""Items of a validation HIT look the same whether they are examples or gold."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from hits import validations
from hits.clock import FixedClock
from hits.models import Lease
from tests import factories as make


def test_an_example_shows_its_attempts_name_context_and_answer(session: Session) -> None:
    example = make.make_example(session)
    assignment = make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]))

    lease = make.make_lease(session, assignment=assignment, example=example)

    assert (lease.public_id, lease.answer) == (example.attempt.public_id, example.attempt.answer)
    assert lease.context_fields == example.context.fields


def test_a_gold_item_shows_the_same_of_its_own(session: Session, clock: FixedClock) -> None:
    row = {"context": {"prompt": "Rain."}, "answer": {"statement": "It rained all day."}, "label": "neutral"}
    gold = validations.add_gold(session, make.make_round(session), row, clock.now())
    assert gold is not None

    lease = Lease(gold_item=gold)

    assert (lease.public_id, lease.context_fields, lease.answer) == (gold.public_id, row["context"], row["answer"])


def test_a_lease_of_nothing_is_a_fault() -> None:
    with pytest.raises(ValueError, match="of nothing"):
        Lease().public_id  # noqa: B018 - reading it is what is refused
