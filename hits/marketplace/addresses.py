"""E-mail addresses of people: their form, whose they are, and how they are confirmed."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy.exc import IntegrityError

from hits.marketplace import audit, links, mails, passwords
from hits.marketplace.console_views import Actor
from hits.marketplace.errors import AddressTaken, AddressUnfit, LinkUnfit
from hits.marketplace.tables import RequesterRow, WorkerRow
from hits.marketplace.transactions import Transaction

LONGEST: Final = 254
_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]"
    r"(?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)


def checked(text: str) -> str:
    """Return an address without the space around it.

    Raises AddressUnfit for what no mail can be sent to.
    """
    address = text.strip()
    if len(address) > LONGEST or not _ADDRESS.fullmatch(address):
        raise AddressUnfit(LONGEST)
    return address


def key_of(address: str) -> str:
    """Return the form in which equal addresses are equal."""
    return address.strip().casefold()


def give(transaction: Transaction, row: WorkerRow | RequesterRow, address: str | None, *, confirmed: bool) -> None:
    """Write an address down; a worker's that is not confirmed may be anybody's.

    Raises AddressTaken if another worker has confirmed it, or another requester signs in with it.
    """
    try:
        with transaction.session.begin_nested():
            if isinstance(row, RequesterRow):
                row.email = key_of(address) if address is not None else None
                return
            row.email = address
            row.email_key = key_of(address) if address is not None else None
            row.email_confirmed_at = transaction.now if confirmed and address is not None else None
    except IntegrityError as error:
        raise AddressTaken from error


def ask(
    transaction: Transaction,
    row: WorkerRow | RequesterRow,
    password: str,
    address: str | None,
    language: str | None,
) -> bool:
    """Change an address, or take a worker's back, and return whether a mail is to confirm it first.

    Raises PasswordWrong, AddressUnfit, AddressTaken.
    """
    passwords.check_present(password, row.password_hash, n=transaction.settings.scrypt_n)
    address = checked(address or "") if address or isinstance(row, RequesterRow) else None
    if address is not None and transaction.settings.sends_mail:
        ask_to_confirm(transaction, row, address, language)
        return True
    _change(transaction, row, address, language, confirmed=False)
    return False


def ask_to_confirm(transaction: Transaction, row: WorkerRow | RequesterRow, address: str, language: str | None) -> None:
    """Send a link to an address that makes it this account's."""
    if isinstance(row, RequesterRow):
        account_id = row.requester_id
        mails.queue(
            transaction, mails.REQUESTER_CONFIRM, address, about=account_id, language=language, requester_id=account_id
        )
    else:
        account_id = row.worker_id
        mails.queue(transaction, mails.CONFIRM, address, about=account_id, language=language, worker_id=account_id)


def confirmation(transaction: Transaction, kind: str, token: str, *, confirm: bool) -> str:
    """Return the address that a link of this kind is about; with `confirm` it is the account's from now on.

    Raises LinkUnfit, AddressTaken.
    """
    content = links.content(transaction, kind, token)
    row: WorkerRow | RequesterRow | None
    if kind == mails.REQUESTER_CONFIRM:
        row = transaction.session.get(RequesterRow, content["subject"], with_for_update=confirm or None)
    else:
        row = transaction.session.get(WorkerRow, content["subject"], with_for_update=confirm or None)
    if row is None or not links.still_holds(transaction, kind, content, mails.address_state(row)):
        raise LinkUnfit
    address = str(content["address"])
    if confirm:
        language = row.language if isinstance(row, WorkerRow) else None
        _change(transaction, row, address, language, confirmed=True)
    return address


def _change(
    transaction: Transaction,
    row: WorkerRow | RequesterRow,
    address: str | None,
    language: str | None,
    *,
    confirmed: bool,
) -> None:
    before = row.email if isinstance(row, RequesterRow) or row.email_confirmed_at is not None else None
    is_same = before is not None and address is not None and key_of(address) == key_of(before)
    give(transaction, row, address, confirmed=confirmed)
    if is_same:
        return
    account_id, name = (row.requester_id, row.name) if isinstance(row, RequesterRow) else (row.worker_id, row.user_name)
    if before is not None:
        mails.queue(transaction, mails.ADDRESS_CHANGED, before, about=account_id, language=language, user_name=name)
    if isinstance(row, RequesterRow):
        actor = Actor.requester(row.requester_id)
        audit.record(transaction, actor, "e-mail address changed", "requester", row.requester_id)
