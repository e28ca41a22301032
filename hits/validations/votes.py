"""A validator's judgements in one assignment: drafts, the saving, and the counting once they are submitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session, joinedload

from hits.attempts import locked_hit
from hits.errors import (
    AlreadySubmitted,
    AlreadyVoted,
    AmbiguousAnswer,
    InvalidAnswer,
    NotYetSubmittable,
    OwnExample,
    Refused,
)
from hits.models import Assignment, Example, Hit, Lease, Round, Vote
from hits.states import AssignmentState, HitKind, Verdict
from hits.tasks import TaskSpec, task
from hits.tasks._spec import checked_span, checked_text
from hits.validations.decisions import decide, locked_examples, recount

FLAG_REASON_MAX_CHARACTERS = 500


def locked_validation_hit(session: Session, assignment: Assignment) -> Hit:
    """Take the HIT's row lock and see the assignment as it is now. Raises Refused for a HIT that asks for writing."""
    hit = locked_hit(session, assignment)
    if hit.batch.kind is not HitKind.VALIDATION:
        raise Refused("This HIT asks for statements, not for judgements. Open it from the marketplace again.")
    return hit


def items_for(session: Session, assignment: Assignment) -> list[Lease]:
    """Return the items that were drawn for this assignment, in order; gold items stand among the examples.

    Left out: what was flagged or retracted meanwhile and is not judged here.
    """
    found = session.scalars(
        select(Lease)
        .where(Lease.assignment_id == assignment.id)
        .options(
            joinedload(Lease.gold_item),
            joinedload(Lease.example).options(joinedload(Example.attempt), joinedload(Example.context)),
        )
        .order_by(Lease.position)
    ).all()
    judged = draft_votes(session, assignment)
    return [lease for lease in found if lease.id in judged or not _stopped(lease.example)]


def draft_votes(session: Session, assignment: Assignment) -> dict[int, Vote]:
    """Return the votes given in this assignment, by the id of their item's lease."""
    votes = session.scalars(select(Vote).where(Vote.assignment_id == assignment.id)).all()
    of_item = {(vote.example_id, vote.gold_item_id): vote for vote in votes}
    leases = session.scalars(select(Lease).where(Lease.assignment_id == assignment.id))
    keys = {lease.id: (lease.example_id, lease.gold_item_id) for lease in leases}
    return {lease_id: of_item[key] for lease_id, key in keys.items() if key in of_item}


def record_vote(
    session: Session,
    assignment: Assignment,
    item_id: int,
    *,
    label: str | None = None,
    flag_reason: str | None = None,
    details: Mapping[str, str] | None = None,
    now: datetime,
) -> Vote:
    """Store a judgement as a draft; judging the same item again in this assignment replaces it. Flushes only.

    ``details`` are the task's vote choices and, where an answer is marked, a corrected one; what was left open is left
    out, as is what does not go with the label. Raises InvalidInput (unknown label or choice, both or neither, empty
    flag reason, a correction that does not stand in the text), OwnExample, AlreadyVoted, AlreadySubmitted, or Refused
    for an item that was not drawn for this assignment and when the time is over.
    """
    hit = locked_validation_hit(session, assignment)
    if assignment.state is not AssignmentState.OPENED:
        raise AlreadySubmitted
    if assignment.deadline_at is not None and now >= assignment.deadline_at:
        raise Refused("The time for this HIT is over. Nothing was stored.")
    lease = session.scalar(
        select(Lease).where(Lease.id == item_id, Lease.assignment_id == assignment.id).with_for_update()
    )
    if lease is None:
        raise Refused("This is not part of this HIT. Nothing was stored.")
    if lease.example is not None and lease.example.writer_id == assignment.worker_id:
        raise OwnExample
    if (label is None) == (flag_reason is None):
        raise InvalidAnswer("label", "Choose a label, or flag it with a reason: one of the two.")
    spec = task(hit.batch.round.task_code)
    raw = details or {}
    said = checked_details(spec, label, raw)
    correction = checked_correction(spec, label, raw, lease)
    if label is not None:
        spec.label(label)
    else:
        flag_reason = checked_text("flag_reason", "The reason for the flag", flag_reason, FLAG_REASON_MAX_CHARACTERS)
    vote = session.scalar(
        select(Vote)
        .where(Vote.validator_id == assignment.worker_id)
        .where(Vote.example_id == lease.example_id if lease.example_id else Vote.gold_item_id == lease.gold_item_id)
        .with_for_update()
    )
    if vote is None:
        vote = Vote(example_id=lease.example_id, gold_item_id=lease.gold_item_id, validator_id=assignment.worker_id)
        vote.seconds = _seconds_since_last(session, assignment, lease, now)
        session.add(vote)
    elif vote.assignment_id != assignment.id and vote.assignment.state is not AssignmentState.OPENED:
        raise AlreadyVoted
    vote.assignment_id = assignment.id
    vote.label = label
    vote.flag_reason = flag_reason
    vote.details = said or None
    vote.correction = correction
    vote.created_at = now
    session.flush()
    return vote


