"""How a round's votes decide: set before the first vote, read at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.models import AuditEntry
from hits import validations
from hits.clock import Clock
from hits.errors import Finding, InvalidInput, Refused
from hits.export import find_round
from hits.frozen import require_open
from hits.models import Example, Round, Vote
from hits.rounds import begun
from hits.states import Verdict
from hits.tasks import task
from hits.validations import Policy


@dataclass(frozen=True)
class RoundPolicy:
    """What a round does with examples, votes and gold items; the defaults are those of a new round."""

    policy: Policy = field(default_factory=Policy)
    non_fooling_percent: int = 0
    gold_items: int = 0
    gold_warning_percent: int = 70
    pair_percent: int = 25

    def __post_init__(self) -> None:
        limits = {
            "non_fooling_percent": (0, 100, "The share of examples that did not fool the model"),
            "gold_items": (0, 50, "The number of gold items in a batch"),
            "gold_warning_percent": (0, 100, "The share of right gold items to warn below"),
            "pair_percent": (1, 100, "The share that two people who judge each other may judge"),
        }
        for name, (least, most, words) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise InvalidInput(f"{words} must be {least} to {most}, not {value}.")

    def as_json(self) -> dict[str, Any]:
        """Return every setting by name."""
        return {**asdict(self.policy), **{key: value for key, value in asdict(self).items() if key != "policy"}}


def policy_now(session: Session, task_code: str, number: int) -> tuple[RoundPolicy, bool]:
    """Return the policy of a round, and whether there is such a round yet. Reads only. Raises InvalidInput."""
    round_ = _round(session, task(task_code).code, number)
    found = RoundPolicy() if round_ is None else _stored(round_)
    session.rollback()
    return found, round_ is not None


def set_policy(
    session: Session, clock: Clock, task_code: str, number: int, wanted: RoundPolicy, *, by: str
) -> RoundPolicy:
    """Store the policy of a round, which is made if it is new, and return what it was. Commits.

    What the votes need can't change once a vote was counted, as verdicts that stand, and bonuses with them, would
    change in hindsight: Refused. The other settings hold for what comes from now on. Raises InvalidInput.
    """
    spec = task(task_code)
    if not 1 <= number <= 10_000:
        raise InvalidInput(f"A round's number must be 1 to 10000, not {number}.")
    now = clock.now()
    round_ = _round(session, spec.code, number, lock=True)
    if round_ is None:
        try:
            with session.begin_nested():
                round_ = Round(task_code=spec.code, number=number, task_version=spec.version, created_at=now)
                session.add(round_)
                begun(session, round_, by=by, now=now)
        except IntegrityError:
            # A launch has made it since we looked.
            round_ = _round(session, spec.code, number, lock=True)
            if round_ is None:
                raise
    require_open(session, round_.id)
    before = _stored(round_)
    if before.policy != wanted.policy and _has_votes(session, round_):
        session.rollback()
        raise Refused(
            f"Votes of round {number} of {spec.code} are counted already under “{before.policy}”, so that what they"
            " need can't change any more. Nothing was changed; give the next round another policy."
        )
    policy = wanted.policy
    round_.agreeing_votes, round_.max_votes = policy.agreeing_votes, policy.max_votes
    round_.split_votes, round_.senior_value = policy.split_votes, policy.senior_value
    round_.non_fooling_percent, round_.gold_items = wanted.non_fooling_percent, wanted.gold_items
    round_.gold_warning_percent, round_.pair_percent = wanted.gold_warning_percent, wanted.pair_percent
    session.flush()
    pending = session.scalars(
        select(Example.id).where(Example.round_id == round_.id, Example.verdict == Verdict.PENDING)
    ).all()
    validations.recount(session, validations.locked_examples(session, pending))
    session.add(
        AuditEntry(
            at=now,
            staff_name=by,
            action="round.policy",
            subject=f"round {number} of {spec.code}",
            detail={"before": before.as_json(), "after": wanted.as_json()},
        )
    )
    session.commit()
    return before


def changed(policy: RoundPolicy, **changes: Any) -> RoundPolicy:
    """Return the policy with what is not None in ``changes`` put in its place; 0 takes what may be missing away."""
    of_votes = ("agreeing_votes", "max_votes", "split_votes", "senior_value")
    given = {name: value for name, value in changes.items() if value is not None}
    votes = {name: given.pop(name) for name in of_votes if name in given}
    for name in ("split_votes", "senior_value"):
        if votes.get(name) == 0:
            votes[name] = None
    return replace(policy, policy=replace(policy.policy, **votes), **given)


def add_gold_file(session: Session, clock: Clock, task_code: str, number: int, path: Path) -> tuple[int, int]:
    """Store the gold items of a JSON lines file, all or none; return how many are new and how many were known. Commits.

    Raises NotFound, and InvalidInput with every broken line.
    """
    round_ = find_round(session, task_code, number)
    added = known = 0
    rows, findings = validations.gold_rows(path)
    for line, row in rows:
        try:
            item = validations.add_gold(session, round_, row, clock.now())
        except InvalidInput as error:
            findings.append(Finding(line, str(error)))
            continue
        added, known = added + (item is not None), known + (item is None)
    if findings:
        session.rollback()
        raise InvalidInput(_broken(path, sorted(findings, key=lambda one: one.line)))
    session.commit()
    return added, known


def add_gold_from_verified(session: Session, clock: Clock, task_code: str, number: int, count: int) -> int:
    """Make gold items from decided examples on which all readers agreed; return how many. Commits. Raises NotFound."""
    if count < 1:
        raise InvalidInput(f"The number of gold items to make must be 1 or more, not {count}.")
    made = validations.gold_from_verified(session, find_round(session, task_code, number), count, clock.now())
    session.commit()
    return len(made)


def _round(session: Session, task_code: str, number: int, *, lock: bool = False) -> Round | None:
    found = select(Round).where(Round.task_code == task_code, Round.number == number)
    if lock:
        found = found.with_for_update(key_share=True).execution_options(populate_existing=True)
    return session.scalar(found)


def _stored(round_: Round) -> RoundPolicy:
    return RoundPolicy(
        policy=validations.policy_of(round_),
        non_fooling_percent=round_.non_fooling_percent,
        gold_items=round_.gold_items,
        gold_warning_percent=round_.gold_warning_percent,
        pair_percent=round_.pair_percent,
    )


def _has_votes(session: Session, round_: Round) -> bool:
    counted = select(Vote.id).join(Example, Vote.example_id == Example.id)
    return (
        session.scalar(counted.where(Example.round_id == round_.id, Vote.counted_at.is_not(None)).limit(1)) is not None
    )


def _broken(path: Path, findings: Sequence[Finding]) -> str:
    shown = "\n".join(f"  {finding}" for finding in findings[:20])
    more = f"\n  and {len(findings) - 20} more" if len(findings) > 20 else ""
    return f"{path} can't be used, nothing was stored:\n{shown}{more}\nMend these lines and run it again."
