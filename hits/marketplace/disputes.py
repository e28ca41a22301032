"""Disputes: a worker objects to a rejection, the requester may answer, an operator decides."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Select, select
from sqlalchemy.exc import IntegrityError

from hits.marketplace import accounts, audit, console_pages, contact, lifecycle, messages
from hits.marketplace.console_views import Actor, Dispute, Page
from hits.marketplace.errors import (
    AlreadyDisputed,
    AssignmentUnknown,
    DisputeNotPossible,
    DisputeUnfit,
    NothingThere,
    OperatorError,
)
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.money import from_cents
from hits.marketplace.tables import AssignmentRow, DisputeRow, HitRow, HitTypeRow, RequesterRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.words import words

WITHIN: Final = timedelta(days=30)
MOST_WORDS: Final = 2000
PAGE_SIZE: Final = 25
STATES: Final = ("Open", "Overturned", "Upheld", "Settled")


def open_dispute(transaction: Transaction, worker_id: str, assignment_id: str, text: str) -> Dispute:
    """Object to a rejection, once, within 30 days of it, and tell the requester.

    Raises AssignmentUnknown, DisputeNotPossible, AlreadyDisputed, DisputeUnfit.
    """
    owner = select(AssignmentRow.worker_id).where(AssignmentRow.assignment_id == assignment_id)
    if transaction.session.scalar(owner) != worker_id:
        raise AssignmentUnknown
    # Its requester may be approving it after all at this moment, which settles the disputes that there are.
    assignment = lifecycle.lock_assignment(transaction, assignment_id)
    if assignment.state != "Rejected":
        raise DisputeNotPossible(words("Only a rejected HIT can be disputed; this one is not rejected."))
    if assignment.rejected_at is None or assignment.rejected_at + WITHIN <= transaction.now:
        raise DisputeNotPossible(words("A rejection can be disputed for 30 days; that time is over for this one."))
    text = text.replace("\x00", "").strip()
    if not 0 < len(text) <= MOST_WORDS:
        raise DisputeUnfit(MOST_WORDS)
    row = DisputeRow(
        dispute_id=new_entity_id(),
        assignment_id=assignment.assignment_id,
        worker_id=worker_id,
        requester_id=assignment.requester_id,
        opened_at=transaction.now,
        words=text,
        state="Open",
    )
    try:
        with transaction.session.begin_nested():
            transaction.session.add(row)
    except IntegrityError as error:
        raise AlreadyDisputed from error
    audit.record(
        transaction,
        Actor.worker(worker_id),
        "dispute opened",
        "dispute",
        row.dispute_id,
        assignment_id=assignment.assignment_id,
    )
    contact.tell_requester(
        transaction,
        assignment.requester_id,
        f"Worker {worker_id} disputes your rejection of assignment {assignment.assignment_id}. You can answer, or "
        "approve the assignment after all, until the operator decides.",
        assignment_id=assignment.assignment_id,
    )
    return _one(transaction, row.dispute_id)


def reply(transaction: Transaction, requester_id: str, dispute_id: str, text: str) -> Dispute:
    """Write down the requester's answer; a later one replaces it while the dispute is open.

    Raises OperatorError if the requester has no such open dispute, or for words that are missing or too many.
    """
    row = _lock(transaction, dispute_id)
    if row is None or row.requester_id != requester_id:
        raise NothingThere(words("There is no dispute “%(id)s”.", id=dispute_id))
    _require_open(row)
    row.reply, row.replied_at = _fit(text), transaction.now
    return _one(transaction, dispute_id)


def overturn(transaction: Transaction, by: Actor, dispute_id: str, text: str, *, token: str | None = None) -> Dispute:
    """Approve the assignment after all: the reward and its fee are charged to the requester, and both are told.

    Raises OperatorError for an unknown or decided dispute, missing words, and a balance that is too low.
    """
    if audit.was_done(transaction, token, "dispute overturned", dispute_id):
        return _one(transaction, dispute_id)
    row = _find(transaction, dispute_id)
    # Account, HIT, assignment: the order in which everybody locks.
    account = accounts.lock(transaction, row.requester_id)
    hit_of = select(AssignmentRow.hit_id).where(AssignmentRow.assignment_id == row.assignment_id)
    hit = lifecycle.lock_hit(transaction, transaction.session.scalars(hit_of).one())
    assignment = lifecycle.lock_assignment(transaction, row.assignment_id)
    row = _decided(transaction, row, by, "Overturned", text)
    if assignment.state != "Rejected":
        raise OperatorError(
            words(
                "Assignment %(assignment)s is not rejected any more. Nothing was changed.",
                assignment=assignment.assignment_id,
            )
        )
    if account.available_cents < hit.unit_cents:
        raise OperatorError(
            words(
                "%(name)s has $%(available)s available, and approving this assignment costs $%(cost)s. Nothing was "
                "changed. Top up the account, or ask the requester to, and decide again; the dispute stays open.",
                name=account.name,
                available=from_cents(account.available_cents),
                cost=from_cents(hit.unit_cents),
            )
        )
    lifecycle.approve(transaction, account, hit, assignment, feedback=None)
    audit.record(
        transaction,
        by,
        "dispute overturned",
        "dispute",
        dispute_id,
        token=token,
        assignment_id=row.assignment_id,
        requester_id=row.requester_id,
        cost_cents=hit.unit_cents,
    )
    reward, cost = from_cents(hit.reward_cents), from_cents(hit.unit_cents)
    messages.send(
        transaction,
        None,
        row.worker_id,
        "Your dispute: the rejection was overturned",
        f"The operator approved assignment {row.assignment_id} after all; you have earned its reward of ${reward}.\n\n"
        f"{row.decision}",
    )
    contact.tell_requester(
        transaction,
        row.requester_id,
        f"The operator approved assignment {row.assignment_id} after all. ${cost} (reward and fee) was taken from "
        f"your balance.\n\n{row.decision}",
        assignment_id=row.assignment_id,
    )
    return _one(transaction, dispute_id)


def uphold(transaction: Transaction, by: Actor, dispute_id: str, text: str, *, token: str | None = None) -> Dispute:
    """Let the rejection stand, and tell both.

    Raises OperatorError for an unknown or decided dispute, and missing words.
    """
    if audit.was_done(transaction, token, "dispute upheld", dispute_id):
        return _one(transaction, dispute_id)
    row = _decided(transaction, _find(transaction, dispute_id), by, "Upheld", text)
    audit.record(transaction, by, "dispute upheld", "dispute", dispute_id, token=token, assignment_id=row.assignment_id)
    messages.send(
        transaction,
        None,
        row.worker_id,
        "Your dispute: the rejection stands",
        f"The operator looked at assignment {row.assignment_id}, and the rejection stands.\n\n{row.decision}",
    )
    contact.tell_requester(
        transaction,
        row.requester_id,
        f"The operator looked at assignment {row.assignment_id}, and your rejection stands.\n\n{row.decision}",
        assignment_id=row.assignment_id,
    )
    return _one(transaction, dispute_id)


def settle_if_open(transaction: Transaction, assignment: AssignmentRow) -> None:
    """End an open dispute of an assignment that its requester has approved after all."""
    found = transaction.session.scalar(
        select(DisputeRow.dispute_id).where(
            DisputeRow.assignment_id == assignment.assignment_id, DisputeRow.state == "Open"
        )
    )
    row = _lock(transaction, found) if found is not None else None
    if row is None or row.state != "Open":
        return
    row.state, row.decided_at, row.decided_by = "Settled", transaction.now, "the requester"
    audit.record(
        transaction, Actor.requester(row.requester_id), "dispute settled", "dispute", row.dispute_id,
        assignment_id=row.assignment_id,
    )  # fmt: skip
    messages.send(
        transaction,
        None,
        row.worker_id,
        "Your dispute: the requester approved after all",
        f"The requester approved assignment {row.assignment_id}; you have earned its reward.",
    )


def page_of(
    transaction: Transaction, *, state: str | None = "Open", requester_id: str | None = None, page: int = 1
) -> Page[Dispute]:
    """Return disputes, the longest open first, decided ones newest first; None is every state."""
    query = _joined()
    if state is not None:
        query = query.where(DisputeRow.state == state)
    if requester_id is not None:
        query = query.where(DisputeRow.requester_id == requester_id)
    query = query.order_by(DisputeRow.seq if state == "Open" else DisputeRow.seq.desc())
    return console_pages.page_of(transaction, query, _view, page=page, page_size=PAGE_SIZE)


def of_assignment(transaction: Transaction, worker_id: str, assignment_id: str) -> Dispute | None:
    """Return a worker's dispute about an assignment, if there is one."""
    row = transaction.session.execute(
        _joined().where(DisputeRow.assignment_id == assignment_id, DisputeRow.worker_id == worker_id)
    ).one_or_none()
    return _view(*row) if row is not None else None


