"""Counts what is open of each HIT type once more, from the HITs and assignments themselves."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.marketplace import groups
from hits.marketplace.tables import AssignmentRow, HitGroupRow, HitRow, HitTypeRow


def check_groups(session: Session) -> dict[str, tuple[int, int, int | None]]:
    """Assert that the counters are a recount and return them: plain and HTML HITs left, median seconds."""
    hits = {hit.hit_id: hit for hit in session.scalars(select(HitRow))}
    work = list(
        session.scalars(select(AssignmentRow).order_by(AssignmentRow.submitted_at.desc(), AssignmentRow.seq.desc()))
    )
    assert all(row.hit_type_id == hits[row.hit_id].hit_type_id for row in work)
    found = {group.hit_type_id: group for group in session.scalars(select(HitGroupRow))}
    assert set(found) == set(session.scalars(select(HitTypeRow.hit_type_id)))
    for type_id, group in found.items():
        mine = [
            hit.question_kind
            for hit in hits.values()
            if hit.hit_type_id == type_id and hit.available and not hit.missing_elements
        ]
        html = mine.count("HTMLQuestion")
        assert (group.open_hits, group.open_html_hits) == (len(mine) - html, html)
        assert group.is_open == bool(mine)
        took = [
            (row.worker_id, (row.submitted_at - row.accepted_at).total_seconds())
            for row in work
            if row.hit_type_id == type_id and row.submitted_at is not None
        ]
        assert group.work_seconds == groups.work_seconds(took[: groups.LATEST])
    return {type_id: (group.open_hits, group.open_html_hits, group.work_seconds) for type_id, group in found.items()}
