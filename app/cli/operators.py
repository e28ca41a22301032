"""What an operator does on the command line: accounts, disputes, reports, payout runs, and the log of it all."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from app.cli.marketplace_output import (
    as_json,
    find_requester,
    moment,
    opened,
    print_json,
    print_table,
    read_settings,
    record,
    say,
    shell_user,
)
from hits.marketplace.console_views import Dispute, Page, PayoutRun, WorkerAccount
from hits.marketplace.disputes import STATES
from hits.marketplace.reports import REASONS
from hits.marketplace.views import HitReportPage

page_option = click.option("--page", default=1, show_default=True, type=click.IntRange(1), help="Which page.")
plan_option = click.option("--plan", is_flag=True, help="Say what would happen, and change nothing.")
on_or_off = click.argument("on", type=click.Choice(["on", "off"]))


def until_time(text: str) -> datetime:
    """Return the aware time of 2026-12-31 or 2026-12-31T12:00 (UTC).

    Raises click.BadParameter.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a time such as 2026-12-31 or 2026-12-31T12:00 (UTC)") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _password(given: bool) -> str:
    if given:
        return sys.stdin.readline().rstrip("\n")
    return str(click.prompt("Password for the operator console", hide_input=True, confirmation_prompt=True))


def _more(found: Page[Any] | HitReportPage) -> None:
    if found.page < found.pages:
        of = f"more than {found.pages}" if found.has_more else f"{found.pages}"
        click.echo(f"Page {found.page} of {of}; --page {found.page + 1} shows the next one.", err=True)


# Operators


@click.group()
def operator() -> None:
    """Accounts for the operator console at /operator."""


stdin_option = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")


@operator.command("add")
@click.argument("name")
@stdin_option
def add_operator(name: str, password_stdin: bool) -> None:
    """Make an account called NAME."""
    settings = read_settings()
    password = _password(password_stdin)
    with opened(settings) as engine:
        made = engine.add_operator(name, password, by=shell_user())
    say(f"{made.name} can sign in at {settings.site_url}/operator/sign-in.")


@operator.command("list")
@as_json
def list_operators(as_json: bool) -> None:
    """List the accounts."""
    with opened(read_settings()) as engine:
        found = engine.operators()
    if as_json:
        print_json([record(one) for one in found])
        return
    print_table(
        ("name", "created", "state"),
        [
            (one.name, moment(one.created_at), f"closed {moment(one.closed_at)}" if one.closed_at else "open")
            for one in found
        ],
        "No operators yet. `dynahit marketplace operator add NAME` makes one.",
    )


@operator.command("password")
@click.argument("name")
@stdin_option
def operator_password(name: str, password_stdin: bool) -> None:
    """Give an account a new password; its sessions end."""
    settings = read_settings()
    password = _password(password_stdin)
    with opened(settings) as engine:
        engine.set_operator_password(name, password, by=shell_user())
    say(f"{name} has a new password.")


@operator.command("close")
@click.argument("name")
def close_operator(name: str) -> None:
    """Close an account for good; what it did stays in the audit log."""
    with opened(read_settings()) as engine:
        engine.close_operator(name, by=shell_user())
    say(f"The account {name} is closed.")


# Workers


@click.group()
def worker() -> None:
    """Workers' accounts, and what qualifications know of them."""


@worker.command("list")
@click.option("--query", default="", help="A worker id, or a part of a user name.")
@page_option
@as_json
def list_workers(query: str, page: int, as_json: bool) -> None:
    """List workers, newest first."""
    with opened(read_settings()) as engine:
        found = engine.worker_accounts(query, page=page)
    if as_json:
        print_json(record(found))
        return
    print_table(
        ("worker", "user name", "state", "waiting", "approved", "rejected", "master", "locale"),
        [_worker_row(one) for one in found.entries],
        "No workers found.",
    )
    _more(found)


@worker.command("show")
@click.argument("name")
@as_json
def show_worker(name: str, as_json: bool) -> None:
    """Show one worker by NAME or id, with what was paid out."""
    with opened(read_settings()) as engine:
        found = engine.worker_account(name)
        money = engine.worker_payouts(found.worker.worker_id)
    if as_json:
        print_json({**record(found), "payouts": record(money)})
        return
    print_table(
        ("worker", "user name", "state", "waiting", "approved", "rejected", "master", "locale"),
        [_worker_row(found)],
        "",
    )
    click.echo(
        f"Earned ${money.earned:,.2f}: ${money.open:,.2f} in no payout run, ${money.being_paid:,.2f} being paid out, "
        f"${money.paid:,.2f} paid out."
    )


