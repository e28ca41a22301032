"""Requesters and their money: every change is one entry, and the totals on the row are the sum of the entries."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

from sqlalchemy import bindparam, insert, select, update

from hits.marketplace import passwords
from hits.marketplace.errors import (
    INSUFFICIENT_FUNDS,
    AccountDisabled,
    NothingThere,
    NotSignedIn,
    OperatorError,
    request_error,
)
from hits.marketplace.identifiers import new_customer_id
from hits.marketplace.money import from_cents, to_cents
from hits.marketplace.tables import AccountEntryRow, PayoutRunRow, RequesterRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import AccountEntry, Balance, Requester
from hits.marketplace.words import words

#: Who a test server without authentication acts for; the address is unique and gets no mail.
DEFAULT_ADDRESS: Final = "test-requester@localhost.invalid"
_ENTER: Final = insert(AccountEntryRow)
_HOLD: Final = (
    update(RequesterRow)
    .where(
        RequesterRow.requester_id == bindparam("account"),
        RequesterRow.deposited_cents - RequesterRow.held_cents - RequesterRow.spent_cents >= bindparam("cents"),
    )
    .values(held_cents=RequesterRow.held_cents + bindparam("cents"))
)


def create(transaction: Transaction, name: str, *, email: str | None, password: str | None) -> Requester:
    """Create an account.

    Raises OperatorError for a blank or overlong name, and for an e-mail address in use.
    """
    if not 0 < len(name.strip()) <= 200:
        raise OperatorError(words("A requester's name has 1 to 200 characters, got “%(name)s”.", name=name))
    address = email.strip().casefold() if email else None
    if address and transaction.session.scalar(select(RequesterRow).where(RequesterRow.email == address)):
        raise OperatorError(words("Another requester has the e-mail address %(address)s.", address=address))
    row = RequesterRow(
        requester_id=new_customer_id(),
        name=name.strip(),
        email=address,
        password_hash=passwords.hashed(password, n=transaction.settings.scrypt_n) if password else None,
        created_at=transaction.now,
        deposited_cents=0,
        held_cents=0,
        spent_cents=0,
    )
    transaction.session.add(row)
    transaction.session.flush()
    return view(row)


def default(transaction: Transaction, play_money: Decimal) -> Requester:
    """Return the requester of a test server that asks nobody for a key, made with play money if it is new.

    Raises OperatorError for a marketplace that has paid workers, whom play money must not set to work.
    """
    if transaction.session.scalar(select(PayoutRunRow.run_id).limit(1)) is not None:
        raise OperatorError(
            words(
                "Workers are paid from this database (it has payout runs), so it is not one for play money. "
                "Use a database of its own for tests: set MARKETPLACE_DATABASE_URL, or another DYNAHIT_HOME."
            )
        )
    row = transaction.session.scalar(select(RequesterRow).where(RequesterRow.email == DEFAULT_ADDRESS))
    if row is not None:
        return view(row)
    made = create(transaction, "Test requester", email=DEFAULT_ADDRESS, password=None)
    top_up(transaction, made.requester_id, play_money, "play money")
    return made


def lock(transaction: Transaction, requester_id: str) -> RequesterRow:
    """Return an account that is known to exist, locked until the transaction ends."""
    query = select(RequesterRow).where(RequesterRow.requester_id == requester_id).with_for_update(key_share=True)
    return transaction.session.scalars(query.execution_options(populate_existing=True)).one()


def look_up(transaction: Transaction, requester_id: str) -> Requester | None:
    """Return the record of an account, None if there is none."""
    row = transaction.session.get(RequesterRow, requester_id)
    return view(row) if row is not None else None


def find(transaction: Transaction, requester_id: str) -> RequesterRow:
    """Return one account.

    Raises OperatorError if there is none.
    """
    row = transaction.session.get(RequesterRow, requester_id)
    if row is None:
        raise NothingThere(words("There is no requester “%(id)s”.", id=requester_id))
    return row


def every(transaction: Transaction) -> list[Requester]:
    """Return all requesters, oldest first."""
    rows = transaction.session.scalars(
        select(RequesterRow).order_by(RequesterRow.created_at, RequesterRow.requester_id)
    )
    return [view(row) for row in rows]


def view(row: RequesterRow) -> Requester:
    """Return the record of an account."""
    return Requester(
        row.requester_id,
        row.name,
        row.email,
        row.created_at,
        is_disabled=row.disabled_at is not None,
        session_number=row.session_number,
    )


def authenticate(transaction: Transaction, email: str, password: str) -> Requester:
    """Return the requester with this address and password.

    Raises NotSignedIn, AccountDisabled.
    """
    # Typed text can carry the NUL that PostgreSQL refuses; no stored address has it, so nothing is found.
    address = email.strip().casefold().replace("\x00", "\ufffd")
    row = transaction.session.scalar(select(RequesterRow).where(RequesterRow.email == address))
    stored = row.password_hash if row is not None else None
    if not passwords.matches(password, stored, n=transaction.settings.scrypt_n) or row is None:
        raise NotSignedIn
    if row.disabled_at is not None:
        raise AccountDisabled
    return view(row)


def top_up(transaction: Transaction, requester_id: str, amount: Decimal, note: str) -> Balance:
    """Add money.

    Raises OperatorError for an amount that is not a positive number of cents.
    """
    try:
        cents = to_cents(amount)
    except (ValueError, InvalidOperation) as error:
        raise OperatorError(
            words("%(amount)s is not a positive amount of dollars and cents, such as 25.00.", amount=amount)
        ) from error
    if not 0 < cents < 10**15:
        raise OperatorError(
            words(
                "A top-up must be more than nothing and less than 10 trillion dollars, got %(amount)s.", amount=amount
            )
        )
    find(transaction, requester_id)
    row = lock(transaction, requester_id)
    enter(transaction, row, "deposit", deposited=cents, note=note)
    return balance_of(row)


def balance(transaction: Transaction, requester_id: str) -> Balance:
    """Return a requester's money."""
    return balance_of(find(transaction, requester_id))


