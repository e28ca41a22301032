"""The marketplace as one object: every door (HTTP, moto, launcher, tests) goes through it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Literal

from hits.marketplace import (
    access_keys,
    accounts,
    database,
    layouts,
    messages,
    operations,
    qualification_requests,
    qualification_site,
    sigv4,
    site,
    submissions,
    timers,
    work,
    workers,
)
from hits.marketplace.clock import Clock, SystemClock
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import (
    AccessKey,
    AccessKeyInfo,
    AccountEntry,
    AssignmentView,
    Balance,
    Earnings,
    GroupListing,
    HitLayout,
    HitView,
    Invitation,
    Message,
    QualificationRequestView,
    QualificationView,
    Receipt,
    Requester,
    WorkEntry,
    Worker,
)

Sort = Literal["newest", "reward", "time"]


class Marketplace:
    """One marketplace over one database; safe to share between threads, and between processes over one database."""

    def __init__(
        self,
        database_url: str,
        *,
        settings: MarketplaceSettings,
        clock: Clock | None = None,
        signing_clock: Clock | None = None,
    ) -> None:
        """Open the database; `sqlite://` is a private one in memory with its tables already made.

        `clock` drives every timer. `signing_clock` is what the dates of signatures are held against: the machine's
        time, even where `clock` has been moved ahead.
        """
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.signing_clock: Clock = signing_clock or SystemClock()
        self.store = database.Store(database_url)
        if self.store.in_memory:
            self.create_schema()

    def create_schema(self) -> None:
        """Create the tables that are missing, without migrations: for tests and memory."""
        self.store.create_schema()

    def close(self) -> None:
        """Give the database connections back."""
        self.store.close()

    # The Requester API

    def call(self, requester_id: str, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out one operation of the Requester API and return its output, times as aware datetimes.

        Timers that are due are settled first. Raises MarketplaceError.
        """
        try:
            row, checked = operations.prepare(operation, params)
            with self._transaction(writes=row.writes) as transaction:
                accounts.require(transaction, requester_id, lock=row.writes)
                return row.function(transaction, requester_id, checked)
        except MarketplaceError as error:
            raise error.stamped(self.clock.now()) from error.__cause__

    def authenticate_request(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> str:
        """Return the id of the requester whose access key signed this request.

        Raises MarketplaceError in AWS' own types.
        """
        owners: dict[str, str] = {}

        def lookup(access_key_id: str) -> str:
            secret, owners[access_key_id] = self.access_key(access_key_id)
            return secret

        key = sigv4.verify(method, path, query, headers, body, lookup_secret=lookup, now=self.signing_clock.now())
        return owners[key]

    def settle(self) -> int:
        """Carry out every timer that is due and return how many there were; each call does this by itself."""
        return timers.settle(self.store, self.clock.now(), self.settings)

    # Requesters, money, keys

    def create_requester(self, name: str, *, email: str | None = None, password: str | None = None) -> Requester:
        """Create an account that can hold money, keys and HITs.

        Raises OperatorError if the e-mail address is in use.
        """
        with self._transaction() as transaction:
            return accounts.create(transaction, name, email=email, password=password)

    def requester(self, requester_id: str) -> Requester:
        """Return one requester.

        Raises OperatorError if there is none.
        """
        with self._transaction(writes=False) as transaction:
            return accounts.view(accounts.find(transaction, requester_id))

    def requesters(self) -> list[Requester]:
        """Return all requesters, oldest first."""
        with self._transaction(writes=False) as transaction:
            return accounts.every(transaction)

    def authenticate_requester(self, email: str, password: str) -> Requester:
        """Return the requester with this e-mail address and password.

        Raises NotSignedIn, the same way and as slowly for an unknown address.
        """
        with self._transaction(writes=False) as transaction:
            return accounts.authenticate(transaction, email, password)

    def top_up(self, requester_id: str, amount: Decimal, note: str = "") -> Balance:
        """Add dollars to a requester's account and return the new balance.

        Raises OperatorError for an amount that is not a positive number of cents.
        """
        with self._transaction() as transaction:
            return accounts.top_up(transaction, requester_id, amount, note)

    def balance(self, requester_id: str) -> Balance:
        """Return a requester's money."""
        with self._transaction(writes=False) as transaction:
            return accounts.balance(transaction, requester_id)

    def account_entries(self, requester_id: str) -> list[AccountEntry]:
        """Return every line of a requester's account, oldest first."""
        with self._transaction(writes=False) as transaction:
            return accounts.entries(transaction, requester_id)

    def create_access_key(self, requester_id: str) -> AccessKey:
        """Create an access key; its secret is returned here and never again."""
        with self._transaction() as transaction:
            return access_keys.create(transaction, requester_id)

    def access_key(self, access_key_id: str) -> tuple[str, str]:
        """Return (secret, requester id) of a key that is in force.

        Raises MarketplaceError (UnrecognizedClientException) for an unknown or revoked key.
        """
        with self._transaction(writes=False, settle=False) as transaction:
            return access_keys.reveal(transaction, access_key_id)

    def access_keys(self, requester_id: str) -> list[AccessKeyInfo]:
        """Return a requester's keys, without secrets."""
        with self._transaction(writes=False) as transaction:
            return access_keys.every(transaction, requester_id)

    def revoke_access_key(self, requester_id: str, access_key_id: str) -> None:
        """End a key at once; revoking it again changes nothing.

        Raises OperatorError if the requester has no such key.
        """
        with self._transaction() as transaction:
            access_keys.revoke(transaction, requester_id, access_key_id)

    def create_layout(self, requester_id: str, name: str, html: str, *, frame_height: int = 0) -> HitLayout:
        """Register a page with `${placeholders}` that HITs can be made from by its id.

        Raises OperatorError for an unknown requester, a blank name, or a page that is not HTML with a form.
        """
        with self._transaction() as transaction:
            return layouts.create(transaction, requester_id, name, html, frame_height)

    def layouts(self, requester_id: str) -> list[HitLayout]:
        """Return a requester's layouts, oldest first."""
        with self._transaction(writes=False) as transaction:
            return layouts.every(transaction, requester_id)

    # Workers

    def create_invitation(self, note: str = "", *, grants: Mapping[str, int] | None = None) -> str:
        """Create a code with which one person can register; `grants` maps qualification type ids to values.

        Raises OperatorError for an unknown qualification type.
        """
        with self._transaction() as transaction:
            return workers.create_invitation(transaction, note, grants or {})

    def invitations(self) -> list[Invitation]:
        """Return all invitations, oldest first."""
        with self._transaction(writes=False) as transaction:
            return workers.invitations(transaction)

    def register_worker(self, invitation_code: str, user_name: str, password: str) -> Worker:
        """Create a worker account from an invitation and give it the invitation's qualifications.

        Raises InvitationUnknown, InvitationUsed, UserNameUnfit, UserNameTaken, PasswordUnfit.
        """
        with self._transaction() as transaction:
            return workers.register(transaction, invitation_code, user_name, password)

    def authenticate_worker(self, user_name: str, password: str) -> Worker:
        """Return the worker with this user name and password.

        Raises NotSignedIn, the same way and as slowly for an unknown user name.
        """
        with self._transaction(writes=False) as transaction:
            return workers.authenticate(transaction, user_name, password)

    def worker(self, worker_id: str) -> Worker:
        """Return one worker.

        Raises WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return workers.view(workers.find(transaction, worker_id))

    def messages(self, worker_id: str) -> list[Message]:
        """Return a worker's messages from requesters, newest first."""
        with self._transaction(writes=False) as transaction:
            return messages.inbox(transaction, worker_id)

    def mark_messages_read(self, worker_id: str) -> int:
        """Mark all of a worker's messages as read and return how many were not."""
        with self._transaction() as transaction:
            return messages.mark_read(transaction, worker_id)

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

    def hit_groups(self, worker_id: str, *, sort: Sort = "newest", query: str = "") -> list[GroupListing]:
        """Return the HIT groups this worker may see that have a HIT left for them.

        `sort`: newest first, best paid first, or shortest time first. `query` must occur in title, description,
        keywords or requester name. Raises WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return site.hit_groups(transaction, worker_id, sort=sort, query=query)

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

    def work_history(self, worker_id: str) -> list[WorkEntry]:
        """Return everything a worker submitted, newest first."""
        with self._transaction(writes=False) as transaction:
            return site.work_history(transaction, worker_id)

    def earnings(self, worker_id: str) -> Earnings:
        """Return what a worker has earned, what is pending, and both by day."""
        with self._transaction(writes=False) as transaction:
            return site.earnings(transaction, worker_id)

    @contextmanager
    def _transaction(self, *, writes: bool = True, settle: bool = True) -> Iterator[Transaction]:
        now = self.clock.now()
        if settle:
            timers.settle(self.store, now, self.settings)
        with self.store.session(writes=writes) as session:
            yield Transaction(session, now, self.settings)


def open_marketplace(database_url: str, *, settings: MarketplaceSettings, clock: Clock | None = None) -> Marketplace:
    """Bring the database up to the newest schema and open the marketplace on it."""
    database.upgrade(database_url)
    return Marketplace(database_url, settings=settings, clock=clock)
