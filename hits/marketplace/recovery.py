"""New passwords: by a link for those who forgot theirs, by the old one for those who know it."""

from __future__ import annotations

from datetime import timedelta

from hits.marketplace import addresses, links, mails, passwords
from hits.marketplace.errors import LinkUnfit, OperatorError
from hits.marketplace.tables import RequesterRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.words import words


def ask(transaction: Transaction, kind: str, address: str, language: str | None) -> None:
    """Queue the same for every address: whether it belongs to an account is looked up when the mail is written.

    Raises AddressUnfit for what no mail can be sent to.
    """
    mails.queue(transaction, kind, addresses.checked(address), language=language)


def operators_link(transaction: Transaction, kind: str, account_id: str, life: timedelta) -> str:
    """Return a link that the operator hands to somebody who gets no mail.

    Raises OperatorError for an unknown account.
    """
    row = _account(transaction, kind, account_id, lock=False)
    if row is None:
        raise OperatorError(words("There is no account “%(id)s”.", id=account_id))
    token = mails.reset_token(transaction, kind, row, life)
    return mails.link(transaction, mails.RESET_PATHS[kind], token)


def account_name(transaction: Transaction, kind: str, token: str) -> str:
    """Return the user name, or the requester's name, that a link is for.

    Raises LinkUnfit.
    """
    return _name(_row(transaction, kind, token))


def reset(transaction: Transaction, kind: str, token: str, password: str) -> str:
    """Replace a password, which ends every session and every link of the account, and return the account's name.

    Raises LinkUnfit, PasswordUnfit.
    """
    row = _row(transaction, kind, token, lock=True)
    _replace(transaction, row, password)
    return _name(row)


def change(transaction: Transaction, row: WorkerRow | RequesterRow, old: str, new: str) -> int:
    """Replace a password by one who knows it, which ends every session, and return the new session number.

    Raises PasswordWrong, PasswordUnfit.
    """
    passwords.check_present(old, row.password_hash, n=transaction.settings.scrypt_n)
    _replace(transaction, row, new)
    return row.session_number


def _account(transaction: Transaction, kind: str, account_id: str, *, lock: bool) -> WorkerRow | RequesterRow | None:
    if kind == mails.REQUESTER_RESET:
        return transaction.session.get(RequesterRow, account_id, with_for_update=lock or None)
    return transaction.session.get(WorkerRow, account_id, with_for_update=lock or None)


def _row(transaction: Transaction, kind: str, token: str, *, lock: bool = False) -> WorkerRow | RequesterRow:
    content = links.content(transaction, kind, token)
    row = _account(transaction, kind, content["subject"], lock=lock)
    if row is None or not links.still_holds(transaction, kind, content, mails.password_state(row)):
        raise LinkUnfit
    return row


def _replace(transaction: Transaction, row: WorkerRow | RequesterRow, password: str) -> None:
    passwords.check(password)
    row.password_hash = passwords.hashed(password, n=transaction.settings.scrypt_n)
    row.session_number += 1
    is_confirmed = isinstance(row, RequesterRow) or row.email_confirmed_at is not None
    if row.email is not None and is_confirmed:
        language = row.language if isinstance(row, WorkerRow) else None
        account_id = row.worker_id if isinstance(row, WorkerRow) else row.requester_id
        mails.queue(
            transaction, mails.PASSWORD_CHANGED, row.email, about=account_id, language=language, name=_name(row)
        )


def _name(row: WorkerRow | RequesterRow) -> str:
    return row.user_name if isinstance(row, WorkerRow) else row.name