def checked_details(spec: TaskSpec, label: str | None, raw: Mapping[str, str]) -> dict[str, str]:
    """Return what a validator said besides the label. Raises InvalidAnswer for a choice that there is not."""
    found = {}
    for choices in spec.vote_choices:
        said = raw.get(choices.name, "")
        if not said or label not in choices.with_labels:
            continue
        if said not in dict(choices.options):
            raise InvalidAnswer(
                choices.name, f"“{choices.label}” has no choice {said!r}. Choose one, or leave it open."
            )
        found[choices.name] = said
    return found


def checked_correction(
    spec: TaskSpec, label: str | None, raw: Mapping[str, str], lease: Lease
) -> dict[str, str] | None:
    """Return the answer that a validator marks instead of the writer's, None where none is given or asked for.

    Of several places where it stands the first is taken. Raises InvalidAnswer for one that is not in the passage, and
    for the writer's own.
    """
    span = spec.span_input
    if span is None or label not in spec.rejecting_labels or not raw.get(span.name, "").strip():
        return None
    passage = lease.context_fields[span.of]
    try:
        text, start = checked_span(span, raw, passage)
    except AmbiguousAnswer as error:
        start, _, text, _ = error.places[0]
    except InvalidAnswer as error:
        # Its sentence is for writers, who have tries.
        raise InvalidAnswer(span.name, f"{str(error).removesuffix('; no try was used.').rstrip('.')}.") from error
    if text == lease.answer[span.name]:
        raise InvalidAnswer(
            span.name, f"“{text}” is the answer that is marked already. Choose that it is right, or mark another one."
        )
    return {span.name: text, span.start_name: str(start)}


def save_votes(session: Session, assignment: Assignment, now: datetime, *, partial: bool = False) -> None:
    """Save a validation assignment before it is posted to the marketplace. Flushes only; saving again is a no-op.

    ``partial`` is for people who stop early: what they have judged is kept, and the rest goes back to the queue.
    Raises NotYetSubmittable while statements are left, when nothing is judged, and when there is none for this worker.
    """
    locked_validation_hit(session, assignment)
    if assignment.state is not AssignmentState.OPENED:
        return
    items = items_for(session, assignment)
    if not items:
        raise NotYetSubmittable("There is nothing here that you may judge. Return this HIT on the marketplace.")
    votes = draft_votes(session, assignment)
    spec = task(assignment.hit.batch.round.task_code)
    left = sum(item.id not in votes for item in items)
    if left and not (partial and votes):
        raise NotYetSubmittable(f"{left} of {len(items)} {spec.item_name}s still wait for your judgement.")
    assignment.state = AssignmentState.SAVED
    assignment.saved_at = now
    for lease in session.scalars(select(Lease).where(Lease.assignment_id == assignment.id)):
        lease.expires_at = None
    end_leases(session, _leases_without_vote(session, assignment))
    session.flush()


def count_votes(session: Session, assignment: Assignment, now: datetime) -> int:
    """Let the votes of an assignment count that the marketplace has shown to be submitted. Returns how many are new.

    A vote whose lease had ended counts only if the queue still offers a place; else it stays uncounted, since others
    hold all places by now. Flushes; again is a no-op.
    """
    # Those of somebody else are of a frame that was opened under another name.
    mine = (Vote.assignment_id == assignment.id) & (Vote.validator_id == assignment.worker_id)
    uncounted = Vote.counted_at.is_(None) & Vote.counted_before.is_(None)
    fresh = session.scalars(select(Vote).where(mine, uncounted)).all()
    examples = {
        example.id: example
        for example in locked_examples(session, [vote.example_id for vote in fresh if vote.example_id is not None])
    }
    leases = {
        lease.example_id: lease
        for lease in session.scalars(
            select(Lease)
            .where(Lease.validator_id == assignment.worker_id, Lease.example_id.in_(examples))
            .execution_options(populate_existing=True)
        )
    }
    counted = 0
    for vote in fresh:
        if vote.example_id is not None:
            lease = leases.get(vote.example_id)
            if lease is None or not _holds_place(session, lease, examples[vote.example_id]):
                continue
            lease.expires_at = None
            if vote.flag_reason is not None:
                lease.place = None
        vote.counted_at = now
        counted += 1
    session.flush()
    recount(session, list(examples.values()))
    end_leases(session, _leases_without_vote(session, assignment))
    return counted


def withdraw_votes(session: Session, assignment: Assignment, now: datetime) -> int:
    """Let the votes of work that was rejected as done in bad faith count no more, and decide anew. Returns how many.

    They are kept, with when they had been counted, and their places go back to the queue. The votes of a frozen round
    stay as they are. Flushes; again is a no-op.
    """
    mine = (Vote.assignment_id == assignment.id) & Vote.counted_at.is_not(None)
    if session.scalar(select(Vote.id).where(mine).limit(1)) is None or _is_closed(session, assignment):
        return 0
    examples = locked_examples(session, _examples_of(session, mine))
    votes = session.scalars(select(Vote).where(mine).execution_options(populate_existing=True)).all()
    for vote in votes:
        vote.counted_before, vote.counted_at = vote.counted_at, None
    leases = session.scalars(select(Lease).where(Lease.assignment_id == assignment.id, Lease.place.is_not(None)))
    for lease in leases.all():
        lease.place = lease.expires_at = None
    session.flush()
    for example in examples:
        decide(session, example, now)
    return len(votes)


