"""``dynahit jobs``: the process that collects, approves, decides and opens validation HITs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click
from flask.cli import AppGroup

from app.extensions import db
from app.operations.jobs_pass import PassReport, jobs_pass
from app.operations.jobs_plan import JobsPlan, plan_jobs
from app.services import services
from hits.money import display

group = AppGroup("jobs", help="Collect, approve, decide, open validation HITs.")

#: The longest pause while the marketplace does not answer.
LONGEST_PAUSE = 60.0


@group.command("run")
@click.option("--once", is_flag=True, help="One pass, for cron; the exit code is 1 when a step could not be done.")
@click.option("--interval", type=float, help="Seconds between two passes. [default: DYNAHIT_JOBS_INTERVAL_SECONDS]")
@click.option("--plan", is_flag=True, help="Show what the next pass would pay for, and change nothing.")
def run(once: bool, interval: float | None, plan: bool) -> None:
    """Work until stopped, one pass after the other. A line is printed when something changed."""
    here = services()
    if plan:
        _show(plan_jobs(db.session(), here.mturk, here.settings, here.clock))
        return
    if interval is not None and interval <= 0:
        raise click.UsageError("--interval must be more than 0 seconds.")
    usual = interval or here.settings.jobs_interval_seconds
    pause = usual
    said: list[str] = []
    opening = True
    with _stopped_by_signals() as stop:
        while not stop.is_set():
            report = jobs_pass(
                db.session(), here.mturk, here.settings, here.clock, open_validation=opening, model=here.started_engine
            )
            db.session.remove()
            _say(report, said)
            said = report.findings
            if once:
                if report.unavailable or report.broken:
                    raise SystemExit(1)
                return
            if report.stop_opening:
                opening = False
                click.echo("No more validation HITs are opened until this process is started again.", err=True)
            pause = min(pause * 2, max(LONGEST_PAUSE, usual)) if report.unavailable else usual
            stop.wait(pause)
    click.echo("Stopped.")


def _show(plan: JobsPlan) -> None:
    opening = f"{plan.validation_hits} with {plan.validation_places} places, {display(plan.validation_cost)} with fees"
    if plan.validation_bonuses:
        opening += f", and {display(plan.validation_bonuses)} of bonuses at most"
    for name, value in {
        "To approve": f"{plan.approvals}, {display(plan.approval_cost)} with fees, on hold since their HITs exist",
        "To review by you": str(plan.to_review),
        "Validation HITs to open": opening,
        "Balance": display(plan.balance),
    }.items():
        click.echo(f"{name:<25}{value}")
    for stopping in plan.stopping:
        click.echo(f"{'Stops collecting':<25}{stopping}")
    click.echo("This is a plan. Nothing was changed; leave --plan out to work.")


def _say(report: PassReport, said: list[str]) -> None:
    """Print what is new: the counts of a pass that did something, and findings that were not just printed."""
    if report.changed:
        click.echo(f"{services().clock.now():%Y-%m-%d %H:%M:%S} UTC  {report}")
    for finding in report.findings:
        if finding not in said:
            click.echo(finding, err=True)


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set, so that the pass in work is finished first."""
    stop = threading.Event()

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
