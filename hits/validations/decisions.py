"""An example's verdict and counters, recomputed from its counted votes, its leases and what the requester decided."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from hits.errors import Refused
from hits.frozen import require_open
from hits.models import Assignment, Attempt, Example, Lease, Round, Vote
from hits.states import Moderation, PracticeState, Verdict
from hits.tasks import task
from hits.tasks._spec import checked_text
from hits.validations.verdict import Outcome, Override, outcome, policy_of

REASON_MAX_CHARACTERS = 500
#: Why an example is out whose work was rejected.
WORK_REJECTED = "Its work was rejected as done in bad faith."


def locked_examples(session: Session, example_ids: Iterable[int]) -> list[Example]:
    """Return the examples with their row locks, always taken in the same order, and as they are now."""
    ids = set(example_ids)
    if not ids:
        return []
    found = select(Example).where(Example.id.in_(ids)).order_by(Example.id).execution_options(populate_existing=True)
    return list(session.scalars(found.with_for_update(of=Example, key_share=True)))


def decide(session: Session, example: Example, now: datetime) -> Outcome:
    """Recompute an example's verdict and counters and store them. Flushes, never commits.

    An example that is not meant to be validated (the model was right) keeps that verdict, as long as nobody overrides
    it. Retracted ones keep what they had, and nothing more is wanted for them.
    """
    found = recount(session, [example])[example.id]
    if example.retracted_at is not None or (example.verdict is Verdict.NOT_VALIDATED and example.overridden_at is None):
        return found
    if (example.verdict, example.final_label) != (found.verdict, found.final_label):
        example.verdict = found.verdict
        example.final_label = found.final_label
        example.decided_at = None if found.verdict is Verdict.PENDING else now
        example.votes_wanted = found.votes_wanted
        example.for_seniors = found.for_seniors
        session.flush()
    return found


def recount(session: Session, examples: Sequence[Example]) -> dict[int, Outcome]:
    """Set the counters of the examples, whose rows the caller has locked, and return what their votes say. Flushes.

    The verdicts are left as they are.
    """
    if not examples:
        return {}
    ids = [example.id for example in examples]
    votes: dict[int, list[Vote]] = defaultdict(list)
    for vote in session.scalars(select(Vote).where(Vote.example_id.in_(ids), Vote.counted_at.is_not(None))):
        votes[vote.example_id or 0].append(vote)
    held = (
        select(Lease.example_id, func.count())
        .outerjoin(Vote, (Vote.example_id == Lease.example_id) & (Vote.validator_id == Lease.validator_id))
        .where(Lease.example_id.in_(ids), Lease.place.is_not(None), Vote.counted_at.is_(None))
        .group_by(Lease.example_id)
    )
    leased = {row[0]: row[1] for row in session.execute(held)}
    found = {}
    for example in examples:
        said = found[example.id] = _outcome_of(example, votes[example.id])
        waits = example.retracted_at is None and example.verdict in (Verdict.PENDING, Verdict.FLAGGED)
        example.votes_wanted = said.votes_wanted if waits else 0
        example.for_seniors = said.for_seniors and waits
        example.leased = leased.get(example.id, 0)
    session.flush()
    return found


def writer_confirmed(example: Example) -> bool:
    """Tell whether the stored verdict earns its writer the bonus."""
    return (
        example.fooled
        and example.verdict is Verdict.VALID_AND_MODEL_WRONG
        and example.final_label == example.goal_label
    )


def moderate(session: Session, example: Example, *, upheld: bool, reason: str, now: datetime) -> Outcome:
    """Decide an example's flags: upheld, it is invalid; dismissed, the flags are no votes. Flushes, never commits.

    Raises Refused for an example without open flags, and in a frozen round.
    """
    require_open(session, example.round_id)
    if example.verdict is not Verdict.FLAGGED or example.retracted_at is not None:
        raise Refused("This example has no open flag. Nothing was changed.")
    example.moderation_reason = checked_text("reason", "The reason", reason, REASON_MAX_CHARACTERS)
    example.moderation = Moderation.UPHELD if upheld else Moderation.DISMISSED
    last_flag = session.scalar(
        select(func.max(Vote.counted_at)).where(Vote.example_id == example.id, Vote.flag_reason.is_not(None))
    )
    # A flag that was counted by a clock ahead of ours is the one that was looked at, too.
    example.moderated_at = max(now, last_flag or now)
    return decide(session, example, now)


def override(session: Session, example: Example, *, label: str | None, reason: str, now: datetime) -> Outcome:
    """Let the requester's own judgement stand above the votes: a label, or None for an example that is out.

    Flushes, never commits; overriding again replaces it. Raises InvalidInput for an unknown label or an empty reason,
    Refused while a flag is open or was upheld, for a retracted example, and in a frozen round.
    """
    require_open(session, example.round_id)
    _refuse_settled(example)
    spec = task(example.round.task_code)
    if label is not None:
        spec.label(label)
    example.override_reason = checked_text("reason", "The reason", reason, REASON_MAX_CHARACTERS)
    example.override_label = label
    example.overridden_at = now
    return decide(session, example, now)


def lift_override(session: Session, example: Example, now: datetime) -> Outcome:
    """Take an override back, so that the votes count again. Flushes. Raises Refused where there is none."""
    require_open(session, example.round_id)
    if example.overridden_at is None:
        raise Refused("Nobody has overridden the readers here. Nothing was changed.")
    example.override_label = example.override_reason = example.overridden_at = None
    if example.practice_state is PracticeState.FAILED:
        # What a reviewer had put out goes to the readers after all.
        example.practice_state = None
    voted = session.scalar(select(Vote.id).where(Vote.example_id == example.id).limit(1)) is not None
    if not (example.fooled or voted or selected(example.round, example.attempt.public_id)):
        example.verdict, example.final_label, example.decided_at = Verdict.NOT_VALIDATED, None, None
    return decide(session, example, now)


def put_out(session: Session, assignment: Assignment, now: datetime) -> int:
    """Take the examples of writing that was rejected as done in bad faith out, and ask no reader for them any more.

    It is an override that undoing the rejection lifts (``take_in``). Left as they are: what a person has decided about,
    what is flagged, and a frozen round. Returns how many. Flushes; again is a no-op.
    """
    found = locked_examples(session, _written_in(session, assignment, Example.overridden_at.is_(None)))
    done = 0
    for example in found:
        settled = example.verdict is Verdict.FLAGGED or example.moderation is Moderation.UPHELD
        if not settled and example.retracted_at is None and example.round.frozen_at is None:
            override(session, example, label=None, reason=WORK_REJECTED, now=now)
            done += 1
    return done


def take_in(session: Session, assignment: Assignment, now: datetime) -> int:
    """Take in again what ``put_out`` took out. Returns how many. Flushes; again is a no-op."""
    found = locked_examples(session, _written_in(session, assignment, Example.override_reason == WORK_REJECTED))
    done = 0
    for example in found:
        if example.round.frozen_at is None:
            lift_override(session, example, now)
            done += 1
    return done


def retract(session: Session, example: Example, *, reason: str, now: datetime) -> None:
    """Take an example out of the data for good: no further vote is asked for, and no figure counts it.

    Its verdict and votes stay for the record, and a bonus that was earned stays earned; votes on the way are paid and
    counted. Flushes; again is a no-op.
    """
    if example.retracted_at is not None:
        return
    require_open(session, example.round_id)
    example.retraction_reason = checked_text("reason", "The reason", reason, REASON_MAX_CHARACTERS)
    example.retracted_at = now
    recount(session, [example])


def selected(round_: Round, public_id: str) -> bool:
    """Tell whether an example that did not fool the model is among the share that is validated as well.

    It depends on the example's name and the round's seed only, so that asking again gives the same.
    """
    chance = hashlib.sha256(f"{round_.seed}:{public_id}".encode()).digest()
    return int.from_bytes(chance[:8], "big") * 100 < round_.non_fooling_percent << 64


def _written_in(session: Session, assignment: Assignment, *which: ColumnElement[bool]) -> Sequence[int]:
    # Also in an assignment of the same HIT that was returned before.
    mine = (Attempt.hit_id == assignment.hit_id, Attempt.worker_id == assignment.worker_id)
    return session.scalars(select(Example.id).join(Example.attempt).where(*mine, *which)).all()


def _outcome_of(example: Example, votes: Sequence[Vote]) -> Outcome:
    flags = [vote.counted_at for vote in votes if vote.flag_reason is not None and vote.counted_at is not None]
    if example.moderation is Moderation.DISMISSED:
        until = example.moderated_at
        flags = [counted_at for counted_at in flags if until is not None and counted_at > until]
    return outcome(
        example.goal_label,
        example.model_label,
        [vote.label for vote in votes if vote.label is not None],
        len(flags),
        policy=policy_of(example.round),
        moderation=example.moderation,
        override=Override(example.override_label) if example.overridden_at is not None else None,
        rejecting_labels=task(example.round.task_code).rejecting_labels,
    )


def _refuse_settled(example: Example) -> None:
    if example.retracted_at is not None:
        raise Refused("This example was retracted. Nothing was changed.")
    if example.verdict is Verdict.FLAGGED:
        raise Refused("A flag of this example waits for you. Decide about the flag first; nothing was changed.")
    if example.moderation is Moderation.UPHELD:
        raise Refused("A flag of this example was upheld, so that it is out. Nothing was changed.")
