"""A round's arms: set for people who come from now on, and what they did, with what can be said about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.answer_unseen import waiting_unseen
from hits.arm_effects import Difference, Figures, Writer, difference, more_writers, writers_by_arm
from hits.arms import Arm, arms_of, plans, set_arms
from hits.attempts import give_up
from hits.clock import Clock
from hits.errors import InvalidInput
from hits.export import find_round
from hits.models import ArmAssignment, Attempt, Round
from hits.money import rounded
from hits.rates import Rate
from hits.rounds import begun
from hits.tasks import task
from inference.references import EnsembleReference, parse_reference
from payments.arm_costs import ArmCost, arm_costs

#: Half the width of an interval, as a share, from which a difference that it does not show is called small.
MARGIN: Final = 0.05
#: Left out at a time, far below what one statement can name.
_AT_ONCE: Final = 10_000


@dataclass(frozen=True)
class ArmFigures:
    """One arm: its conditions, how many people were drawn for it, and what they did. ``arm`` None: drawn for none."""

    arm: Arm | None
    drawn: int
    figures: Figures
    cost: ArmCost
    #: Whether new people are drawn for it.
    current: bool

    @property
    def name(self) -> str:
        """The arm's name; empty for those who are in none."""
        return self.arm.name if self.arm is not None else ""

    @property
    def cost_per_verified(self) -> Decimal | None:
        """What one verified fooling text cost so far, None while there is none."""
        return rounded(self.cost.total / self.figures.verified) if self.figures.verified else None

    def as_json(self) -> dict[str, Any]:
        """Return the figures as they are printed."""
        figures = self.figures
        conditions = self.arm.as_json() if self.arm is not None else {"name": None}
        return {
            **conditions,
            "current": self.current,
            "workers_drawn": self.drawn,
            "workers": figures.writers,
            "hits": figures.hits,
            "examples": figures.examples,
            "tries_per_hit": figures.tries,
            "seconds_per_example": figures.seconds_each,
            "fooled": figures.fooled,
            "verified": figures.verified,
            "waiting_for_readers": figures.waiting,
            "mer": _rate(figures.mer),
            "vmer": _rate(figures.vmer),
            "cost": {"writing": str(self.cost.writing), "reading": str(self.cost.reading)},
            "cost_per_verified": str(self.cost_per_verified) if self.cost_per_verified is not None else None,
        }


@dataclass(frozen=True)
class Comparison:
    """Two arms that differ in one thing; the differences are ``one`` less ``other``, shares and seconds."""

    question: str
    one: str
    other: str
    vmer: Difference
    mer: Difference
    seconds: Difference
    #: yes, no (the other way round), alike, or open.
    answer: str
    sentence: str

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as it is printed."""
        return {
            "question": self.question,
            "one": self.one,
            "other": self.other,
            "answer": self.answer,
            "sentence": self.sentence,
            "differences": {
                name: {"estimate": found.estimate, "interval": None if found.low is None else [found.low, found.high]}
                for name, found in (("vmer", self.vmer), ("mer", self.mer), ("seconds", self.seconds))
            },
        }


@dataclass(frozen=True)
class RoundArms:
    """The arms of one round, and what can be said about them. ``history`` is (version, when, by whom, the arms)."""

    task_code: str
    number: int
    seed: int | None
    arms: tuple[ArmFigures, ...]
    comparisons: tuple[Comparison, ...]
    history: tuple[tuple[int, str, str, tuple[Arm, ...]], ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as ``dynahit round arms --json`` prints it."""
        return {
            "task": self.task_code,
            "round": self.number,
            "seed": self.seed,
            "arms": [one.as_json() for one in self.arms],
            "comparisons": [one.as_json() for one in self.comparisons],
            "plans": [
                {"version": version, "at": at, "by": by, "arms": [arm.as_json() for arm in arms]}
                for version, at, by, arms in self.history
            ],
        }


