"""``dynahit payments report | ledger | month | reconcile | mend``: what finance reads, signs and puts right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from flask.cli import AppGroup, with_appcontext
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from app.cli.payment_output import reconciliation_json, report_json, show_report
from app.extensions import db
from app.operations.mend import mend, plan_mend
from app.operations.month_close import close_month
from app.operations.reconcile import reconcile as reconcile_books
from app.services import services
from hits.errors import InvalidInput
from payments.beancount_export import beancount_lines
from payments.closed_months import MonthClose
from payments.due import due_bonuses
from payments.journal import journal_table, month_journal
from payments.month import Month
from payments.month_close import check_closed_months, closed_months, frozen_figures, next_to_close
from payments.report import Standing, month_report, report_table, standing
from payments.tables import Table, write_csv, write_parquet, write_xlsx

#: Who did it, in the audit trail.
COMMAND_LINE = "(command line)"

_FILE = click.Path(path_type=Path, dir_okay=False)
_BOM = click.option("--bom", is_flag=True, help="Mark the CSV as UTF-8, for a spreadsheet that would guess wrong.")


@click.command("report")
@with_appcontext
@click.option("--month", "month_text", metavar="YYYY-MM", help="By time of payment, in UTC. [default: this month]")
@click.option("--csv", "csv_path", type=_FILE, help="Write it to this file.")
@click.option("--xlsx", "xlsx_path", type=_FILE, help="Write it to this spreadsheet.")
@click.option("--parquet", "parquet_path", type=_FILE, help="Write it to this Parquet file.")
@_BOM
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def report(
    month_text: str | None,
    csv_path: Path | None,
    xlsx_path: Path | None,
    parquet_path: Path | None,
    bom: bool,
    as_json: bool,
) -> None:
    """Show what a month cost, by round and by worker. Rewards, fees, and bonuses promised and paid."""
    month = Month.parse(month_text) if month_text else Month.of(services().clock.now())
    found = month_report(db.session(), month)
    now = standing_now()
    paths = [path for path in (csv_path, xlsx_path, parquet_path) if path is not None]
    write_files(lambda: report_table(found), csv_path, xlsx_path, parquet_path, bom=bom)
    if as_json:
        click.echo(json.dumps(report_json(found, now), indent=2))
        return
    show_report(found, now, Console())
    for path in paths:
        click.echo(f"{len(found.lines)} rows, by round and worker, are in {path}.")


def standing_now() -> Standing:
    """Return what is owed and paid now, verified examples that no pass has planned yet included."""
    session = db.session()
    found = standing(session, [due.bonus.amount for due in due_bonuses(session)])
    session.rollback()
    return found


@click.command("ledger")
@with_appcontext
@click.option("--month", "month_text", metavar="YYYY-MM", help="Only this month. [default: all]")
@click.option("--csv", "csv_path", type=_FILE, help="One row for each posting; closed months are hashed over it.")
@click.option("--xlsx", "xlsx_path", type=_FILE, help="The same as a spreadsheet.")
@click.option("--parquet", "parquet_path", type=_FILE, help="The same as a Parquet file.")
@click.option("--beancount", "beancount_path", type=_FILE, help="The whole ledger for beancount.")
@_BOM
def ledger(
    month_text: str | None,
    csv_path: Path | None,
    xlsx_path: Path | None,
    parquet_path: Path | None,
    beancount_path: Path | None,
    bom: bool,
) -> None:
    """Write the ledger to files."""
    month = Month.parse(month_text) if month_text else None
    paths = [path for path in (csv_path, xlsx_path, parquet_path, beancount_path) if path is not None]
    if not paths:
        raise click.UsageError("Name a file: --csv, --xlsx, --parquet or --beancount.")
    if beancount_path is not None and month is not None:
        raise click.UsageError("--beancount writes the whole ledger, since balances need what came before; no --month.")
    session = db.session()

    def table() -> Table:
        return journal_table(session) if month is None else month_journal(session, month)

    write_files(table, csv_path, xlsx_path, parquet_path, bom=bom)
    if beancount_path is not None:
        with _writable(beancount_path), beancount_path.open("w", encoding="utf-8") as file:
            file.writelines(beancount_lines(session))
    for path in paths:
        click.echo(f"The ledger{'' if month is None else f' of {month.words}'} is in {path}.")


def write_files(
    table: Callable[[], Table],
    csv_path: Path | None,
    xlsx_path: Path | None,
    parquet_path: Path | None,
    *,
    bom: bool,
) -> None:
    """Write a table to every file that is asked for; ``table`` is called for each, since rows are read once."""
    if bom and csv_path is None:
        raise click.UsageError("--bom is about a CSV file. Name one: --csv FILE.")
    if csv_path is not None:
        with _writable(csv_path):
            write_csv(table(), csv_path, byte_order_mark=bom)
    if xlsx_path is not None:
        with _writable(xlsx_path):
            write_xlsx(table(), xlsx_path)
    if parquet_path is not None:
        with _writable(parquet_path):
            write_parquet(table(), parquet_path)


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"{path} can't be written: {error.strerror or error}. Choose another file.") from error


@click.command("reconcile")
@with_appcontext
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def reconcile(as_json: bool) -> None:
    """Hold the books against the marketplace. Changes nothing.

    Prints one line when the books are clean; otherwise each finding with the command that mends it, and exits with 1.
    """
    here = services()
    found = reconcile_books(db.session(), here.mturk)
    if as_json:
        click.echo(json.dumps(reconciliation_json(found), indent=2))
    else:
        for finding in found.findings:
            click.echo(str(finding))
        if not found.findings:
            click.echo(str(found))
        if found.note:
            click.echo(found.note)
    if found.findings:
        raise SystemExit(1)


@click.command("mend", short_help="Put right what reconcile found.")
@with_appcontext
@click.argument("subject")
@click.option("--plan", "plan_only", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
def mend_one(subject: str, plan_only: bool, yes: bool, as_json: bool) -> None:
    """Put right what reconcile found about SUBJECT, which its finding names.

    A payout's reference, an assignment's id, a transaction's key, "reserved:ROUND" or "account". The marketplace's
    word counts; what was booked wrongly is reversed. Settle again afterwards where it says so.
    """
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    here, session = services(), db.session()
    plan = plan_mend(session, here.mturk, here.clock, subject)
    session.rollback()
    if not as_json:
        click.echo(plan.what)
    if plan_only:
        if as_json:
            click.echo(json.dumps({"subject": plan.subject, "what": plan.what, "done": False}, indent=2))
        else:
            click.echo("This is a plan. Nothing was changed; leave --plan out to do it.")
        return
    if not yes:
        click.confirm("Do this?", abort=True)
    done = mend(session, here.mturk, here.clock, subject, by=COMMAND_LINE)
    if as_json:
        click.echo(json.dumps({"subject": done.subject, "what": done.what, "done": True}, indent=2))
    else:
        click.echo("Done. `dynahit payments reconcile` says whether the books agree now.")


month_group = AppGroup("month", help="Close months of the books, and check closed ones.")


@month_group.command("close", short_help="Close a month: nothing is booked into it any more.")
@click.argument("month_text", metavar="YYYY-MM")
@click.option("--plan", "plan_only", is_flag=True, help="Show the figures, and close nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
def close(month_text: str, plan_only: bool, yes: bool, as_json: bool) -> None:
    """Close a month: its figures are frozen, and nothing can be booked in it any more. There is no way back."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    month, here, session = Month.parse(month_text), services(), db.session()
    found = month_report(session, month)
    wanted = next_to_close(session, here.clock.now())
    session.rollback()
    if not as_json:
        show_report(found, standing_now(), Console())
    if plan_only:
        words = "It can be closed now." if wanted == month else f"It can't be closed now: {_next_words(wanted)}"
        if as_json:
            click.echo(
                json.dumps({"month": str(month), "closable": wanted == month, **frozen_figures(found)}, indent=2)
            )
        else:
            click.echo(f"{words} This is a plan. Nothing was changed; leave --plan out to close it.")
        return
    if not yes:
        click.confirm(f"Close {month.words} for good?", abort=True)
    closing = close_month(session, here.clock, month, by=COMMAND_LINE)
    if as_json:
        click.echo(json.dumps(_closing_json(closing), indent=2))
        return
    click.echo(f"{month.words} is closed: {closing.transactions} transactions, {closing.postings} postings.")
    click.echo(f"SHA-256 of its ledger (`dynahit payments ledger --month {month} --csv FILE`): {closing.sha256}")


