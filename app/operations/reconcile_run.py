"""The daily look at the books: reconcile, keep what was found, and tell people by log, metric and mail."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.mail import MailNotSent, can_send, send_alert
from app.models import ReconcileRun
from app.operations.reconcile import Reconciliation, Records, reconcile
from app.settings import Settings
from hits.clock import Clock
from payments.models import LedgerTransaction

log = logging.getLogger(__name__)

#: A mail that was not taken is tried again after so long.
_MAIL_AGAIN: Final = timedelta(minutes=10)
_MOST_IN_A_MAIL: Final = 50
_SUMMARY_CHARACTERS: Final = 1000


def last_run(session: Session, endpoint: str) -> ReconcileRun | None:
    """Return the newest run on a marketplace, None before the first."""
    return session.scalar(
        select(ReconcileRun).where(ReconcileRun.endpoint == endpoint).order_by(ReconcileRun.id.desc()).limit(1)
    )


def is_due(session: Session, endpoint: str, settings: Settings, clock: Clock) -> bool:
    """Tell whether the books should be looked at now. Reads only.

    A day (DYNAHIT_RECONCILE_HOURS) after the last time, and the first time a day after the first booking.
    """
    if not settings.reconcile_hours:
        return False
    run = last_run(session, endpoint)
    since = run.at if run is not None else session.scalar(select(func.min(LedgerTransaction.at)))
    return since is not None and clock.now() - since >= timedelta(hours=settings.reconcile_hours)


def reconcile_and_tell(session: Session, records: Records, settings: Settings, clock: Clock) -> ReconcileRun:
    """Reconcile, keep the run, and raise an alert when something was found. Commits.

    A mail that can't be sent is a warning in the log, and is sent by a later ``tell_again``. Raises MTurkUnavailable.
    """
    started = clock.now()
    found = reconcile(session, records)
    run = ReconcileRun(
        at=started,
        endpoint=records.endpoint,
        clean=not found.findings,
        summary=summary(found)[:_SUMMARY_CHARACTERS],
        findings=[
            {"kind": one.kind.value, "subject": one.subject, "what": one.what, "todo": one.todo}
            for one in found.findings
        ],
        seconds=int((clock.now() - started).total_seconds()),
    )
    session.add(run)
    session.commit()
    for finding in found.findings:
        log.warning("reconcile: %s", finding)
    if found.findings:
        _mail(session, run, settings, clock)
    return run


def tell_again(session: Session, endpoint: str, settings: Settings, clock: Clock) -> bool:
    """Send the mail about the last run that could not be sent then; tell whether it went out. Commits."""
    run = last_run(session, endpoint)
    if run is None or run.clean or run.mailed_at is not None:
        return False
    if run.mail_tried_at is not None and clock.now() - run.mail_tried_at < _MAIL_AGAIN:
        return False
    return _mail(session, run, settings, clock)


def summary(found: Reconciliation) -> str:
    """Return the line that stands for a run."""
    if not found.findings:
        return str(found)
    count = len(found.findings)
    return f"{count} {'finding' if count == 1 else 'findings'}: the books don't agree with the marketplace."


def _mail(session: Session, run: ReconcileRun, settings: Settings, clock: Clock) -> bool:
    if not can_send(settings):
        return False
    lines = [f"{one['kind']}: {one['subject']}: {one['what']} {one['todo']}" for one in run.findings[:_MOST_IN_A_MAIL]]
    more = len(run.findings) - len(lines)
    text = "\n\n".join(
        [
            f"{run.summary} Marketplace: {run.endpoint}. Looked at {run.at:%Y-%m-%d %H:%M} UTC.",
            *lines,
            *([f"And {more} more: `dynahit payments reconcile` shows all of them."] if more else []),
            f"The finance page: {settings.service_url.rstrip('/')}/finance/reconcile",
        ]
    )
    # No transaction stays open while the mail server is asked.
    run_id, run.mail_tried_at = run.id, clock.now()
    session.commit()
    try:
        send_alert(settings, clock, f"dynahit: {run.summary}", f"{text}\n")
    except MailNotSent as error:
        log.warning("The alert about the books could not be mailed: %s", error)
        return False
    session.get_one(ReconcileRun, run_id).mailed_at = clock.now()
    session.commit()
    return True
