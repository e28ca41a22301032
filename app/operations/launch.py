"""Plan and launch a batch of creation HITs. Planning changes nothing; launching again goes on where it stopped."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from decimal import ROUND_UP, Decimal
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.operations.create_hits import OPEN_STATES, OnCreated, create_hits, held_from, new_reference, new_token
from app.operations.grant import asked_quiz
from app.operations.requirements import mirror_lists, requirements_for
from app.operations.stop_rules import fired
from app.operations.validation_hits import below_floor as validation_below_floor
from app.operations.validation_hits import reader_terms
from app.settings import Settings
from hits.clock import Clock
from hits.contexts import Candidate, Usage, choose, strategy, usage_of
from hits.contexts.selection import LEAST_USED, UNCERTAINTY
from hits.errors import InvalidInput, Refused
from hits.export import find_round
from hits.frozen import require_collecting
from hits.models import Context, Hit, HitBatch, RetiredContext, Round
from hits.money import CENT, ZERO, display, rounded, usd
from hits.mturk.client import MTurk, Requirement
from hits.mturk.errors import InsufficientFunds
from hits.rounds import begun, move
from hits.states import HitKind, HitState, RoundState
from hits.tasks import TaskSpec, digest_of, task
from payments import budgets
from payments.errors import OverBudget
from payments.fees import WorstCase, bonus_fee, for_masters, reward_fee, schedule_on, worst_case
from payments.rules import Extras
from qualification.quiz_requirements import accepted_versions
from qualification.quizzes import QuizFor, kind_of
from qualification.requirements import as_json, check_requirements, read_wanted
from qualification.wages import stated_wage

MAX_HITS = 100_000
#: Of reward and of bonus.
MOST_PAID = Decimal("10000.00")
#: What workers' own guidelines for academic requesters name as the least, $0.15 a minute.
REFUSED_BELOW = Decimal("9.00")


#: As much as a batch keeps.
WAGE_REASON_CHARACTERS = 500


class WageBelowFloor(Refused):
    """The launch pays less by the hour than this instance's floor, and no reason was given."""


class NotEnoughMoney(Refused):
    """The account's balance does not cover the worst case, or ran out half-way; the message has the numbers."""


@dataclass(frozen=True)
class LaunchTerms:
    """What is offered to whom. ``name`` tells two launches of the same terms apart.

    Raises InvalidInput or MoneyError for terms that can't be offered.
    """

    task_code: str
    round_number: int
    hits: int
    reward: Decimal
    bonus: Decimal
    tries: int
    minutes: int = 6
    assignments: int = 1
    lifetime_hours: int = 168
    auto_approval_hours: int = 72
    assignment_minutes: int = 60
    name: str = ""
    seed: int = 0
    #: How many of a new writer's examples a reviewer grades before validators see any.
    practice: int = 0
    #: Of workers, as qualification.requirements.read_wanted reads them.
    requirements: tuple[str, ...] = ()
    #: Whether only those who passed the task's writers' quiz may write.
    quiz: bool = False
    #: Why it is launched though it pays less than the wage floor.
    wage_reason: str = ""
    #: What is paid besides, as payments.rules.Extras says.
    streak_length: int = 0
    streak_bonus: Decimal = ZERO
    sure_percent: int = 0
    sure_bonus: Decimal = ZERO
    #: How many HITs are created first; the others wait for a person's word. 0: all at once.
    pilot: int = 0
    #: How contexts are chosen (hits.contexts.STRATEGIES), the most HITs of the round that one may have (0: any number),
    #: and whether they are all that the round holds, so that the launch stays the same one when others are added.
    contexts_by: str = LEAST_USED
    per_context: int = 0
    of_round: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", usd(self.reward))
        object.__setattr__(self, "bonus", usd(self.bonus))
        object.__setattr__(self, "streak_bonus", self.extras.streak_bonus)
        object.__setattr__(self, "sure_bonus", self.extras.sure_bonus)
        if self.reward < CENT:
            raise InvalidInput("The reward is $0.00. A HIT pays at least $0.01; see the hourly wage in the plan.")
        amounts = ("reward", "bonus", "streak_bonus", "sure_bonus")
        for name, amount in ((name.replace("_", " "), getattr(self, name)) for name in amounts):
            if amount > MOST_PAID:
                raise InvalidInput(f"The {name} is {display(amount)}; at most {display(MOST_PAID)} is possible.")
        limits = {
            "round_number": (1, 10_000),
            "hits": (1, MAX_HITS),
            "tries": (1, 100),
            "minutes": (1, 24 * 60),
            "assignments": (1, 1_000),
            "lifetime_hours": (1, 365 * 24),
            "auto_approval_hours": (0, 30 * 24),
            "assignment_minutes": (1, 7 * 24 * 60),
            "seed": (0, 2**31 - 1),
            "practice": (0, 100),
            "per_context": (0, MAX_HITS),
        }
        for field, (least, most) in limits.items():
            value = getattr(self, field)
            if not least <= value <= most:
                raise InvalidInput(f"{field.replace('_', ' ')} is {value:,}; it must be from {least:,} to {most:,}.")
        if self.pilot and not 1 <= self.pilot < self.hits:
            raise InvalidInput(
                f"The pilot has {self.pilot:,} of {self.hits:,} HITs; it must have at least 1 and leave at least 1."
            )
        strategy(self.contexts_by)
        if self.minutes > self.assignment_minutes:
            raise InvalidInput(
                f"The HIT takes {self.minutes} minutes, but workers would have only {self.assignment_minutes}."
                " Raise the assignment minutes."
            )
        check_requirements([read_wanted(written).as_written for written in self.requirements])
        if len(self.wage_reason) > WAGE_REASON_CHARACTERS:
            raise InvalidInput(
                f"The reason has {len(self.wage_reason)} characters; at most {WAGE_REASON_CHARACTERS} are kept. Cut it."
            )

    @property
    def masters(self) -> bool:
        """Whether only Masters may take the HITs, which costs more."""
        return for_masters([as_json(read_wanted(written).as_written) for written in self.requirements])

    @property
    def extras(self) -> Extras:
        """What is paid besides the bonus. Raises InvalidInput, MoneyError."""
        return Extras(self.streak_length, self.streak_bonus, self.sure_percent, self.sure_bonus)


