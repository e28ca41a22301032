"""Keeps the counts that a worker's list is read from, in the transactions that change what they count."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from hits.marketplace.money import from_cents
from hits.marketplace.tables import AssignmentRow, HitGroupRow, HitRow
from hits.marketplace.transactions import Transaction

LATEST: Final = 100
LEAST_SUBMISSIONS: Final = 5
LEAST_WORKERS: Final = 3
_COUNT: Final = (
    update(HitGroupRow)
    .where(HitGroupRow.hit_type_id == bindparam("type_id"))
    .values(
        open_hits=HitGroupRow.open_hits + bindparam("plain"),
        open_html_hits=HitGroupRow.open_html_hits + bindparam("html"),
        is_open=HitGroupRow.open_hits + HitGroupRow.open_html_hits + bindparam("plain") + bindparam("html") > 0,
    )
)
_LATEST_WORK: Final = (
    select(AssignmentRow.worker_id, AssignmentRow.accepted_at, AssignmentRow.submitted_at)
    .where(AssignmentRow.hit_type_id == bindparam("type_id"), AssignmentRow.submitted_at.is_not(None))
    .order_by(AssignmentRow.submitted_at.desc(), AssignmentRow.seq.desc())
    .limit(LATEST)
)
_MEASURE: Final = (
    update(HitGroupRow).where(HitGroupRow.hit_type_id == bindparam("type_id")).values(work_seconds=bindparam("seconds"))
)


def opened(transaction: Transaction, hit: HitRow) -> None:
    """Count a HIT that has a place left from now on."""
    _change(transaction, hit, 1)


def closed(transaction: Transaction, hit: HitRow) -> None:
    """Take a HIT out of the count that has no place left any more, or is about to change its type."""
    _change(transaction, hit, -1)


def handed_in(transaction: Transaction, assignment: AssignmentRow) -> None:
    """Let the work on this type of HIT be measured again."""
    transaction.measured.add(assignment.hit_type_id)


def finish(session: Session, transactions: Iterable[Transaction]) -> None:
    """Write what has changed. It comes last before the commit, type by type in order, so that nobody waits for long.

    Two that change the same groups cannot block each other: each has all its other locks by now.
    """
    changes: dict[str, tuple[int, int]] = {}
    measured: set[str] = set()
    for transaction in transactions:
        transaction.session.flush()
        for type_id, (plain, html) in transaction.opened.items():
            before = changes.get(type_id, (0, 0))
            changes[type_id] = (before[0] + plain, before[1] + html)
        measured |= transaction.measured
    for type_id in sorted({*changes, *measured}):
        plain, html = changes.get(type_id, (0, 0))
        if plain or html:
            session.connection().execute(_COUNT, {"type_id": type_id, "plain": plain, "html": html})
        if type_id in measured:
            rows = session.connection().execute(_LATEST_WORK, {"type_id": type_id}).all()
            seconds = work_seconds(
                [(row.worker_id, (row.submitted_at - row.accepted_at).total_seconds()) for row in rows]
            )
            session.connection().execute(_MEASURE, {"type_id": type_id, "seconds": seconds})


def work_seconds(work: list[tuple[str, float]]) -> int | None:
    """Return the median of what (worker, seconds) took, in whole seconds, or None if that is too little to say."""
    if len(work) < LEAST_SUBMISSIONS or len({worker_id for worker_id, _ in work}) < LEAST_WORKERS:
        return None
    return max(1, math.ceil(statistics.median(seconds for _, seconds in work)))


def hourly_wage(reward_cents: int, seconds: int | None) -> Decimal | None:
    """Return the dollars that an hour of such work brings."""
    return None if seconds is None else (from_cents(reward_cents) * 3600 / seconds).quantize(Decimal("0.01"))


def _change(transaction: Transaction, hit: HitRow, by: int) -> None:
    if hit.missing_elements:
        return
    plain, html = transaction.opened.get(hit.hit_type_id, (0, 0))
    is_html = hit.question_kind == "HTMLQuestion"
    transaction.opened[hit.hit_type_id] = (plain, html + by) if is_html else (plain + by, html)
