"""The side of the engine that the operator console and the command line use."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy.exc import IntegrityError

from hits.marketplace import audit, disputes, operators, oversight, payout_runs, reports
from hits.marketplace.console_views import (
    Actor,
    AuditEntry,
    Dispute,
    OpenEarnings,
    Operator,
    Page,
    PayoutLine,
    PayoutRun,
    RequesterAccount,
    WorkerAccount,
    WorkerPayouts,
)
from hits.marketplace.engine_core import EngineCore
from hits.marketplace.views import Balance


class OperatorSide(EngineCore):
    """What operators do: accounts, top-ups, disputes, payout runs; each act leaves a line in the audit log.

    `by` is who acts. `token` is the one-time token of the form that asked: what it did is not done again.
    """

    # Operators

    def add_operator(self, name: str, password: str, *, by: Actor) -> Operator:
        """Create an operator's account.

        Raises OperatorError for a name that is taken or unfit, and a password that is too short or long.
        """
        with self._transaction() as transaction:
            return operators.add(transaction, by, name, password)

    def set_operator_password(self, name: str, password: str, *, by: Actor) -> Operator:
        """Give an operator a new password, which ends their sessions.

        Raises OperatorError for an unknown or closed account, and a password that is too short or long.
        """
        with self._transaction() as transaction:
            return operators.set_password(transaction, by, name, password)

    def close_operator(self, name: str, *, by: Actor) -> Operator:
        """Close an operator's account for good.

        Raises OperatorError for an unknown account.
        """
        with self._transaction() as transaction:
            return operators.close(transaction, by, name)

    def authenticate_operator(self, name: str, password: str) -> Operator:
        """Return the operator with this name and password.

        Raises NotSignedIn, the same way and as slowly for unknown and closed accounts.
        """
        with self._transaction(writes=False) as transaction:
            return operators.authenticate(transaction, name, password)

    def operators(self) -> list[Operator]:
        """Return all operators, oldest first."""
        with self._transaction(writes=False) as transaction:
            return operators.every(transaction)

    # Accounts of workers and requesters

    def worker_accounts(self, query: str = "", *, page: int = 1) -> Page[WorkerAccount]:
        """Return workers, newest first; `query` is a worker id, or a part of a user name."""
        with self._transaction(writes=False) as transaction:
            return oversight.worker_page(transaction, query=query, page=page)

    def worker_account(self, wanted: str) -> WorkerAccount:
        """Return the worker with this id or user name.

        Raises OperatorError if there is none.
        """
        with self._transaction(writes=False) as transaction:
            return oversight.find_worker(transaction, wanted)

    def requester_accounts(self, query: str = "", *, page: int = 1) -> Page[RequesterAccount]:
        """Return requesters, newest first; `query` is an id, or a part of a name or e-mail address."""
        with self._transaction(writes=False) as transaction:
            return oversight.requester_page(transaction, query=query, page=page)

    def requester_account(self, requester_id: str) -> RequesterAccount:
        """Return one requester with its money.

        Raises OperatorError if there is none.
        """
        with self._transaction(writes=False) as transaction:
            return oversight.find_requester(transaction, requester_id)

    def set_worker_disabled(self, worker_id: str, disabled: bool, *, by: Actor) -> WorkerAccount:
        """Close an account to its worker, or open it again; work that is held can still be submitted.

        Raises WorkerUnknown.
        """
        with self._transaction() as transaction:
            return oversight.set_worker_disabled(transaction, by, worker_id, disabled=disabled)

    def set_requester_disabled(self, requester_id: str, disabled: bool, *, by: Actor) -> RequesterAccount:
        """Close an account to its requester, console and API, or open it again.

        Raises OperatorError if there is none.
        """
        with self._transaction() as transaction:
            return oversight.set_requester_disabled(transaction, by, requester_id, disabled=disabled)

    def set_worker_trait(self, worker_id: str, trait: str, value: bool, *, by: Actor) -> WorkerAccount:
        """Set `is_master` or `is_adult` of a worker.

        Raises WorkerUnknown, OperatorError for another trait.
        """
        with self._transaction() as transaction:
            return oversight.set_trait(transaction, by, worker_id, trait, value=value)

    def set_worker_locale(
        self, worker_id: str, country: str | None, subdivision: str | None = None, *, by: Actor
    ) -> WorkerAccount:
        """Write down where a worker lives; None takes it back.

        Raises WorkerUnknown, OperatorError for codes that cannot be.
        """
        with self._transaction() as transaction:
            return oversight.set_locale(transaction, by, worker_id, country, subdivision)

    def operator_top_up(
        self, requester_id: str, amount: Decimal, note: str = "", *, by: Actor, token: str | None = None
    ) -> Balance:
        """Add dollars to a requester's account, once for each token, and return the new balance.

        Raises OperatorError for an unknown requester, and an amount that is not a positive number of cents.
        """
        with self._transaction() as transaction:
            return oversight.top_up(transaction, by, requester_id, amount, note, token=token)

    def take_down(self, hit_id: str, words: str, *, whole_type: bool = False, by: Actor) -> int:
        """Expire a HIT for good, or all HITs of its type, and return how many; the requester is told.

        Raises OperatorError for an unknown HIT, and words that are missing or too many.
        """
        done, after = 0, 0
        while True:
            with self._transaction() as transaction:
                count, more = oversight.take_down(transaction, by, hit_id, words, whole_type=whole_type, after=after)
            done += count
            if more is None:
                return done
            after = more

    def end_report(self, report_id: str, note: str, *, by: Actor) -> None:
        """Close a worker's report of a HIT; the worker gets the note as a message.

        Raises OperatorError for a report that does not exist or is closed and for an empty note, MessageUnfit.
        """
        with self._transaction() as transaction:
            reports.close(transaction, report_id, note)
            audit.record(transaction, by, "report closed", "report", report_id, note=note[:500])

    # Disputes

    def open_dispute(self, worker_id: str, assignment_id: str, words: str) -> Dispute:
        """Object, as a worker, to a rejection: once, within 30 days of it.

        Raises AssignmentUnknown, DisputeNotPossible, AlreadyDisputed, DisputeUnfit.
        """
        with self._transaction() as transaction:
            return disputes.open_dispute(transaction, worker_id, assignment_id, words)

    def dispute_of(self, worker_id: str, assignment_id: str) -> Dispute | None:
        """Return a worker's dispute about an assignment, if there is one."""
        with self._transaction(writes=False) as transaction:
            return disputes.of_assignment(transaction, worker_id, assignment_id)

    def disputes(self, *, state: str | None = "Open", requester_id: str | None = None, page: int = 1) -> Page[Dispute]:
        """Return disputes: open ones by age, others newest first; of all requesters, or of one."""
        with self._transaction(writes=False) as transaction:
            return disputes.page_of(transaction, state=state, requester_id=requester_id, page=page)

    def dispute(self, dispute_id: str, *, requester_id: str | None = None) -> Dispute:
        """Return one dispute, or one of a requester's own.

        Raises OperatorError if there is none.
        """
        with self._transaction(writes=False) as transaction:
            return disputes.one(transaction, dispute_id, requester_id=requester_id)

    def reply_to_dispute(self, requester_id: str, dispute_id: str, words: str) -> Dispute:
        """Write down a requester's answer to an open dispute.

        Raises OperatorError if the requester has no such open dispute, or for words that do not fit.
        """
        with self._transaction() as transaction:
            return disputes.reply(transaction, requester_id, dispute_id, words)

    def overturn_dispute(self, dispute_id: str, words: str, *, by: Actor, token: str | None = None) -> Dispute:
        """Approve the rejected assignment after all, at the requester's cost, and tell both sides.

        Raises OperatorError for an unknown or decided dispute, missing words, and a balance that is too low.
        """
        with self._transaction() as transaction:
            return disputes.overturn(transaction, by, dispute_id, words, token=token)

    def uphold_dispute(self, dispute_id: str, words: str, *, by: Actor, token: str | None = None) -> Dispute:
        """Let the rejection stand, and tell both sides.

        Raises OperatorError for an unknown or decided dispute, and missing words.
        """
        with self._transaction() as transaction:
            return disputes.uphold(transaction, by, dispute_id, words, token=token)

    # Payout runs

    def open_earnings(self, until: datetime | None = None) -> OpenEarnings:
        """Return what was earned before a moment (None: now) and is in no payout run yet."""
        with self._transaction(writes=False) as transaction:
            return payout_runs.open_earnings(transaction, until or transaction.now)

    def draft_payout_run(
        self,
        until: datetime | None = None,
        *,
        only_with_details: bool = False,
        by: Actor,
        token: str | None = None,
    ) -> PayoutRun:
        """Put every earning from before a moment (None: now) that is in no run yet into a new run.

        Raises OperatorError for a time to come, if nothing is owed, and if another run was drafted at the same moment.
        """
        try:
            with self._transaction() as transaction:
                return payout_runs.draft(
                    transaction, by, until or transaction.now, only_with_details=only_with_details, token=token
                )
        except IntegrityError as error:
            raise payout_runs.clash() from error

    def mark_payout_run_paid(self, run_id: str, reference: str, *, by: Actor, token: str | None = None) -> PayoutRun:
        """Write down that a drafted run was paid.

        Raises OperatorError for an unknown run, one that is paid or cancelled, and a missing reference.
        """
        with self._transaction() as transaction:
            return payout_runs.mark_paid(transaction, by, run_id, reference, token=token)

    def cancel_payout_run(self, run_id: str, *, by: Actor, token: str | None = None) -> PayoutRun:
        """Give the earnings of a drafted run free again.

        Raises OperatorError for an unknown run, and one that is paid or cancelled.
        """
        with self._transaction() as transaction:
            return payout_runs.cancel(transaction, by, run_id, token=token)

    def payout_runs(self, *, page: int = 1) -> Page[PayoutRun]:
        """Return the payout runs, newest first."""
        with self._transaction(writes=False) as transaction:
            return payout_runs.page_of(transaction, page=page)

    def payout_run(self, run_id: str) -> PayoutRun:
        """Return one payout run.

        Raises OperatorError if there is none.
        """
        with self._transaction(writes=False) as transaction:
            return payout_runs.one(transaction, run_id)

    def payout_lines(self, run_id: str, *, page: int = 1) -> Page[PayoutLine]:
        """Return what each worker gets from a run.

        Raises OperatorError if there is no such run.
        """
        with self._transaction(writes=False) as transaction:
            return payout_runs.lines(transaction, run_id, page=page)

    def payout_csv(self, run_id: str) -> Iterator[str]:
        """Return the lines of the CSV file that a run is paid from, safe to open in a spreadsheet.

        Raises OperatorError if there is no such run.
        """
        with self._transaction(writes=False) as transaction:
            found = payout_runs.all_lines(transaction, run_id)
        return payout_runs.csv_text(run_id, found)

    def worker_payouts(self, worker_id: str) -> WorkerPayouts:
        """Return what became of a worker's earnings.

        Raises WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return payout_runs.of_worker(transaction, worker_id)

    def set_payout_details(self, worker_id: str, password: str, text: str) -> None:
        """Keep, encrypted, how a worker who knows the password wants to be paid; nothing takes it back.

        Raises WorkerUnknown, PasswordWrong, PayoutDetailsUnfit.
        """
        with self._transaction() as transaction:
            payout_runs.set_details(transaction, worker_id, password, text)

    def payout_details(self, worker_id: str) -> str:
        """Return how a worker wants to be paid, or nothing.

        Raises WorkerUnknown.
        """
        with self._transaction(writes=False) as transaction:
            return payout_runs.details(transaction, worker_id)

    # Audit log

    def audit_log(self, *, about: str = "", action: str = "", page: int = 1) -> Page[AuditEntry]:
        """Return lines of the audit log, newest first; `about` is the id or name of a subject or an actor."""
        with self._transaction(writes=False) as transaction:
            return audit.entries(transaction, about=about, action=action, page=page)

    def audit_actions(self) -> list[str]:
        """Return the kinds of action that the audit log has."""
        with self._transaction(writes=False) as transaction:
            return audit.actions(transaction)

    def record_act(self, action: str, subject_kind: str, subject_id: str, *, by: Actor, **details: Any) -> None:
        """Add a line to the audit log for what another part of the engine did."""
        with self._transaction() as transaction:
            audit.record(transaction, by, action, subject_kind, subject_id, **details)
