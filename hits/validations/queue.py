"""The queue by need: which items a validator gets when a HIT is opened, and how many places are still to be offered.

A validation HIT is a number of places. Which items its readers judge is drawn when an assignment is opened, from all
that the round has waiting, and held for it by leases until its time is over.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from hits.models import Assignment, Example, Hit, HitBatch, Lease, Round, Vote
from hits.states import COLLECTED, AssignmentState, HitKind, HitState, PracticeState, Verdict
from hits.validations.decisions import locked_examples
from hits.validations.gold import gold_for
from hits.validations.votes import end_leases, locked_validation_hit, places_held, take_place

#: Work that reached the marketplace in the last second is collected some time after.
GRACE = timedelta(minutes=5)
#: Work that was saved here and that the marketplace has not shown so long after its deadline was never submitted.
UNSUBMITTED_AFTER = timedelta(hours=1)
#: Of two people who judge each other, each may judge this many of the other's examples whatever the round's share is.
PAIR_FLOOR = 3
#: Of batches from before their number of items was stored.
ITEMS = 10


@dataclass(frozen=True)
class Shortage:
    """An undecided example that the open validation HITs will not decide; ``wanted`` further places are needed."""

    example_id: int
    wanted: int
    waiting_since: datetime
    for_seniors: bool = False


def draw(session: Session, assignment: Assignment, now: datetime) -> list[Lease]:
    """Return the assignment's items, drawn from the queue when it has none yet. Flushes, never commits.

    Those nearest to a decision come first, then the oldest. Never drawn: one's own, what one has judged or holds
    elsewhere, more of a person's examples than two people who judge each other may, and more readers than are wanted.
    Coming back to a HIT that was returned continues with its items. None are drawn for a saved assignment, after the
    deadline, or when nothing waits for this person.
    """
    hit = locked_validation_hit(session, assignment)
    mine = list(session.scalars(select(Lease).where(Lease.assignment_id == assignment.id).order_by(Lease.position)))
    over = assignment.deadline_at is not None and now >= assignment.deadline_at
    if mine or over or assignment.state is not AssignmentState.OPENED:
        return mine
    # Draws of a round go one after another: whoever comes second sees what the first one holds.
    round_ = session.get_one(Round, hit.batch.round_id, populate_existing=True, with_for_update={"key_share": True})
    expires_at = (assignment.deadline_at or now + timedelta(seconds=hit.batch.assignment_seconds)) + GRACE
    if returned := _held_from_before(session, hit, assignment):
        with session.no_autoflush:
            for position, lease in enumerate(returned, start=1):
                lease.position, lease.expires_at = position, expires_at
                _move(session, lease, assignment)
        session.flush()
        return returned
    release_expired(session, round_, now)
    size = hit.batch.items or ITEMS
    # Fair to every reader and the same again after a crash; nothing is kept secret by it.
    chance = random.Random(f"{round_.seed}:{assignment.mturk_assignment_id}")  # noqa: S311
    gold = gold_for(session, round_, assignment.worker_id, min(round_.gold_items, size - 1), chance)
    examples = _next_examples(session, round_, hit.batch, assignment.worker_id, size - len(gold))
    if not examples:
        return []
    with session.no_autoflush:
        drawn = _leases_of(session, assignment, examples)
        for item in gold[: len(examples)]:
            # At any place among the others, so that none gives it away.
            lease = Lease(validator_id=assignment.worker_id, gold_item_id=item.id, of_places=1)
            drawn.insert(chance.randint(0, len(drawn)), lease)
        for position, lease in enumerate(drawn, start=1):
            lease.assignment_id, lease.position = assignment.id, position
            lease.drawn_at, lease.expires_at = now, expires_at
            session.add(lease)
    session.flush()
    return drawn


def release_expired(session: Session, round_: Round, now: datetime) -> int:
    """Give back the places of leases whose time is over. Returns how many. Flushes."""
    over = session.scalars(
        select(Lease.id)
        .join(Lease.example)
        .where(Example.round_id == round_.id, Lease.place.is_not(None), Lease.expires_at <= now)
    ).all()
    return end_leases(session, over, until=now) if over else 0


def release_unsubmitted(session: Session, endpoint: str, now: datetime, *, unread: Collection[int] = ()) -> int:
    """Give back what was saved here and never submitted on the marketplace. Returns how many. Flushes.

    To be called after the marketplace's lists were read; ``unread`` are the HITs whose list could not be.
    """
    left = session.scalars(
        select(Lease.id)
        .join(Lease.assignment)
        .join(Assignment.hit)
        .join(Hit.batch)
        .join(HitBatch.round)
        # A frozen round's rows don't change any more, and nobody draws from it.
        .where(HitBatch.endpoint == endpoint, Assignment.state == AssignmentState.SAVED, Round.frozen_at.is_(None))
        .where(Lease.place.is_not(None), Assignment.deadline_at <= now - UNSUBMITTED_AFTER)
        .where(Hit.id.not_in(list(unread)))
    ).all()
    return end_leases(session, left) if left else 0


def release(session: Session, assignment: Assignment) -> int:
    """Give back what an assignment holds whose work will not be counted. Returns how many. Flushes."""
    held = session.scalars(select(Lease.id).where(Lease.assignment_id == assignment.id, Lease.place.is_not(None))).all()
    return end_leases(session, held) if held else 0


def shortages(session: Session, round_: Round, now: datetime) -> list[Shortage]:
    """Return the undecided examples that want more votes than open validation HITs have places, oldest first."""
    last_vote = select(func.max(Vote.counted_at)).where(Vote.example_id == Example.id).scalar_subquery()
    waiting = session.execute(
        select(
            Example.id,
            (Example.votes_wanted - Example.leased).label("wanted"),
            Example.for_seniors,
            Example.collected_at,
            last_vote.label("last_vote"),
        )
        .where(*_waiting(round_))
        .order_by(Example.collected_at, Example.id)
    ).all()
    found = []
    for for_seniors in (False, True):
        rows = [row for row in waiting if row.for_seniors is for_seniors]
        open_places = _open_places(session, round_, now, for_seniors=for_seniors) if rows else []
        uncovered: dict[int, int] = defaultdict(int)
        # A HIT with two places left brings each of its items two votes at most, by two people.
        for layer in range(1, max((row.wanted for row in rows), default=0) + 1):
            covered = sum(items for left, items in open_places if left >= layer)
            for row in [row for row in rows if row.wanted >= layer][covered:]:
                uncovered[row.id] += 1
        found += [
            Shortage(row.id, uncovered[row.id], max(row.collected_at, row.last_vote or row.collected_at), for_seniors)
            for row in rows
            if uncovered[row.id]
        ]
    return found


def waiting_items(session: Session, batch: HitBatch) -> int:
    """Return how many examples the queue offers at this moment to readers of a batch: seniors have ties alone."""
    offered = (*_waiting(batch.round), Example.for_seniors.is_(batch.senior_value is not None))
    return session.scalar(select(func.count()).select_from(Example).where(*offered)) or 0


def _waiting(round_: Round) -> tuple[ColumnElement[bool], ...]:
    return (
        Example.round_id == round_.id,
        Example.verdict == Verdict.PENDING,
        Example.retracted_at.is_(None),
        Example.practice_state.is_(None) | (Example.practice_state == PracticeState.PASSED),
        Example.votes_wanted > Example.leased,
    )


def _open_places(session: Session, round_: Round, now: datetime, *, for_seniors: bool) -> list[tuple[int, int]]:
    """Return of each open validation HIT how many places nobody has taken, and how many examples each brings."""
    holds = select(Lease.id).where(Lease.assignment_id == Assignment.id, Lease.place.is_not(None)).exists()
    used = (
        select(func.count())
        .select_from(Assignment)
        .where(Assignment.hit_id == Hit.id)
        .where(Assignment.state.in_((*COLLECTED, AssignmentState.SAVED)) | holds)
        .scalar_subquery()
    )
    of_seniors = HitBatch.senior_value.is_not(None) if for_seniors else HitBatch.senior_value.is_(None)
    rows = session.execute(
        select(Hit.max_assignments - used, HitBatch.items)
        .join(Hit.batch)
        .where(HitBatch.round_id == round_.id, HitBatch.kind == HitKind.VALIDATION, of_seniors)
        .where(Hit.state != HitState.CLOSED, Hit.expires_at.is_(None) | (Hit.expires_at > now))
    )
    gold = round_.gold_items
    return [(left, max((items or ITEMS) - gold, 1)) for left, items in rows if left > 0]


def _next_examples(
    session: Session, round_: Round, batch: HitBatch, validator_id: int, count: int
) -> Sequence[Example]:
    held = select(Lease.id).where(
        Lease.example_id == Example.id, Lease.validator_id == validator_id, Lease.place.is_not(None)
    )
    voted = (
        select(Vote.id)
        .join(Vote.assignment)
        .where(Vote.example_id == Example.id, Vote.validator_id == validator_id, Assignment.state.in_(COLLECTED))
    )
    allowance = _allowances(session, round_, validator_id)
    candidates = session.execute(
        select(Example.id, Example.writer_id)
        .where(*_waiting(round_))
        .where(Example.writer_id != validator_id, Example.for_seniors.is_(batch.senior_value is not None))
        .where(Example.writer_id.not_in([writer for writer, left in allowance.items() if left <= 0]))
        .where(~held.exists(), ~voted.exists())
        .order_by(Example.votes_wanted - Example.leased, Example.collected_at, Example.id)
        # More than are wanted, for those that the rule about pairs leaves out.
        .limit(count * 5 if allowance else count)
    ).all()
    chosen: list[int] = []
    for example_id, writer_id in candidates:
        if allowance.get(writer_id, 1) > 0 and len(chosen) < count:
            chosen.append(example_id)
            if writer_id in allowance:
                allowance[writer_id] -= 1
    # Somebody may have decided about one of them since.
    place = {example_id: at for at, example_id in enumerate(chosen)}
    still = [
        example
        for example in locked_examples(session, chosen)
        if example.verdict is Verdict.PENDING and example.retracted_at is None and example.votes_wanted > example.leased
    ]
    return sorted(still, key=lambda example: place[example.id])


def _allowances(session: Session, round_: Round, validator_id: int) -> dict[int, int]:
    """Return how many more examples of each person who has judged this validator's own ones may be drawn."""
    judged_me = set(
        session.scalars(
            select(Lease.validator_id)
            .join(Lease.example)
            .where(Example.round_id == round_.id, Example.writer_id == validator_id, Lease.place.is_not(None))
            .distinct()
        )
    )
    if not judged_me:
        return {}
    of_them = (Example.round_id == round_.id, Example.writer_id.in_(judged_me))
    theirs = session.execute(
        select(Example.writer_id, func.count())
        .where(*of_them, Example.verdict != Verdict.NOT_VALIDATED, Example.retracted_at.is_(None))
        .group_by(Example.writer_id)
    )
    mine = session.execute(
        select(Example.writer_id, func.count())
        .join(Lease, Lease.example_id == Example.id)
        .where(*of_them, Lease.validator_id == validator_id, Lease.place.is_not(None))
        .group_by(Example.writer_id)
    )
    judged = {row[0]: row[1] for row in mine}
    return {
        writer: max(PAIR_FLOOR, total * round_.pair_percent // 100) - judged.get(writer, 0) for writer, total in theirs
    }


def _held_from_before(session: Session, hit: Hit, assignment: Assignment) -> list[Lease]:
    # One person has one place of a HIT, so that another open assignment of it was returned.
    held = session.scalars(
        select(Lease)
        .join(Lease.assignment)
        .where(Lease.validator_id == assignment.worker_id, Lease.assignment_id != assignment.id)
        .where(Assignment.hit_id == hit.id, Assignment.state == AssignmentState.OPENED)
        .where(Lease.place.is_not(None) | Lease.gold_item_id.is_not(None))
        .order_by(Lease.position)
    ).all()
    # Gold items alone are what is left of leases that have ended.
    alive = {lease.assignment_id for lease in held if lease.place is not None}
    return [lease for lease in held if lease.assignment_id in alive]


def _leases_of(session: Session, assignment: Assignment, examples: Sequence[Example]) -> list[Lease]:
    """Return leases of the examples, whose rows are locked, each with a place: new ones, or those that had ended."""
    ids = [example.id for example in examples]
    ended = {
        lease.example_id: lease
        for lease in session.scalars(
            select(Lease).where(Lease.validator_id == assignment.worker_id, Lease.example_id.in_(ids))
        )
    }
    held = places_held(session, ids)
    found = []
    for example in examples:
        lease = ended.get(example.id)
        if lease is None:
            lease = Lease(validator_id=assignment.worker_id, example_id=example.id)
        else:
            _move(session, lease, assignment)
        take_place(lease, example, held[example.id])
        found.append(lease)
    return found


def _move(session: Session, lease: Lease, assignment: Assignment) -> None:
    """Let a lease go on in another assignment, with the draft of its judgement."""
    lease.assignment_id = assignment.id
    drafts = session.scalars(
        select(Vote)
        .join(Vote.assignment)
        .where(Assignment.state.not_in(COLLECTED))
        .where(Vote.validator_id == lease.validator_id, Vote.counted_at.is_(None))
        .where(Vote.example_id == lease.example_id if lease.example_id else Vote.gold_item_id == lease.gold_item_id)
    )
    for draft in drafts:
        draft.assignment_id = assignment.id
