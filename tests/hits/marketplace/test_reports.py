"""Workers reporting HITs, and the operator closing reports."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hits.marketplace.errors import AlreadyReported, HitUnknown, MessageUnfit, OperatorError, ReportUnfit, WroteTooOften
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.test_work import all_at_once


def test_a_report_reaches_the_operator_and_its_end_the_worker(stored_market: Market) -> None:
    engine, worker_id, hit_id = stored_market.engine, stored_market.worker(), stored_market.create_hit()
    assignment_id = stored_market.accepted(hit_id, worker_id)

    report_id = engine.report_hit(worker_id, hit_id, "personal-data", " It wants my e-mail address.\x00")

    (report,) = engine.reports().reports
    assert (report.report_id, report.reason, report.text) == (report_id, "personal-data", "It wants my e-mail address.")
    assert (report.worker_id, report.hit_id, report.assignment_id) == (worker_id, hit_id, assignment_id)
    assert (report.hit_title, report.requester_name, report.hit_status) == (
        "Fool the model",
        "Language Lab",
        "Unassignable",
    )
    assert report.closed_at is None
    engine.close_report(report_id, "The HIT was taken down. Thank you.")
    assert engine.reports().total == 0
    (closed,) = engine.reports(open_only=False).reports
    assert (closed.note, closed.closed_at) == ("The HIT was taken down. Thank you.", stored_market.clock.now())
    (told,) = engine.messages(worker_id).messages
    assert (told.requester_id, told.requester_name) == (None, None)
    assert (told.subject, told.text) == (
        "Your report about “Fool the model”",
        "The HIT was taken down. Thank you.",
    )


def test_one_open_report_of_each_worker_and_hit(stored_market: Market) -> None:
    engine, worker_id, hit_id = stored_market.engine, stored_market.worker(), stored_market.create_hit()

    def report() -> Callable[[], object]:
        def call() -> object:
            try:
                return engine.report_hit(worker_id, hit_id, "broken")
            except AlreadyReported:
                return "already"

        return call

    outcomes = all_at_once([report() for _ in range(8)])

    assert outcomes.count("already") == 7
    (report_id,) = {str(outcome) for outcome in outcomes} - {"already"}
    engine.report_hit(stored_market.worker(), hit_id, "broken")
    engine.close_report(report_id, "It works again.")
    engine.report_hit(worker_id, hit_id, "broken", "No, it does not.")
    assert engine.reports().total == 2


def test_reports_that_cannot_be(market: Market) -> None:
    worker_id, hit_id = market.worker(), market.create_hit()

    for reason, text in (("", ""), ("boredom", "x"), ("other", " \x00"), ("broken", "x" * 2001)):
        with pytest.raises(ReportUnfit):
            market.engine.report_hit(worker_id, hit_id, reason, text)
    with pytest.raises(HitUnknown):
        market.engine.report_hit(worker_id, "3NONE", "broken")

    assert market.engine.reports(open_only=False).total == 0


def test_twenty_reports_a_day(market: Market) -> None:
    worker_id = market.worker()
    for _ in range(20):
        market.engine.report_hit(worker_id, market.create_hit(), "broken")

    with pytest.raises(WroteTooOften, match="20 reports"):
        market.engine.report_hit(worker_id, market.create_hit(), "broken")

    market.clock.advance(days=1)
    market.engine.report_hit(worker_id, market.create_hit(), "broken")


def test_closing_needs_an_open_report_and_words(market: Market) -> None:
    worker_id = market.worker()
    report_id = market.engine.report_hit(worker_id, market.create_hit(), "broken")

    with pytest.raises(OperatorError, match="no report"):
        market.engine.close_report("3NONE", "Done.")
    with pytest.raises(OperatorError, match="Write what was done"):
        market.engine.close_report(report_id, "  ")
    with pytest.raises(MessageUnfit):
        market.engine.close_report(report_id, "x" * 4001)
    market.engine.close_report(report_id, "Done.")
    with pytest.raises(OperatorError, match=r"closed at .* already"):
        market.engine.close_report(report_id, "Done.")

    assert market.engine.messages(worker_id).total == 1


def test_open_reports_come_oldest_first_all_of_them_newest_first(market: Market) -> None:
    made = [
        market.engine.report_hit(market.worker(), market.create_hit(), "broken", f"{number}") for number in range(3)
    ]
    market.engine.close_report(made[1], "Seen.")

    assert [one.text for one in market.engine.reports().reports] == ["0", "2"]
    page = market.engine.reports(open_only=False, page=2, page_size=2)
    assert [one.text for one in page.reports] == ["0"]
    assert (page.page, page.pages, page.total) == (2, 2, 3)


def test_returns_with_a_reason_are_listed_newest_first(stored_market: Market) -> None:
    hit_id = stored_market.create_hit(MaxAssignments=9)
    for reason in ("first", "", "second\x00", "third"):
        worker_id = stored_market.worker()
        stored_market.engine.return_assignment(worker_id, stored_market.accepted(hit_id, worker_id), reason)

    page = stored_market.engine.returned_hits(page_size=2)

    assert [one.reason for one in page.entries] == ["third", "second"]
    assert (page.page, page.pages, page.total) == (1, 2, 3)
    newest = page.entries[0]
    assert (newest.hit_id, newest.hit_title, newest.requester_name) == (hit_id, "Fool the model", "Language Lab")
    assert (newest.worker_id, newest.returned_at) == (worker_id, stored_market.clock.now())
