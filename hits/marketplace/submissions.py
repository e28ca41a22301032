"""Takes what a frame's page posts to externalSubmit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import select

from hits.marketplace import accounts, form_answers, lifecycle, questions, reviews
from hits.marketplace.errors import (
    AlreadySubmitted,
    AnswerTooLarge,
    AssignmentReturned,
    AssignmentUnknown,
    FormExpected,
    NothingSubmitted,
    PreviewCannotBeSubmitted,
    TooLate,
)
from hits.marketplace.form_reader import read_form
from hits.marketplace.frames import NO_ASSIGNMENT
from hits.marketplace.hit_operations import hit_type_of
from hits.marketplace.tables import AssignmentRow, HitRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import Receipt
from hits.marketplace.xmltext import legal


def submit(transaction: Transaction, assignment_id: str, fields: Mapping[str, Sequence[str]]) -> Receipt:
    """Store the answers of a held assignment.

    Raises AssignmentUnknown, PreviewCannotBeSubmitted, NothingSubmitted, AnswerTooLarge, AssignmentReturned,
    TooLate, AlreadySubmitted, FormExpected.
    """
    if assignment_id == NO_ASSIGNMENT:
        raise PreviewCannotBeSubmitted
    found = None
    if assignment_id.isascii() and assignment_id.isalnum():
        query = select(AssignmentRow).where(AssignmentRow.assignment_id == assignment_id)
        found = transaction.session.scalar(query)
    if found is None:
        raise AssignmentUnknown
    if _question_kind(transaction, found) == "QuestionForm":
        raise FormExpected
    return _store(transaction, found, lambda: _answer(fields))


def submit_form(
    transaction: Transaction, worker_id: str, assignment_id: str, fields: Mapping[str, Sequence[str]]
) -> Receipt:
    """Store a worker's answers to a QuestionForm, its fields named as the form says.

    Raises AssignmentUnknown, FormIncomplete, AnswerTooLarge, AssignmentReturned, TooLate, AlreadySubmitted.
    """
    found = None
    if assignment_id.isascii() and assignment_id.isalnum():
        found = transaction.session.scalar(select(AssignmentRow).where(AssignmentRow.assignment_id == assignment_id))
    if found is None or found.worker_id != worker_id or _question_kind(transaction, found) != "QuestionForm":
        raise AssignmentUnknown
    question = transaction.session.scalars(select(HitRow.question).where(HitRow.hit_id == found.hit_id)).one()
    return _store(transaction, found, lambda: form_answers.collect(read_form("Question", question), fields).xml)


def _question_kind(transaction: Transaction, assignment: AssignmentRow) -> str | None:
    return transaction.session.scalar(select(HitRow.question_kind).where(HitRow.hit_id == assignment.hit_id))


def _store(transaction: Transaction, found: AssignmentRow, answer_of: Callable[[], str]) -> Receipt:
    account = accounts.lock(transaction, found.requester_id)
    hit = lifecycle.lock_hit(transaction, found.hit_id)
    assignment = lifecycle.lock_assignment(transaction, found.assignment_id)
    _require_held(assignment)
    answer = answer_of()
    hit_type = hit_type_of(transaction, hit)
    lifecycle.submit(
        transaction,
        account,
        hit,
        assignment,
        answer=answer,
        auto_approval_seconds=hit_type.auto_approval_seconds,
    )
    reviews.finish(transaction)
    return Receipt(
        assignment_id=assignment.assignment_id,
        hit_id=hit.hit_id,
        hit_group_id=hit_type.hit_group_id,
        worker_id=assignment.worker_id,
        state=assignment.state,
        submitted_at=transaction.now,
        auto_approval_at=assignment.auto_approval_at or transaction.now,
    )


def _require_held(assignment: AssignmentRow) -> None:
    if assignment.state == "Returned":
        raise AssignmentReturned
    if assignment.state == "Abandoned":
        raise TooLate
    if assignment.state != "Accepted":
        raise AlreadySubmitted


def _answer(fields: Mapping[str, Sequence[str]]) -> str:
    answers: dict[str, str] = {}
    for name, values in fields.items():
        if values and name not in questions.RESERVED_FIELDS and (cleaned := legal(name)):
            answers.setdefault(cleaned, values[0])
    if not answers:
        raise NothingSubmitted
    answer = questions.write_answers(answers)
    if len(answer) > form_answers.LARGEST_ANSWER_BYTES:
        raise AnswerTooLarge(len(answer), form_answers.LARGEST_ANSWER_BYTES)
    return answer