def restore_votes(session: Session, assignment: Assignment, now: datetime) -> int:
    """Let votes that were withdrawn count again, as of when they did, since the rejection was undone. Returns how many.

    One whose place others have taken meanwhile stays withdrawn, as no example gets more than its round's most votes;
    so do all of a round that was frozen since. Flushes; again is a no-op.
    """
    mine = (Vote.assignment_id == assignment.id) & Vote.counted_before.is_not(None)
    if session.scalar(select(Vote.id).where(mine).limit(1)) is None or _is_closed(session, assignment):
        return 0
    examples = {example.id: example for example in locked_examples(session, _examples_of(session, mine))}
    votes = session.scalars(select(Vote).where(mine).execution_options(populate_existing=True)).all()
    of_mine = (Lease.validator_id == assignment.worker_id) & Lease.example_id.in_(examples)
    leases = {
        lease.example_id: lease
        for lease in session.scalars(select(Lease).where(of_mine).execution_options(populate_existing=True))
    }
    held = places_held(session, list(examples))
    restored = 0
    for vote in votes:
        if vote.example_id is not None and vote.label is not None:
            lease = leases.get(vote.example_id)
            if lease is None:
                continue
            take_place(lease, examples[vote.example_id], held[vote.example_id])
            if lease.place is None:
                continue
        vote.counted_at, vote.counted_before = vote.counted_before, None
        restored += 1
    session.flush()
    for example in examples.values():
        decide(session, example, now)
    return restored


def end_leases(session: Session, lease_ids: Collection[int], *, until: datetime | None = None) -> int:
    """Give the places of leases back to the queue; a counted vote keeps its own. Returns how many. Flushes.

    With ``until`` only those whose time is over by then, which somebody may have saved at this moment.
    """
    wanted = select(Lease).where(Lease.id.in_(lease_ids), Lease.place.is_not(None))
    of_examples = session.scalars(wanted.with_only_columns(Lease.example_id))
    examples = locked_examples(session, [example_id for example_id in of_examples if example_id is not None])
    counted = select(Vote.id).where(
        Vote.example_id == Lease.example_id, Vote.validator_id == Lease.validator_id, Vote.counted_at.is_not(None)
    )
    if until is not None:
        wanted = wanted.where(Lease.expires_at <= until)
    held = session.scalars(wanted.where(~counted.exists()).execution_options(populate_existing=True)).all()
    for lease in held:
        lease.place = None
        lease.expires_at = None
    session.flush()
    recount(session, examples)
    return len(held)


def places_held(session: Session, example_ids: Collection[int]) -> dict[int, set[int]]:
    """Return the places of the examples that somebody holds, by example id."""
    held: dict[int, set[int]] = defaultdict(set)
    rows = session.execute(
        select(Lease.example_id, Lease.place).where(Lease.example_id.in_(example_ids), Lease.place.is_not(None))
    )
    for example_id, place in rows:
        if example_id is not None and place is not None:
            held[example_id].add(place)
    return held


def take_place(lease: Lease, example: Example, held: Collection[int]) -> None:
    """Give a lease the lowest place of its example, whose row is locked, that nobody holds; none when all are held."""
    most = example.round.max_votes
    place = next((place for place in range(1, most + 1) if place not in held), None)
    if place is not None:
        lease.place, lease.of_places = place, most
        example.leased += 1


def _is_closed(session: Session, assignment: Assignment) -> bool:
    """Tell whether the data of the assignment's round stay as they are: it is frozen, or is being frozen."""
    return session.get_one(Round, assignment.hit.batch.round_id, populate_existing=True).frozen_at is not None


def _examples_of(session: Session, which: ColumnElement[bool]) -> list[int]:
    found = session.scalars(select(Vote.example_id).where(which, Vote.example_id.is_not(None)))
    return [example_id for example_id in found if example_id is not None]


def _holds_place(session: Session, lease: Lease, example: Example) -> bool:
    if lease.place is None and example.votes_wanted > example.leased:
        take_place(lease, example, places_held(session, [example.id])[example.id])
        session.flush()
    return lease.place is not None


def _leases_without_vote(session: Session, assignment: Assignment) -> list[int]:
    judged = draft_votes(session, assignment)
    leases = session.scalars(select(Lease.id).where(Lease.assignment_id == assignment.id, Lease.place.is_not(None)))
    return [lease_id for lease_id in leases if lease_id not in judged]


def _seconds_since_last(session: Session, assignment: Assignment, lease: Lease, now: datetime) -> float:
    last = session.scalar(select(func.max(Vote.created_at)).where(Vote.assignment_id == assignment.id))
    since = max(lease.drawn_at, last) if last is not None else lease.drawn_at
    return max((now - since).total_seconds(), 0.0)


def _stopped(example: Example | None) -> bool:
    return example is not None and (example.verdict is Verdict.FLAGGED or example.retracted_at is not None)
