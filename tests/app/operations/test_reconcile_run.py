"""The daily look at the books: when it is due, what is kept of it, and whom it tells."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from aiosmtpd.controller import Controller
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.metrics import metrics_text
from app.models import ReconcileRun
from app.operations.jobs_pass import jobs_pass
from app.operations.reconcile_run import is_due, last_run, reconcile_and_tell, tell_again
from app.settings import Settings
from hits.clock import FixedClock
from hits.money import usd
from payments.ledger import record_deposit
from tests.app.test_mail import Sink, free_port
from tests.market import Market, settings


@contextmanager
def mail_server(port: int) -> Iterator[Sink]:
    sink = Sink()
    controller = Controller(sink, "127.0.0.1", port)
    controller.start()
    try:
        yield sink
    finally:
        controller.stop()


def mailing(port: int) -> Settings:
    return settings(
        alert_mail="kim@example.org", mail_from="dynahit@example.org", smtp_host="127.0.0.1", smtp_port=port
    )


@pytest.fixture
def books(session: Session, market: Market, clock: FixedClock) -> Session:
    """Books that agree with the marketplace: one deposit."""
    record_deposit(session, market.mturk.endpoint, usd("10000.00"), reference="for tests", now=clock.now())
    session.commit()
    return session


def unbooked_money(market: Market) -> None:
    market.engine.top_up(market.requester_id, Decimal("25.00"), "not booked")


def test_it_is_due_a_day_after_the_first_booking_and_a_day_after_each_run(
    books: Session, market: Market, clock: FixedClock
) -> None:
    here, endpoint = settings(), market.mturk.endpoint

    assert not is_due(books, endpoint, here, clock)
    clock.advance(timedelta(hours=24))
    assert is_due(books, endpoint, here, clock)
    assert not is_due(books, endpoint, settings(reconcile_hours=0), clock)
    reconcile_and_tell(books, market.mturk, here, clock)
    assert not is_due(books, endpoint, here, clock)
    clock.advance(timedelta(hours=24))
    assert is_due(books, endpoint, here, clock)


def test_before_anything_is_booked_there_is_nothing_to_look_at(
    session: Session, market: Market, clock: FixedClock
) -> None:
    clock.advance(timedelta(days=30))

    assert not is_due(session, market.mturk.endpoint, settings(), clock)


def test_clean_books_are_kept_as_one_line_and_tell_nobody(
    books: Session, market: Market, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    with mail_server(port := free_port()) as sink, caplog.at_level(logging.WARNING):
        reconcile_and_tell(books, market.mturk, mailing(port), clock)

    run = last_run(books, market.mturk.endpoint)
    assert run is not None
    assert (run.clean, run.findings, run.mailed_at) == (True, [], None)
    assert run.summary.startswith("The books agree with the marketplace: ")
    assert (sink.messages, caplog.records) == ([], [])


def test_a_finding_is_told_by_log_metric_and_mail(
    books: Session, market: Market, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    unbooked_money(market)

    with mail_server(port := free_port()) as sink, caplog.at_level(logging.WARNING):
        run = reconcile_and_tell(books, market.mturk, mailing(port), clock)

    [finding] = run.findings
    assert (finding["kind"], finding["subject"]) == ("different", "account")
    assert "holds $25.00 more than the books say" in caplog.text
    [message] = sink.messages
    assert message["Subject"] == "dynahit: 1 finding: the books don't agree with the marketplace."
    assert finding["what"] in message.get_content().replace("\r\n", "\n")
    assert "payments deposit 25.00" in message.get_content()
    assert "http://localhost:8001/finance/reconcile" in message.get_content()
    assert run.mailed_at == clock.now()
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(metrics_text(books, "ready").decode())
        for sample in family.samples
    }
    assert samples["dynahit_reconcile_findings"] == 1


def test_a_mail_that_nobody_took_goes_out_later_once(
    books: Session, market: Market, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    unbooked_money(market)
    here, endpoint = mailing(free_port()), market.mturk.endpoint

    run = reconcile_and_tell(books, market.mturk, here, clock)
    assert run.mailed_at is None
    assert "could not be mailed" in caplog.text
    assert not tell_again(books, endpoint, here, clock)
    clock.advance(timedelta(minutes=10))
    with mail_server(here.smtp_port) as sink:
        assert tell_again(books, endpoint, here, clock)
        clock.advance(timedelta(minutes=10))
        assert not tell_again(books, endpoint, here, clock)

    assert len(sink.messages) == 1


def test_the_jobs_look_once_a_day_and_say_what_they_found(
    books: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    unbooked_money(market)
    clock.advance(timedelta(hours=25))

    first = jobs_pass(books, market.mturk, settings, clock)
    second = jobs_pass(books, market.mturk, settings, clock)

    assert first.reconciled == 1
    assert [one for one in first.findings if one.startswith("reconcile: 1 finding")]
    assert (second.reconciled, second.findings) == (0, [])
    assert len(books.scalars(select(ReconcileRun)).all()) == 1
