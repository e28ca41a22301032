"""The arms of a round: what its writers see of a model. Each person is drawn for one, once, by permuted blocks.

The shares are reduced to the smallest whole numbers, which make a block: shares of 2, 1 and 1 a block of four places.
The order inside of each block is drawn from seed, version and block alone, and people take the places as they come,
so that after any number of people no arm is further from its share than one block allows (J. M. Lachin et al. 1988,
"Randomization in clinical trials"). Nobody who works sees the order, or which place is theirs.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload

from hits.errors import InvalidInput, Refused
from hits.frozen import require_open
from hits.models import ArmAssignment, ArmPlan, Attempt, Hit, HitBatch, Round
from hits.models.arms import ARM_NAME_CHARACTERS

MOST_ARMS: Final = 12
MOST_SHARE: Final = 1000
WITHOUT_MODEL: Final = "no-model"
WITHOUT_EXPLANATIONS: Final = "no-explanations"
_MODEL: Final = "model="
_NAME: Final = re.compile(rf"[a-z][a-z0-9_-]{{0,{ARM_NAME_CHARACTERS - 1}}}")
_WRITTEN: Final = re.compile(r"(?P<name>[^=\s]+)=(?P<share>\d{1,9})(?:\s+(?P<options>.*))?", re.DOTALL)
_FORM: Final = f"NAME=SHARE, then {WITHOUT_MODEL}, {WITHOUT_EXPLANATIONS} or {_MODEL}REFERENCE if wanted"


@dataclass(frozen=True)
class Arm:
    """Conditions of work, and how many people of all they are for. Raises InvalidInput.

    Without ``model_in_loop`` a text is handed in unseen: a model reads it, and nothing of that is shown. ``model``
    names the one member of the task's ensemble that answers, as DYNAHIT_MODELS names it; None: all that answers there.
    """

    name: str
    share: int
    model_in_loop: bool = True
    explanations: bool = True
    model: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(
                f"{self.name!r} can't name an arm. Take up to {ARM_NAME_CHARACTERS} small letters, digits, - and _,"
                " a letter first."
            )
        if not 1 <= self.share <= MOST_SHARE:
            raise InvalidInput(
                f"The share of the arm {self.name} must be 1 to {MOST_SHARE}, not {self.share}."
                " Leave the arm out to draw nobody for it any more."
            )
        if not self.model_in_loop and self.explanations:
            object.__setattr__(self, "explanations", False)

    @property
    def conditions(self) -> tuple[bool, bool, str | None]:
        """What the people of this arm meet."""
        return (self.model_in_loop, self.explanations, self.model)

    @property
    def words(self) -> str:
        """The conditions in words."""
        answers = "all that is configured" if self.model is None else self.model
        if not self.model_in_loop:
            return f"no model in the loop; {answers} reads the texts unseen"
        return f"{answers} answers, {'with' if self.explanations else 'without'} explanations"

    def as_json(self) -> dict[str, Any]:
        """Return the arm as plans store it."""
        return {
            "name": self.name,
            "share": self.share,
            "model_in_loop": self.model_in_loop,
            "explanations": self.explanations,
            "model": self.model,
        }

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Arm:
        """Return an arm as a plan stores it."""
        return cls(**{name: stored[name] for name in ("name", "share", "model_in_loop", "explanations", "model")})


def read_arm(written: str) -> Arm:
    """Return an arm written as ``control=1 no-model``; a model comes last. Raises InvalidInput."""
    match = _WRITTEN.fullmatch(written.strip())
    if match is None:
        raise InvalidInput(f"{written!r} is no arm. Write {_FORM}: 'plain=1 {WITHOUT_EXPLANATIONS}'.")
    rest, model = (match["options"] or "").strip(), None
    if (start := rest.find(_MODEL)) >= 0:
        rest, model = rest[:start], rest[start + len(_MODEL) :].strip()
        if not model:
            raise InvalidInput(f"{written!r} names no model behind {_MODEL}.")
    options = rest.split()
    if unknown := [one for one in options if one not in (WITHOUT_MODEL, WITHOUT_EXPLANATIONS)]:
        raise InvalidInput(f"{written!r} asks for {unknown[0]!r}, which is not known. Write {_FORM}.")
    return Arm(
        match["name"],
        int(match["share"]),
        model_in_loop=WITHOUT_MODEL not in options,
        explanations=WITHOUT_EXPLANATIONS not in options,
        model=model,
    )


def check_arms(arms: Sequence[Arm]) -> None:
    """Raise InvalidInput for arms that can't be told apart, or that are too many."""
    if not 1 <= len(arms) <= MOST_ARMS:
        raise InvalidInput(f"There are {len(arms)} arms; a round has 1 to {MOST_ARMS}.")
    seen: dict[tuple[bool, bool, str | None], str] = {}
    names = set()
    for arm in arms:
        if arm.name in names:
            raise InvalidInput(f"The arm {arm.name} is there twice. Name each once.")
        names.add(arm.name)
        if (other := seen.setdefault(arm.conditions, arm.name)) != arm.name:
            raise InvalidInput(f"The arms {other} and {arm.name} are the same. Change one, or leave it out.")