@worker.command("disable")
@click.argument("name")
def disable_worker(name: str) -> None:
    """Close an account to its worker. Work they hold can still be handed in and is paid."""
    with opened(read_settings()) as engine:
        account = engine.worker_account(name).worker
        engine.set_worker_disabled(account.worker_id, True, by=shell_user())
    say(f"{account.user_name} can no longer sign in.")


@worker.command("enable")
@click.argument("name")
def enable_worker(name: str) -> None:
    """Open a disabled account again."""
    with opened(read_settings()) as engine:
        account = engine.worker_account(name).worker
        engine.set_worker_disabled(account.worker_id, False, by=shell_user())
    say(f"{account.user_name} can sign in again.")


def _set_trait(name: str, trait: str, on: str) -> str:
    with opened(read_settings()) as engine:
        account = engine.worker_account(name).worker
        engine.set_worker_trait(account.worker_id, trait, on == "on", by=shell_user())
    return account.user_name


@worker.command("master")
@click.argument("name")
@on_or_off
def master(name: str, on: str) -> None:
    """Make a worker a master, or no master any more."""
    who = _set_trait(name, "is_master", on)
    say(f"{who} is {'a master' if on == 'on' else 'no master'}.")


@worker.command("adult")
@click.argument("name")
@on_or_off
def adult(name: str, on: str) -> None:
    """Write down whether a worker agreed to see adult content."""
    who = _set_trait(name, "is_adult", on)
    say(f"{who} {'agreed' if on == 'on' else 'did not agree'} to see adult content.")


@worker.command("locale")
@click.argument("name")
@click.argument("country", required=False)
@click.argument("subdivision", required=False)
def locale(name: str, country: str | None, subdivision: str | None) -> None:
    """Write down where a worker lives (NO, or US CA). Without a country it is taken back."""
    with opened(read_settings()) as engine:
        account = engine.worker_account(name).worker
        engine.set_worker_locale(account.worker_id, country, subdivision, by=shell_user())
    place = "-".join(part for part in (country, subdivision) if part)
    say(f"{account.user_name} lives in {place}." if place else f"{account.user_name} has no locale.")


def _worker_row(account: WorkerAccount) -> tuple[str, ...]:
    one = account.worker
    return (
        one.worker_id,
        one.user_name,
        "disabled" if account.disabled_at else "open",
        str(account.submitted),
        str(account.approved),
        str(account.rejected),
        "yes" if one.is_master else "",
        "-".join(part for part in (one.country, one.subdivision) if part),
    )


# Requesters: these go into the group that creates and lists them.


@click.command("disable", short_help="Close an account: console and API.")
@click.argument("requester")
def disable_requester(requester: str) -> None:
    """Close an account to its REQUESTER, console and API; HITs go on until they expire."""
    with opened(read_settings()) as engine:
        account = find_requester(engine, requester)
        engine.set_requester_disabled(account.requester_id, True, by=shell_user())
    say(f"{account.name} reaches neither console nor API.")


@click.command("enable")
@click.argument("requester")
def enable_requester(requester: str) -> None:
    """Open a disabled account again."""
    with opened(read_settings()) as engine:
        account = find_requester(engine, requester)
        engine.set_requester_disabled(account.requester_id, False, by=shell_user())
    say(f"{account.name} reaches console and API again.")


# Reports


@click.group()
def report() -> None:
    """Workers' reports of HITs."""


@report.command("list")
@click.option("--all", "every", is_flag=True, help="Closed ones too.")
@page_option
@as_json
def list_reports(every: bool, page: int, as_json: bool) -> None:
    """List the reports, the oldest open one first."""
    with opened(read_settings()) as engine:
        found = engine.reports(open_only=not every, page=page)
    if as_json:
        print_json(record(found))
        return
    print_table(
        ("report", "HIT", "title", "requester", "reason", "words", "reported", "state"),
        [
            (
                one.report_id,
                one.hit_id,
                one.hit_title,
                one.requester_name,
                str(REASONS[one.reason]),
                one.text,
                moment(one.reported_at),
                f"closed {moment(one.closed_at)}" if one.closed_at else "open",
            )
            for one in found.reports
        ],
        "No reports yet." if every else "No open reports.",
    )
    _more(found)


@report.command("close")
@click.argument("report_id")
@click.argument("words")
def close_report(report_id: str, words: str) -> None:
    """Close a report; the worker gets the WORDS."""
    with opened(read_settings()) as engine:
        engine.end_report(report_id, words, by=shell_user())
    click.echo("The report is closed.")