def one(transaction: Transaction, dispute_id: str, *, requester_id: str | None = None) -> Dispute:
    """Return one dispute, or one of a requester's own.

    Raises OperatorError if there is none.
    """
    found = _one(transaction, dispute_id)
    if requester_id is not None and found.requester_id != requester_id:
        raise NothingThere(words("There is no dispute “%(id)s”.", id=dispute_id))
    return found


def _decided(transaction: Transaction, found: DisputeRow, by: Actor, state: str, text: str) -> DisputeRow:
    row = _lock(transaction, found.dispute_id) or found
    _require_open(row)
    row.decision, row.state, row.decided_at, row.decided_by = _fit(text), state, transaction.now, by.name[:200]
    return row


def _require_open(row: DisputeRow) -> None:
    if row.state != "Open":
        said = {"name": row.decided_by, "moment": f"{row.decided_at:%Y-%m-%d %H:%M}" if row.decided_at else ""}
        match row.state:
            case "Overturned":
                what = words("This dispute was overturned by %(name)s on %(moment)s UTC. Nothing was changed.", **said)
            case "Upheld":
                what = words("This dispute was upheld by %(name)s on %(moment)s UTC. Nothing was changed.", **said)
            case _:
                what = words("This dispute was settled by %(name)s on %(moment)s UTC. Nothing was changed.", **said)
        raise OperatorError(what)