@dataclass(frozen=True)
class LaunchPlan:
    """What a launch would do and cost. Costs are those of the HITs that do not exist yet."""

    terms: LaunchTerms
    endpoint: str
    service_url: str
    title: str
    batch_id: int | None
    existing_hits: int
    missing_hits: int
    contexts: int
    contexts_used: int
    most_hits_per_context: int
    goals: Mapping[str, int]
    goals_by_context: tuple[tuple[str, Mapping[str, int]], ...]
    worst: WorstCase
    fee_percent: int
    base_percent: int
    many_assignments_from: int
    validation_votes: int
    validation: Decimal
    hourly_wage: Decimal
    below_floor: tuple[str, ...]
    balance: Decimal
    #: Why a budget has no room for it, None if all have.
    over_budget: str | None = None
    #: Of the missing ones, those that wait behind a pilot for `dynahit round release`.
    held_hits: int = 0
    #: By which scores contexts were chosen, in a sentence; empty where none were asked for.
    scored: str = ""

    @property
    def cost(self) -> Decimal:
        """The most that all this can cost, validation and fees included."""
        return self.worst.total + self.validation

    @property
    def left(self) -> Decimal:
        """What would remain of the balance; negative when it does not suffice."""
        return self.balance - self.cost

    @property
    def finished(self) -> bool:
        """This very launch has been made before and all its HITs exist."""
        return self.batch_id is not None and self.missing_hits == self.held_hits

    @property
    def hits_now(self) -> int:
        """How many HITs the launch creates now."""
        return self.missing_hits - self.held_hits

    @property
    def notes(self) -> list[str]:
        """What a requester should know before saying yes, in sentences."""
        found = []
        if self.finished and self.held_hits:
            found.append(
                f"This launch's pilot exists (batch {self.batch_id}); {self.held_hits} HITs wait until you have looked"
                f" at it: `dynahit round pilot {self.terms.task_code} {self.terms.round_number}` shows what came of it."
            )
        elif self.finished:
            found.append(
                f"This launch is finished: all its {self.existing_hits} HITs exist (batch {self.batch_id})."
                " Give it a new name (--batch NAME) for another batch of the same terms."
            )
        elif self.batch_id is not None:
            found.append(
                f"This launch was begun before: {self.existing_hits} HITs exist and stay,"
                f" {self.missing_hits} are still to be created. The costs are those of the missing ones."
            )
        if self.held_hits and not self.finished:
            found.append(
                f"{self.hits_now} HITs are created now, as a pilot; the other {self.held_hits} wait for"
                f" `dynahit round release {self.terms.task_code} {self.terms.round_number}`. Money is set aside for"
                " all of them."
            )
        if self.batch_id is None and self.terms.contexts_by != LEAST_USED:
            found.append(f"Contexts are chosen by {self.terms.contexts_by}: {strategy(self.terms.contexts_by).about}.")
        if self.scored:
            found.append(self.scored)
        if self.most_hits_per_context > 1 and self.terms.contexts_by == LEAST_USED:
            found.append(
                "There are fewer contexts than HITs: contexts are used again, the least used first,"
                f" up to {self.most_hits_per_context} times here."
            )
        elif self.most_hits_per_context > 1:
            found.append(f"Contexts are used again, up to {self.most_hits_per_context} times here.")
        if self.terms.assignments >= self.many_assignments_from and self.fee_percent > self.base_percent:
            found.append(
                f"{self.terms.assignments} assignments per HIT: from {self.many_assignments_from} on the fee on the"
                f" reward is {self.fee_percent} % instead of {self.base_percent} %. HITs with fewer avoid that."
            )
        found += self.below_floor
        if self.hourly_wage < REFUSED_BELOW:
            found.append(
                f"{display(self.hourly_wage)} an hour is little: experienced workers refuse HITs below"
                f" {display(REFUSED_BELOW)} an hour, and quick work shows in the data."
            )
        if self.left < ZERO:
            found.append(f"The balance does not cover the worst case; {display(-self.left)} are missing.")
        if self.over_budget is not None:
            found.append(self.over_budget)
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON types; amounts are strings of dollars."""
        terms = {key: str(value) if isinstance(value, Decimal) else value for key, value in asdict(self.terms).items()}
        return {
            "terms": terms,
            "endpoint": self.endpoint,
            "service_url": self.service_url,
            "title": self.title,
            "batch": self.batch_id,
            "hits_existing": self.existing_hits,
            "hits_to_create": self.hits_now,
            "hits_held": self.held_hits,
            "assignments": self.worst.assignments,
            "contexts": self.contexts,
            "contexts_used": self.contexts_used,
            "goals": dict(self.goals),
            "cost": {
                "rewards": str(self.worst.rewards),
                "reward_fees": str(self.worst.reward_fees),
                "bonuses": str(self.worst.bonuses),
                "bonus_fees": str(self.worst.bonus_fees),
                "validation": str(self.validation),
                "worst_case": str(self.cost),
            },
            "hourly_wage": str(self.hourly_wage),
            "below_floor": list(self.below_floor),
            "balance": str(self.balance),
            "balance_left": str(self.left),
            "notes": self.notes,
        }


@dataclass(frozen=True)
class LaunchResult:
    """What a launch did."""

    batch_id: int
    created: int
    existing: int


def plan_launch(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    terms: LaunchTerms,
    contexts: Sequence[Mapping[str, str]],
) -> LaunchPlan:
    """Return what launching would do and cost. Writes nothing, here or on the marketplace.

    Raises InvalidInput for terms, contexts or addresses that can't work, MTurkError without the marketplace.
    """
    spec = task(terms.task_code)
    check_addresses(settings.service_url, mturk.endpoint)
    round_ = _round(session, terms)
    if round_ is not None:
        require_collecting(session, round_.id)
    if round_ is not None and round_.task_version != spec.version:
        raise InvalidInput(
            f"Round {round_.number} was begun with version {round_.task_version} of the {spec.code} task, which is at"
            f" {spec.version} now. Open round {round_.number + 1} for it."
        )
    checked = [spec.check_context(context) for context in contexts]
    if not checked:
        raise InvalidInput("There are no contexts to write about. Give at least one.")
    if terms.quiz:
        accepted_versions(session, kind_of(QuizFor.WRITER, spec.code))
    batch = session.scalar(select(HitBatch).where(HitBatch.key == batch_key(terms, checked, mturk.endpoint)))
    scored = ""
    if batch is None:
        _require_state(session, round_, terms, clock.now())
        batch_id, existing, missing = None, 0, terms.hits
        held = terms.hits - terms.pilot if terms.pilot else 0
        chosen, scored = _choose(session, spec, round_, checked, terms, clock.now())
        pairs = [(_shown(checked[index]), label) for index, label in chosen]
    else:
        batch_id = batch.id
        rows = session.scalars(select(Hit).where(Hit.batch_id == batch.id).order_by(Hit.position)).all()
        existing = sum(row.mturk_hit_id is not None for row in rows)
        unmade = [row.position for row in rows if row.mturk_hit_id is None and row.state is not HitState.CLOSED]
        missing, most = len(unmade), held_from(batch)
        held = 0 if most is None else sum(position > most for position in unmade)
        if missing > held and round_ is not None and round_.state not in OPEN_STATES:
            _require_state(session, round_, terms, clock.now())
        pairs = [(_shown(row.context.fields if row.context else {}), row.goal_label or "") for row in rows]
    votes = round_.max_votes if round_ is not None else _default_votes()
    # One example of an assignment fools the model at most; the others are read only where the round says so.
    examples = terms.tries if round_ is not None and round_.non_fooling_percent else 1
    with_gold = round_ is not None and round_.gold_items > 0
    session.rollback()
    today = clock.now().date()
    per_context = Counter(shown for shown, _ in pairs)
    further = terms.extras.most(missing * terms.assignments)
    worst = worst_case(
        missing, terms.assignments, terms.reward, terms.bonus, on=today, masters=terms.masters, further=further
    )
    vote_cost = settings.validation_reward + reward_fee(settings.validation_reward, votes, on=today)
    for _, amount in reader_terms(settings, with_gold=with_gold).most(1):
        vote_cost += amount + bonus_fee(amount, on=today)
    schedule = schedule_on(today)
    share = schedule.base + (schedule.many_assignments if terms.assignments >= schedule.many_assignments_from else ZERO)
    share += schedule.masters if terms.masters else ZERO
    goals = Counter(label for _, label in pairs)
    plan = LaunchPlan(
        terms=terms,
        endpoint=mturk.endpoint,
        service_url=settings.service_url,
        title=spec.hit_title(spec.title),
        batch_id=batch_id,
        existing_hits=existing,
        missing_hits=missing,
        contexts=len(checked),
        contexts_used=len(per_context),
        most_hits_per_context=max(per_context.values()),
        goals={code: goals[code] for code in spec.goals},
        goals_by_context=tuple(_goals_by_context(pairs)),
        worst=worst,
        fee_percent=int(share * 100),
        base_percent=int(schedule.base * 100),
        many_assignments_from=schedule.many_assignments_from,
        validation_votes=votes,
        validation=worst.assignments * examples * votes * vote_cost,
        hourly_wage=stated_wage(terms.reward, terms.minutes),
        # What was accepted for the HITs that exist is accepted for the rest of the batch.
        below_floor=() if batch_id is not None else below_floor(settings, terms),
        balance=mturk.balance(),
        held_hits=held,
        scored=scored,
    )
    return replace(plan, over_budget=_over_budget(session, plan, clock.now()))


def _over_budget(session: Session, plan: LaunchPlan, now: datetime) -> str | None:
    """Return why no budget has room for a launch that has nothing set aside yet."""
    if plan.batch_id is not None:
        return None
    code = f"{plan.terms.task_code}/{plan.terms.round_number}"
    found = budgets.shortfall(session, plan.cost, code, now)
    session.rollback()
    return found


def launch_batch(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    terms: LaunchTerms,
    contexts: Sequence[Mapping[str, str]],
    *,
    on_created: OnCreated | None = None,
) -> LaunchResult:
    """Create the HITs that the terms ask for. The same launch again creates only what is missing.

    Rows are committed before the marketplace is asked, and each HIT's id the moment it exists. Raises NotEnoughMoney
    before anything is created when the balance does not cover the worst case, and when it runs out half-way, OverBudget
    when a budget has no room for the worst case, which is set aside first; else as plan_launch and create_hits.
    """
    plan = plan_launch(session, mturk, settings, clock, terms, contexts)
    if plan.finished and plan.batch_id is not None:
        return LaunchResult(plan.batch_id, 0, plan.existing_hits)
    if plan.below_floor and not terms.wage_reason.strip():
        raise WageBelowFloor(" ".join((*plan.below_floor, "Nothing was created. Pay more, or say why (--reason).")))
    if plan.left < ZERO:
        raise NotEnoughMoney(
            f"The launch can cost up to {display(plan.cost)}, but the balance at {plan.endpoint} is"
            f" {display(plan.balance)}: {display(-plan.left)} are missing. Nothing was created."
            " Top up the account, or launch fewer HITs."
        )
    requirements: tuple[Requirement, ...] = ()
    if plan.batch_id is None:
        if terms.quiz:
            requirements = (asked_quiz(session, mturk, settings, terms.task_code, QuizFor.WRITER),)
        requirements += requirements_for(
            session,
            mturk,
            settings,
            terms.task_code,
            terms.round_number,
            HitKind.CREATION,
            terms.requirements,
            besides=len(requirements),
        )
        mirror_lists(session, mturk, settings, clock)
    batch_id = _stored_batch(session, clock, plan, contexts, requirements)
    try:
        created = create_hits(session, mturk, settings, clock, batch_id, on_created=on_created)
    except InsufficientFunds as error:
        done = _existing(session, batch_id)
        raise NotEnoughMoney(
            f"The marketplace says that the account's money ran out: {done} of {terms.pilot or terms.hits} HITs exist"
            " and stay."
            " Top up the account and run the same command again; it creates only the missing ones."
        ) from error
    return LaunchResult(batch_id, created, plan.existing_hits)


def batch_key(terms: LaunchTerms, contexts: Iterable[Mapping[str, str]], endpoint: str) -> str:
    """Return what makes a launch the same launch: its terms, its contexts, its name and its marketplace."""
    given = asdict(terms)
    # What came later stands in the key only when it is used, so that earlier launches are found again; a reason
    # changes nothing that is offered.
    del given["wage_reason"]
    later = ("practice", "quiz", "requirements", "streak_length", "streak_bonus", "sure_percent", "sure_bonus", "pilot")
    for field in (*later, "per_context", "of_round"):
        if not given[field]:
            del given[field]
    if given["contexts_by"] == LEAST_USED:
        del given["contexts_by"]
    parts = {
        **{key: str(value) for key, value in given.items()},
        "endpoint": endpoint,
        "contexts": [] if terms.of_round else [digest_of(context) for context in contexts],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def below_floor(settings: Settings, terms: LaunchTerms) -> tuple[str, ...]:
    """Return in sentences what of a launch pays less by the hour than the floor, its validation included."""
    floor = settings.wage_floor
    if floor is None:
        return ()
    found = []
    offered = stated_wage(terms.reward, terms.minutes)
    if offered < floor:
        least = (floor * terms.minutes / 60).quantize(CENT, rounding=ROUND_UP)
        found.append(
            f"The reward comes to {display(offered)} an hour, and the floor (DYNAHIT_WAGE_FLOOR) is {display(floor)}:"
            f" for {terms.minutes} minutes that is {display(least)}."
        )
    if (reading := validation_below_floor(settings)) is not None:
        found.append(reading)
    return tuple(found)


def check_addresses(service_url: str, endpoint: str) -> None:
    """Raise InvalidInput when workers' browsers could not show this service in the marketplace's frames."""
    address = urlsplit(service_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise InvalidInput(f"The service's address {service_url!r} is not a web address. Set DYNAHIT_SERVICE_URL.")
    if address.scheme == "https":
        return
    if not (_is_loopback(address.hostname) and _is_loopback(urlsplit(endpoint).hostname or "")):
        raise InvalidInput(
            f"The service's address {service_url} is not https. Plain http works only while service and marketplace"
            f" are both on this machine; the marketplace is {endpoint}. Set DYNAHIT_SERVICE_URL to an https address."
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _round(session: Session, terms: LaunchTerms) -> Round | None:
    return session.scalar(select(Round).where(Round.task_code == terms.task_code, Round.number == terms.round_number))


def _require_state(session: Session, round_: Round | None, terms: LaunchTerms, now: datetime) -> None:
    """Raise Refused, with what to do instead, for a launch that does not fit the round's state. Reads only."""
    if round_ is None:
        return
    name, named = f"{round_.task_code} {round_.number}", f"Round {round_.number} of the {round_.task_code} task"
    if round_.state is RoundState.PILOTING:
        raise Refused(
            f"{named} is piloting: other HITs wait until somebody has looked at the pilot. Nothing was created."
            f" `dynahit round pilot {name}` shows what came of it, `dynahit round release {name}` lets the rest be"
            f" created, and `dynahit round close {name}` ends it."
        )
    if round_.state not in (RoundState.DRAFT, RoundState.COLLECTING):
        again = (
            f"`dynahit round open {name}` opens it again, if it was closed too early."
            if round_.state is RoundState.VALIDATING
            else f"Collect in another round: --round {round_.number + 1}."
        )
        raise Refused(f"{named} is {round_.state.value}: no more HITs are created. {again}")
    if terms.pilot and round_.state is RoundState.COLLECTING:
        raise Refused(
            f"{named} is collecting already, and a pilot comes before that. Nothing was created. Leave --pilot out, or"
            f" take a new round: --round {round_.number + 1}."
        )
    if stopped := fired(session, round_, now):
        raise Refused(
            f"{named} would stop at once: {stopped[0].words} ({stopped[0].standing}). Nothing was created."
            f" `dynahit round stop-rules {name}` changes when it stops."
        )


