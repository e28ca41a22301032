"""The figures of a round, recomputed from raw rows."""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy.orm import Session

from app.requester.figures import figures, kinds
from hits.states import AssignmentState, HitState, Verdict
from payments.ledger import record_reward
from tests.factories import NOON, make_assignment, make_attempt, make_batch, make_example, make_hit, make_round


def test_an_empty_round_has_zeros(session: Session) -> None:
    found = figures(session, make_round(session))

    assert (found.collected, found.fooled, found.verified, found.spent) == (0, 0, 0, Decimal("0.00"))
    assert found.cost_per_verified is None


def test_every_figure_counts_its_own_rows_and_round(session: Session) -> None:
    round_ = make_round(session)
    batch = make_batch(session, round=round_)
    other = make_batch(session, round=make_round(session, number=2))
    for verdict, predicted in (
        (Verdict.VALID_AND_MODEL_WRONG, "positive"),
        (Verdict.INVALID, "positive"),
        (Verdict.PENDING, "neutral"),
        (Verdict.NOT_VALIDATED, "negative"),
    ):
        hit = make_hit(session, batch=batch)
        assignment = make_assignment(session, hit=hit, state=AssignmentState.APPROVED)
        make_example(
            session, attempt=make_attempt(session, assignment=assignment, predicted_label=predicted), verdict=verdict
        )
        record_reward(session, assignment, NOON)
    make_hit(session, batch=batch, state=HitState.PLANNED, mturk_hit_id=None)
    elsewhere = make_assignment(session, hit=make_hit(session, batch=other), state=AssignmentState.APPROVED)
    make_example(session, attempt=make_attempt(session, assignment=elsewhere))
    record_reward(session, elsewhere, NOON)

    found = figures(session, round_)

    assert (found.collected, found.fooled, found.verified) == (4, 3, 1)
    assert (found.vmer.hits, found.vmer.of, found.vmer.percent) == (1, 4, "25.0%")
    # Four rewards of $0.30 with 20 % fees.
    assert found.spent == Decimal("1.44")
    assert found.cost_per_verified == Decimal("1.44")
    assert found.verdicts[Verdict.INVALID] == 1
    writing, judging, *_ = kinds(session, round_)
    assert (writing.name, writing.planned, writing.open, writing.approved) == ("writing", 1, 4, 4)
    assert judging.open == 0
