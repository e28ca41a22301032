"""Work that was done in bad faith: on what grounds it may be rejected, how much of it, and for how long that counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from hits.errors import InvalidAnswer, Refused
from hits.models import Assignment, Hit, Rejection
from hits.states import COLLECTED, AssignmentState, BadFaith, RejectionState
from hits.tasks._spec import checked_text
from hits.validations import put_out, restore_votes, take_in, withdraw_votes

#: The marketplace lets a rejection be undone so long after the work was submitted.
UNDONE_WITHIN = timedelta(days=30)
WORDS_MIN_CHARACTERS, WORDS_MAX_CHARACTERS = 20, 700

#: What a requester reads of each ground.
GROUNDS: dict[BadFaith, str] = {
    BadFaith.NO_WORK: "No work was done: the form was handed in without it",
    BadFaith.NONSENSE: "Random letters, or the same text again and again",
    BadFaith.COPIED: "Copied from the page, from another source, or from other people's work",
    BadFaith.AUTOMATED: "Made by a program in place of a person",
    BadFaith.OUT_OF_BOUNDS: "A real private person, a threat, or a call for violence",
}


@dataclass(frozen=True)
class Share:
    """How much of somebody's, or of a batch's, collected work is rejected; ``most`` is what the cap allows."""

    rejected: int
    collected: int
    most: int

    @property
    def is_full(self) -> bool:
        return self.rejected >= self.most

    def __str__(self) -> str:
        return f"{self.rejected} of {self.collected} rejected, {self.most} at most"


class CapReached(Refused):
    """More rejections than the instance's cap allows: many at once say more about a HIT than about its workers."""

    def __init__(self, whose: str, share: Share, cap: Decimal) -> None:
        super().__init__(
            f"Of {whose}, {share.rejected} of {share.collected} assignments are rejected, and DYNAHIT_REJECTION_CAP"
            f" ({cap:f}) allows {share.most}. Nothing was rejected. Approve this one; to keep somebody from further"
            " work, limit or exclude them, which takes no pay away. If the cap is wrong, whoever runs the service can"
            " raise it."
        )


def checked_grounds(category: str, words: str) -> tuple[BadFaith, str]:
    """Return the ground and the words that the worker will read.

    Raises InvalidAnswer for a ground that there is not, and for words that explain nothing.
    """
    if category not in {one.value for one in BadFaith}:
        raise InvalidAnswer("category", "Choose on what ground. Work that is only poor, or judged otherwise, is paid.")
    try:
        text = checked_text("words", "What the worker is told", words, WORDS_MAX_CHARACTERS)
    except InvalidAnswer as error:
        raise InvalidAnswer("words", str(error).replace(" Write something first; no try was used.", "")) from error
    if len(text) < WORDS_MIN_CHARACTERS or len(set(text.split())) < 3:
        raise InvalidAnswer(
            "words",
            f"{text[:40]!r} explains too little. Say in {WORDS_MIN_CHARACTERS} characters or more what was wrong,"
            " as you would to the worker's face.",
        )
    return BadFaith(category), text


def share_of_batch(session: Session, batch_id: int, cap: Decimal) -> Share:
    """Return how much of the batch is rejected. Reads only."""
    return _share(session, Assignment.hit_id.in_(select(Hit.id).where(Hit.batch_id == batch_id)), cap)


def share_of_worker(session: Session, worker_id: int, cap: Decimal) -> Share:
    """Return how much of all that the worker did here is rejected. Reads only."""
    return _share(session, Assignment.worker_id == worker_id, cap)


def _share(session: Session, which: ColumnElement[bool], cap: Decimal) -> Share:
    collected = session.scalar(
        select(func.count()).select_from(Assignment).where(which, Assignment.state.in_(COLLECTED))
    )
    being = select(Rejection.assignment_id).where(Rejection.state == RejectionState.SENDING)
    rejected = session.scalar(
        select(func.count())
        .select_from(Assignment)
        .where(which, or_(Assignment.state == AssignmentState.REJECTED, Assignment.id.in_(being)))
    )
    # A single one is always possible, however little there is, unless rejecting is switched off.
    most = max(int(cap * (collected or 0)), 1) if cap else 0
    return Share(rejected or 0, collected or 0, most)


def rejection_of(session: Session, assignment: Assignment) -> Rejection | None:
    """Return the assignment's rejection, also one that was undone."""
    return session.scalar(select(Rejection).where(Rejection.assignment_id == assignment.id))


def undone_until(assignment: Assignment) -> datetime | None:
    """Return until when a rejection of the assignment can be undone; None when its submission has no time."""
    return None if assignment.submitted_at is None else assignment.submitted_at + UNDONE_WITHIN


def note_rejected(session: Session, assignment: Assignment, at: datetime) -> None:
    """Note that the marketplace shows the assignment as rejected. Flushes, never commits.

    What was judged in it counts no more, and what was written in it is out of the data.
    """
    is_new = assignment.state is not AssignmentState.REJECTED
    assignment.state = AssignmentState.REJECTED
    assignment.rejected_at = at
    row = rejection_of(session, assignment)
    if row is not None and row.state is RejectionState.SENDING:
        row.state, row.rejected_at = RejectionState.REJECTED, at
    session.flush()
    if is_new:
        # Once: what a person decides about a text afterwards stands.
        withdraw_votes(session, assignment, at)
        put_out(session, assignment, at)


def note_approved(session: Session, assignment: Assignment, at: datetime, *, by: str = "the marketplace") -> None:
    """Note that the marketplace shows the assignment as approved, whatever was decided before. Flushes, never commits.

    A rejection that never took place is taken out, one that did counts as undone: its votes count again and
    its texts are in the data.
    """
    restore_votes(session, assignment, at)
    take_in(session, assignment, at)
    row = rejection_of(session, assignment)
    if row is None or row.state is RejectionState.UNDONE:
        return
    if row.state is RejectionState.SENDING:
        session.delete(row)
    else:
        row.state, row.undone_at, row.undone_by = RejectionState.UNDONE, at, by
    session.flush()
