"""The amounts and the sentences that explain them."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from hits.models import HitBatch
from hits.money import usd
from payments.rules import VERIFIED_FOOLING_EXAMPLE, Bonus, bonus_owed
from tests import factories
from tests.payments.builders import fooling_example, verified_example


@pytest.mark.parametrize(
    ("readers", "words"), [(0, "it was confirmed"), (1, "1 reader agreed"), (2, "2 readers agreed")]
)
def test_the_sentence_says_what_was_done_who_agreed_and_how_much(session: Session, readers: int, words: str) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    example = verified_example(session, batch=batch)

    owed = bonus_owed(example, batch, readers=readers)

    assert owed == Bonus(
        VERIFIED_FOOLING_EXAMPLE,
        usd("0.30"),
        f"Your statement of 15 Nov fooled the model and {words}: $0.30.",
    )


def test_the_sentence_names_no_worker(session: Session) -> None:
    batch = factories.make_batch(session)
    example = verified_example(session, batch=batch)

    owed = bonus_owed(example, batch, readers=2)

    assert owed is not None
    assert example.writer.mturk_worker_id not in owed.reason
    assert example.writer.pseudonym not in owed.reason


def test_an_example_that_is_not_verified_earns_nothing(session: Session) -> None:
    batch = factories.make_batch(session)

    assert bonus_owed(fooling_example(session, batch=batch), batch, readers=1) is None


def test_a_batch_without_a_bonus_owes_nothing(session: Session) -> None:
    batch: HitBatch = factories.make_batch(session, bonus=usd(0))

    assert bonus_owed(verified_example(session, batch=batch), batch, readers=2) is None
