"""Mail to people: what is queued with a change, and written and sent later by the process that delivers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from sqlalchemy import select

from hits.marketplace import links, outbox
from hits.marketplace.clock import Clock
from hits.marketplace.database import Store
from hits.marketplace.errors import MailsAskedTooOften
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import MailRow, RequesterRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.words import Translator, Words, words

WORKER_RESET: Final = "worker reset"
REQUESTER_RESET: Final = "requester reset"
SIGN_UP: Final = "sign up"
CONFIRM: Final = "confirm"
REQUESTER_CONFIRM: Final = "requester confirm"
PASSWORD_CHANGED: Final = "password changed"  # noqa: S105  # a kind of mail
ADDRESS_CHANGED: Final = "address changed"
PAYOUT_CHANGED: Final = "payout changed"
WORKER_WROTE: Final = "worker wrote"

#: What somebody asks for by a form, to any address; the rest are news for one's own.
_ASKED: Final = frozenset({WORKER_RESET, REQUESTER_RESET, SIGN_UP, CONFIRM, REQUESTER_CONFIRM})
#: So many mails in 24 hours that are asked for, by one account or to one address, and so many news of one kind.
MOST_ASKED: Final = 10
MOST_NEWS: Final = 20
_DAY: Final = timedelta(days=1)

RESET_LIFE: Final = timedelta(hours=1)
LINK_LIFE: Final = timedelta(days=1)
NEWS_LIFE: Final = timedelta(days=3)
#: Where the worker site takes the links.
RESET_PATHS: Final = {WORKER_RESET: "/password/new", REQUESTER_RESET: "/requester/password/new"}
SIGN_UP_PATH: Final = "/sign-up/finish"
CONFIRM_PATHS: Final = {CONFIRM: "/address/confirm", REQUESTER_CONFIRM: "/requester/address/confirm"}
_log = logging.getLogger(__name__)


class Undeliverable(Exception):
    """The mail server says that this address will never take mail; trying again does not help."""


@dataclass(frozen=True)
class Letter:
    """A mail as it goes out."""

    address: str
    subject: str
    text: str


class PostOffice(Protocol):
    """Anything that can send a letter; whatever it raises counts as a failed attempt, Undeliverable as the last one."""

    def post(self, letter: Letter) -> None:
        """Send one letter or raise."""
        ...


@dataclass(frozen=True)
class MailReport:
    """What one round did: sent, failed (those given up included), dropped for want of anybody to write to, waiting."""

    sent: int
    failed: int
    dropped: int
    waiting: int


def queue(
    transaction: Transaction, kind: str, address: str, *, about: str = "", language: str | None = None, **details: Any
) -> bool:
    """Queue a mail of one of the kinds above in this transaction; False if none goes out.

    That is so where no mail is sent, and for news beyond those that an account, `about`, gets in a day. What people
    ask for counts for that account too, or for the address if there is none yet: raises MailsAskedTooOften.
    """
    if not transaction.settings.sends_mail:
        return False
    is_asked = kind in _ASKED
    counts_for = storable(f"{'asked' if is_asked else kind}: {about or address.strip().casefold()}")
    most = MOST_ASKED if is_asked else MOST_NEWS
    newest = transaction.session.scalars(
        select(MailRow.recorded_at)
        .where(MailRow.counts_for == counts_for, MailRow.recorded_at > transaction.now - _DAY)
        .order_by(MailRow.recorded_at.desc())
        .limit(most)
    ).all()
    if len(newest) >= most:
        if is_asked:
            raise MailsAskedTooOften(most, newest[-1] + _DAY)
        return False
    life = {
        WORKER_RESET: RESET_LIFE,
        REQUESTER_RESET: RESET_LIFE,
        SIGN_UP: LINK_LIFE,
        CONFIRM: LINK_LIFE,
        REQUESTER_CONFIRM: LINK_LIFE,
    }
    transaction.session.add(
        MailRow(
            mail_id=new_entity_id(),
            kind=kind,
            address=storable(address),
            counts_for=counts_for,
            language=language,
            details=details,
            state="Waiting",
            attempts=0,
            next_attempt_at=transaction.now,
            recorded_at=transaction.now,
            give_up_at=transaction.now + life.get(kind, NEWS_LIFE),
        )
    )
    return True


def send_due(
    store: Store,
    clock: Clock,
    settings: MarketplaceSettings,
    post_office: PostOffice,
    *,
    translate: Translator,
    limit: int,
    stop: Callable[[], bool],
) -> MailReport:
    """Send up to `limit` mails that are due, one after the other, until one fails: the next round goes on then.

    Several processes can send at the same time.
    """
    sent = failed = dropped = 0
    while sent + dropped < limit and not failed and not stop() and outbox.is_due(store, MailRow, clock.now()):
        row, letter = _claim(store, clock, settings, translate)
        if row is None:
            break
        if letter is None:
            dropped += 1
            continue
        problem, give_up_at = None, row.give_up_at
        try:
            post_office.post(letter)
        except Exception as error:  # whatever the post office raises, the mail waits for its next attempt
            problem = f"{type(error).__name__}: {error}"[:1000]
            if isinstance(error, Undeliverable):
                give_up_at = row.recorded_at
            _log.warning("mail %s: attempt %d failed: %s", row.mail_id, row.attempts, type(error).__name__)
        outbox.note(store, MailRow, row.seq, row.attempts, problem, now=clock.now(), give_up_at=give_up_at)
        sent += problem is None
        failed += problem is not None
    outbox.forget_old(store, MailRow, clock.now())
    return MailReport(sent, failed, dropped, outbox.waiting(store, MailRow))


def _claim(
    store: Store, clock: Clock, settings: MarketplaceSettings, translate: Translator
) -> tuple[MailRow | None, Letter | None]:
    """Take the oldest mail that is due, and write it; without a letter there is nobody to write to."""
    with store.session(writes=True) as session:
        transaction = Transaction(session, clock.now(), settings)
        rows = outbox.claim(session, MailRow, transaction.now, 1)
        if not rows:
            return None, None
        row = rows[0]
        letter = written(transaction, row, translate)
        if letter is None:
            row.state, row.ended_at = "Dropped", transaction.now
        return row, letter


def written(transaction: Transaction, row: MailRow, translate: Translator) -> Letter | None:
    """Return the letter of a queued mail, None if it is for an account that does not exist (any more)."""
    found = _WRITERS[row.kind](transaction, row)
    if found is None:
        return None
    name = transaction.settings.site_name
    signature = words("This mail comes from %(site)s, %(url)s.", site=name, url=transaction.settings.turk_submit_to)
    said = (translate(row.language, one) if isinstance(one, Words) else one for one in (*found.paragraphs, signature))
    return Letter(found.address or row.address, translate(row.language, found.subject), "\n\n".join(said) + "\n")


def reset_token(transaction: Transaction, kind: str, row: WorkerRow | RequesterRow, life: timedelta) -> str:
    """Return the token of a link that replaces an account's password."""
    subject = row.worker_id if isinstance(row, WorkerRow) else row.requester_id
    return links.token(transaction, kind, subject, state=password_state(row), life=life)


