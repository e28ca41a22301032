"""What came of a launch's pilot, and the release of the HITs behind it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.create_hits import OnCreated, create_hits
from app.operations.stop_rules import spent_of, why_it_would_stop
from app.settings import Settings
from hits.clock import Clock
from hits.error_rates import ErrorRates, error_rates_where
from hits.errors import NotFound, Refused
from hits.export import find_round
from hits.models import Assignment, Attempt, Example, Hit, HitBatch, Round, Vote
from hits.money import ZERO, display, rounded
from hits.mturk.client import MTurk
from hits.rates import Rate
from hits.rounds import NotReady, move
from hits.states import COLLECTED, HitKind, HitState, RoundState, Verdict
from payments.fees import bonus_fee, for_masters, reward_fee, worst_case
from payments.models import Reservation
from payments.rules import Extras
from qualification.wages import Wage, batch_wage

#: Readers, or a person about a flag, have not said the last word.
UNDECIDED: Final = (Verdict.PENDING, Verdict.FLAGGED)


class PilotMoney(Refused):
    """The account's balance does not cover the worst case of the HITs behind the pilot."""


@dataclass(frozen=True)
class Forecast:
    """What the whole launch will come to if it goes on as its pilot did; each low, likely and high."""

    cost: tuple[Decimal, Decimal, Decimal]
    verified: tuple[int, int, int]
    cost_per_verified: Decimal | None


@dataclass(frozen=True)
class PilotReport:
    """What came of a pilot. Seconds are from accepting to submitting; costs hold fees."""

    task_code: str
    number: int
    batch_id: int
    hits: int
    held: int
    released: bool
    places: int
    submitted: int
    waiting: int
    seconds: int | None
    wage: Wage
    rates: ErrorRates
    cost: Decimal
    forecast: Forecast | None
    #: The most that the HITs behind it can cost.
    worst: Decimal
    missing: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the report as it is printed by ``dynahit round pilot --json``; amounts are strings of dollars."""

        def share(rate: Rate) -> dict[str, Any]:
            return {"count": rate.hits, "of": rate.of, "interval": list(rate.bounds) if rate.bounds else None}

        forecast = None
        if self.forecast is not None:
            each = self.forecast.cost_per_verified
            forecast = {
                **asdict(self.forecast),
                "cost": [str(amount) for amount in self.forecast.cost],
                "cost_per_verified": None if each is None else str(each),
            }
        return {
            "task": self.task_code,
            "round": self.number,
            "batch": self.batch_id,
            "hits": self.hits,
            "held": self.held,
            "released": self.released,
            "places": self.places,
            "submitted": self.submitted,
            "waiting_for_votes": self.waiting,
            "median_seconds": self.seconds,
            "hourly_wage": {
                "stated": str(self.wage.stated),
                "median": None if self.wage.median is None else str(self.wage.median),
                "mean": None if self.wage.mean is None else str(self.wage.mean),
            },
            "mer": share(self.rates.mer),
            "vmer": share(self.rates.vmer),
            "cost": str(self.cost),
            "forecast": forecast,
            "worst_case_of_the_rest": str(self.worst),
            "missing": list(self.missing),
        }


@dataclass(frozen=True)
class Released:
    """What a release did."""

    batch_id: int
    created: int


def pilot_report(session: Session, settings: Settings, clock: Clock, task_code: str, number: int) -> PilotReport:
    """Return what came of the round's pilot. Reads only, and ends the transaction. Raises NotFound without one."""
    now = clock.now()
    round_ = find_round(session, task_code, number)
    batch = _pilot(session, round_)
    first = batch.pilot or 0
    of_pilot = (Hit.batch_id == batch.id) & (Hit.position <= first)
    work = select(func.count()).select_from(Assignment).join(Assignment.hit)
    submitted = session.scalar(work.where(of_pilot, Assignment.state.in_(COLLECTED))) or 0
    of_examples = Example.attempt_id.in_(select(Attempt.id).join(Hit, Hit.id == Attempt.hit_id).where(of_pilot))
    rates = error_rates_where(session, of_examples)
    wage = batch_wage(session, batch, first=first)
    places = session.scalar(select(func.sum(Hit.max_assignments)).where(of_pilot)) or 0
    hits, every, assignments = session.execute(
        select(func.count(), func.sum(Hit.max_assignments), func.max(Hit.max_assignments)).where(
            Hit.batch_id == batch.id
        )
    ).one()
    votes = session.scalar(
        select(func.count())
        .select_from(Vote)
        .join(Example, Example.id == Vote.example_id)
        .where(of_examples, Vote.counted_at.is_not(None), Example.verdict.not_in(UNDECIDED))
    )
    waiting = sum(rates.verdicts.get(verdict, 0) for verdict in UNDECIDED)
    validated = sum(count for verdict, count in rates.verdicts.items() if verdict is not Verdict.NOT_VALIDATED)
    seen = Seen(submitted, validated, validated - waiting, rates.verified, votes or 0)
    on = batch.created_at.date()
    masters = for_masters(batch.requirements)
    report = PilotReport(
        task_code=round_.task_code,
        number=round_.number,
        batch_id=batch.id,
        hits=first,
        held=0 if batch.released_at is not None else hits - first,
        released=batch.released_at is not None,
        places=places,
        submitted=submitted,
        waiting=waiting,
        seconds=wage.median_seconds,
        wage=wage,
        rates=rates,
        cost=spent_of(session, round_.id),
        forecast=forecast(
            seen,
            int(every),
            base=batch.reward + reward_fee(batch.reward, int(assignments), on=on, masters=masters),
            vote=settings.validation_reward + reward_fee(settings.validation_reward, round_.max_votes, on=on),
            bonus=batch.bonus + bonus_fee(batch.bonus, on=on),
            votes=(round_.agreeing_votes, round_.max_votes),
        ),
        worst=_worst(session, batch),
        missing=tuple(missing_to_release(session, round_, now)),
    )
    session.rollback()
    return report


