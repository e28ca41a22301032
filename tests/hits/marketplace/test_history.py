"""What a worker has handed in, page by page and all of it, and what it brought."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import event

from hits.marketplace import engine_workers
from hits.marketplace.errors import AssignmentUnknown, WorkerUnknown
from hits.marketplace.views import DayEarnings
from tests.hits.marketplace.market import Market


def test_history_and_earnings_agree(market: Market) -> None:
    worker_id = market.worker()
    approved, rejected = (market.submitted(market.create_hit(), worker_id) for _ in range(2))
    market.client.approve_assignment(AssignmentId=approved, RequesterFeedback="Good.")
    market.client.reject_assignment(AssignmentId=rejected, RequesterFeedback="Empty.")
    market.clock.advance(days=1)
    pending = market.submitted(market.create_hit(Reward="0.50"), worker_id)
    market.client.send_bonus(WorkerId=worker_id, AssignmentId=approved, BonusAmount="0.25", Reason="Fooled it")

    history = market.engine.work_history(worker_id).entries
    earnings = market.engine.earnings(worker_id)

    assert [(entry.assignment_id, entry.state, entry.feedback) for entry in history] == [
        (pending, "Submitted", None),
        (rejected, "Rejected", "Empty."),
        (approved, "Approved", "Good."),
    ]
    assert [bonus.reason for bonus in history[2].bonuses] == ["Fooled it"]
    assert (earnings.approved, earnings.pending, earnings.bonuses) == (
        Decimal("0.30"),
        Decimal("0.50"),
        Decimal("0.25"),
    )
    assert earnings.days == (
        DayEarnings(date(2026, 12, 1), Decimal("0.00"), Decimal("0.25")),
        DayEarnings(date(2026, 11, 30), Decimal("0.30"), Decimal("0.00")),
    )


def test_earnings_fall_on_their_days_of_utc_to_the_cent(stored_market: Market) -> None:
    market, worker_id = stored_market, stored_market.worker()
    market.clock.advance(datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - market.clock.now())
    expected: dict[date, list[int]] = {}
    for number, step in enumerate((0, 0, 0.000001, 40000, 50000)):
        market.clock.advance(timedelta(seconds=step))
        assignment_id = market.submitted(market.create_hit(Reward=f"0.{11 + number}"), worker_id)
        market.client.approve_assignment(AssignmentId=assignment_id)
        bonus = f"{number}.07"
        market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount=bonus, Reason="Good.")
        day = expected.setdefault(market.clock.now().date(), [0, 0])
        day[0] += 11 + number
        day[1] += 100 * number + 7

    earnings = market.engine.earnings(worker_id)

    assert [(one.day, int(one.approved * 100), int(one.bonuses * 100)) for one in earnings.days] == [
        (day, *cents) for day, cents in sorted(expected.items(), reverse=True)
    ]
    assert [str(one.day) for one in earnings.days] == ["2027-01-02", "2027-01-01", "2026-12-31"]
    assert (earnings.approved, earnings.bonuses) == (Decimal("0.65"), Decimal("10.35"))


def test_earnings_read_a_row_for_a_day_however_many_were_earned_on_it(market: Market) -> None:
    worker_id = market.worker()
    for _ in range(5):
        market.client.approve_assignment(AssignmentId=market.submitted(market.create_hit(), worker_id))
    market.submitted(market.create_hit(), worker_id)
    fetched: list[tuple[Any, ...]] = []

    def watch(connection: Any, _record: object, _proxy: object) -> None:
        connection.row_factory = lambda _cursor, row: fetched.append(row) or row

    event.listen(market.engine.store.engine, "checkout", watch)
    earnings = market.engine.earnings(worker_id)

    assert (earnings.approved, earnings.pending) == (Decimal("1.50"), Decimal("0.30"))
    # The worker's own row, one day, what is pending, and what the engine asks before each call.
    assert 3 <= len(fetched) <= 6, fetched


def test_history_comes_in_pages_and_as_a_whole(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    worker_id = market.worker()
    done = []
    for number in range(5):
        # Some of them at the same moment, where only their order of acceptance tells them apart.
        market.clock.advance(seconds=number % 2)
        done.append(market.submitted(market.create_hit(), worker_id))
    market.engine.return_assignment(worker_id, market.accepted(market.create_hit(), worker_id))
    market.accepted(market.create_hit(), worker_id)
    newest_first = done[::-1]

    pages = [market.engine.work_history(worker_id, page=page, page_size=2) for page in (1, 2, 3)]

    assert [entry.assignment_id for page in pages for entry in page.entries] == newest_first
    assert [(page.page, page.pages, page.total) for page in pages] == [(1, 3, 5), (2, 3, 5), (3, 3, 5)]
    assert market.engine.work_history(worker_id, page=0, page_size=2) == pages[0]
    for size in (1, 2, 5, 6):
        monkeypatch.setattr(engine_workers, "_BATCH", size)
        assert [entry.assignment_id for entry in market.engine.all_work(worker_id)] == newest_first
    assert list(market.engine.all_work(market.worker())) == []


def test_one_entry_is_its_workers_own_and_submitted(market: Market) -> None:
    worker_id = market.worker()
    assignment_id = market.submitted(market.create_hit(), worker_id)
    market.client.approve_assignment(AssignmentId=assignment_id)
    market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount="0.25", Reason="Fooled it")

    entry = market.engine.work_entry(worker_id, assignment_id)

    assert entry == market.engine.work_history(worker_id).entries[0]
    assert [bonus.amount for bonus in entry.bonuses] == [Decimal("0.25")]
    held = market.accepted(market.create_hit(), worker_id)
    for asked_by, asked in ((market.worker(), assignment_id), (worker_id, held), (worker_id, "3NOTHERE")):
        with pytest.raises(AssignmentUnknown):
            market.engine.work_entry(asked_by, asked)
    with pytest.raises(WorkerUnknown):
        list(market.engine.all_work("ANOTHERE"))
