"""Error rates, each recomputed from raw rows, with what they are divided by."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.error_rates import ErrorRates, error_rates
from hits.models import Example
from hits.rates import Rate
from hits.states import AssignmentState, Verdict
from hits.validations import retract
from tests import factories as make

COUNTS = {
    Verdict.VALID_AND_MODEL_WRONG: 5,
    Verdict.VALID_AND_MODEL_RIGHT: 2,
    Verdict.INVALID: 3,
    Verdict.UNRESOLVED: 1,
    Verdict.PENDING: 2,
    Verdict.FLAGGED: 1,
    Verdict.NOT_VALIDATED: 6,
}


def test_each_rate_is_counted_from_the_rows(session: Session, clock: FixedClock) -> None:
    for verdict, count in COUNTS.items():
        for _ in range(count):
            fields = {"predicted_label": "negative"} if verdict is Verdict.NOT_VALIDATED else {}
            attempt = make.make_attempt(
                session, assignment=make.make_assignment(session, state=AssignmentState.SUBMITTED), **fields
            )
            make.make_example(session, attempt=attempt, verdict=verdict)
    dropped = session.scalars(select(Example).where(Example.verdict == Verdict.VALID_AND_MODEL_WRONG)).first()
    assert dropped is not None
    retract(session, dropped, reason="asked for", now=clock.now())

    found = error_rates(session, dropped.round)

    assert (found.collected, found.retracted, found.kept) == (20, 1, 19)
    assert found.vmer == Rate(4, 19)
    assert found.mer == Rate(13, 19)
    assert found.resolved_vmer == Rate(4, 4 + 2 + 3 + 6)
    assert found.verdicts == {**COUNTS, Verdict.VALID_AND_MODEL_WRONG: 4}


def test_denominators_are_written_out_with_their_numbers() -> None:
    verdicts = {Verdict.VALID_AND_MODEL_WRONG: 4, Verdict.PENDING: 2, Verdict.FLAGGED: 1, Verdict.NOT_VALIDATED: 9}
    found = ErrorRates(collected=17, retracted=1, fooled=7, verdicts=verdicts)

    assert found.denominators == {
        "vmer": "4 valid_and_model_wrong / (17 collected - 1 retracted)",
        "mer": "7 fooled the model / (17 collected - 1 retracted)",
        "resolved_vmer": "4 valid_and_model_wrong / 13 resolved"
        " (17 collected - 1 retracted - 2 pending, 1 flagged, 0 unresolved)",
    }


def test_an_empty_round_has_no_rates(session: Session) -> None:
    found = error_rates(session, make.make_round(session))

    assert (found.vmer.percent, found.mer.percent, found.resolved_vmer.percent) == ("none yet",) * 3
