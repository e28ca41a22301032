"""What the worker site shows: HIT groups, previews, held work, history, earnings."""

from __future__ import annotations

import hmac
from collections import defaultdict
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Final

from sqlalchemy import case, func, select

from hits.marketplace import blocks, eligibility, frames, lifecycle, questions, workers
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
    BonusRow,
    HitRow,
    HitTypeRow,
    RequesterRow,
    WorkerRow,
)
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import (
    AssignmentView,
    BonusView,
    DayEarnings,
    Earnings,
    GroupListing,
    HitView,
    WorkEntry,
)

_PREVIEW_LIFE: Final = timedelta(days=1)
_REVIEWED: Final = ("Submitted", "Approved", "Rejected")


def hit_groups(transaction: Transaction, worker_id: str, *, sort: str, query: str) -> list[GroupListing]:
    """Return the HIT groups with a HIT left for this worker, each by its oldest one; HITs they gave up come last."""
    worker = workers.find(transaction, worker_id)
    not_given_up = case((lifecycle.was_given_up_by(worker.worker_id), None), else_=HitRow.seq)
    summary = (
        select(
            HitRow.hit_type_id,
            func.count().label("available"),
            func.coalesce(func.min(not_given_up), func.min(HitRow.seq)).label("first"),
            func.max(HitRow.created_at).label("newest"),
            func.min(HitRow.expires_at).label("next_end"),
        )
        .where(lifecycle.is_open_to(worker.worker_id), lifecycle.can_be_shown(transaction.settings))
        .group_by(HitRow.hit_type_id)
        .subquery()
    )
    rows = transaction.session.execute(
        select(HitTypeRow, RequesterRow.name, HitRow, summary.c.available, summary.c.newest, summary.c.next_end)
        .join(summary, summary.c.hit_type_id == HitTypeRow.hit_type_id)
        .join(HitRow, HitRow.seq == summary.c.first)
        .join(RequesterRow, RequesterRow.requester_id == HitTypeRow.requester_id)
    )
    listings = []
    for hit_type, requester_name, hit, available, newest, next_end in rows:
        verdict = eligibility.judge(transaction, worker, hit_type.requirements)
        haystack = " ".join((hit_type.title, hit_type.description, hit_type.keywords, requester_name)).casefold()
        if verdict.may_discover and query.strip().casefold() in haystack:
            listings.append(
                GroupListing(
                    hit_id=hit.hit_id,
                    hit_group_id=hit_type.hit_group_id,
                    title=hit_type.title,
                    description=hit_type.description,
                    keywords=hit_type.keywords,
                    reward=from_cents(hit_type.reward_cents),
                    requester_id=hit_type.requester_id,
                    requester_name=requester_name,
                    duration_seconds=hit_type.duration_seconds,
                    auto_approval_seconds=hit_type.auto_approval_seconds,
                    available=available,
                    created_at=newest,
                    expires_at=next_end,
                    qualified=verdict.may_accept,
                    can_preview=verdict.may_preview,
                    reasons=verdict.reasons,
                    missing=verdict.missing,
                )
            )
    return _sorted(listings, sort)


def preview(transaction: Transaction, worker_id: str | None, hit_id: str) -> HitView:
    """Return a HIT as a preview.

    Raises HitUnknown, HitNotAvailable, BlockedByRequester, NotQualified, AlreadyWorkedOn, WorkerUnknown.
    """
    worker = None if worker_id is None else workers.find(transaction, worker_id)
    hit = lifecycle.find_hit(transaction, hit_id)
    if hit is None or hit.status == "Disposed":
        raise HitUnknown
    hit_type, requester_name = _type_and_requester(transaction, hit)
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