@dataclass(frozen=True)
class Seen:
    """What a pilot showed: submitted assignments, examples that readers got, decided and verified ones, their votes."""

    submitted: int
    validated: int
    decided: int
    verified: int
    votes: int


def forecast(
    seen: Seen, places: int, *, base: Decimal, vote: Decimal, bonus: Decimal, votes: tuple[int, int]
) -> Forecast | None:
    """Return what so many places will cost and bring if they go as the pilot's did; None until readers have decided.

    ``base``, ``vote`` and ``bonus`` are what one assignment, one vote and one bonus cost with their fees. Low and high
    take the ends of the 95 % Wilson intervals of both shares (an assignment has an example for readers; readers verify
    it) and the fewest and the most ``votes``. Bonuses besides the one for verified examples are left out.
    """
    if not seen.submitted or (seen.validated and not seen.decided):
        return None
    read, sound = Rate(min(seen.validated, seen.submitted), seen.submitted), Rate(seen.verified, seen.decided)
    usual_read = Decimal(seen.validated) / seen.submitted
    usual_sound = Decimal(seen.verified) / seen.decided if seen.decided else ZERO
    usual_votes = Decimal(seen.votes) / seen.decided if seen.decided else ZERO
    low_read, high_read = _ends(read)
    low_sound, high_sound = _ends(sound) if seen.decided else (ZERO, Decimal(1))
    cases = (
        (low_read, low_sound, Decimal(votes[0])),
        (usual_read, usual_sound, usual_votes),
        (max(high_read, usual_read), high_sound, Decimal(votes[1])),
    )
    costs = [rounded(places * (base + share * (each * vote + good * bonus))) for share, good, each in cases]
    found = [int((places * share * good).to_integral_value(ROUND_HALF_EVEN)) for share, good, _ in cases]
    return Forecast(
        cost=(costs[0], costs[1], costs[2]),
        verified=(found[0], found[1], found[2]),
        cost_per_verified=rounded(costs[1] / found[1]) if found[1] else None,
    )


def _ends(rate: Rate) -> tuple[Decimal, Decimal]:
    low, high = rate.bounds or (0.0, 1.0)
    return Decimal(str(low)), Decimal(str(high))