def _default_votes() -> int:
    return int(Round.__table__.c.max_votes.default.arg)


def _existing(session: Session, batch_id: int) -> int:
    created = (Hit.batch_id == batch_id) & Hit.mturk_hit_id.is_not(None)
    count = session.scalar(select(func.count()).select_from(Hit).where(created)) or 0
    session.rollback()
    return count


def _shown(fields: Mapping[str, str]) -> str:
    return " / ".join(fields.values())


def _goals_by_context(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, Mapping[str, int]]]:
    found: dict[str, Counter[str]] = {}
    for context, label in pairs:
        found.setdefault(context, Counter())[label] += 1
    return list(found.items())


def _choose(
    session: Session,
    spec: TaskSpec,
    round_: Round | None,
    contexts: Sequence[Mapping[str, str]],
    terms: LaunchTerms,
    now: datetime,
) -> tuple[list[tuple[int, str]], str]:
    """Return a context and a goal for each HIT, goals balanced, ties by the seed; and by which scores, in a sentence.

    Raises InvalidInput when not so many HITs can be given a context.
    """
    digests = [digest_of(context) for context in contexts]
    usage = usage_of(session, round_.id, now) if round_ is not None else Usage({}, Counter())
    candidates = [usage.candidates.get(digest, Candidate()) for digest in digests]
    chance = random.Random(f"{terms.seed}:{terms.name}")  # noqa: S311 - a fair order, not a secret
    order = list(range(len(contexts)))
    chance.shuffle(order)
    labels = list(spec.goals)
    chance.shuffle(labels)
    scored = _scored(terms, usage, candidates)
    by = strategy(terms.contexts_by, candidates)
    used = usage.goals.copy()
    given: Counter[str] = Counter()
    chosen = []
    for index in choose(by, candidates, terms.hits, order, chance, terms.per_context):
        digest = digests[index]
        *_, label = min((used[digest, code], given[code], rank, code) for rank, code in enumerate(labels))
        used[digest, label] += 1
        given[label] += 1
        chosen.append((index, label))
    return chosen, scored