def _next_words(wanted: Month | None) -> str:
    return "no month that is over is open." if wanted is None else f"{wanted.words} comes first."


def _closing_json(closing: MonthClose) -> dict[str, Any]:
    return {
        "month": closing.month,
        "closed_at": closing.closed_at.isoformat(),
        "closed_by": closing.closed_by,
        "transactions": closing.transactions,
        "postings": closing.postings,
        "sha256": closing.sha256,
        "chain_sha256": closing.chain_sha256,
        **closing.figures,
    }


@month_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_closed(as_json: bool) -> None:
    """List the closed months with their totals and hashes."""
    session = db.session()
    found = closed_months(session)
    if as_json:
        click.echo(json.dumps([_closing_json(one) for one in found], indent=2))
        return
    table = Grid("month", "closed", "by", "all paid", "SHA-256 of its ledger")
    for one in found:
        total = one.figures["totals"]["total"]
        table.add_row(one.month, f"{one.closed_at:%Y-%m-%d %H:%M} UTC", escape(one.closed_by), f"${total}", one.sha256)
    if found:
        Console().print(table)
    else:
        click.echo("No month is closed.")
    wanted = next_to_close(session, services().clock.now())
    if wanted is not None:
        click.echo(f"{wanted.words} is over: `dynahit payments month close {wanted}` closes it.")


@month_group.command("check")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def check(as_json: bool) -> None:
    """Hold every closed month against its postings of today. Exits with 1 when one differs."""
    found = list(check_closed_months(db.session()))
    if as_json:
        click.echo(json.dumps([{"month": str(one.month), "differs": list(one.differs)} for one in found], indent=2))
    else:
        for one in found:
            for words in one.differs:
                click.echo(f"{one.month.words}: {words}.")
    if any(one.differs for one in found):
        raise SystemExit(1)
    if not as_json:
        click.echo(f"{len(found)} closed months are as they were closed." if found else "No month is closed.")


def add_to(group: click.Group) -> None:
    """Give ``dynahit payments`` these commands."""
    for command in (report, ledger, reconcile, mend_one, month_group):
        group.add_command(command)