def missing_to_release(session: Session, round_: Round, now: datetime, *, early: bool = False) -> list[str]:
    """Return what stands in the way of releasing what is behind the pilot; ``early`` leaves out what is only a wait."""
    batch = _pilot(session, round_)
    first = batch.pilot or 0
    of_pilot = (Hit.batch_id == batch.id) & (Hit.position <= first)
    states = session.execute(select(Hit.state, func.count()).where(of_pilot).group_by(Hit.state)).all()
    hits = {state: count for state, count in states}  # noqa: C416 - dict() of rows has no types
    unmade = hits.get(HitState.PLANNED, 0) + hits.get(HitState.CREATING, 0)
    missing = []
    if unmade:
        missing.append(f"{unmade} of the pilot's {first} HITs do not exist yet; run the same launch again")
    missing += why_it_would_stop(session, round_, now)
    if early:
        return missing
    if still := hits.get(HitState.CREATED, 0):
        missing.append(
            f"{still} of the pilot's {first} HITs are not closed; wait until they are done and `dynahit jobs run` has"
            f" collected them, or take them off the site (`dynahit hits expire {batch.id}`), or release early (--early)"
        )
    waiting = session.scalar(
        select(func.count())
        .select_from(Example)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Hit, Hit.id == Attempt.hit_id)
        .where(of_pilot, Example.verdict.in_(UNDECIDED), Example.retracted_at.is_(None))
    )
    if waiting:
        missing.append(
            f"{waiting} of the pilot's examples are not decided; wait for readers, decide about flags on the round's"
            " page, or release early (--early)"
        )
    return missing


def release_pilot(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    task_code: str,
    number: int,
    *,
    by: str,
    early: bool = False,
    on_created: OnCreated | None = None,
) -> Released:
    """Let the HITs behind the round's pilot be created, and create them. Interrupted, it goes on when asked again.

    Raises NotFound, NotReady with all that is missing, PilotMoney, and as create_hits.
    """
    round_ = find_round(session, task_code, number)
    worst = _worst(session, _pilot(session, round_))
    session.rollback()
    balance = mturk.balance()
    round_ = session.get_one(Round, round_.id, populate_existing=True, with_for_update={"key_share": True})
    batch = _pilot(session, round_)
    batch_id = batch.id
    if batch.released_at is None:
        if round_.state is not RoundState.PILOTING:
            state = round_.state
            session.rollback()
            raise Refused(
                f"Round {number} of the {task_code} task is {state.value}, so that nothing waits behind its pilot."
                " Nothing was created."
            )
        if missing := missing_to_release(session, round_, clock.now(), early=early):
            session.rollback()
            raise NotReady(task_code, number, missing, becoming="released")
        if worst > balance:
            session.rollback()
            raise PilotMoney(
                f"The HITs behind the pilot can cost up to {display(worst)}, but the balance at {mturk.endpoint} is"
                f" {display(balance)}: {display(worst - balance)} are missing. Nothing was created. Top up the account."
            )
        now = clock.now()
        batch.released_at = now
        note = f"released after a pilot of {batch.pilot} HITs{', early' if early else ''}"
        move(session, round_, RoundState.COLLECTING, by=by, now=now, note=note)
        session.add(
            AuditEntry(
                at=now,
                staff_name=by[:80],
                action="round.release",
                subject=f"{task_code} round {number}",
                detail={"batch": batch_id, "pilot": batch.pilot, "early": early},
            )
        )
    session.commit()
    return Released(batch_id, create_hits(session, mturk, settings, clock, batch_id, on_created=on_created))


def _pilot(session: Session, round_: Round) -> HitBatch:
    """Return the batch that began the round with a pilot. Raises NotFound without one."""
    found = session.scalar(
        select(HitBatch)
        .where(HitBatch.round_id == round_.id, HitBatch.kind == HitKind.CREATION, HitBatch.pilot.is_not(None))
        .order_by(HitBatch.id.desc())
        .limit(1)
        .execution_options(populate_existing=True)
    )
    if found is None:
        raise NotFound(
            f"Round {round_.number} of the {round_.task_code} task has no pilot. A draft's launch begins with one when"
            " it is told so (`dynahit hits launch … --pilot N`)."
        )
    return found


def _worst(session: Session, batch: HitBatch) -> Decimal:
    """Return the most that the HITs behind the pilot can cost, validation and fees included."""
    waiting = session.execute(
        select(func.count(), func.max(Hit.max_assignments)).where(
            Hit.batch_id == batch.id, Hit.position > (batch.pilot or 0), Hit.state == HitState.PLANNED
        )
    ).one()
    hits, assignments = int(waiting[0]), int(waiting[1] or 1)
    worst = worst_case(
        hits,
        assignments,
        batch.reward,
        batch.bonus,
        on=batch.created_at.date(),
        masters=for_masters(batch.requirements),
        further=Extras.of(batch).most(hits * assignments),
    )
    each = session.scalar(select(Reservation.validation_each).where(Reservation.batch_id == batch.id)) or ZERO
    return worst.total + hits * assignments * each
