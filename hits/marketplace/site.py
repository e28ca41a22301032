"""What the worker site shows of one HIT: its preview, its question, the assignments that are held."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select

from hits.marketplace import blocks, eligibility, frames, groups, lifecycle, questions, workers
from hits.marketplace.errors import (
    AlreadyWorkedOn,
    AssignmentUnknown,
    BlockedByRequester,
    HitNotAvailable,
    HitUnknown,
    NotQualified,
)
from hits.marketplace.form_reader import read_form
from hits.marketplace.forms import QuestionForm
from hits.marketplace.money import from_cents
from hits.marketplace.tables import (
    LIVE_STATES,
    AssignmentRow,
    HitGroupRow,
    HitLayoutRow,
    HitRow,
    HitTypeRow,
    RequesterRow,
    WorkerRow,
)
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import (
    AssignmentView,
    HitView,
)

_PREVIEW_LIFE: Final = timedelta(days=1)


def preview(transaction: Transaction, worker_id: str | None, hit_id: str) -> HitView:
    """Return a HIT as a preview.

    Raises HitUnknown, HitNotAvailable, BlockedByRequester, NotQualified, AlreadyWorkedOn, WorkerUnknown.
    """
    worker = None if worker_id is None else workers.find(transaction, worker_id)
    hit = lifecycle.find_hit(transaction, hit_id)
    if hit is None or hit.status == "Disposed":
        raise HitUnknown
    hit_type, requester_name, work_seconds = _type_and_requester(transaction, hit)
    mine = None if worker is None else _live_assignment(transaction, worker, hit)
    if mine is not None and mine.state != "Accepted":
        raise AlreadyWorkedOn
    if mine is None and worker is not None and blocks.is_blocked(transaction, hit.requester_id, worker.worker_id):
        raise BlockedByRequester
    if mine is None and hit.available <= 0:
        raise HitNotAvailable
    verdict = eligibility.judge(transaction, worker, hit_type.requirements)
    if not verdict.may_preview and mine is None:
        raise NotQualified(verdict.reasons, verdict.missing)
    address = _address(transaction, hit, transaction.now + _PREVIEW_LIFE)
    return HitView(
        hit_id=hit.hit_id,
        hit_group_id=hit_type.hit_group_id,
        title=hit_type.title,
        description=hit_type.description,
        keywords=hit_type.keywords,
        reward=from_cents(hit.reward_cents),
        hourly_wage=groups.hourly_wage(hit.reward_cents, work_seconds),
        requester_id=hit.requester_id,
        requester_name=requester_name,
        duration_seconds=hit_type.duration_seconds,
        auto_approval_seconds=hit_type.auto_approval_seconds,
        available=hit.available,
        created_at=hit.created_at,
        expires_at=hit.expires_at,
        qualified=verdict.may_accept,
        reasons=verdict.reasons,
        missing=verdict.missing,
        held_assignment_id=mine.assignment_id if mine is not None else None,
        question_kind=hit.question_kind,
        frame_url=frames.preview_url(address, hit_id=hit.hit_id) if address is not None else None,
        frame_height=hit.frame_height,
        form=_form(hit),
        missing_elements=tuple((hit.missing_elements or "").split()),
    )


def held(transaction: Transaction, worker_id: str) -> list[AssignmentView]:
    """Return the assignments a worker holds, first deadline first."""
    worker = workers.find(transaction, worker_id)
    rows = transaction.session.execute(
        select(AssignmentRow, HitRow, HitTypeRow)
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .where(AssignmentRow.worker_id == worker.worker_id, AssignmentRow.state == "Accepted")
        .order_by(AssignmentRow.deadline, AssignmentRow.seq)
    )
    return [assignment_view(transaction, *row) for row in rows]


def assignment(transaction: Transaction, worker_id: str, assignment_id: str) -> AssignmentView:
    """Return one of a worker's assignments.

    Raises AssignmentUnknown.
    """
    row = transaction.session.scalar(select(AssignmentRow).where(AssignmentRow.assignment_id == assignment_id))
    if row is None or row.worker_id != worker_id:
        raise AssignmentUnknown
    hit = lifecycle.find_hit(transaction, row.hit_id)
    if hit is None:
        raise AssignmentUnknown
    return assignment_view(transaction, row, hit, _type_and_requester(transaction, hit)[0])


def assignment_view(transaction: Transaction, row: AssignmentRow, hit: HitRow, hit_type: HitTypeRow) -> AssignmentView:
    """Return the record of an assignment; the frame's address only while it is held."""
    requester = transaction.session.get_one(RequesterRow, hit.requester_id)
    address = _address(transaction, hit, row.deadline) if row.state == "Accepted" else None
    frame_url = None
    if address is not None:
        frame_url = frames.assignment_url(
            address,
            assignment_id=row.assignment_id,
            hit_id=hit.hit_id,
            worker_id=row.worker_id,
            turk_submit_to=transaction.settings.turk_submit_to,
            deadline=row.deadline,
            frame_secret=transaction.settings.frame_secret,
        )
    return AssignmentView(
        assignment_id=row.assignment_id,
        hit_id=hit.hit_id,
        hit_group_id=hit_type.hit_group_id,
        worker_id=row.worker_id,
        state=row.state,
        title=hit_type.title,
        description=hit_type.description,
        reward=from_cents(hit.reward_cents),
        requester_id=hit.requester_id,
        requester_name=requester.name,
        duration_seconds=hit_type.duration_seconds,
        auto_approval_seconds=hit_type.auto_approval_seconds,
        accepted_at=row.accepted_at,
        deadline=row.deadline,
        question_kind=hit.question_kind,
        frame_url=frame_url,
        frame_height=hit.frame_height,
        form=_form(hit) if row.state == "Accepted" else None,
    )


