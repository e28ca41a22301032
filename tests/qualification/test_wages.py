"""The hourly wage is measured from accepting to submitting, and work left open neither hides nor makes a low one."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from hits.models import HitBatch
from hits.states import AssignmentState
from qualification.wages import batch_wage, counted_times, middle, stated_wage
from tests.factories import NOON, make_assignment, make_batch, make_hit


def batch_that_took(session: Session, *seconds: int, **fields: object) -> HitBatch:
    batch = make_batch(session, **{"reward": Decimal("1.00"), "minutes": 6, **fields})
    for one in seconds:
        make_assignment(
            session,
            hit=make_hit(session, batch=batch),
            state=AssignmentState.APPROVED,
            accepted_at=NOON,
            submitted_at=NOON + timedelta(seconds=one),
        )
    return batch


def test_the_stated_wage_is_what_workers_are_told() -> None:
    assert stated_wage(Decimal("0.90"), 6) == Decimal("9.00")
    assert stated_wage(Decimal("0.25"), 7) == Decimal("2.14")


def test_a_batch_without_work_has_only_its_stated_wage(session: Session) -> None:
    wage = batch_wage(session, batch_that_took(session))

    assert (wage.stated, wage.worked, wage.median, wage.mean) == (Decimal("10.00"), (), None, None)
    assert not wage.is_below(Decimal("100.00"))


def test_median_and_mean_are_of_the_times_measured(session: Session) -> None:
    wage = batch_wage(session, batch_that_took(session, 300, 360, 720))

    assert (wage.median_seconds, wage.mean_seconds, wage.left_open) == (360, 460, 0)
    assert (wage.median, wage.mean) == (Decimal("10.00"), Decimal("7.83"))
    assert wage.is_below(Decimal("8.00"))
    assert not wage.is_below(Decimal("7.83"))
    assert not wage.is_below(None)


def test_work_left_open_counts_with_the_median(session: Session) -> None:
    wage = batch_wage(session, batch_that_took(session, 300, 300, 360, 400, 1080, 1081, 90_000))

    # Three times the median of 400 is 1200: only the last one took longer.
    assert [one.counted for one in wage.worked if one.left_open] == [400]
    assert wage.left_open == 1
    assert wage.median_seconds == 400


def test_of_few_each_counts_as_it_is(session: Session) -> None:
    wage = batch_wage(session, batch_that_took(session, 60, 60, 60, 3600))

    assert wage.left_open == 0
    assert wage.mean_seconds == 945


def test_work_that_was_not_submitted_or_has_no_times_is_not_measured(session: Session) -> None:
    batch = batch_that_took(session, 360)
    hit = make_hit(session, batch=batch)
    make_assignment(session, hit=hit)
    make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED, accepted_at=None)
    make_assignment(session, hit=make_hit(session), state=AssignmentState.SUBMITTED)

    assert len(batch_wage(session, batch).worked) == 1


def test_an_assignment_submitted_in_the_second_it_was_accepted_divides_by_no_zero(session: Session) -> None:
    assert batch_wage(session, batch_that_took(session, 0)).median == Decimal("3600.00")


@settings(max_examples=50)
@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=40))
def test_what_counts_is_never_longer_than_the_work_nor_than_three_medians(seconds: list[int]) -> None:
    worked = counted_times(list(enumerate(seconds)))

    median = middle(seconds)
    assert [one.seconds for one in worked] == seconds
    assert all(one.counted <= one.seconds for one in worked)
    if len(seconds) >= 5:
        assert all(one.counted <= 3 * median for one in worked)
    # At least half of the work counts as it is, so that the median stands.
    assert middle([one.counted for one in worked]) == median
