"""The side of the engine that workers and their site use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hits.marketplace import (
    contact,
    history,
    listing,
    messages,
    qualification_requests,
    qualification_site,
    reports,
    site,
    submissions,
    work,
    workers,
)
from hits.marketplace.console_views import Page
from hits.marketplace.engine_accounts import AccountSide
from hits.marketplace.listing import Sort
from hits.marketplace.views import (
    AssignmentView,
    Earnings,
    GroupPage,
    HitReportPage,
    HitSubject,
    HitView,
    MessagePage,
    QualificationRequestView,
    QualificationView,
    Receipt,
    RequesterMessagePage,
    ReturnedHit,
    WorkEntry,
    Worker,
    WorkPage,
)

_BATCH: Final = 500


class WorkerSide(AccountSide):
    """What workers do: find, take and hand in work, ask for qualifications, read messages."""

    def worker(self, worker_id: str) -> Worker:
        """Return one worker.

        Raises WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return workers.view(workers.find(transaction, worker_id))

    def set_locale(self, worker_id: str, country: str | None, subdivision: str | None = None) -> Worker:
        """Write down where a worker lives (Worker_Locale); None takes it back.

        Raises WorkerUnknown, OperatorError for codes that cannot be.
        """
        with self._transaction() as transaction:
            return workers.set_locale(transaction, worker_id, country, subdivision)

    def set_master(self, worker_id: str, is_master: bool) -> Worker:
        """Make a worker a master, or no master any more; the operator's decision.

        Raises WorkerUnknown.
        """
        with self._transaction() as transaction:
            return workers.set_master(transaction, worker_id, is_master=is_master)

    def set_adult(self, worker_id: str, is_adult: bool) -> Worker:
        """Write down whether a worker agreed to see adult content (Worker_Adult).

        Raises WorkerUnknown.
        """
        with self._transaction() as transaction:
            return workers.set_adult(transaction, worker_id, is_adult=is_adult)

    def messages(self, worker_id: str, *, page: int = 1, page_size: int = 50) -> MessagePage:
        """Return one page of a worker's messages from requesters and from the operator, newest first."""
        with self._transaction(writes=False) as transaction:
            return messages.inbox(transaction, worker_id, page=page, page_size=page_size)

    def unread_messages(self, worker_id: str) -> int:
        """Return how many of a worker's messages are not read yet."""
        with self._transaction(writes=False, settle=False) as transaction:
            return messages.unread(transaction, worker_id)

    def mark_messages_read(self, worker_id: str) -> int:
        """Mark all of a worker's messages as read and return how many were not."""
        with self._transaction() as transaction:
            return messages.mark_read(transaction, worker_id)

    def hit_subject(self, worker_id: str, hit_id: str) -> HitSubject:
        """Return what a worker's message or report about a HIT would be about.

        Raises WorkerUnknown, HitUnknown, BlockedByRequester, NotQualified.
        """
        with self._transaction(writes=False) as transaction:
            return contact.subject(transaction, worker_id, hit_id)

    def contact_requester(self, worker_id: str, hit_id: str, text: str) -> str:
        """Send a worker's message about a HIT to its requester and return the message's id.

        Raises WorkerUnknown, HitUnknown, BlockedByRequester, NotQualified, MessageUnfit, WroteTooOften.
        """
        with self._transaction() as transaction:
            return contact.write(transaction, worker_id, hit_id, text)

    def sent_messages(self, worker_id: str, *, page: int = 1, page_size: int = 50) -> RequesterMessagePage:
        """Return one page of what a worker wrote to requesters with the replies, newest first."""
        with self._transaction(writes=False) as transaction:
            return contact.sent(transaction, worker_id, page=page, page_size=page_size)

    def requester_messages(
        self, requester_id: str, *, unanswered_only: bool = False, page: int = 1, page_size: int = 50
    ) -> RequesterMessagePage:
        """Return one page of a requester's messages from workers and from the operator, newest first."""
        with self._transaction(writes=False) as transaction:
            return contact.inbox(
                transaction, requester_id, unanswered_only=unanswered_only, page=page, page_size=page_size
            )

    def reply_to_worker(self, requester_id: str, message_id: str, text: str) -> None:
        """Answer a worker's message in a requester's inbox.

        Raises OperatorError for a message that is not in this inbox or is the operator's, MessageUnfit.
        """
        with self._transaction() as transaction:
            contact.reply(transaction, requester_id, message_id, text)

    def report_hit(self, worker_id: str, hit_id: str, reason: str, text: str = "") -> str:
        """Report a HIT to the operator for a reason of `reports.REASONS` and return the report's id.

        Raises WorkerUnknown, HitUnknown, BlockedByRequester, NotQualified, ReportUnfit, WroteTooOften,
        AlreadyReported.
        """
        with self._transaction() as transaction:
            return reports.report(transaction, worker_id, hit_id, reason, text)

    def reports(self, *, open_only: bool = True, page: int = 1, page_size: int = 50) -> HitReportPage:
        """Return one page of workers' reports of HITs: the open ones oldest first, or all newest first."""
        with self._transaction(writes=False) as transaction:
            return reports.listing(transaction, open_only=open_only, page=page, page_size=page_size)

    def returned_hits(self, *, page: int = 1, page_size: int = 50) -> Page[ReturnedHit]:
        """Return one page of the HITs that workers gave back with a reason, newest first."""
        with self._transaction(writes=False) as transaction:
            return reports.returned(transaction, page=page, page_size=page_size)

    def close_report(self, report_id: str, note: str) -> None:
        """Close a report; the worker who made it gets the note as a message.

        Raises OperatorError for a report that does not exist or is closed and for an empty note, MessageUnfit.
        """
        with self._transaction() as transaction:
            reports.close(transaction, report_id, note)

    def worker_qualifications(self, worker_id: str) -> list[QualificationView]:
        """Return what a worker holds, held or asked for, and the system's qualifications with their values."""
        with self._transaction(writes=False) as transaction:
            return qualification_site.of_worker(transaction, worker_id)

    def requestable_qualifications(self, worker_id: str, query: str = "") -> list[QualificationView]:
        """Return the active qualification types of all requesters that have the text in their words."""
        with self._transaction(writes=False) as transaction:
            return qualification_site.requestable(transaction, worker_id, query)

    def worker_qualification(self, worker_id: str, qualification_type_id: str) -> QualificationView:
        """Return one qualification type as a worker sees it.

        Raises QualificationUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return qualification_site.one(transaction, worker_id, qualification_type_id)

    def request_qualification(self, worker_id: str, qualification_type_id: str) -> QualificationRequestView:
        """Ask for a qualification: it is granted, waits for its requester, or begins a test (`form`, `deadline`).

        Asking again during a test gives that test back. Raises QualificationUnknown, QualificationNotRequestable,
        BlockedByRequester, AlreadyQualified, AlreadyRequested, RetryTooSoon, NoRetry.
        """
        with self._transaction() as transaction:
            return qualification_requests.request(transaction, worker_id, qualification_type_id)

    def qualification_request(self, worker_id: str, request_id: str) -> QualificationRequestView:
        """Return one of a worker's requests.

        Raises QualificationRequestUnknown.
        """
        with self._transaction(writes=False) as transaction:
            row = qualification_requests.own_request(transaction, worker_id, request_id)
            return qualification_requests.view_of(transaction, row)

    def submit_qualification_test(
        self, worker_id: str, request_id: str, fields: Mapping[str, Sequence[str]]
    ) -> QualificationRequestView:
        """Hand in a test, its fields named as the form says; with a key it is scored and granted at once.

        Raises QualificationRequestUnknown, TestOver, FormIncomplete, AnswerTooLarge.
        """
        with self._transaction() as transaction:
            return qualification_requests.submit_test(transaction, worker_id, request_id, fields)

    def hit_groups(
        self,
        worker_id: str,
        *,
        sort: Sort = "newest",
        query: str = "",
        qualified_only: bool = False,
        page: int = 1,
        page_size: int = 25,
    ) -> GroupPage:
        """Return a page of the HIT groups this worker may see that have a HIT left for them.

        `sort`: newest first, best paid first, shortest time first, best measured wage first, most HITs left first.
        `query` must occur in title, description, keywords or requester name. A page outside of the list is its
        nearest one. Raises WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return listing.hit_groups(
                transaction,
                worker_id,
                sort=sort,
                query=query,
                qualified_only=qualified_only,
                page=page,
                page_size=page_size,
            )

    def hit_of_group(self, worker_id: str | None, group_or_type_id: str) -> str:
        """Return the id of a HIT of a group (its HITGroupId or HITTypeId) that is open to this worker, or to anybody.

        Whether they qualify is for the preview to say. Raises HitUnknown, HitNotAvailable, WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return listing.hit_of_group(transaction, worker_id, group_or_type_id)

    def preview(self, worker_id: str | None, hit_id: str) -> HitView:
        """Return a HIT as a preview; None previews as nobody in particular.

        Raises HitUnknown, HitNotAvailable, NotQualified (if a requirement guards the preview), WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return site.preview(transaction, worker_id, hit_id)

    def accept(self, worker_id: str, hit_id: str) -> AssignmentView:
        """Give a worker a place of a HIT; one who holds a place already gets that one.

        Raises WorkerUnknown, HitUnknown, HitNotAvailable, NotQualified, AlreadyWorkedOn.
        """
        with self._transaction() as transaction:
            return work.accept(transaction, worker_id, hit_id)

    def accept_next(self, worker_id: str, hit_group_id: str) -> AssignmentView:
        """Give a worker a place of the oldest HIT of a group that is left for them.

        Raises WorkerUnknown, HitGroupEmpty, NotQualified.
        """
        with self._transaction() as transaction:
            return work.accept_next(transaction, worker_id, hit_group_id)

    def held(self, worker_id: str) -> list[AssignmentView]:
        """Return the assignments a worker holds, first deadline first."""
        with self._transaction(writes=False) as transaction:
            return site.held(transaction, worker_id)

    def assignment(self, worker_id: str, assignment_id: str) -> AssignmentView:
        """Return one of a worker's assignments in whatever state it is.

        Raises AssignmentUnknown, for another worker's assignment too.
        """
        with self._transaction(writes=False) as transaction:
            return site.assignment(transaction, worker_id, assignment_id)

    def return_assignment(self, worker_id: str, assignment_id: str, reason: str = "") -> None:
        """Give a held assignment back; its place is free again while the HIT lasts.

        Raises AssignmentUnknown, AssignmentNotHeld.
        """
        with self._transaction() as transaction:
            work.give_back(transaction, worker_id, assignment_id, reason)

    def external_submit(self, assignment_id: str, fields: Mapping[str, Sequence[str]]) -> Receipt:
        """Store the answers of a held assignment; its unguessable id is the authority.

        The reserved fields are dropped; of a repeated field the first value counts. Raises AssignmentUnknown,
        PreviewCannotBeSubmitted, NothingSubmitted, AnswerTooLarge, AssignmentReturned, TooLate, AlreadySubmitted,
        FormExpected.
        """
        with self._transaction() as transaction:
            return submissions.submit(transaction, assignment_id, fields)

    def submit_form(self, worker_id: str, assignment_id: str, fields: Mapping[str, Sequence[str]]) -> Receipt:
        """Store the answers to a held QuestionForm HIT, its fields named as the form says.

        Raises AssignmentUnknown, FormIncomplete, AnswerTooLarge, AssignmentReturned, TooLate, AlreadySubmitted.
        """
        with self._transaction() as transaction:
            return submissions.submit_form(transaction, worker_id, assignment_id, fields)

    def question_html(self, hit_id: str, expires: str, signature: str) -> str:
        """Return the HTML of an HTMLQuestion HIT for the content origin's `/hit-content/<hit id>`.

        `expires` and `signature` are contentExpires and contentSignature of that address. Raises HitUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return site.question_html(transaction, hit_id, expires, signature)

    def work_history(self, worker_id: str, *, page: int = 1, page_size: int = 50) -> WorkPage:
        """Return a page of what a worker submitted, newest first; a page outside of it is its nearest one.

        Raises WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return history.work_history(transaction, worker_id, page=page, page_size=page_size)

    def work_entry(self, worker_id: str, assignment_id: str) -> WorkEntry:
        """Return one assignment that a worker submitted.

        Raises AssignmentUnknown, for another worker's and for one not submitted too, and WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return history.work_entry(transaction, worker_id, assignment_id)

    def all_work(self, worker_id: str) -> Iterator[WorkEntry]:
        """Yield everything a worker submitted, newest first; no transaction stays open while a reader is slow.

        Raises WorkerUnknown.
        """
        place: history.Place | None = None
        while True:
            with self._transaction(writes=False) as transaction:
                entries, place = history.batch(transaction, worker_id, before=place, size=_BATCH)
            yield from entries
            if place is None:
                return

    def earnings(self, worker_id: str) -> Earnings:
        """Return what a worker has earned, what is pending, and both by day."""
        with self._transaction(writes=False) as transaction:
            return history.earnings(transaction, worker_id)