def _scored(terms: LaunchTerms, usage: Usage, candidates: Sequence[Candidate]) -> str:
    if terms.contexts_by != UNCERTAINTY:
        return ""
    scores = sum(one.uncertainty is not None for one in candidates)
    if usage.scored_by is None or not scores:
        raise InvalidInput(
            "No model was asked about these contexts yet, so that they can't be chosen by uncertainty. Ask it first:"
            f" `dynahit contexts score {terms.task_code} --round {terms.round_number}`."
        )
    model_id, revision = usage.scored_by
    rest = len(candidates) - scores
    between = f"; {rest} without a score stand at their mean" if rest else ""
    return f"{scores} contexts were scored by {model_id}, revision {revision[:12]}{between}."


def contexts_of_round(session: Session, task_code: str, number: int) -> list[dict[str, str]]:
    """Return the contexts that a round holds and that are not retired. Reads only. Raises NotFound, InvalidInput."""
    round_ = find_round(session, task_code, number)
    retired = select(RetiredContext.context_id).where(RetiredContext.context_id == Context.id)
    rows = session.scalars(
        select(Context.fields).where(Context.round_id == round_.id, ~retired.exists()).order_by(Context.id)
    ).all()
    session.rollback()
    if not rows:
        raise InvalidInput(
            f"Round {number} of the {task_code} task holds no contexts that may be handed out. Give a file"
            " (--contexts), or `dynahit contexts upload` one."
        )
    return [dict(row) for row in rows]