def checked_arms(references: Mapping[str, str], task_code: str, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms with their models named as the engine names them. Raises InvalidInput for one that can't answer.

    ``references`` names the configured model of each task.
    """
    spec = task(task_code)
    if spec.code not in references:
        raise InvalidInput(f"No model is configured for the task {spec.code}. Set DYNAHIT_MODELS first.")
    configured = parse_reference(references[spec.code])
    members = configured.members if isinstance(configured, EnsembleReference) else ()
    known = [str(configured), *map(str, members)]
    found = []
    for arm in arms:
        model = None if arm.model is None else str(parse_reference(arm.model))
        if model is not None and model not in known:
            raise InvalidInput(
                f"The arm {arm.name} asks for {model}, but for {spec.code} DYNAHIT_MODELS names {known[0]}."
                " Name one of its members, or set an ensemble there that holds the model."
            )
        found.append(replace(arm, model=model))
    return found


def set_round_arms(
    session: Session,
    clock: Clock,
    references: Mapping[str, str],
    task_code: str,
    number: int,
    arms: Sequence[Arm],
    *,
    seed: int | None = None,
    by: str,
) -> bool:
    """Let new people of a round be drawn for these arms, and tell whether that is a change. Commits.

    A round that is new is made. Without a seed the one of the plan before holds, else the round's own. Raises
    InvalidInput, and Refused as hits.arms.set_arms.
    """
    spec = task(task_code)
    checked = checked_arms(references, spec.code, arms)
    now = clock.now()
    round_ = _locked_round(session, spec.code, number)
    if round_ is None:
        try:
            with session.begin_nested():
                made = Round(task_code=spec.code, number=number, task_version=spec.version, created_at=now)
                session.add(made)
                begun(session, made, by=by, now=now)
        except IntegrityError:
            pass  # a launch has made it since we looked
        round_ = _locked_round(session, spec.code, number)
        if round_ is None:
            raise InvalidInput(f"Round {number} of {spec.code} can't be made. Run the command again.")
    before = plans(session, round_.id)
    if seed is None:
        seed = before[-1].seed if before else round_.seed
    changed = set_arms(session, round_, checked, seed=seed, by=by, now=now)
    if changed:
        session.add(
            AuditEntry(
                at=now,
                staff_name=by,
                action="round.arms",
                subject=f"round {number} of {spec.code}",
                detail={
                    "before": before[-1].arms if before else None,
                    "after": [arm.as_json() for arm in checked],
                    "seed": seed,
                },
            )
        )
    session.commit()
    return changed


def leave_out_unanswered(session: Session, clock: Clock, task_code: str, number: int, *, by: str) -> int:
    """Ask no more about texts that were written unseen and that no model has answered; return how many. Commits.

    They never become examples, so that their round can be frozen; their writers were paid and can be compensated for a
    bonus that they might have earned. Raises NotFound.
    """
    round_ = find_round(session, task_code, number)
    wanted = waiting_unseen(session, clock.now(), round_id=round_.id)
    for attempt in session.scalars(select(Attempt).where(Attempt.id.in_(wanted[:_AT_ONCE]))):
        give_up(session, attempt, clock.now())
    if wanted:
        session.add(
            AuditEntry(
                at=clock.now(),
                staff_name=by,
                action="round.left_out",
                subject=f"round {round_.number} of {round_.task_code}",
                detail={"texts_without_an_answer": len(wanted[:_AT_ONCE])},
            )
        )
    session.commit()
    return len(wanted[:_AT_ONCE])


def round_arms(session: Session, task_code: str, number: int, *, margin: float = MARGIN) -> RoundArms:
    """Return the arms of a round with their figures. Reads only. Raises NotFound, InvalidInput for the margin."""
    if not 0.001 <= margin <= 0.5:
        raise InvalidInput(f"The margin must be 0.1 to 50 points, not {100 * margin:g}.")
    round_ = find_round(session, task_code, number)
    history = plans(session, round_.id)
    known = arms_of(history)
    current = {stored["name"] for stored in history[-1].arms} if history else set()
    drawn = {
        row[0]: row[1]
        for row in session.execute(
            select(ArmAssignment.arm, func.count())
            .where(ArmAssignment.round_id == round_.id)
            .group_by(ArmAssignment.arm)
        )
    }
    writers = writers_by_arm(session, round_) if history else {}
    costs = arm_costs(session, round_) if history else {}
    arms = [
        ArmFigures(
            arm, drawn.get(name, 0), Figures.of(writers.get(name, [])), costs.get(name, ArmCost()), name in current
        )
        for name, arm in known.items()
    ]
    if writers.get(""):
        arms.append(ArmFigures(None, 0, Figures.of(writers[""]), costs.get("", ArmCost()), False))
    found = RoundArms(
        task_code=round_.task_code,
        number=round_.number,
        seed=history[-1].seed if history else None,
        arms=tuple(arms),
        comparisons=tuple(_comparisons(list(known.values()), writers, margin)),
        history=tuple(
            (plan.version, plan.created_at.isoformat(), plan.created_by, tuple(Arm.of(one) for one in plan.arms))
            for plan in history
        ),
    )
    session.rollback()
    return found


def _comparisons(arms: Sequence[Arm], writers: Mapping[str, list[Writer]], margin: float) -> list[Comparison]:
    found = []
    for pair in combinations(arms, 2):
        asked = _question(*pair)
        if asked is not None:
            question, one, other = asked
            found.append(compare(question, one.name, other.name, writers, margin))
    return found


def _question(first: Arm, second: Arm) -> tuple[str, Arm, Arm] | None:
    """Return what two arms answer, the arm that has more first; None for arms that differ in several things."""
    if first.model == second.model and first.model_in_loop and second.model_in_loop:
        one, other = (first, second) if first.explanations else (second, first)
        return "Do explanations help?", one, other
    if first.model == second.model and first.model_in_loop != second.model_in_loop:
        one, other = (first, second) if first.model_in_loop else (second, first)
        # With explanations the arms differ in two things.
        return None if one.explanations else ("Does a model in the loop help?", one, other)
    if (first.model_in_loop, first.explanations) == (second.model_in_loop, second.explanations):
        return f"Is {first.model or 'the whole'} fooled more often than {second.model or 'the whole'}?", first, second
    return None


def compare(
    question: str, one: str, other: str, writers: Mapping[str, Sequence[Writer]], margin: float = MARGIN
) -> Comparison:
    """Return how two arms differ, and the answer in a sentence: by verified fooling texts, of all texts."""
    mine, theirs = writers.get(one, []), writers.get(other, [])

    def of(part: str) -> Difference:
        return difference(
            [(getattr(writer, part), writer.examples) for writer in mine],
            [(getattr(writer, part), writer.examples) for writer in theirs],
        )

    vmer = of("verified")
    waiting = sum(writer.waiting for writer in (*mine, *theirs))
    answer, words = _answer(vmer, margin)
    if answer != "open" and not _holds(answer, mine, theirs, margin):
        answer, words = "open", f"Too early to say: {_in_points(vmer)}, and what is not read yet can turn it"
    rates = " and ".join(
        f"{Figures.of(some).vmer.percent} of {Figures.of(some).examples} texts by {len(some)} writers ({name})"
        for name, some in ((one, mine), (other, theirs))
    )
    sentence = f"{question} {words}. Verified fooling texts: {rates}."
    if waiting:
        sentence += f" {waiting} {'text still waits' if waiting == 1 else 'texts still wait'} for readers."
    return Comparison(question, one, other, vmer, of("fooled"), of("seconds"), answer, sentence)


def _holds(answer: str, mine: Sequence[Writer], theirs: Sequence[Writer], margin: float) -> bool:
    """Tell whether the answer stays, whatever readers will say of the texts that wait for them."""
    if not any(writer.waiting for writer in (*mine, *theirs)):
        return True

    def shares(writers: Sequence[Writer], *, sound: bool) -> list[tuple[float, float]]:
        return [(one.verified + (one.waiting if sound else 0), one.examples) for one in writers]

    return all(
        _answer(difference(shares(mine, sound=sound), shares(theirs, sound=not sound)), margin)[0] == answer
        for sound in (True, False)
    )


def _in_points(found: Difference) -> str:
    if found.estimate is None or found.low is None or found.high is None:
        return "no interval"
    return f"{100 * found.estimate:+.1f} points (95% interval {100 * found.low:+.1f} to {100 * found.high:+.1f})"


def _answer(found: Difference, margin: float) -> tuple[str, str]:
    if found.estimate is None or found.low is None or found.high is None:
        more = more_writers(found, margin)
        return "open", f"Not enough data: at least {more} more {'writer' if more == 1 else 'writers'}"
    points = _in_points(found)
    if found.low > 0:
        return "yes", f"Yes: {points}"
    if found.high < 0:
        return "no", f"No, the other way round: {points}"
    if -margin < found.low and found.high < margin:
        return "alike", f"Hardly: {points}, less than {100 * margin:g} points either way"
    more = max(more_writers(found, margin), 1)
    return "open", f"Not enough data: {points}; {more} more {'writer' if more == 1 else 'writers'}"


def _rate(rate: Rate) -> dict[str, Any]:
    bounds = rate.bounds
    return {
        "of": rate.of,
        "count": rate.hits,
        "share": rate.hits / rate.of if rate.of else None,
        "interval": list(bounds) if bounds is not None else None,
    }


def _locked_round(session: Session, task_code: str, number: int) -> Round | None:
    return session.scalar(
        select(Round)
        .where(Round.task_code == task_code, Round.number == number)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
