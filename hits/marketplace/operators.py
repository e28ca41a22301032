"""Accounts of those who run the marketplace; they are made on the command line only."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from hits.marketplace import audit, passwords
from hits.marketplace.console_views import Actor, Operator
from hits.marketplace.errors import NothingThere, NotSignedIn, OperatorError
from hits.marketplace.identifiers import new_customer_id
from hits.marketplace.tables import OperatorRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.words import words

LEAST_PASSWORD: Final = 12
_NAME: Final = re.compile(r"\w[\w.@+-]{0,62}\w")


def add(transaction: Transaction, by: Actor, name: str, password: str) -> Operator:
    """Create an account.

    Raises OperatorError for a name that is taken or unfit, and a password that is too short or long.
    """
    name = unicodedata.normalize("NFKC", name).strip()
    if not _NAME.fullmatch(name):
        raise OperatorError(
            words(
                "An operator's name has 2 to 64 characters: letters, digits, and . _ - @ + between them; got "
                "“%(name)s”.",
                name=name,
            )
        )
    row = OperatorRow(
        operator_id=new_customer_id(),
        name=name,
        name_key=name.casefold(),
        password_hash=_hashed(transaction, password),
        password_set_at=transaction.now,
        created_at=transaction.now,
    )
    try:
        with transaction.session.begin_nested():
            transaction.session.add(row)
    except IntegrityError as error:
        raise OperatorError(
            words("There is an operator “%(name)s” already. Choose another name.", name=name)
        ) from error
    audit.record(transaction, by, "operator added", "operator", row.operator_id, name=name)
    return view(row)


def set_password(transaction: Transaction, by: Actor, name: str, password: str) -> Operator:
    """Give an account a new password, which ends its sessions.

    Raises OperatorError for an unknown or closed account, and a password that is too short or long.
    """
    row = _named(transaction, name)
    if row.closed_at is not None:
        raise OperatorError(words("The operator “%(name)s” is closed. Add another account.", name=row.name))
    row.password_hash = _hashed(transaction, password)
    row.password_set_at = transaction.now
    audit.record(transaction, by, "operator's password changed", "operator", row.operator_id, name=row.name)
    return view(row)


def close(transaction: Transaction, by: Actor, name: str) -> Operator:
    """Close an account for good; closing it again changes nothing.

    Raises OperatorError for an unknown account.
    """
    row = _named(transaction, name)
    if row.closed_at is None:
        row.closed_at = transaction.now
        audit.record(transaction, by, "operator closed", "operator", row.operator_id, name=row.name)
    return view(row)


def key_of(name: str) -> str:
    """Return the form in which all spellings of a name are equal."""
    return _storable(unicodedata.normalize("NFKC", name).strip().casefold())


def authenticate(transaction: Transaction, name: str, password: str) -> Operator:
    """Return the operator with this name and password.

    Raises NotSignedIn, the same way and as slowly for unknown and closed accounts.
    """
    row = transaction.session.scalar(select(OperatorRow).where(OperatorRow.name_key == key_of(name)))
    stored = row.password_hash if row is not None else None
    good = passwords.matches(password, stored, n=transaction.settings.scrypt_n)
    if not good or row is None or row.closed_at is not None:
        raise NotSignedIn
    return view(row)


def look_up(transaction: Transaction, operator_id: str) -> Operator | None:
    """Return the record of an account, None if there is none."""
    row = transaction.session.get(OperatorRow, operator_id)
    return view(row) if row is not None else None


def every(transaction: Transaction) -> list[Operator]:
    """Return all accounts, oldest first."""
    rows = transaction.session.scalars(select(OperatorRow).order_by(OperatorRow.created_at, OperatorRow.operator_id))
    return [view(row) for row in rows]


def view(row: OperatorRow) -> Operator:
    """Return the record of an account."""
    return Operator(row.operator_id, row.name, row.created_at, row.password_set_at, row.closed_at)


def _named(transaction: Transaction, name: str) -> OperatorRow:
    row = transaction.session.scalar(select(OperatorRow).where(OperatorRow.name_key == key_of(name)))
    if row is None:
        raise NothingThere(
            words("There is no operator “%(name)s”. `dynahit marketplace operator list` shows them.", name=name)
        )
    return row


def _hashed(transaction: Transaction, password: str) -> str:
    if not LEAST_PASSWORD <= len(password) <= passwords.MOST_LENGTH:
        raise OperatorError(
            words(
                "An operator's password has %(least)s to %(most)s characters.",
                least=LEAST_PASSWORD,
                most=passwords.MOST_LENGTH,
            )
        )
    return passwords.hashed(password, n=transaction.settings.scrypt_n)


def _storable(text: str) -> str:
    # Typed text can carry what no database takes; nothing stored has it, so the look-up then finds nothing.
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
