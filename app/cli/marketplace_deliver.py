"""`dynahit marketplace deliver`: hands events and mail to queues, webhooks and the mail server, round after round."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import click
from sqlalchemy.exc import SQLAlchemyError

from app.cli.serving_marketplace import stop_signals
from app.marketplace.languages import translate
from app.marketplace.settings import Settings, SettingsMissing, settings_from_environment
from hits.marketplace.deliveries import DeliveryReport, Transport
from hits.marketplace.engine import Marketplace
from hits.marketplace.mails import MailReport
from hits.marketplace.transports import Mail, mail, transports

#: Events and mails of one round, and how long events may take before mail has its turn: people wait for mail.
ROUND = 500
EVENT_SECONDS = 20.0
LONGEST_PAUSE = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Deliverer:
    """A marketplace with its ways out."""

    engine: Marketplace
    ways: Mapping[str, Transport]
    post_office: Mail | None
    event_seconds: float = math.inf

    def round(self, stop: threading.Event) -> tuple[DeliveryReport, MailReport]:
        """Deliver what is due until asked to stop; no event is begun later than `event_seconds`."""
        end = time.monotonic() + self.event_seconds
        events = self.engine.deliver_due(self.ways, limit=ROUND, stop=lambda: stop.is_set() or time.monotonic() >= end)
        letters = MailReport(0, 0, 0, 0)
        if self.post_office is not None:
            letters = self.engine.send_mail_due(self.post_office, translate=translate, limit=ROUND, stop=stop.is_set)
        return events, letters

    def rounds(self, stop: threading.Event, pause: float) -> None:
        """Go on until asked to stop; while the database fails, the pauses grow."""
        wait = pause
        while not stop.is_set():
            try:
                events, letters = self.round(stop)
            except SQLAlchemyError as error:
                wait = min(max(wait, 0.5) * 2, LONGEST_PAUSE)
                _log.warning("the database failed, trying again in %.0f seconds: %s", wait, str(error).splitlines()[0])
            else:
                is_full = events.delivered + events.failed >= ROUND or letters.sent + letters.dropped >= ROUND
                wait = 0 if is_full else pause
            stop.wait(wait)


@click.command("deliver")
@click.option("--once", is_flag=True, help="Deliver what is due now, say how it went, and end.")
def deliver(once: bool) -> None:
    """Deliver events and mail until stopped.

    `serve` and `up` run this by themselves. Several at once are correct.
    """
    try:
        settings = settings_from_environment()
    except SettingsMissing as error:
        raise click.ClickException(str(error)) from error
    engine = Marketplace(settings.database_url, settings=settings.engine_settings())
    ways = settings.delivery_settings()
    deliverer = Deliverer(engine, transports(ways), mail(ways), math.inf if once else EVENT_SECONDS)
    try:
        with stop_signals() as stop:
            if once:
                said(*deliverer.round(stop))
            else:
                click.echo(introduction(settings))
                deliverer.rounds(stop, settings.delivery_seconds)
    finally:
        engine.close()


def introduction(settings: Settings) -> str:
    """Return which ways out there are, and what the others lack."""
    ways = [
        f"webhooks {'on' if settings.webhooks else 'off (MARKETPLACE_WEBHOOKS)'}",
        "SQS and SNS on" if settings.aws_region else "SQS and SNS off (MARKETPLACE_AWS_REGION)",
        f"mail by {settings.smtp_host}" if settings.sends_mail else "mail off (MARKETPLACE_SMTP_HOST)",
    ]
    return f"Delivering events and mail: {', '.join(ways)}."


def said(events: DeliveryReport, letters: MailReport) -> None:
    """Print how a round went."""
    click.echo(
        f"Events: {events.delivered} delivered, {events.failed} failed ({events.given_up} for good), "
        f"{events.waiting} waiting."
    )
    click.echo(f"Mails: {letters.sent} sent, {letters.failed} failed, {letters.waiting} waiting.")
