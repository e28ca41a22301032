"""What a round's examples add up to."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from hits.error_rates import error_rates
from hits.progress import (
    LabelCounts,
    Work,
    busiest_writers,
    first_collected,
    lately_verified,
    latest_days,
    latest_work,
    tally,
    written_counts,
)
from hits.states import AssignmentState, Verdict
from tests import factories as make
from tests.factories import NOON

HOUR = timedelta(hours=1)


def test_a_round_is_counted_by_the_database(session: Session) -> None:
    round_ = make.make_round(session)
    ann, bob = make.make_worker(session), make.make_worker(session)
    work = make.make_assignment(session, worker=ann, state=AssignmentState.SUBMITTED)
    kinds = [
        (ann, "negative", Verdict.VALID_AND_MODEL_WRONG, NOON - 3 * HOUR, NOON - HOUR),
        (ann, "negative", Verdict.PENDING, NOON - 30 * HOUR, None),
        (ann, "neutral", Verdict.NOT_VALIDATED, NOON - 3 * HOUR, None),
        (bob, "neutral", Verdict.VALID_AND_MODEL_WRONG, NOON - 60 * HOUR, NOON - 25 * HOUR),
    ]
    for number, (writer, label, verdict, collected, decided) in enumerate(kinds, 1):
        assignment = work if writer is ann else make.make_assignment(session, worker=bob, state=AssignmentState.SAVED)
        said = label if verdict is Verdict.NOT_VALIDATED else "positive"
        attempt = make.make_attempt(
            session, assignment=assignment, goal_label=label, predicted_label=said, try_number=number
        )
        make.make_example(session, attempt=attempt, verdict=verdict, collected_at=collected, decided_at=decided)
    retracted = make.make_example(session, collected_at=NOON - HOUR, retracted_at=NOON, retraction_reason="asked for")
    # Of another round, which nothing counts.
    other = make.make_batch(session, round=make.make_round(session, number=2))
    elsewhere = make.make_assignment(session, hit=make.make_hit(session, batch=other), state=AssignmentState.SUBMITTED)
    make.make_example(session, attempt=make.make_attempt(session, assignment=elsewhere))
    session.commit()

    counted = tally(session, round_)
    assert counted.rates == error_rates(session, round_)
    assert counted.verified_fooling == 2
    assert counted.labels == {"negative": LabelCounts(2, 2, 1), "neutral": LabelCounts(2, 1, 1)}

    assert first_collected(session, round_) == NOON - 60 * HOUR
    days = latest_days(session, round_, NOON, 3)
    assert [(day.collected, day.verified) for day in days] == [(3, 1), (1, 1), (1, 0)]
    assert (days[0].since, days[0].until) == (NOON - timedelta(days=1), NOON)
    # The round is sixty hours old, so that a part is a seventh of that; the ends of parts belong to the later side.
    assert lately_verified(session, round_, NOON) == ([1, 0, 1, 0, 0, 0, 0], timedelta(hours=60) / 7)
    assert lately_verified(session, make.make_round(session, number=3), NOON) == ([], timedelta(days=1))

    written = written_counts(session, round_)
    assert sorted(written.values()) == [1, 1, 3]
    writers = busiest_writers(session, written, 2)
    assert writers == [(ann.pseudonym, 3), (bob.pseudonym, 1)]
    retracted_work = retracted.attempt.assignment_id
    assert latest_work(session, round_) == [Work(work.id, 3, 360), Work(retracted_work, 1, 360)]