def _stored_batch(
    session: Session,
    clock: Clock,
    plan: LaunchPlan,
    contexts: Sequence[Mapping[str, str]],
    requirements: Sequence[Requirement],
) -> int:
    try:
        return _store_rows(session, clock.now(), plan, contexts, requirements)
    except IntegrityError:
        # The same launch, or the round's first one, was stored by another process since we looked.
        session.rollback()
        return _store_rows(session, clock.now(), plan, contexts, requirements)


def _store_rows(
    session: Session,
    now: datetime,
    plan: LaunchPlan,
    contexts: Sequence[Mapping[str, str]],
    requirements: Sequence[Requirement],
) -> int:
    """Commit round, contexts, batch, planned HITs and what is set aside for them in one transaction, or find them.

    Returns the batch's id. Raises OverBudget; then nothing is stored.
    """
    terms, endpoint = plan.terms, plan.endpoint
    spec = task(terms.task_code)
    checked = [spec.check_context(context) for context in contexts]
    key = batch_key(terms, checked, endpoint)
    known = session.scalar(select(HitBatch.id).where(HitBatch.key == key))
    if known is not None:
        session.rollback()
        return known
    round_ = _round(session, terms)
    if round_ is not None:
        # Exclusive: the round's state may change, and of two launches at once the second is to see what the first has
        # handed out; two that share a lock would wait for each other.
        session.get_one(Round, round_.id, populate_existing=True, with_for_update={"key_share": True})
        require_collecting(session, round_.id)
    chosen, _ = _choose(session, spec, round_, checked, terms, now)
    if round_ is None:
        round_ = Round(
            task_code=spec.code,
            number=terms.round_number,
            task_version=spec.version,
            seed=terms.seed,
            created_at=now,
        )
        session.add(round_)
        begun(session, round_, by="launch", now=now)
    session.refresh(round_, ["state"])
    _require_state(session, round_, terms, now)
    to = RoundState.PILOTING if terms.pilot else RoundState.COLLECTING
    move(session, round_, to, by="launch", now=now, note=f"a launch of {terms.hits} HITs")
    rows = _context_rows(session, round_, checked, now)
    batch = HitBatch(
        round_id=round_.id,
        kind=HitKind.CREATION,
        key=key,
        endpoint=endpoint,
        title=spec.hit_title(spec.title),
        description=_description(spec, terms),
        keywords=", ".join(spec.keywords),
        reward=terms.reward,
        bonus=terms.bonus,
        extras=terms.extras.as_json(),
        tries=terms.tries,
        minutes=terms.minutes,
        assignment_seconds=terms.assignment_minutes * 60,
        auto_approval_seconds=terms.auto_approval_hours * 3600,
        lifetime_seconds=terms.lifetime_hours * 3600,
        requirements=[as_json(one) for one in requirements] or None,
        practice=terms.practice,
        contexts_by=terms.contexts_by,
        per_context=terms.per_context or None,
        wage_reason=terms.wage_reason.strip() or None,
        pilot=terms.pilot or None,
        created_at=now,
    )
    session.add(batch)
    session.flush()
    session.add_all(
        Hit(
            batch_id=batch.id,
            position=position,
            reference=new_reference(),
            request_token=new_token(),
            state=HitState.PLANNED,
            max_assignments=terms.assignments,
            context_id=rows[index].id,
            goal_label=goal,
        )
        for position, (index, goal) in enumerate(chosen, start=1)
    )
    batch_id = batch.id
    try:
        budgets.reserve(
            session,
            batch,
            plan.cost,
            now=now,
            bonuses=plan.worst.bonuses + plan.worst.bonus_fees,
            validation=plan.validation,
            validation_each=rounded(plan.validation / plan.worst.assignments),
        )
    except OverBudget:
        session.rollback()
        raise
    session.commit()
    return batch_id


def _description(spec: TaskSpec, terms: LaunchTerms) -> str:
    sentences = [spec.description]
    if terms.bonus:
        sentences.append(f"The bonus is {display(terms.bonus)}.")
    return " ".join((*sentences, *terms.extras.sentences))


def _context_rows(
    session: Session, round_: Round, contexts: Sequence[Mapping[str, str]], now: datetime
) -> list[Context]:
    known = {row.digest: row for row in session.scalars(select(Context).where(Context.round_id == round_.id))}
    rows = []
    for fields in contexts:
        digest = digest_of(fields)
        if digest not in known:
            known[digest] = Context(round_id=round_.id, fields=dict(fields), digest=digest, created_at=now)
            session.add(known[digest])
        rows.append(known[digest])
    session.flush()
    return rows
