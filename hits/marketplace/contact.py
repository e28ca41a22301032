"""Workers writing to requesters about HITs, and the requesters' replies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from sqlalchemy import ColumnElement, select

from hits.marketplace import blocks, eligibility, lifecycle, mails, messages, workers
from hits.marketplace.errors import (
    BlockedByRequester,
    HitUnknown,
    MessageUnfit,
    NothingThere,
    NotQualified,
    WroteTooOften,
)
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.pages import counted, existing, number_of_pages
from hits.marketplace.tables import (
    AssignmentRow,
    HitRow,
    HitTypeRow,
    MailRow,
    MessageRow,
    RequesterMessageRow,
    RequesterRow,
    WorkerRow,
)
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import HitSubject, Reply, RequesterMessage, RequesterMessagePage
from hits.marketplace.words import Words, words
from hits.marketplace.xmltext import legal

LONGEST_MESSAGE: Final = 4000
_DAY: Final = timedelta(days=1)
_MOST_TO_ONE: Final = 5
_MOST_IN_ALL: Final = 20


def write(transaction: Transaction, worker_id: str, hit_id: str, text: str) -> str:
    """Put a worker's message about a HIT into its requester's inbox and return the message's id.

    It names the worker's newest assignment of that HIT, if there is one; the requester is told by mail, where there is
    mail. Raises WorkerUnknown, HitUnknown, BlockedByRequester and NotQualified (from somebody who never had the HIT),
    MessageUnfit, WroteTooOften.
    """
    worker = workers.lock(transaction, worker_id)
    hit, assignment_id = seen_hit(transaction, worker, hit_id)
    message = checked_text(text)
    of_worker = RequesterMessageRow.worker_id == worker.worker_id
    of_both = of_worker & (RequesterMessageRow.requester_id == hit.requester_id)
    _check_rate(
        transaction,
        of_both,
        _MOST_TO_ONE,
        words("You have sent %(count)d messages to this requester.", count=_MOST_TO_ONE),
    )
    _check_rate(transaction, of_worker, _MOST_IN_ALL, words("You have sent %(count)d messages.", count=_MOST_IN_ALL))
    _tell_by_mail(transaction, hit.requester_id)
    return tell_requester(
        transaction,
        hit.requester_id,
        message,
        worker_id=worker.worker_id,
        hit_id=hit.hit_id,
        assignment_id=assignment_id,
    )


def tell_requester(
    transaction: Transaction,
    requester_id: str,
    text: str,
    *,
    worker_id: str | None = None,
    hit_id: str | None = None,
    assignment_id: str | None = None,
) -> str:
    """Put a message into a requester's inbox and return its id; without a worker it is the operator's."""
    message_id = new_entity_id()
    transaction.session.add(
        RequesterMessageRow(
            message_id=message_id,
            requester_id=requester_id,
            worker_id=worker_id,
            hit_id=hit_id,
            assignment_id=assignment_id,
            sent_at=transaction.now,
            text=text,
        )
    )
    return message_id


def inbox(
    transaction: Transaction, requester_id: str, *, unanswered_only: bool, page: int, page_size: int
) -> RequesterMessagePage:
    """Return one page of a requester's messages, newest first."""
    mine = RequesterMessageRow.requester_id == requester_id
    return _page(transaction, mine, unanswered_only=unanswered_only, page=page, page_size=page_size)


def sent(transaction: Transaction, worker_id: str, *, page: int, page_size: int) -> RequesterMessagePage:
    """Return one page of what a worker wrote to requesters, newest first."""
    mine = RequesterMessageRow.worker_id == worker_id
    return _page(transaction, mine, unanswered_only=False, page=page, page_size=page_size)


def reply(transaction: Transaction, requester_id: str, message_id: str, text: str) -> None:
    """Answer a message of a requester's inbox: the reply goes to the worker's inbox.

    Raises OperatorError for a message that is another requester's or the operator's, MessageUnfit.
    """
    row = transaction.session.scalar(
        select(RequesterMessageRow).where(
            RequesterMessageRow.message_id == message_id, RequesterMessageRow.requester_id == requester_id
        )
    )
    if row is None or row.worker_id is None:
        raise NothingThere(words("There is no worker's message “%(id)s” in this inbox.", id=message_id))
    answer = checked_text(text)
    row.answered_at = row.answered_at or transaction.now
    title = _title(transaction, row.hit_id)
    subject = f"Reply about “{title}”" if title else "Reply"
    messages.send(transaction, requester_id, row.worker_id, subject, answer, question_id=row.message_id)


def subject(transaction: Transaction, worker_id: str, hit_id: str) -> HitSubject:
    """Return what a message or a report of this worker's would be about.

    Raises WorkerUnknown, HitUnknown, BlockedByRequester, NotQualified.
    """
    hit, assignment_id = seen_hit(transaction, workers.find(transaction, worker_id), hit_id)
    requester = transaction.session.get_one(RequesterRow, hit.requester_id)
    return HitSubject(hit.hit_id, _title(transaction, hit.hit_id) or "", requester.name, assignment_id)


