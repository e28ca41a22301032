"""E-mail addresses of people: their form, whose they are, and how they are confirmed."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy.exc import IntegrityError

from hits.marketplace import links, mails, passwords
from hits.marketplace.errors import AddressTaken, AddressUnfit, LinkUnfit
from hits.marketplace.tables import WorkerRow
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


def give(transaction: Transaction, row: WorkerRow, address: str | None, *, confirmed: bool) -> None:
    """Write an address down; one that is not confirmed may be anybody's.

    Raises AddressTaken if another worker has confirmed it.
    """
    try:
        with transaction.session.begin_nested():
            row.email = address
            row.email_key = key_of(address) if address is not None else None
            row.email_confirmed_at = transaction.now if confirmed and address is not None else None
    except IntegrityError as error:
        raise AddressTaken from error


def ask(transaction: Transaction, row: WorkerRow, password: str, address: str | None, language: str | None) -> bool:
    """Change a worker's address, or take it back, and return whether a mail is to confirm it first.

    Raises PasswordWrong, AddressUnfit.
    """
    passwords.check_present(password, row.password_hash, n=transaction.settings.scrypt_n)
    address = checked(address) if address else None
    if address is not None and transaction.settings.sends_mail:
        ask_to_confirm(transaction, row, address, language)
        return True
    _tell_old_address(transaction, row, language)
    give(transaction, row, address, confirmed=False)
    return False


def ask_to_confirm(transaction: Transaction, row: WorkerRow, address: str, language: str | None) -> None:
    """Send a link to an address that makes it this worker's."""
    mails.queue(transaction, mails.CONFIRM, address, language=language, worker_id=row.worker_id)


def confirmation(transaction: Transaction, token: str, *, confirm: bool) -> str:
    """Return the address that a link is about; with `confirm` it is the worker's from now on.

    Raises LinkUnfit, AddressTaken.
    """
    content = links.content(transaction, mails.CONFIRM, token)
    row = transaction.session.get(WorkerRow, content["subject"], with_for_update=confirm or None)
    if row is None or not links.still_holds(transaction, mails.CONFIRM, content, mails.address_state(row)):
        raise LinkUnfit
    address = str(content["address"])
    if confirm:
        if key_of(address) != row.email_key:
            _tell_old_address(transaction, row, row.language)
        give(transaction, row, address, confirmed=True)
    return address


def _tell_old_address(transaction: Transaction, row: WorkerRow, language: str | None) -> None:
    if row.email is not None and row.email_confirmed_at is not None:
        mails.queue(transaction, mails.ADDRESS_CHANGED, row.email, language=language, user_name=row.user_name)