def _fit(text: str) -> str:
    text = text.replace("\x00", "").strip()
    if not 0 < len(text) <= MOST_WORDS:
        raise OperatorError(words("Say why, in 1 to %(most)d characters; both sides read it.", most=MOST_WORDS))
    return text


def _find(transaction: Transaction, dispute_id: str) -> DisputeRow:
    row = transaction.session.scalar(select(DisputeRow).where(DisputeRow.dispute_id == dispute_id))
    if row is None:
        raise NothingThere(words("There is no dispute “%(id)s”.", id=dispute_id))
    return row


def _lock(transaction: Transaction, dispute_id: str) -> DisputeRow | None:
    query = select(DisputeRow).where(DisputeRow.dispute_id == dispute_id).with_for_update()
    return transaction.session.scalar(query.execution_options(populate_existing=True))


def _joined() -> Select[*tuple[Any, ...]]:
    return (
        select(DisputeRow, AssignmentRow, HitRow, HitTypeRow.title, RequesterRow.name)
        .join(AssignmentRow, AssignmentRow.assignment_id == DisputeRow.assignment_id)
        .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
        .join(HitTypeRow, HitTypeRow.hit_type_id == HitRow.hit_type_id)
        .join(RequesterRow, RequesterRow.requester_id == DisputeRow.requester_id)
    )


def _one(transaction: Transaction, dispute_id: str) -> Dispute:
    transaction.session.flush()
    row = transaction.session.execute(_joined().where(DisputeRow.dispute_id == dispute_id)).one_or_none()
    if row is None:
        raise NothingThere(words("There is no dispute “%(id)s”.", id=dispute_id))
    return _view(*row)


def _view(row: DisputeRow, assignment: AssignmentRow, hit: HitRow, title: str, requester_name: str) -> Dispute:
    return Dispute(
        dispute_id=row.dispute_id,
        assignment_id=row.assignment_id,
        hit_id=hit.hit_id,
        title=title,
        worker_id=row.worker_id,
        requester_id=row.requester_id,
        requester_name=requester_name,
        reward=from_cents(hit.reward_cents),
        cost=from_cents(hit.unit_cents),
        opened_at=row.opened_at,
        words=row.words,
        feedback=assignment.feedback,
        rejected_at=assignment.rejected_at,
        submitted_at=assignment.submitted_at,
        answer=assignment.answer,
        reply=row.reply,
        replied_at=row.replied_at,
        state=row.state,
        decided_at=row.decided_at,
        decided_by=row.decided_by,
        decision=row.decision,
    )
