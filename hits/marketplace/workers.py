"""Worker accounts and the invitations they come from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from hits.marketplace import addresses, links, mails, passwords
from hits.marketplace.errors import (
    AccountDisabled,
    AddressTaken,
    InvitationUnknown,
    InvitationUsed,
    LinkUnfit,
    NotSignedIn,
    OperatorError,
    UserNameTaken,
    UserNameUnfit,
    WorkerUnknown,
)
from hits.marketplace.identifiers import new_customer_id, new_invitation_code
from hits.marketplace.qualifications import grant
from hits.marketplace.tables import InvitationRow, QualificationTypeRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import Invitation, Worker
from hits.marketplace.words import words

_PLACE = re.compile(r"[A-Z]{2}")
_USER_NAME = re.compile(r"\w(?:[\w.@+-]{1,62})\w")


def create_invitation(transaction: Transaction, note: str, grants: Mapping[str, int]) -> str:
    """Create an invitation and return its code.

    Raises OperatorError for a qualification type that does not exist.
    """
    for type_id in grants:
        if not _type_exists(transaction, type_id):
            raise OperatorError(words("There is no qualification type “%(id)s” to grant.", id=type_id))
    code = new_invitation_code()
    transaction.session.add(InvitationRow(code=code, note=note, grants=dict(grants), created_at=transaction.now))
    return code


def invitations(transaction: Transaction) -> list[Invitation]:
    """Return all invitations, oldest first."""
    rows = transaction.session.scalars(select(InvitationRow).order_by(InvitationRow.seq))
    return [
        Invitation(row.code, row.note, row.created_at, row.used_at, row.worker_id, dict(row.grants)) for row in rows
    ]


def register(
    transaction: Transaction,
    code: str,
    user_name: str,
    password: str,
    *,
    email: str | None = None,
    language: str | None = None,
) -> Worker:
    """Create a worker account from an invitation; an e-mail address waits to be confirmed by mail.

    Raises InvitationUnknown, InvitationUsed, UserNameUnfit, UserNameTaken, PasswordUnfit, AddressUnfit.
    """
    _check(user_name, password)
    session = transaction.session
    invitation = session.scalar(
        select(InvitationRow).where(InvitationRow.code == code.strip().upper()).with_for_update()
    )
    if invitation is None:
        raise InvitationUnknown
    if invitation.used_at is not None:
        raise InvitationUsed
    worker = _create(transaction, user_name, password, language)
    invitation.used_at = transaction.now
    invitation.worker_id = worker.worker_id
    for type_id, value in invitation.grants.items():
        if _type_exists(transaction, type_id):
            grant(transaction, type_id, worker.worker_id, value)
    _take_address(transaction, worker, email)
    return view(worker)


def sign_up(
    transaction: Transaction, user_name: str, password: str, *, email: str | None = None, language: str | None = None
) -> Worker:
    """Create a worker account without an invitation; an e-mail address waits to be confirmed by mail.

    Raises UserNameUnfit, UserNameTaken, PasswordUnfit, AddressUnfit.
    """
    worker = _create(transaction, user_name, password, language)
    _take_address(transaction, worker, email)
    return view(worker)


def sign_up_by_link(
    transaction: Transaction, token: str, user_name: str, password: str, *, language: str | None = None
) -> Worker:
    """Create a worker account for the e-mail address that a link was sent to, once.

    Raises LinkUnfit, UserNameUnfit, UserNameTaken, PasswordUnfit.
    """
    address = link_address(transaction, token)
    worker = _create(transaction, user_name, password, language)
    try:
        addresses.give(transaction, worker, address, confirmed=True)
    except AddressTaken as error:
        raise LinkUnfit from error
    return view(worker)


def link_address(transaction: Transaction, token: str) -> str:
    """Return the e-mail address that a sign-up link was sent to.

    Raises LinkUnfit, also once the address has an account.
    """
    address = str(links.content(transaction, mails.SIGN_UP, token)["subject"])
    if mails.confirmed_owner(transaction, address) is not None:
        raise LinkUnfit
    return address


def _take_address(transaction: Transaction, worker: WorkerRow, email: str | None) -> None:
    if not email:
        return
    address = addresses.checked(email)
    addresses.give(transaction, worker, address, confirmed=False)
    addresses.ask_to_confirm(transaction, worker, address, worker.language)


def _check(user_name: str, password: str) -> str:
    name = unicodedata.normalize("NFKC", user_name).strip()
    if not _USER_NAME.fullmatch(name):
        raise UserNameUnfit
    passwords.check(password)
    return name


def _create(transaction: Transaction, user_name: str, password: str, language: str | None) -> WorkerRow:
    name = _check(user_name, password)
    session = transaction.session
    if session.scalar(select(WorkerRow).where(WorkerRow.user_name_key == name.casefold())):
        raise UserNameTaken(name)
    worker = WorkerRow(
        worker_id=new_customer_id(),
        user_name=name,
        user_name_key=name.casefold(),
        password_hash=passwords.hashed(password, n=transaction.settings.scrypt_n),
        created_at=transaction.now,
        language=language,
    )
    try:
        with session.begin_nested():
            session.add(worker)
    except IntegrityError as error:
        raise UserNameTaken(name) from error
    return worker


def key_of(user_name: str) -> str:
    """Return the form in which all spellings of a user name are equal."""
    return _storable(unicodedata.normalize("NFKC", user_name).strip().casefold())


def authenticate(transaction: Transaction, user_name: str, password: str) -> Worker:
    """Return the worker with this user name and password.

    Raises NotSignedIn, AccountDisabled.
    """
    row = transaction.session.scalar(select(WorkerRow).where(WorkerRow.user_name_key == key_of(user_name)))
    stored = row.password_hash if row is not None else None
    if not passwords.matches(password, stored, n=transaction.settings.scrypt_n) or row is None:
        raise NotSignedIn
    if row.disabled_at is not None:
        raise AccountDisabled
    return view(row)


def called(transaction: Transaction, name: str) -> Worker:
    """Return the record of the worker with this user name or worker id.

    Raises OperatorError if there is none.
    """
    row = called_row(transaction, name)
    if row is None:
        raise OperatorError(words("There is no worker with the user name or worker id “%(name)s”.", name=name))
    return view(row)


def called_row(transaction: Transaction, name: str) -> WorkerRow | None:
    """Return the worker with this worker id or, failing that, this user name; None if there is none."""
    # Ids first: anybody can take somebody's id for a user name.
    row = transaction.session.get(WorkerRow, _storable(name.strip()))
    return row or transaction.session.scalar(select(WorkerRow).where(WorkerRow.user_name_key == key_of(name)))


def look_up(transaction: Transaction, worker_id: str) -> Worker | None:
    """Return the record of a worker, None if there is none."""
    row = transaction.session.get(WorkerRow, _storable(worker_id))
    return view(row) if row is not None else None


def find(transaction: Transaction, worker_id: str) -> WorkerRow:
    """Return one worker.

    Raises WorkerUnknown.
    """
    row = transaction.session.get(WorkerRow, _storable(worker_id))
    if row is None:
        raise WorkerUnknown
    return row


def lock(transaction: Transaction, worker_id: str) -> WorkerRow:
    """Return one worker, locked until the transaction ends.

    Raises WorkerUnknown.
    """
    row = transaction.session.get(WorkerRow, _storable(worker_id), with_for_update={"key_share": True})
    if row is None:
        raise WorkerUnknown
    return row


def set_locale(transaction: Transaction, worker_id: str, country: str | None, subdivision: str | None) -> Worker:
    """Write down where a worker lives, for Worker_Locale; None takes it back.

    Raises WorkerUnknown, OperatorError for codes that are not ISO 3166's, or a subdivision outside of the US.
    """
    row = find(transaction, worker_id)
    for code in (country, subdivision):
        if code is not None and not _PLACE.fullmatch(code):
            raise OperatorError(
                words("A country or subdivision has two capital letters, such as US or CA; got “%(code)s”.", code=code)
            )
    if subdivision is not None and country != "US":
        raise OperatorError(words("Only the US have subdivisions here."))
    row.country, row.subdivision = country, subdivision
    return view(row)


def set_master(transaction: Transaction, worker_id: str, *, is_master: bool) -> Worker:
    """Make a worker a master, or no master any more.

    Raises WorkerUnknown.
    """
    row = find(transaction, worker_id)
    row.is_master = is_master
    return view(row)


def set_adult(transaction: Transaction, worker_id: str, *, is_adult: bool) -> Worker:
    """Write down whether a worker agreed to see adult content.

    Raises WorkerUnknown.
    """
    row = find(transaction, worker_id)
    row.is_adult = is_adult
    return view(row)


def view(row: WorkerRow) -> Worker:
    """Return the record of a worker."""
    return Worker(
        row.worker_id,
        row.user_name,
        row.created_at,
        row.country,
        row.subdivision,
        row.is_adult,
        row.is_master,
        is_disabled=row.disabled_at is not None,
        email=row.email,
        email_is_confirmed=row.email_confirmed_at is not None,
        language=row.language,
        session_number=row.session_number,
    )


def _type_exists(transaction: Transaction, type_id: str) -> bool:
    query = select(QualificationTypeRow.seq).where(
        QualificationTypeRow.qualification_type_id == type_id, QualificationTypeRow.deleted_at.is_(None)
    )
    return transaction.session.scalar(query) is not None


def _storable(text: str) -> str:
    # Typed text can carry what no database takes; nothing stored has it, so the look-up then finds nothing.
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