@click.command("take-down")
@click.argument("hit_id")
@click.argument("words")
@click.option("--type", "whole_type", is_flag=True, help="All HITs of its type.")
def take_down(hit_id: str, words: str, whole_type: bool) -> None:
    """Expire a HIT for good; its requester gets the WORDS."""
    with opened(read_settings()) as engine:
        count = engine.take_down(hit_id, words, whole_type=whole_type, by=shell_user())
    click.echo(f"{count} {'HIT is' if count == 1 else 'HITs are'} taken down.")


# Disputes


@click.group()
def dispute() -> None:
    """Workers' disputes about rejections."""


@dispute.command("list")
@click.option("--state", default="Open", show_default=True, type=click.Choice([*STATES, "all"]))
@page_option
@as_json
def list_disputes(state: str, page: int, as_json: bool) -> None:
    """List the disputes, the longest open first."""
    with opened(read_settings()) as engine:
        found = engine.disputes(state=None if state == "all" else state, page=page)
    if as_json:
        print_json(record(found))
        return
    print_table(
        ("dispute", "assignment", "requester", "worker", "costs", "opened", "state"),
        [
            (
                one.dispute_id,
                one.assignment_id,
                one.requester_name,
                one.worker_id,
                f"${one.cost:,.2f}",
                moment(one.opened_at),
                one.state,
            )
            for one in found.entries
        ],
        "No disputes here.",
    )
    _more(found)


@dispute.command("show")
@click.argument("dispute_id")
@as_json
def show_dispute(dispute_id: str, as_json: bool) -> None:
    """Show both sides of a dispute."""
    with opened(read_settings()) as engine:
        found = engine.dispute(dispute_id)
    if as_json:
        print_json(record(found))
        return
    say(f"{found.state}: {found.title}, assignment {found.assignment_id}")
    say(f"The worker ({moment(found.opened_at)}): {found.words}")
    say(f"The requester with the rejection ({moment(found.rejected_at)}): {found.feedback or 'no words'}")
    if found.reply:
        say(f"The requester ({moment(found.replied_at)}): {found.reply}")
    if found.decision:
        say(f"{found.decided_by} ({moment(found.decided_at)}): {found.decision}")


@dispute.command("overturn", short_help="Approve the assignment after all.")
@click.argument("dispute_id")
@click.argument("words")
@plan_option
@as_json
def overturn(dispute_id: str, words: str, plan: bool, as_json: bool) -> None:
    """Approve the assignment after all, at the requester's cost; both sides get the WORDS."""
    with opened(read_settings()) as engine:
        found = engine.dispute(dispute_id)
        balance = engine.balance(found.requester_id)
        if not plan:
            found = engine.overturn_dispute(dispute_id, words, by=shell_user())
    if as_json:
        print_json(record(found))
    elif plan:
        say(
            f"${found.cost:,.2f} (reward ${found.reward:,.2f} and fee) would be taken from {found.requester_name}, who "
            f"has ${balance.available:,.2f} available. Nothing was changed."
        )
    else:
        _say_decided(found)


@dispute.command("uphold")
@click.argument("dispute_id")
@click.argument("words")
@as_json
def uphold(dispute_id: str, words: str, as_json: bool) -> None:
    """Let the rejection stand; both sides get the WORDS."""
    with opened(read_settings()) as engine:
        found = engine.uphold_dispute(dispute_id, words, by=shell_user())
    if as_json:
        print_json(record(found))
    else:
        _say_decided(found)


def _say_decided(found: Dispute) -> None:
    paid = f" The worker has earned ${found.reward:,.2f}." if found.state == "Overturned" else ""
    click.echo(f"The rejection is {found.state.lower()}.{paid} Both sides were told.")


# Payout runs


@click.group("payout-run")
def payout_run() -> None:
    """Pay workers what they have earned, each earning once."""


@payout_run.command("draft")
@click.option("--until", type=until_time, metavar="TIME", help="Earned before then (UTC); now if it is left out.")
@click.option("--only-with-details", is_flag=True, help="Only workers who have said how to pay them.")
@plan_option
@as_json
def draft(until: datetime | None, only_with_details: bool, plan: bool, as_json: bool) -> None:
    """Put what is owed and in no run yet into a new run."""
    with opened(read_settings()) as engine:
        if plan:
            owed = engine.open_earnings(until)
            if as_json:
                print_json(record(owed))
            else:
                click.echo(
                    f"${owed.total:,.2f} is owed to {owed.workers} workers for {owed.earnings} rewards and bonuses; "
                    f"{owed.without_details} of them have not said how to pay them. Nothing was changed."
                )
            return
        run = engine.draft_payout_run(until, only_with_details=only_with_details, by=shell_user())
    _show_run(run, as_json=as_json)


