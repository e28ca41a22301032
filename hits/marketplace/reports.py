"""Workers reporting HITs to the operator, and the operator's end of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from hits.marketplace import contact, messages, workers
from hits.marketplace.console_pages import page_of
from hits.marketplace.console_views import Page
from hits.marketplace.errors import AlreadyReported, OperatorError, ReportUnfit, WroteTooOften
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.pages import counted, existing, number_of_pages
from hits.marketplace.tables import AssignmentRow, HitReportRow, HitRow, HitTypeRow, RequesterRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import HitReport, HitReportPage, ReturnedHit
from hits.marketplace.words import words
from hits.marketplace.xmltext import legal

REASONS: Final = {
    "broken": words("It does not work or cannot be submitted"),
    "unfair": words("The pay or the time is far from what it says"),
    "personal-data": words("It asks for personal data, a password or a registration elsewhere"),
    "harmful": words("It shows violence, hatred or sexual content without a warning"),
    "dishonest": words("It asks for something dishonest, such as false reviews"),
    "other": words("Something else"),
}
LONGEST_TEXT: Final = 2000
_DAY: Final = timedelta(days=1)
_MOST_A_DAY: Final = 20


def report(transaction: Transaction, worker_id: str, hit_id: str, reason: str, text: str) -> str:
    """Store a worker's report of a HIT for the operator and return its id.

    Raises WorkerUnknown, HitUnknown, BlockedByRequester and NotQualified (from somebody who never had the HIT),
    ReportUnfit, WroteTooOften, AlreadyReported while an earlier report of theirs is open.
    """
    worker = workers.lock(transaction, worker_id)
    hit, assignment_id = contact.seen_hit(transaction, worker, hit_id)
    said = legal(text).strip()
    if reason not in REASONS:
        raise ReportUnfit(words("Choose a reason. Nothing was sent."))
    if reason == "other" and not said:
        raise ReportUnfit(words("Write what is wrong with the HIT. Nothing was sent."))
    if len(said) > LONGEST_TEXT:
        raise ReportUnfit(
            words(
                "At most %(most)d characters can be sent, and these are %(length)d. Nothing was sent.",
                most=LONGEST_TEXT,
                length=len(said),
            )
        )
    mine = HitReportRow.worker_id == worker.worker_id
    if transaction.session.scalar(
        select(HitReportRow.seq).where(mine, HitReportRow.hit_id == hit.hit_id, HitReportRow.closed_at.is_(None))
    ):
        raise AlreadyReported
    newest = transaction.session.scalars(
        select(HitReportRow.reported_at)
        .where(mine, HitReportRow.reported_at > transaction.now - _DAY)
        .order_by(HitReportRow.reported_at.desc())
        .limit(_MOST_A_DAY)
    ).all()
    if len(newest) >= _MOST_A_DAY:
        raise WroteTooOften(words("You have sent %(count)d reports.", count=_MOST_A_DAY), newest[-1] + _DAY)
    row = HitReportRow(
        report_id=new_entity_id(),
        worker_id=worker.worker_id,
        hit_id=hit.hit_id,
        assignment_id=assignment_id,
        reason=reason,
        text=said,
        reported_at=transaction.now,
    )
    try:
        with transaction.session.begin_nested():
            transaction.session.add(row)
    except IntegrityError as error:
        raise AlreadyReported from error
    return row.report_id


def listing(transaction: Transaction, *, open_only: bool, page: int, page_size: int) -> HitReportPage:
    """Return one page of reports: the open ones oldest first, or all of them newest first."""
    session = transaction.session
    query = (
        select(HitReportRow, HitRow.status, HitTypeRow.title, RequesterRow.requester_id, RequesterRow.name)
        .join(HitRow, HitRow.hit_id == HitReportRow.hit_id)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .join(RequesterRow, RequesterRow.requester_id == HitRow.requester_id)
    )
    if open_only:
        query = query.where(HitReportRow.closed_at.is_(None)).order_by(HitReportRow.seq)
    else:
        query = query.order_by(HitReportRow.seq.desc())
    count = counted(session, query, page=page, page_size=page_size)
    pages = number_of_pages(count.total, page_size)
    number = existing(page, pages)
    found = tuple(
        HitReport(
            report_id=row.report_id,
            worker_id=row.worker_id,
            hit_id=row.hit_id,
            hit_title=title,
            hit_status=status,
            requester_id=requester_id,
            requester_name=requester_name,
            assignment_id=row.assignment_id,
            reason=row.reason,
            text=row.text,
            reported_at=row.reported_at,
            closed_at=row.closed_at,
            note=row.note,
        )
        for row, status, title, requester_id, requester_name in session.execute(
            query.limit(page_size).offset((number - 1) * page_size)
        )
    )
    return HitReportPage(found, number, pages, count.total, count.has_more)


def returned(transaction: Transaction, *, page: int, page_size: int) -> Page[ReturnedHit]:
    """Return one page of the HITs that workers gave back with a reason, newest first."""
    query = (
        select(AssignmentRow, HitTypeRow.title, RequesterRow.name)
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .join(RequesterRow, RequesterRow.requester_id == AssignmentRow.requester_id)
        .where(AssignmentRow.return_reason.is_not(None))
        .order_by(AssignmentRow.seq.desc())
    )
    return page_of(transaction, query, _returned_view, page=page, page_size=page_size)


def _returned_view(row: AssignmentRow, title: str, requester_name: str) -> ReturnedHit:
    return ReturnedHit(
        hit_id=row.hit_id,
        hit_title=title,
        requester_id=row.requester_id,
        requester_name=requester_name,
        worker_id=row.worker_id,
        returned_at=row.ended_at or row.accepted_at,
        reason=row.return_reason or "",
    )


def close(transaction: Transaction, report_id: str, note: str) -> None:
    """Close a report and send the note to the worker who made it.

    Raises OperatorError for a report that does not exist or is closed, and for an empty note; MessageUnfit for one
    that is too long.
    """
    if not note.strip():
        raise OperatorError(words("Write what was done about the report; its worker reads it."))
    kept = contact.checked_text(note)
    row = transaction.session.scalar(select(HitReportRow).where(HitReportRow.report_id == report_id).with_for_update())
    if row is None:
        raise OperatorError(words("There is no report %(report)s.", report=report_id))
    if row.closed_at is not None:
        moment = f"{row.closed_at:%Y-%m-%d %H:%M}"
        raise OperatorError(
            words("The report %(report)s was closed at %(moment)s UTC already.", report=report_id, moment=moment)
        )
    row.closed_at = transaction.now
    row.note = kept
    title = transaction.session.scalars(
        select(HitTypeRow.title)
        .join(HitRow, HitRow.hit_type_id == HitTypeRow.hit_type_id)
        .where(HitRow.hit_id == row.hit_id)
    ).one()
    messages.send(transaction, None, row.worker_id, f"Your report about “{title}”", kept)