def password_state(row: WorkerRow | RequesterRow) -> str:
    """Return what changes with a new password, and with the address that a link to set one was sent to."""
    email = row.email_key if isinstance(row, WorkerRow) else row.email
    return f"{row.password_hash}\n{row.session_number}\n{email}"


def address_state(row: WorkerRow | RequesterRow) -> str:
    """Return what changes with another address."""
    if isinstance(row, RequesterRow):
        return f"{row.email}\n{row.session_number}"
    return f"{row.email_key}\n{row.email_confirmed_at}\n{row.session_number}"


def link(transaction: Transaction, path: str, token: str) -> str:
    """Return the address of a page of the worker site that takes a token."""
    return f"{transaction.settings.turk_submit_to}{path}?token={token}"


def confirmed_owner(transaction: Transaction, address: str) -> WorkerRow | None:
    """Return the worker who has confirmed this address."""
    query = select(WorkerRow).where(
        WorkerRow.email_key == storable(address.casefold()), WorkerRow.email_confirmed_at.is_not(None)
    )
    return transaction.session.scalar(query)


def storable(text: str) -> str:
    """Return typed text as a database takes it; nothing stored has a NUL, so a look-up then finds nothing."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class _Draft:
    """A letter before it is translated; `address` is where it goes if not to what was typed."""

    subject: Words
    paragraphs: Sequence[Words | str]
    address: str | None = None


_IGNORE = words("If you did not ask for this, do nothing: nothing changes.")
_HOUR = words("The link works once, for one hour.")
_ONE_DAY = words("The link works once, for one day.")


def _worker_reset(transaction: Transaction, mail: MailRow) -> _Draft | None:
    row = confirmed_owner(transaction, mail.address)
    if row is None:
        return None
    return _reset(transaction, WORKER_RESET, row, words("the worker account “%(name)s”", name=row.user_name))


def _requester_reset(transaction: Transaction, mail: MailRow) -> _Draft | None:
    row = transaction.session.scalar(select(RequesterRow).where(RequesterRow.email == mail.address.casefold()))
    if row is None:
        return None
    return _reset(transaction, REQUESTER_RESET, row, words("the requester account “%(name)s”", name=row.name))


def _reset(transaction: Transaction, kind: str, row: WorkerRow | RequesterRow, account: Words) -> _Draft:
    url = link(transaction, RESET_PATHS[kind], reset_token(transaction, kind, row, RESET_LIFE))
    return _Draft(
        words("A new password"),
        [
            words("Somebody asked for a new password for %(account)s. To choose one, open:", account=account),
            url,
            _HOUR,
            _IGNORE,
        ],
        row.email,
    )


def _sign_up(transaction: Transaction, mail: MailRow) -> _Draft:
    row = confirmed_owner(transaction, mail.address)
    if row is not None:
        url = link(transaction, RESET_PATHS[WORKER_RESET], reset_token(transaction, WORKER_RESET, row, RESET_LIFE))
        return _Draft(
            words("You have an account already"),
            [
                words(
                    "Somebody asked for a new account with this e-mail address, which has one: %(name)s.",
                    name=row.user_name,
                ),
                words("Sign in with that user name. If you have forgotten the password, choose a new one here:"),
                url,
                _HOUR,
                _IGNORE,
            ],
            row.email,
        )
    url = link(transaction, SIGN_UP_PATH, sign_up_token(transaction, mail.address))
    return _Draft(
        words("Your new account"),
        [
            words("To finish your account, choose a user name and a password here:"),
            url,
            _ONE_DAY,
            _IGNORE,
        ],
    )


def sign_up_token(transaction: Transaction, address: str) -> str:
    """Return the token of a link that opens an account with this address."""
    return links.token(transaction, SIGN_UP, address, state="", life=LINK_LIFE)


def _confirm(transaction: Transaction, mail: MailRow) -> _Draft | None:
    row = transaction.session.get(WorkerRow, mail.details["worker_id"])
    if row is None:
        return None
    account = words("the worker account “%(name)s”", name=row.user_name)
    return _confirmation(transaction, mail, row.worker_id, address_state(row), account)


def _requester_confirm(transaction: Transaction, mail: MailRow) -> _Draft | None:
    row = transaction.session.get(RequesterRow, mail.details["requester_id"])
    if row is None:
        return None
    account = words("the requester account “%(name)s”", name=row.name)
    return _confirmation(transaction, mail, row.requester_id, address_state(row), account)


def _confirmation(transaction: Transaction, mail: MailRow, subject: str, state: str, account: Words) -> _Draft:
    token = links.token(transaction, mail.kind, subject, state=state, life=LINK_LIFE, address=mail.address)
    return _Draft(
        words("Confirm your e-mail address"),
        [
            words("To make this the e-mail address of %(account)s, open this and press the button:", account=account),
            link(transaction, CONFIRM_PATHS[mail.kind], token),
            _ONE_DAY,
            _IGNORE,
        ],
    )


def _password_changed(_transaction: Transaction, mail: MailRow) -> _Draft:
    return _Draft(
        words("Your password was changed"),
        [
            words("The password of the account “%(name)s” was changed.", name=mail.details["name"]),
            words("If it was not you, write to the operator of this site at once."),
        ],
    )


def _address_changed(_transaction: Transaction, mail: MailRow) -> _Draft:
    return _Draft(
        words("Your e-mail address was changed"),
        [
            words(
                "The account “%(name)s” has another e-mail address now, or none. This one is not used for it any more.",
                name=mail.details["user_name"],
            ),
            words("If it was not you, write to the operator of this site at once."),
        ],
    )


def _payout_changed(_transaction: Transaction, mail: MailRow) -> _Draft:
    return _Draft(
        words("Where your money goes was changed"),
        [
            words(
                "On the page “Payouts” of the account “%(name)s”, where your money goes was changed or taken out.",
                name=mail.details["user_name"],
            ),
            words("If it was not you, write to the operator of this site at once."),
        ],
    )


def _worker_wrote(transaction: Transaction, mail: MailRow) -> _Draft:
    return _Draft(
        words("A worker wrote to you"),
        [
            words("A worker sent you a message about your HITs. Read and answer it in the requester console:"),
            f"{transaction.settings.turk_submit_to}/requester/",
        ],
    )


_WRITERS: Final[dict[str, Callable[[Transaction, MailRow], _Draft | None]]] = {
    WORKER_RESET: _worker_reset,
    REQUESTER_RESET: _requester_reset,
    SIGN_UP: _sign_up,
    CONFIRM: _confirm,
    REQUESTER_CONFIRM: _requester_confirm,
    PASSWORD_CHANGED: _password_changed,
    ADDRESS_CHANGED: _address_changed,
    PAYOUT_CHANGED: _payout_changed,
    WORKER_WROTE: _worker_wrote,
}