def entries(transaction: Transaction, requester_id: str) -> list[AccountEntry]:
    """Return every line of an account, oldest first."""
    find(transaction, requester_id)
    rows = transaction.session.scalars(
        select(AccountEntryRow).where(AccountEntryRow.requester_id == requester_id).order_by(AccountEntryRow.seq)
    )
    return [entry_view(row) for row in rows]


def entry_view(row: AccountEntryRow) -> AccountEntry:
    """Return the record of one line of an account."""
    return AccountEntry(
        row.at,
        row.kind,
        from_cents(row.deposited_cents),
        from_cents(row.held_cents),
        from_cents(row.spent_cents),
        row.hit_id,
        row.assignment_id,
        row.note,
    )


def hold(transaction: Transaction, requester_id: str, cents: int, *, hit_id: str) -> None:
    """Hold money for a new HIT; the account need not be locked, and is only from here to the commit.

    Raises MarketplaceError (InsufficientFunds) if it would overdraw what is available.
    """
    if not cents:
        return
    connection = transaction.session.connection()
    entry = {"requester_id": requester_id, "at": transaction.now, "kind": "hold", "held_cents": cents, "hit_id": hit_id}
    connection.execute(_ENTER, {**entry, "deposited_cents": 0, "spent_cents": 0, "assignment_id": None, "note": ""})
    if connection.execute(_HOLD, {"account": requester_id, "cents": cents}).rowcount != 1:
        raise request_error(INSUFFICIENT_FUNDS)


def enter(
    transaction: Transaction,
    account: RequesterRow,
    kind: str,
    *,
    deposited: int = 0,
    held: int = 0,
    spent: int = 0,
    hit_id: str | None = None,
    assignment_id: str | None = None,
    note: str = "",
) -> None:
    """Change a locked account by one entry; an entry of nothing is left out.

    Raises MarketplaceError (InsufficientFunds) if it would overdraw what is available.
    """
    if not (deposited or held or spent):
        return
    if account.available_cents + deposited - held - spent < 0:
        raise request_error(INSUFFICIENT_FUNDS)
    account.deposited_cents += deposited
    account.held_cents += held
    account.spent_cents += spent
    transaction.session.add(
        AccountEntryRow(
            requester_id=account.requester_id,
            at=transaction.now,
            kind=kind,
            deposited_cents=deposited,
            held_cents=held,
            spent_cents=spent,
            hit_id=hit_id,
            assignment_id=assignment_id,
            note=note,
        )
    )


def balance_of(row: RequesterRow) -> Balance:
    """Return the money of an account at hand."""
    return Balance(
        from_cents(row.deposited_cents),
        from_cents(row.available_cents),
        from_cents(row.held_cents),
        from_cents(row.spent_cents),
    )
