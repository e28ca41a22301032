"""What a worker has submitted, how it was judged and what it earned, to read and to take along."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, cast

from flask import Blueprint, render_template, session
from flask.typing import ResponseReturnValue
from flask.wrappers import Response

from app.marketplace import sessions
from app.marketplace.extensions import marketplace
from app.marketplace.worker import page_number
from hits.marketplace.payout_runs import cell
from hits.marketplace.views import DayEarnings, WorkEntry

dashboard = Blueprint("dashboard", __name__)
PAGE_SIZE = 50
DAYS_SHOWN = 31
COLUMNS = (
    "assignment_id",
    "hit_id",
    "title",
    "requester",
    "state",
    "submitted_at",
    "auto_approval_at",
    "reviewed_at",
    "reward_usd",
    "bonuses_usd",
    "bonus_reasons",
    "requester_feedback",
)
DAY_COLUMNS = ("day_utc", "rewards_approved_usd", "bonuses_usd")


@dashboard.get("/dashboard")
@sessions.for_workers
def show() -> ResponseReturnValue:
    """Show a page of the history, and the earnings."""
    return render_template(
        "marketplace/dashboard.html",
        work=marketplace().work_history(_me(), page=page_number(), page_size=PAGE_SIZE),
        earnings=marketplace().earnings(_me()),
        days_shown=DAYS_SHOWN,
    )


@dashboard.get("/dashboard.csv")
@sessions.for_workers
def history_csv() -> ResponseReturnValue:
    """Give the worker's own history as a table."""
    rows = (_row(entry) for entry in marketplace().all_work(_me()))
    return _download(_csv(COLUMNS, rows), "text/csv", "my-hits.csv")


@dashboard.get("/dashboard.json")
@sessions.for_workers
def history_json() -> ResponseReturnValue:
    """Give the worker's own history with every bonus by itself; amounts are text, so that no cent is rounded."""
    return _download(_json_array(marketplace().all_work(_me())), "application/json", "my-hits.json")


@dashboard.get("/earnings.csv")
@sessions.for_workers
def earnings_csv() -> ResponseReturnValue:
    """Give the worker's earnings by day as a table."""
    rows = (_day_row(line) for line in marketplace().earnings(_me()).days)
    return _download(_csv(DAY_COLUMNS, rows), "text/csv", "my-earnings.csv")


def _me() -> str:
    return cast(str, session["worker_id"])


def _download(parts: Iterable[str], mimetype: str, name: str) -> Response:
    # The first part is made here, so that a refusal is a page and not a broken file.
    parts = iter(parts)
    first = next(parts, "")
    headers = {"Content-Disposition": f"attachment; filename={name}", "Cache-Control": "no-store"}
    return Response(_chained(first, parts), mimetype=mimetype, headers=headers)


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _csv(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for row in rows:
        writer.writerow(row)
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def _json_array(entries: Iterable[WorkEntry]) -> Iterator[str]:
    between = "["
    for entry in entries:
        yield between + "\n" + json.dumps(_record(entry), ensure_ascii=False)
        between = ","
    yield "[]\n" if between == "[" else "\n]\n"


def _row(entry: WorkEntry) -> Iterator[str]:
    yield from (entry.assignment_id, entry.hit_id, cell(entry.title), cell(entry.requester_name), entry.state)
    yield from (_time(at) or "" for at in (entry.submitted_at, entry.auto_approval_at, entry.reviewed_at))
    yield f"{entry.reward:.2f}"
    yield f"{sum(bonus.amount for bonus in entry.bonuses):.2f}"
    yield cell("; ".join(bonus.reason for bonus in entry.bonuses))
    yield cell(entry.feedback or "")


def _day_row(line: DayEarnings) -> tuple[str, str, str]:
    return line.day.isoformat(), f"{line.approved:.2f}", f"{line.bonuses:.2f}"


def _record(entry: WorkEntry) -> dict[str, Any]:
    return {
        "assignment_id": entry.assignment_id,
        "hit_id": entry.hit_id,
        "title": entry.title,
        "requester": entry.requester_name,
        "state": entry.state,
        "accepted_at": _time(entry.accepted_at),
        "submitted_at": _time(entry.submitted_at),
        "auto_approval_at": _time(entry.auto_approval_at),
        "reviewed_at": _time(entry.reviewed_at),
        "reward_usd": f"{entry.reward:.2f}",
        "requester_feedback": entry.feedback,
        "bonuses": [
            {"amount_usd": f"{bonus.amount:.2f}", "reason": bonus.reason, "granted_at": _time(bonus.granted_at)}
            for bonus in entry.bonuses
        ],
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