def block(arms: Sequence[Arm], seed: int, version: int, number: int) -> tuple[str, ...]:
    """Return the names of the arms in the order in which the places of a block, counted from 0, are filled."""
    divisor = math.gcd(*(arm.share for arm in arms))
    places = [(arm.name, copy) for arm in arms for copy in range(arm.share // divisor)]

    def drawn(place: tuple[str, int]) -> bytes:
        return hashlib.sha256(f"arms:{seed}:{version}:{number}:{place[0]}:{place[1]}".encode()).digest()

    return tuple(name for name, _ in sorted(places, key=drawn))


def arm_at(arms: Sequence[Arm], seed: int, version: int, place: int) -> str:
    """Return the arm of the person who takes this place, counted from 0."""
    length = sum(arm.share for arm in arms) // math.gcd(*(arm.share for arm in arms))
    return block(arms, seed, version, place // length)[place % length]


def plan_of(session: Session, round_: Round) -> ArmPlan | None:
    """Return what new people of a round are drawn for; None when it has no arms. Reads only."""
    if round_.arms_version is None:
        return None
    return session.scalars(
        select(ArmPlan).where(ArmPlan.round_id == round_.id, ArmPlan.version == round_.arms_version)
    ).one()


def groups_of(session: Session, round_: Round) -> list[tuple[bool, bool]]:
    """Return what new people may meet, as (model in the loop, explanations); none where all meet the same. Reads only.

    A preview shows it: nobody is drawn yet. One kind without a model is told as well, since it is not the usual HIT.
    """
    plan = plan_of(session, round_)
    found = [] if plan is None else [Arm.of(stored).conditions[:2] for stored in plan.arms]
    kinds = sorted(set(found), reverse=True)
    return [] if kinds == [(True, True)] else kinds


def plans(session: Session, round_id: int) -> list[ArmPlan]:
    """Return every plan that a round had, the first one first. Reads only."""
    return list(session.scalars(select(ArmPlan).where(ArmPlan.round_id == round_id).order_by(ArmPlan.version)))


def arms_of(several: Sequence[ArmPlan]) -> dict[str, Arm]:
    """Return every arm that somebody may be in, by name, with the share that it has now; 0 can't stand there.

    An arm that was left out later keeps its last share.
    """
    return {stored["name"]: Arm.of(stored) for plan in several for stored in plan.arms}


def set_arms(session: Session, round_: Round, arms: Sequence[Arm], *, seed: int, by: str, now: datetime) -> bool:
    """Let new people of a round be drawn for these arms; tell whether that is a change. Flushes, never commits.

    The caller holds the round's row lock. Who was drawn before stays. Raises InvalidInput, and Refused for a frozen
    round, or an arm whose name stood for other conditions before.
    """
    check_arms(arms)
    require_open(session, round_.id)
    known = plans(session, round_.id)
    last = known[-1] if known else None
    if last is not None and ([arm.as_json() for arm in arms], seed) == (last.arms, last.seed):
        return False
    for plan in known:
        for stored in plan.arms:
            was = Arm.of(stored)
            now_called = next((arm for arm in arms if arm.name == was.name), None)
            if now_called is not None and now_called.conditions != was.conditions:
                raise Refused(
                    f"The arm {was.name} of this round was: {was.words}. It can't become: {now_called.words}."
                    " Nothing was changed; give the new conditions a name of their own."
                )
    version = last.version + 1 if last is not None else 1
    session.add(
        ArmPlan(
            round_id=round_.id,
            version=version,
            arms=[arm.as_json() for arm in arms],
            seed=seed,
            created_at=now,
            created_by=by,
        )
    )
    round_.arms_version = version
    session.flush()
    return True


def arm_of(session: Session, round_: Round, worker_id: int) -> Arm | None:
    """Return the arm that a person was drawn for; None in a round without arms, or before. Reads only."""
    if round_.arms_version is None:
        return None
    known = session.scalar(
        select(ArmAssignment)
        .options(joinedload(ArmAssignment.plan))
        .where(ArmAssignment.round_id == round_.id, ArmAssignment.worker_id == worker_id)
    )
    return None if known is None else _named(known.plan, known.arm)


def draw_arm(session: Session, round_: Round, worker_id: int, now: datetime) -> Arm | None:
    """Return a person's arm in a round, drawn if it is not yet. Flushes, never commits.

    None in a round without arms, and for somebody who wrote in it before it had any: they go on as they began.
    Two first pages at once get one arm: the plan's row is locked, and the table holds one row for each person.
    """
    found = arm_of(session, round_, worker_id)
    if found is not None or round_.arms_version is None or _has_written(session, round_.id, worker_id):
        return found
    plan = session.scalars(
        select(ArmPlan)
        .where(ArmPlan.round_id == round_.id)
        .order_by(ArmPlan.version.desc())
        .limit(1)
        .with_for_update(key_share=True)
    ).one()
    found = arm_of(session, round_, worker_id)
    if found is not None:
        return found
    last = session.scalar(select(func.max(ArmAssignment.place)).where(ArmAssignment.plan_id == plan.id))
    place = 0 if last is None else last + 1
    arms = [Arm.of(stored) for stored in plan.arms]
    name = arm_at(arms, plan.seed, plan.version, place)
    try:
        with session.begin_nested():
            session.add(
                ArmAssignment(
                    round_id=round_.id, worker_id=worker_id, plan_id=plan.id, place=place, arm=name, drawn_at=now
                )
            )
    except IntegrityError:
        # Another page of the same person was faster; its row is the one.
        found = arm_of(session, round_, worker_id)
        if found is None:
            raise
        return found
    return _named(plan, name)


def _named(plan: ArmPlan, name: str) -> Arm:
    return next(Arm.of(stored) for stored in plan.arms if stored["name"] == name)


def _has_written(session: Session, round_id: int, worker_id: int) -> bool:
    written = select(Attempt.id).join(Attempt.hit).join(Hit.batch)
    return (
        session.scalar(written.where(Attempt.worker_id == worker_id, HitBatch.round_id == round_id).limit(1))
        is not None
    )