def seen_hit(transaction: Transaction, worker: WorkerRow, hit_id: str) -> tuple[HitRow, str | None]:
    """Return a HIT that a worker has had or may look at, and the id of their newest assignment of it.

    Raises HitUnknown, BlockedByRequester, NotQualified.
    """
    hit = lifecycle.find_hit(transaction, hit_id)
    if hit is None:
        raise HitUnknown
    assignment_id = transaction.session.scalar(
        select(AssignmentRow.assignment_id)
        .where(AssignmentRow.hit_id == hit.hit_id, AssignmentRow.worker_id == worker.worker_id)
        .order_by(AssignmentRow.seq.desc())
        .limit(1)
    )
    if assignment_id is not None:
        return hit, assignment_id
    if hit.status == "Disposed":
        raise HitUnknown
    if blocks.is_blocked(transaction, hit.requester_id, worker.worker_id):
        raise BlockedByRequester
    hit_type = transaction.session.scalars(select(HitTypeRow).where(HitTypeRow.hit_type_id == hit.hit_type_id)).one()
    verdict = eligibility.judge(transaction, worker, hit_type.requirements)
    if not verdict.may_preview:
        raise NotQualified(verdict.reasons, verdict.missing)
    return hit, None


def checked_text(text: str) -> str:
    """Return a message's words without what no database takes.

    Raises MessageUnfit.
    """
    kept = legal(text).strip()
    if not 0 < len(kept) <= LONGEST_MESSAGE:
        raise MessageUnfit(len(kept), LONGEST_MESSAGE)
    return kept


def _tell_by_mail(transaction: Transaction, requester_id: str) -> None:
    requester = transaction.session.get_one(RequesterRow, requester_id)
    if requester.email is None:
        return
    # One that has not gone out yet tells of this message too.
    waiting = select(MailRow.seq).where(
        MailRow.kind == mails.WORKER_WROTE, MailRow.address == requester.email, MailRow.state == "Waiting"
    )
    if transaction.session.scalar(waiting.limit(1)) is None:
        mails.queue(transaction, mails.WORKER_WROTE, requester.email, about=requester_id)


def _check_rate(transaction: Transaction, condition: ColumnElement[bool], most: int, said: Words) -> None:
    newest = transaction.session.scalars(
        select(RequesterMessageRow.sent_at)
        .where(condition, RequesterMessageRow.sent_at > transaction.now - _DAY)
        .order_by(RequesterMessageRow.sent_at.desc())
        .limit(most)
    ).all()
    if len(newest) >= most:
        raise WroteTooOften(said, newest[-1] + _DAY)


def _page(
    transaction: Transaction, mine: ColumnElement[bool], *, unanswered_only: bool, page: int, page_size: int
) -> RequesterMessagePage:
    session = transaction.session
    waiting = RequesterMessageRow.answered_at.is_(None) & RequesterMessageRow.worker_id.is_not(None)
    unanswered = counted(session, select(RequesterMessageRow).where(mine, waiting), page=page, page_size=page_size)
    every = select(RequesterMessageRow).where(mine)
    count = unanswered if unanswered_only else counted(session, every, page=page, page_size=page_size)
    pages = number_of_pages(count.total, page_size)
    number = existing(page, pages)
    query = (
        select(RequesterMessageRow, RequesterRow.name, HitTypeRow.title)
        .join(RequesterRow, RequesterRow.requester_id == RequesterMessageRow.requester_id)
        .outerjoin(HitRow, HitRow.hit_id == RequesterMessageRow.hit_id)
        .outerjoin(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .where(mine)
        .order_by(RequesterMessageRow.seq.desc())
        .limit(page_size)
        .offset((number - 1) * page_size)
    )
    rows = session.execute(query.where(waiting) if unanswered_only else query).all()
    replies = _replies(transaction, (row.message_id for row, _name, _title in rows))
    found = tuple(
        RequesterMessage(
            message_id=row.message_id,
            requester_id=row.requester_id,
            requester_name=name,
            worker_id=row.worker_id,
            hit_id=row.hit_id,
            hit_title=title,
            assignment_id=row.assignment_id,
            sent_at=row.sent_at,
            text=row.text,
            answered_at=row.answered_at,
            replies=tuple(replies[row.message_id]),
        )
        for row, name, title in rows
    )
    return RequesterMessagePage(found, number, pages, count.total, unanswered.total, count.has_more)


def _replies(transaction: Transaction, message_ids: Iterable[str]) -> dict[str, list[Reply]]:
    found: dict[str, list[Reply]] = defaultdict(list)
    query = select(MessageRow).where(MessageRow.question_id.in_(list(message_ids))).order_by(MessageRow.seq)
    for row in transaction.session.scalars(query):
        found[str(row.question_id)].append(Reply(row.sent_at, row.text))
    return found


def _title(transaction: Transaction, hit_id: str | None) -> str | None:
    return transaction.session.scalar(
        select(HitTypeRow.title)
        .join(HitRow, HitRow.hit_type_id == HitTypeRow.hit_type_id)
        .where(HitRow.hit_id == hit_id)
    )
