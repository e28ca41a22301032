"""The side of the engine that accounts of people use: sign-up, sessions, passwords, e-mail addresses, mail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from hits.marketplace import accounts, addresses, deliveries, ended_sessions, mails, operators, recovery, workers
from hits.marketplace.console_views import Operator
from hits.marketplace.engine_core import EngineCore
from hits.marketplace.mails import MailReport, PostOffice
from hits.marketplace.views import Invitation, Requester, Worker
from hits.marketplace.words import Translator, in_english


class AccountSide(EngineCore):
    """How people come in, stay in, and get back in."""

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

    def register_worker(
        self,
        invitation_code: str,
        user_name: str,
        password: str,
        *,
        email: str | None = None,
        language: str | None = None,
    ) -> Worker:
        """Create a worker account from an invitation and give it the invitation's qualifications.

        An e-mail address is not confirmed yet; a mail asks for that where mail is sent. Raises InvitationUnknown,
        InvitationUsed, UserNameUnfit, UserNameTaken, PasswordUnfit, AddressUnfit.
        """
        with self._transaction() as transaction:
            return workers.register(transaction, invitation_code, user_name, password, email=email, language=language)

    def sign_up(
        self, user_name: str, password: str, *, email: str | None = None, language: str | None = None
    ) -> Worker:
        """Create a worker account without an invitation, where the operator lets anybody in.

        Raises UserNameUnfit, UserNameTaken, PasswordUnfit, AddressUnfit.
        """
        with self._transaction() as transaction:
            return workers.sign_up(transaction, user_name, password, email=email, language=language)

    def ask_to_sign_up(self, email: str, *, language: str | None = None) -> None:
        """Send a link that opens an account to an e-mail address; one that has an account is told so by the same way.

        Raises AddressUnfit.
        """
        with self._transaction() as transaction:
            mails.queue(transaction, mails.SIGN_UP, addresses.checked(email), language=language)

    def sign_up_address(self, token: str) -> str:
        """Return the e-mail address that a sign-up link was sent to.

        Raises LinkUnfit.
        """
        with self._transaction(writes=False) as transaction:
            return workers.link_address(transaction, token)

    def sign_up_by_link(self, token: str, user_name: str, password: str, *, language: str | None = None) -> Worker:
        """Create a worker account for the e-mail address that a sign-up link was sent to, once.

        Raises LinkUnfit, UserNameUnfit, UserNameTaken, PasswordUnfit.
        """
        with self._transaction() as transaction:
            return workers.sign_up_by_link(transaction, token, user_name, password, language=language)

    def authenticate_worker(self, user_name: str, password: str) -> Worker:
        """Return the worker with this user name and password.

        Raises NotSignedIn, the same way and as slowly for an unknown user name; AccountDisabled.
        """
        with self._transaction(writes=False) as transaction:
            return workers.authenticate(transaction, user_name, password)

    def authenticate_requester(self, email: str, password: str) -> Requester:
        """Return the requester with this e-mail address and password.

        Raises NotSignedIn, the same way and as slowly for an unknown address; AccountDisabled.
        """
        with self._transaction(writes=False) as transaction:
            return accounts.authenticate(transaction, email, password)

    def default_requester(self, play_money: Decimal) -> Requester:
        """Return the requester of a test server that asks nobody for a key, made with play money if it is new.

        Raises OperatorError for a marketplace that has paid workers.
        """
        with self._transaction() as transaction:
            return accounts.default(transaction, play_money)

    def worker_called(self, name: str) -> Worker:
        """Return the worker with this user name or worker id.

        Raises OperatorError if there is none.
        """
        with self._transaction(writes=False) as transaction:
            return workers.called(transaction, name)

    def worker_in_session(self, worker_id: str, session_number: int, key: str) -> Worker | None:
        """Return the worker of a session, None if it has been ended or the account closed since it began."""
        with self._transaction(writes=False, settle=False) as transaction:
            worker = workers.look_up(transaction, worker_id)
            if worker is None or worker.is_disabled or worker.session_number != session_number:
                return None
            return None if ended_sessions.is_over(transaction, key) else worker

    def requester_in_session(self, requester_id: str, session_number: int, key: str) -> Requester | None:
        """Return the requester of a session, None if it has been ended or the account closed since it began."""
        with self._transaction(writes=False, settle=False) as transaction:
            requester = accounts.look_up(transaction, requester_id)
            if requester is None or requester.is_disabled or requester.session_number != session_number:
                return None
            return None if ended_sessions.is_over(transaction, key) else requester

    def operator_in_session(self, operator_id: str, password_set_at: datetime, key: str) -> Operator | None:
        """Return the operator of a session, None if it has been ended or the account closed since it began."""
        with self._transaction(writes=False, settle=False) as transaction:
            operator = operators.look_up(transaction, operator_id)
            if operator is None or operator.closed_at is not None or operator.password_set_at != password_set_at:
                return None
            return None if ended_sessions.is_over(transaction, key) else operator

    def end_session(self, key: str, *, life: timedelta) -> None:
        """End one session of anybody's, whoever has copied its cookie; `life` is how long a new cookie is accepted."""
        with self._transaction(settle=False) as transaction:
            # Cookies are as old as the machine's time says, even where this marketplace's clock was moved ahead.
            ended_sessions.end(transaction, key, now=self.signing_clock.now(), life=life)

    def ask_for_reset(self, email: str, *, requester: bool = False, language: str | None = None) -> None:
        """Send a link for a new password to an e-mail address, if it is a requester's or a worker's confirmed one.

        The answer and the time are the same for every address. Raises AddressUnfit.
        """
        with self._transaction() as transaction:
            recovery.ask(transaction, _kind(requester), email, language)

    def reset_link(self, account_id: str, *, requester: bool = False, life: timedelta = mails.LINK_LIFE) -> str:
        """Return a link for a new password, for the operator to hand over; it works once.

        Raises OperatorError for an unknown account.
        """
        with self._transaction(writes=False) as transaction:
            return recovery.operators_link(transaction, _kind(requester), account_id, life)

    def reset_name(self, token: str, *, requester: bool = False) -> str:
        """Return the user name, or the requester's name, that a link for a new password is for.

        Raises LinkUnfit.
        """
        with self._transaction(writes=False) as transaction:
            return recovery.account_name(transaction, _kind(requester), token)

    def reset_password(self, token: str, password: str, *, requester: bool = False) -> str:
        """Set a new password by a link, end every session of the account, and return the account's name.

        Raises LinkUnfit, PasswordUnfit.
        """
        with self._transaction() as transaction:
            return recovery.reset(transaction, _kind(requester), token, password)

    def change_worker_password(self, worker_id: str, old: str, new: str) -> Worker:
        """Set a new password, which ends every session; the record has the number of the next one.

        Raises WorkerUnknown, PasswordWrong, PasswordUnfit.
        """
        with self._transaction() as transaction:
            row = workers.lock(transaction, worker_id)
            recovery.change(transaction, row, old, new)
            return workers.view(row)

    def change_requester_password(self, requester_id: str, old: str, new: str) -> Requester:
        """Set a new password, which ends every session; the record has the number of the next one.

        Raises OperatorError, PasswordWrong, PasswordUnfit.
        """
        with self._transaction() as transaction:
            accounts.find(transaction, requester_id)
            row = accounts.lock(transaction, requester_id)
            recovery.change(transaction, row, old, new)
            return accounts.view(row)

    def change_address(self, worker_id: str, password: str, email: str | None, *, language: str | None = None) -> bool:
        """Change a worker's e-mail address, None takes it back; True if a mail to the new one asks to confirm it.

        Raises WorkerUnknown, PasswordWrong, AddressUnfit.
        """
        with self._transaction() as transaction:
            return addresses.ask(transaction, workers.lock(transaction, worker_id), password, email, language)

    def change_requester_address(
        self, requester_id: str, password: str, email: str, *, language: str | None = None
    ) -> bool:
        """Change the e-mail address that a requester signs in with; True if a mail to it asks to confirm it first.

        Raises OperatorError, PasswordWrong, AddressUnfit, AddressTaken.
        """
        with self._transaction() as transaction:
            accounts.find(transaction, requester_id)
            row = accounts.lock(transaction, requester_id)
            return addresses.ask(transaction, row, password, email, language)

    def address_to_confirm(self, token: str, *, requester: bool = False) -> str:
        """Return the e-mail address that a link confirms.

        Raises LinkUnfit.
        """
        with self._transaction(writes=False) as transaction:
            return addresses.confirmation(transaction, _confirm_kind(requester), token, confirm=False)

    def confirm_address(self, token: str, *, requester: bool = False) -> str:
        """Make an e-mail address the worker's, or the requester's, by the link that was sent to it, and return it.

        Raises LinkUnfit, AddressTaken.
        """
        with self._transaction() as transaction:
            return addresses.confirmation(transaction, _confirm_kind(requester), token, confirm=True)

    def set_language(self, worker_id: str, language: str | None) -> Worker:
        """Write down in which language a worker reads; None leaves it to the browser.

        Raises WorkerUnknown.
        """
        with self._transaction() as transaction:
            row = workers.find(transaction, worker_id)
            row.language = language
            return workers.view(row)

    def send_mail_due(
        self,
        post_office: PostOffice,
        *,
        translate: Translator = in_english,
        limit: int = 100,
        stop: Callable[[], bool] = deliveries.never,
    ) -> MailReport:
        """Write and send the mail that is due; a server calls it by and by, beside `deliver_due`."""
        return mails.send_due(
            self.store, self.clock, self.settings, post_office, translate=translate, limit=limit, stop=stop
        )


def _kind(requester: bool) -> str:
    return mails.REQUESTER_RESET if requester else mails.WORKER_RESET


def _confirm_kind(requester: bool) -> str:
    return mails.REQUESTER_CONFIRM if requester else mails.CONFIRM
