"""Who may judge which example, and what the votes say. The verdict table is in docs/verdicts.md and in its test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.attempts import locked_hit
from hits.errors import AlreadySubmitted, AlreadyVoted, InvalidAnswer, NotYetSubmittable, OwnExample, Refused
from hits.models import Assignment, Example, Hit, HitBatch, HitItem, Round, Vote
from hits.states import COLLECTED, AssignmentState, HitKind, HitState, Moderation, Verdict
from hits.tasks import TaskSpec, task
from hits.tasks._spec import checked_text

FLAG_REASON_MAX_CHARACTERS = 500


@dataclass(frozen=True)
class Outcome:
    """What a set of votes says. ``votes_wanted`` more could decide it; 0 when it is decided or waits for a person.

    ``writer_confirmed``: the readers agree with the writer and the model was wrong; only this earns the bonus.
    """

    verdict: Verdict
    final_label: str | None
    votes_wanted: int
    writer_confirmed: bool


@dataclass(frozen=True)
class Shortage:
    """An undecided example that no open validation HIT will decide; ``wanted`` further places are needed."""

    example_id: int
    wanted: int
    waiting_since: datetime


def outcome(
    goal_label: str,
    model_label: str,
    labels: Sequence[str],
    flags: int,
    *,
    agreeing_votes: int,
    max_votes: int,
    moderation: Moderation | None = None,
    rejecting_labels: Collection[str] = (),
) -> Outcome:
    """Return what the votes say, whatever their order. ``labels`` are the label votes, ``flags`` counts the flags.

    - A flag stops everything until the requester has looked; upheld, the example is invalid; dismissed, the flag
      is no vote at all.
    - ``agreeing_votes`` for one label, more than for any other, settle it: the readers' label is the final one, also
      against the writer's. The model was wrong if its label differs from theirs. Agreement on one of
      ``rejecting_labels`` makes the example invalid.
    - Otherwise another vote is asked for, up to ``max_votes``.
    - At the most votes without agreement: invalid if the majority is against the writer's label, else unresolved.
    """
    if moderation is Moderation.UPHELD:
        return Outcome(Verdict.INVALID, None, 0, False)
    if flags and moderation is not Moderation.DISMISSED:
        return Outcome(Verdict.FLAGGED, None, 0, False)
    ranked = Counter(labels).most_common()
    top = ranked[0][1] if ranked else 0
    leads_alone = len(ranked) == 1 or (len(ranked) > 1 and ranked[1][1] < top)
    if top >= agreeing_votes and leads_alone:
        final = ranked[0][0]
        if final in rejecting_labels:
            return Outcome(Verdict.INVALID, final, 0, False)
        model_wrong = final != model_label
        verdict = Verdict.VALID_AND_MODEL_WRONG if model_wrong else Verdict.VALID_AND_MODEL_RIGHT
        return Outcome(verdict, final, 0, model_wrong and final == goal_label)
    left = max_votes - len(labels)
    if left > 0:
        return Outcome(Verdict.PENDING, None, min(left, max(agreeing_votes - top, 1)), False)
    against = sum(label != goal_label for label in labels)
    verdict = Verdict.INVALID if 2 * against > len(labels) else Verdict.UNRESOLVED
    return Outcome(verdict, None, 0, False)


def decide(session: Session, example: Example, now: datetime) -> Outcome:
    """Recompute an example's verdict from its counted votes and store it. Flushes, never commits.

    An example that is not meant to be validated (the model was right) stays as it is.
    """
    found = _outcome_of(session, example)
    if example.verdict is Verdict.NOT_VALIDATED:
        return found
    if (example.verdict, example.final_label) != (found.verdict, found.final_label):
        example.verdict = found.verdict
        example.final_label = found.final_label
        example.decided_at = None if found.verdict is Verdict.PENDING else now
        session.flush()
    return found


def writer_confirmed(example: Example) -> bool:
    """Tell whether the stored verdict earns its writer the bonus."""
    return (
        example.fooled
        and example.verdict is Verdict.VALID_AND_MODEL_WRONG
        and example.final_label == example.goal_label
    )


def items_for(session: Session, assignment: Assignment) -> list[Example]:
    """Return the examples of the HIT that this worker may judge, in the HIT's order.

    Left out: own ones, ones the worker has judged in another assignment that was sent in, and flagged ones.
    """
    elsewhere = (
        select(Vote.example_id)
        .join(Vote.assignment)
        .where(Vote.validator_id == assignment.worker_id, Vote.assignment_id != assignment.id)
        .where(Assignment.state != AssignmentState.OPENED)
    )
    judged_here = select(Vote.example_id).where(Vote.assignment_id == assignment.id)
    found = (
        select(Example)
        .join(HitItem, HitItem.example_id == Example.id)
        .where(HitItem.hit_id == assignment.hit_id, Example.writer_id != assignment.worker_id)
        .where(Example.id.not_in(elsewhere))
        .where((Example.verdict != Verdict.FLAGGED) | Example.id.in_(judged_here))
        .order_by(HitItem.position)
    )
    return list(session.scalars(found))


def draft_votes(session: Session, assignment: Assignment) -> dict[int, Vote]:
    """Return the votes given in this assignment, by example id."""
    votes = session.scalars(select(Vote).where(Vote.assignment_id == assignment.id))
    return {vote.example_id: vote for vote in votes}


def record_vote(
    session: Session,
    assignment: Assignment,
    example_id: int,
    *,
    label: str | None = None,
    flag_reason: str | None = None,
    details: Mapping[str, str] | None = None,
    now: datetime,
) -> Vote:
    """Store a judgement as a draft; judging the same example again in this assignment replaces it. Flushes only.

    ``details`` are the task's vote choices; what was left open is left out, as are those of other labels.
    Raises InvalidInput (unknown label or choice, both or neither, empty flag reason), OwnExample, AlreadyVoted,
    AlreadySubmitted, or Refused for an example that is not in this HIT and when the time is over.
    """
    hit = _locked_hit(session, assignment)
    if assignment.state is not AssignmentState.OPENED:
        raise AlreadySubmitted
    if assignment.deadline_at is not None and now >= assignment.deadline_at:
        raise Refused("The time for this HIT is over. Nothing was stored.")
    example = session.scalar(
        select(Example)
        .join(HitItem, HitItem.example_id == Example.id)
        .where(HitItem.hit_id == hit.id, Example.id == example_id)
        # The statement may be judged in another HIT at this moment, and a person has one vote on it.
        .with_for_update(of=Example)
    )
    if example is None:
        raise Refused("This is not part of this HIT. Nothing was stored.")
    if example.writer_id == assignment.worker_id:
        raise OwnExample
    if (label is None) == (flag_reason is None):
        raise InvalidAnswer("label", "Choose a label, or flag it with a reason: one of the two.")
    spec = task(hit.batch.round.task_code)
    said = checked_details(spec, label, details or {})
    if label is not None:
        spec.label(label)
    else:
        flag_reason = checked_text("flag_reason", "The reason for the flag", flag_reason, FLAG_REASON_MAX_CHARACTERS)
    vote = session.scalar(
        select(Vote).where(Vote.example_id == example_id, Vote.validator_id == assignment.worker_id).with_for_update()
    )
    if vote is None:
        vote = Vote(example_id=example_id, validator_id=assignment.worker_id)
        session.add(vote)
    elif vote.assignment_id != assignment.id and vote.assignment.state is not AssignmentState.OPENED:
        raise AlreadyVoted
    # A draft of a HIT that was returned moves to the one that is being done now.
    vote.assignment_id = assignment.id
    vote.label = label
    vote.flag_reason = flag_reason
    vote.details = said or None
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


def save_votes(session: Session, assignment: Assignment, now: datetime) -> None:
    """Save a validation assignment before it is posted to the marketplace. Flushes only; saving again is a no-op.

    Raises NotYetSubmittable while statements are left, and when there is none for this worker.
    """
    _locked_hit(session, assignment)
    if assignment.state is not AssignmentState.OPENED:
        return
    items = items_for(session, assignment)
    if not items:
        raise NotYetSubmittable("There is nothing here that you may judge. Return this HIT on the marketplace.")
    votes = draft_votes(session, assignment)
    spec = task(assignment.hit.batch.round.task_code)
    if left := sum(example.id not in votes for example in items):
        raise NotYetSubmittable(f"{left} of {len(items)} {spec.item_name}s still wait for your judgement.")
    assignment.state = AssignmentState.SAVED
    assignment.saved_at = now
    session.flush()


def count_votes(session: Session, assignment: Assignment, now: datetime) -> int:
    """Let the votes of an assignment count that the marketplace has shown to be submitted. Returns how many are new."""
    fresh = session.scalars(select(Vote).where(Vote.assignment_id == assignment.id, Vote.counted_at.is_(None))).all()
    for vote in fresh:
        vote.counted_at = now
    session.flush()
    return len(fresh)


def moderate(session: Session, example: Example, *, upheld: bool, reason: str, now: datetime) -> Outcome:
    """Decide an example's flags: upheld, it is invalid; dismissed, the flags are no votes. Flushes, never commits.

    Raises Refused for an example without open flags.
    """
    if example.verdict is not Verdict.FLAGGED:
        raise Refused("This example has no open flag. Nothing was changed.")
    example.moderation = Moderation.UPHELD if upheld else Moderation.DISMISSED
    example.moderation_reason = checked_text("reason", "The reason", reason, FLAG_REASON_MAX_CHARACTERS)
    return decide(session, example, now)


def shortages(session: Session, round_: Round, now: datetime) -> list[Shortage]:
    """Return the undecided examples that want more votes than open validation HITs have places, oldest first."""
    undecided = session.scalars(
        select(Example)
        .where(Example.round_id == round_.id, Example.verdict == Verdict.PENDING)
        .order_by(Example.collected_at, Example.id)
    ).all()
    places = _places(session, round_, now)
    found = []
    for example in undecided:
        wanted = _outcome_of(session, example).votes_wanted - places.get(example.id, 0)
        if wanted > 0:
            last_vote = session.scalar(select(func.max(Vote.counted_at)).where(Vote.example_id == example.id))
            found.append(Shortage(example.id, wanted, max(example.collected_at, last_vote or example.collected_at)))
    return found


def _places(session: Session, round_: Round, now: datetime) -> dict[int, int]:
    """Return how many votes the open validation HITs can still bring, by example id."""
    hits = session.scalars(
        select(Hit)
        .join(Hit.batch)
        .where(HitBatch.round_id == round_.id, HitBatch.kind == HitKind.VALIDATION, Hit.state != HitState.CLOSED)
        .where(Hit.expires_at.is_(None) | (Hit.expires_at > now))
    ).all()
    reviewed = session.execute(
        select(Assignment.hit_id, func.count())
        .where(Assignment.hit_id.in_([hit.id for hit in hits]), Assignment.state.in_(COLLECTED))
        .group_by(Assignment.hit_id)
    )
    collected = {row[0]: row[1] for row in reviewed}
    places: dict[int, int] = Counter()
    for hit in hits:
        left = max(hit.max_assignments - collected.get(hit.id, 0), 0)
        for example_id in session.scalars(select(HitItem.example_id).where(HitItem.hit_id == hit.id)):
            places[example_id] += left
    return places


def _outcome_of(session: Session, example: Example) -> Outcome:
    votes = session.scalars(select(Vote).where(Vote.example_id == example.id, Vote.counted_at.is_not(None))).all()
    return outcome(
        example.goal_label,
        example.model_label,
        [vote.label for vote in votes if vote.label is not None],
        sum(vote.flag_reason is not None for vote in votes),
        agreeing_votes=example.round.agreeing_votes,
        max_votes=example.round.max_votes,
        moderation=example.moderation,
        rejecting_labels=task(example.round.task_code).rejecting_labels,
    )


def _locked_hit(session: Session, assignment: Assignment) -> Hit:
    hit = locked_hit(session, assignment)
    if hit.batch.kind is not HitKind.VALIDATION:
        raise Refused("This HIT asks for statements, not for judgements. Open it from the marketplace again.")
    return hit