def question_html(transaction: Transaction, hit_id: str, expires: str, signature: str) -> str:
    """Return the HTML of a HIT, or of a layout, to whoever has its signed address.

    Raises HitUnknown for a wrong or late signature too.
    """
    good = frames.content_signature(transaction.settings.secret_key, hit_id=hit_id, expires=expires)
    if not (hit_id.isascii() and hmac.compare_digest(good.encode(), signature.encode())):
        raise HitUnknown
    if int(expires) <= transaction.now.timestamp():
        raise HitUnknown
    hit = lifecycle.find_hit(transaction, hit_id)
    if hit is None:
        # A requester looks at a layout at the same kind of address.
        page = transaction.session.scalar(select(HitLayoutRow.html).where(HitLayoutRow.layout_id == hit_id))
        if page is None:
            raise HitUnknown
        return page
    html = questions.read_question(hit.question, allow_http_loopback=False).html
    if html is None:
        raise HitUnknown
    return html


def _address(transaction: Transaction, hit: HitRow, until: datetime) -> str | None:
    if hit.question_kind == "HTMLQuestion":
        settings = transaction.settings
        if settings.content_origin is None:
            return None
        return frames.content_url(settings.content_origin, settings.secret_key, hit_id=hit.hit_id, until=until)
    return hit.external_url or None


def _form(hit: HitRow) -> QuestionForm | None:
    return read_form("Question", hit.question) if hit.question_kind == "QuestionForm" else None


def _type_and_requester(transaction: Transaction, hit: HitRow) -> tuple[HitTypeRow, str, int | None]:
    query = (
        select(HitTypeRow, RequesterRow.name, HitGroupRow.work_seconds)
        .join(HitGroupRow, HitGroupRow.hit_type_id == HitTypeRow.hit_type_id)
        .join(RequesterRow, RequesterRow.requester_id == HitTypeRow.requester_id)
        .where(HitTypeRow.hit_type_id == hit.hit_type_id)
    )
    hit_type, name, work_seconds = transaction.session.execute(query).one()
    return hit_type, name, work_seconds


def _live_assignment(transaction: Transaction, worker: WorkerRow, hit: HitRow) -> AssignmentRow | None:
    return transaction.session.scalar(
        select(AssignmentRow).where(
            AssignmentRow.hit_id == hit.hit_id,
            AssignmentRow.worker_id == worker.worker_id,
            AssignmentRow.state.in_(LIVE_STATES),
        )
    )
