"""``dynahit workers``: who has worked here, by pseudonym, and how somebody is erased."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select

from app.extensions import db
from app.operations.erase_worker import ErasePlan, erase_worker, plan_erase
from app.services import services
from hits.errors import Refused
from hits.models import Assignment, Consent, Worker
from hits.money import display
from hits.states import COLLECTED

group = AppGroup("workers", help="List people by pseudonym; erase somebody.")


@group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_workers(as_json: bool) -> None:
    """List who has worked or agreed to, by pseudonym, the newest first."""
    handed_in = (
        select(func.count())
        .select_from(Assignment)
        .where(Assignment.worker_id == Worker.id, Assignment.state.in_(COLLECTED))
        .scalar_subquery()
    )
    agreed = select(func.max(Consent.consent_text_id)).where(Consent.worker_id == Worker.id).scalar_subquery()
    found = db.session.execute(
        select(Worker.pseudonym, Worker.created_at, handed_in, agreed, Worker.erased_at).order_by(Worker.id.desc())
    ).all()
    if as_json:
        rows = [
            {
                "worker": pseudonym,
                "since": since.isoformat(),
                "handed_in": count,
                "consent_version": version,
                "erased_at": erased_at.isoformat() if erased_at is not None else None,
            }
            for pseudonym, since, count, version, erased_at in found
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table(
        "worker", "since", "handed in", "consent", "", title="Workers", caption=None if found else "Nobody yet."
    )
    for pseudonym, since, count, version, erased_at in found:
        erased = f"erased {erased_at:%Y-%m-%d}" if erased_at is not None else ""
        table.add_row(pseudonym, f"{since:%Y-%m-%d}", str(count), f"version {version}" if version else "none", erased)
    Console().print(table)


@group.command("erase")
@click.argument("who")
@click.option("--plan", "plan_only", is_flag=True, help="Show what would be removed and kept, and change nothing.")
@click.option("--give-up-bonuses", is_flag=True, help="The person gives up what undecided statements could still earn.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--by", default="command line", help="Who decides, for the audit trail.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def erase(who: str, plan_only: bool, give_up_bonuses: bool, yes: bool, by: str, as_json: bool) -> None:
    """Remove the person WHO (pseudonym or worker id) and keep the books. This can't be undone."""
    here = services()
    plan = plan_erase(db.session(), here.mturk, here.settings, here.clock, who)
    if plan_only or not as_json:
        _show(plan, as_json)
    if plan_only:
        return
    if plan.obstacles:
        raise Refused(f"{plan.pseudonym} was not erased; see above what stands in the way.")
    if not yes:
        click.confirm(f"Erase {plan.pseudonym} for good?", abort=True)
    done = erase_worker(
        db.session(), here.mturk, here.settings, here.clock, who, give_up_bonuses=give_up_bonuses, by=by
    )
    if as_json:
        _show(done, as_json=True)
        return
    click.echo(f"{done.pseudonym} is erased. Backups and logs of before still know the person; see docs/care.md.")


def _show(plan: ErasePlan, as_json: bool) -> None:
    if as_json:
        shown = {**asdict(plan), "paid": str(plan.paid), "possible_bonus": str(plan.possible_bonus)}
        shown["possible_gold"] = str(plan.possible_gold)
        click.echo(json.dumps(shown, indent=2))
        return
    table = Table("what", "how many", "what becomes of it", title=f"Erasing {plan.pseudonym}")
    table.add_row("worker id", "1", "removed")
    table.add_row("consents", str(plan.consents), "removed")
    table.add_row("records of shown texts", str(plan.shown_texts), "removed")
    table.add_row("texts never handed in", str(plan.texts_removed), "removed")
    table.add_row("remarks", str(plan.remarks), "removed, as is what others wrote about the person")
    table.add_row("handed-in texts", str(plan.texts_kept), "kept under the pseudonym")
    table.add_row("counted judgements", str(plan.votes_kept), "kept under the pseudonym")
    table.add_row("lists of workers", str(plan.lists), "left, at the marketplace as well")
    table.add_row("bonuses paid", display(plan.paid), "kept in the books")
    Console().print(table)
    for one in plan.obstacles:
        click.echo(f"In the way: {one}")
    if plan.undecided:
        click.echo(
            f"{plan.undecided} statements are undecided and could earn {display(plan.possible_bonus)}: nobody can be"
            " paid afterwards (--give-up-bonuses)."
        )
    if plan.open_batches:
        click.echo(
            f"{plan.open_batches} batches of validation HITs are open, in which gold items could earn"
            f" {display(plan.possible_gold)}: nobody can be paid afterwards (--give-up-bonuses)."
        )