@payout_run.command("list")
@page_option
@as_json
def list_runs(page: int, as_json: bool) -> None:
    """List the runs, newest first."""
    with opened(read_settings()) as engine:
        found = engine.payout_runs(page=page)
    if as_json:
        print_json(record(found))
        return
    print_table(
        ("run", "state", "earned before", "drafted", "ended", "workers", "total", "reference"),
        [_run_row(one) for one in found.entries],
        "No payout runs yet. `dynahit marketplace payout-run draft` makes one.",
    )
    _more(found)


@payout_run.command("show")
@click.argument("run_id")
@page_option
@as_json
def show_run(run_id: str, page: int, as_json: bool) -> None:
    """Show what each worker gets from a run."""
    with opened(read_settings()) as engine:
        run, found = engine.payout_run(run_id), engine.payout_lines(run_id, page=page)
    if as_json:
        print_json({**record(run), "lines": record(found)})
        return
    _show_run(run, as_json=False)
    print_table(
        ("worker", "user name", "pay to", "rewards", "bonuses", "amount"),
        [
            (
                one.worker_id,
                one.user_name,
                one.payout_details or "not said",
                f"{one.rewards}: ${one.rewards_amount:,.2f}",
                f"{one.bonuses}: ${one.bonuses_amount:,.2f}",
                f"${one.amount:,.2f}",
            )
            for one in found.entries
        ],
        "",
    )
    _more(found)


@payout_run.command("csv", short_help="Write the file that a run is paid from.")
@click.argument("run_id")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="A file; standard output if left out.")
def run_csv(run_id: str, out: Path | None) -> None:
    """Write the file that a run is paid from; it says how to pay each worker, so keep it safe."""
    with opened(read_settings()) as engine:
        text = "".join(engine.payout_csv(run_id))
        engine.record_act("payout file downloaded", "payout run", run_id, by=shell_user())
    if out is None:
        click.echo(text, nl=False)
        return
    out.touch(mode=0o600)
    out.write_text(text, encoding="utf-8", newline="")
    click.echo(f"{out} is written.", err=True)


@payout_run.command("paid")
@click.argument("run_id")
@click.argument("reference")
@as_json
def paid(run_id: str, reference: str, as_json: bool) -> None:
    """Write down that a run was paid, with the payment's REFERENCE."""
    with opened(read_settings()) as engine:
        run = engine.mark_payout_run_paid(run_id, reference, by=shell_user())
    _show_run(run, as_json=as_json)


@payout_run.command("cancel")
@click.argument("run_id")
@as_json
def cancel(run_id: str, as_json: bool) -> None:
    """Give the earnings of a drafted run free again."""
    with opened(read_settings()) as engine:
        run = engine.cancel_payout_run(run_id, by=shell_user())
    _show_run(run, as_json=as_json)


def _run_row(run: PayoutRun) -> tuple[str, ...]:
    return (
        run.run_id,
        run.state,
        moment(run.until),
        f"{moment(run.drafted_at)} by {run.drafted_by}",
        f"{moment(run.ended_at)} by {run.ended_by}" if run.ended_at else "",
        str(run.workers),
        f"${run.total:,.2f}",
        run.reference,
    )


def _show_run(run: PayoutRun, *, as_json: bool) -> None:
    if as_json:
        print_json(record(run))
        return
    workers = "1 worker" if run.workers == 1 else f"{run.workers} workers"
    click.echo(f"Run {run.run_id}: {run.state.lower()}, ${run.total:,.2f} to {workers} ({run.earnings} earnings).")


# Audit log


@click.command("audit")
@click.option("--about", default="", help="Id or name of somebody or something.")
@click.option("--action", default="", help="One kind of action, such as top-up.")
@page_option
@as_json
def audit(about: str, action: str, page: int, as_json: bool) -> None:
    """Show who did what, newest first; lines are only ever added."""
    with opened(read_settings()) as engine:
        found = engine.audit_log(about=about, action=action, page=page)
    if as_json:
        print_json(record(found))
        return
    print_table(
        ("when", "who", "what", "to", "details"),
        [
            (
                moment(one.at),
                f"{one.actor} ({one.actor_kind})",
                one.action,
                f"{one.subject_kind} {one.subject_id}",
                ", ".join(f"{name}={value}" for name, value in one.details.items()),
            )
            for one in found.entries
        ],
        "Nothing in the log.",
    )
    _more(found)


COMMANDS = (operator, worker, report, take_down, dispute, payout_run, audit)
REQUESTER_COMMANDS = (disable_requester, enable_requester)