def work_history(transaction: Transaction, worker_id: str) -> list[WorkEntry]:
    """Return everything a worker submitted, newest first."""
    worker = workers.find(transaction, worker_id)
    bonuses = _bonuses_by_assignment(transaction, worker)
    rows = transaction.session.execute(
        select(AssignmentRow, HitRow, HitTypeRow.title, RequesterRow.name)
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .join(RequesterRow, RequesterRow.requester_id == AssignmentRow.requester_id)
        .where(AssignmentRow.worker_id == worker.worker_id, AssignmentRow.state.in_(_REVIEWED))
        .order_by(AssignmentRow.submitted_at.desc(), AssignmentRow.seq.desc())
    )
    return [
        WorkEntry(
            assignment_id=row.assignment_id,
            hit_id=hit.hit_id,
            title=title,
            requester_name=requester_name,
            reward=from_cents(hit.reward_cents),
            state=row.state,
            accepted_at=row.accepted_at,
            submitted_at=row.submitted_at,
            auto_approval_at=row.auto_approval_at,
            reviewed_at=row.approved_at or row.rejected_at,
            feedback=row.feedback,
            bonuses=tuple(bonuses.get(row.assignment_id, ())),
        )
        for row, hit, title, requester_name in rows
    ]


def earnings(transaction: Transaction, worker_id: str) -> Earnings:
    """Return what a worker has earned and what is pending."""
    approved: dict[date, int] = defaultdict(int)
    bonuses: dict[date, int] = defaultdict(int)
    pending = 0
    worker = workers.find(transaction, worker_id)
    rows = transaction.session.execute(
        select(AssignmentRow, HitRow.reward_cents)
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .where(AssignmentRow.worker_id == worker.worker_id, AssignmentRow.state.in_(("Submitted", "Approved")))
    )
    for row, reward_cents in rows:
        if row.state == "Approved" and row.approved_at is not None:
            approved[row.approved_at.date()] += reward_cents
        else:
            pending += reward_cents
    for bonus in transaction.session.scalars(select(BonusRow).where(BonusRow.worker_id == worker.worker_id)):
        bonuses[bonus.granted_at.date()] += bonus.amount_cents
    return Earnings(
        approved=from_cents(sum(approved.values())),
        pending=from_cents(pending),
        bonuses=from_cents(sum(bonuses.values())),
        days=tuple(
            DayEarnings(day, from_cents(approved.get(day, 0)), from_cents(bonuses.get(day, 0)))
            for day in sorted({*approved, *bonuses}, reverse=True)
        ),
    )


def question_html(transaction: Transaction, hit_id: str, expires: str, signature: str) -> str:
    """Return the HTML of a HIT to whoever has its signed address.

    Raises HitUnknown for a wrong or late signature too.
    """
    good = frames.content_signature(transaction.settings.secret_key, hit_id=hit_id, expires=expires)
    if not (hit_id.isascii() and hmac.compare_digest(good.encode(), signature.encode())):
        raise HitUnknown
    hit = lifecycle.find_hit(transaction, hit_id)
    if hit is None or int(expires) <= transaction.now.timestamp():
        raise HitUnknown
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


def _sorted(listings: list[GroupListing], sort: str) -> list[GroupListing]:
    newest_first = sorted(listings, key=lambda group: (group.created_at, group.hit_group_id), reverse=True)
    if sort == "reward":
        return sorted(newest_first, key=lambda group: group.reward, reverse=True)
    if sort == "time":
        return sorted(newest_first, key=lambda group: group.duration_seconds)
    return newest_first


def _type_and_requester(transaction: Transaction, hit: HitRow) -> tuple[HitTypeRow, str]:
    query = (
        select(HitTypeRow, RequesterRow.name)
        .join(RequesterRow, RequesterRow.requester_id == HitTypeRow.requester_id)
        .where(HitTypeRow.hit_type_id == hit.hit_type_id)
    )
    hit_type, name = transaction.session.execute(query).one()
    return hit_type, name


def _live_assignment(transaction: Transaction, worker: WorkerRow, hit: HitRow) -> AssignmentRow | None:
    return transaction.session.scalar(
        select(AssignmentRow).where(
            AssignmentRow.hit_id == hit.hit_id,
            AssignmentRow.worker_id == worker.worker_id,
            AssignmentRow.state.in_(LIVE_STATES),
        )
    )


def _bonuses_by_assignment(transaction: Transaction, worker: WorkerRow) -> Mapping[str, list[BonusView]]:
    found: dict[str, list[BonusView]] = defaultdict(list)
    query = select(BonusRow).where(BonusRow.worker_id == worker.worker_id).order_by(BonusRow.seq)
    for row in transaction.session.scalars(query):
        found[row.assignment_id].append(BonusView(from_cents(row.amount_cents), row.reason, row.granted_at))
    return found
