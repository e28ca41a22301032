"""What an operator sees of accounts and HITs, and can do to them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from sqlalchemy import func, or_, select

from hits.marketplace import accounts, audit, contact, lifecycle, workers
from hits.marketplace import words as sentences
from hits.marketplace.console_pages import page_of
from hits.marketplace.console_views import Actor, Page, RequesterAccount, WorkerAccount
from hits.marketplace.errors import NothingThere, OperatorError
from hits.marketplace.tables import AssignmentRow, HitRow, RequesterRow, WorkerBlockRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import Balance

PAGE_SIZE: Final = 50
BATCH: Final = 500
MOST_WORDS: Final = 2000
TRAITS: Final = ("is_master", "is_adult")


def worker_page(transaction: Transaction, *, query: str = "", page: int = 1) -> Page[WorkerAccount]:
    """Return workers, newest first; `query` is a worker id, or a part of a user name."""
    found = select(WorkerRow)
    if query := _storable(query):
        found = found.where(
            or_(
                WorkerRow.worker_id == query.upper(),
                WorkerRow.user_name_key.contains(query.casefold(), autoescape=True),
            )
        )
    found = found.order_by(WorkerRow.created_at.desc(), WorkerRow.worker_id)
    rows = page_of(transaction, found, lambda row: row, page=page, page_size=PAGE_SIZE)
    return Page(_with_counts(transaction, rows.entries), rows.page, rows.pages, rows.total, rows.has_more)


def find_worker(transaction: Transaction, wanted: str) -> WorkerAccount:
    """Return the one worker with this id or user name.

    Raises OperatorError if there is none.
    """
    row = workers.called_row(transaction, wanted)
    if row is None:
        raise NothingThere(
            sentences.words("There is no worker “%(name)s”. `dynahit marketplace worker list` shows them.", name=wanted)
        )
    return _with_counts(transaction, [row])[0]


def requester_page(transaction: Transaction, *, query: str = "", page: int = 1) -> Page[RequesterAccount]:
    """Return requesters, newest first; `query` is an id, or a part of a name or e-mail address."""
    found = select(RequesterRow)
    if query := _storable(query):
        found = found.where(
            or_(
                RequesterRow.requester_id == query.upper(),
                func.lower(RequesterRow.name).contains(query.lower(), autoescape=True),
                RequesterRow.email.contains(query.casefold(), autoescape=True),
            )
        )
    found = found.order_by(RequesterRow.created_at.desc(), RequesterRow.requester_id)
    return page_of(transaction, found, _requester_account, page=page, page_size=PAGE_SIZE)


def find_requester(transaction: Transaction, requester_id: str) -> RequesterAccount:
    """Return one requester.

    Raises OperatorError if there is none.
    """
    return _requester_account(accounts.find(transaction, requester_id))


def top_up(
    transaction: Transaction, by: Actor, requester_id: str, amount: Decimal, note: str, *, token: str | None
) -> Balance:
    """Add money to a requester's account, once for each token.

    Raises OperatorError for an unknown requester, and an amount that is not a positive number of cents.
    """
    # The account's lock lets the same form, sent twice at once, see what the first one did.
    accounts.find(transaction, requester_id)
    accounts.lock(transaction, requester_id)
    if audit.was_done(transaction, token, "top-up", requester_id, amount=f"{amount:.2f}"):
        return accounts.balance(transaction, requester_id)
    balance = accounts.top_up(transaction, requester_id, amount, note.replace("\x00", "").strip()[:500])
    audit.record(
        transaction, by, "top-up", "requester", requester_id, token=token, amount=f"{amount:.2f}", note=note[:500]
    )
    return balance


def set_worker_disabled(transaction: Transaction, by: Actor, worker_id: str, *, disabled: bool) -> WorkerAccount:
    """Close an account to its worker, or open it again; what they hold can still be submitted, and stays theirs.

    Raises WorkerUnknown.
    """
    row = workers.find(transaction, worker_id)
    if (row.disabled_at is not None) != disabled:
        row.disabled_at = transaction.now if disabled else None
        action = "worker disabled" if disabled else "worker enabled"
        audit.record(transaction, by, action, "worker", worker_id)
    return find_worker(transaction, worker_id)


def set_requester_disabled(
    transaction: Transaction, by: Actor, requester_id: str, *, disabled: bool
) -> RequesterAccount:
    """Close an account to its requester, console and API, or open it again; HITs and their timers go on.

    Raises OperatorError if there is none.
    """
    row = accounts.find(transaction, requester_id)
    if (row.disabled_at is not None) != disabled:
        row.disabled_at = transaction.now if disabled else None
        action = "requester disabled" if disabled else "requester enabled"
        audit.record(transaction, by, action, "requester", requester_id)
    return _requester_account(row)


def set_trait(transaction: Transaction, by: Actor, worker_id: str, trait: str, *, value: bool) -> WorkerAccount:
    """Make a worker a master (`is_master`), or write down that they are an adult (`is_adult`), or take it back.

    Raises WorkerUnknown, OperatorError for another trait.
    """
    if trait not in TRAITS:
        raise OperatorError(
            sentences.words("A worker's trait is %(traits)s, got “%(trait)s”.", traits=" or ".join(TRAITS), trait=trait)
        )
    if trait == "is_master":
        workers.set_master(transaction, worker_id, is_master=value)
    else:
        workers.set_adult(transaction, worker_id, is_adult=value)
    audit.record(transaction, by, "worker's trait set", "worker", worker_id, trait=trait, value=value)
    return find_worker(transaction, worker_id)


def set_locale(
    transaction: Transaction, by: Actor, worker_id: str, country: str | None, subdivision: str | None
) -> WorkerAccount:
    """Write down where a worker lives; None takes it back.

    Raises WorkerUnknown, OperatorError for codes that cannot be.
    """
    workers.set_locale(transaction, worker_id, country, subdivision)
    audit.record(transaction, by, "worker's locale set", "worker", worker_id, country=country, subdivision=subdivision)
    return find_worker(transaction, worker_id)


def take_down(
    transaction: Transaction, by: Actor, hit_id: str, words: str, *, whole_type: bool = False, after: int = 0
) -> tuple[int, int | None]:
    """Expire a HIT for good, or up to 500 of its type's; held and submitted work goes on and is paid.

    Returns how many were taken down and, if there may be more, the number to go on after. The requester is told.
    Raises OperatorError for an unknown HIT, and words that are missing or too many.
    """
    words = words.replace("\x00", "").strip()
    if not 0 < len(words) <= MOST_WORDS:
        raise OperatorError(
            sentences.words("Say why, in 1 to %(most)d characters; the requester reads it.", most=MOST_WORDS)
        )
    first = transaction.session.scalar(select(HitRow).where(HitRow.hit_id == hit_id))
    if first is None:
        raise NothingThere(sentences.words("There is no HIT “%(id)s”.", id=hit_id))
    account = accounts.lock(transaction, first.requester_id)
    wanted = HitRow.hit_type_id == first.hit_type_id if whole_type else HitRow.hit_id == hit_id
    query = (
        select(HitRow.seq, HitRow.hit_id)
        .where(wanted, HitRow.seq > after, HitRow.taken_down_at.is_(None), HitRow.status != "Disposed")
        .order_by(HitRow.seq)
        .limit(BATCH)
    )
    rows = transaction.session.execute(query).all()
    for _seq, found_id in rows:
        hit = lifecycle.lock_hit(transaction, found_id)
        hit.taken_down_at = transaction.now
        if not hit.is_expired:
            lifecycle.expire(transaction, account, hit)
    if rows and not after:
        what = f"HIT {hit_id}" if not whole_type else f"all HITs of type {first.hit_type_id}"
        contact.tell_requester(
            transaction,
            first.requester_id,
            f"The operator took down {what}. Nobody can accept them any more; work that was handed in is yours to "
            f"review.\n\n{words}",
            hit_id=hit_id,
        )
    if rows:
        audit.record(
            transaction, by, "HIT taken down", "HIT", hit_id, whole_type=whole_type, hits=len(rows), words=words
        )
    return len(rows), rows[-1][0] if len(rows) == BATCH else None


def _with_counts(transaction: Transaction, rows: Sequence[WorkerRow]) -> tuple[WorkerAccount, ...]:
    ids = [row.worker_id for row in rows]
    states = transaction.session.execute(
        select(AssignmentRow.worker_id, AssignmentRow.state, func.count())
        .where(AssignmentRow.worker_id.in_(ids))
        .group_by(AssignmentRow.worker_id, AssignmentRow.state)
    )
    counts = {(worker_id, state): count for worker_id, state, count in states}
    blocked = transaction.session.execute(
        select(WorkerBlockRow.worker_id, func.count())
        .where(WorkerBlockRow.worker_id.in_(ids))
        .group_by(WorkerBlockRow.worker_id)
    )
    blocks = {worker_id: int(count) for worker_id, count in blocked}
    return tuple(
        WorkerAccount(
            worker=workers.view(row),
            disabled_at=row.disabled_at,
            submitted=counts.get((row.worker_id, "Submitted"), 0),
            approved=counts.get((row.worker_id, "Approved"), 0),
            rejected=counts.get((row.worker_id, "Rejected"), 0),
            blocks=blocks.get(row.worker_id, 0),
            has_payout_details=row.payout_details is not None,
        )
        for row in rows
    )


def _requester_account(row: RequesterRow) -> RequesterAccount:
    return RequesterAccount(accounts.view(row), accounts.balance_of(row), row.disabled_at)


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8").strip()
