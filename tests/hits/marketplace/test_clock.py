"""Clocks that stand still and clocks that are moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hits.marketplace.clock import MovableClock, SystemClock, TestClock


def test_the_machines_time_is_aware_and_goes_on() -> None:
    first = SystemClock().now()

    assert first.tzinfo is UTC
    assert SystemClock().now() >= first


def test_a_test_clock_moves_only_when_it_is_moved() -> None:
    clock = TestClock(datetime(2026, 1, 1, tzinfo=UTC))

    assert clock.now() == clock.now()
    assert clock.advance(hours=1, minutes=1) == datetime(2026, 1, 1, 1, 1, tzinfo=UTC)
    assert clock.advance(timedelta(days=1)) == clock.now() == datetime(2026, 1, 2, 1, 1, tzinfo=UTC)


def test_a_movable_clock_reads_its_offset_each_time() -> None:
    base, offsets = TestClock(datetime(2026, 1, 1, tzinfo=UTC)), iter([timedelta(0), timedelta(days=2)])
    clock = MovableClock(base, lambda: next(offsets))

    assert clock.now() == base.now()
    base.advance(hours=1)
    assert clock.now() == datetime(2026, 1, 3, 1, tzinfo=UTC)
