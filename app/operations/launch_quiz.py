"""Plan and launch a quiz: as paid HITs on our own page, or as the marketplace's own fixed form."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import ROUND_UP, Decimal
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.operations.create_hits import OnCreated, create_hits, new_reference, new_token
from app.operations.grant import name_of, type_of
from app.operations.launch import LaunchResult, NotEnoughMoney, WageBelowFloor, check_addresses
from app.settings import Settings
from hits.clock import Clock
from hits.errors import InvalidInput
from hits.models import Hit, HitBatch, Round
from hits.money import CENT, ZERO, display, usd
from hits.mturk.client import MTurk
from hits.mturk.errors import InsufficientFunds, MTurkError
from hits.rounds import begun
from hits.states import HitKind, HitState
from hits.tasks import TASKS, TaskSpec, task
from payments import budgets
from payments.errors import OverBudget
from payments.fees import WorstCase, worst_case
from qualification.errors import NoSuchQuiz
from qualification.models import QuizBatch, QuizForm, QuizResult, QuizVersion
from qualification.quiz_xml import answer_key, canonical, question_form
from qualification.quizzes import Quiz, QuizFor, current_version, digest_of_quiz, quiz_for
from qualification.wages import stated_wage

#: Of one quiz HIT.
MOST_PLACES = 1_000
#: How long the marketplace's own quiz may take.
FORM_TIME = timedelta(minutes=30)


class QuizNotPublished(MTurkError):
    """The marketplace does not show the quiz as it was sent, so that it would score something else."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The marketplace does not show the quiz of {name!r} as it was sent. It is not counted as published;"
            " look at the qualification type on the marketplace, then publish again."
        )


@dataclass(frozen=True)
class QuizTerms:
    """What is offered for a quiz. There is one HIT for each try, so that a retry is paid like the first try.

    Raises InvalidInput or MoneyError for terms that can't be offered.
    """

    task_code: str
    quiz_for: str
    places: int
    reward: Decimal
    minutes: int = 8
    round_number: int = 1
    lifetime_hours: int = 336
    auto_approval_hours: int = 72
    assignment_minutes: int = 60
    name: str = ""
    #: Why it is launched though it pays less than the wage floor.
    wage_reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", usd(self.reward))
        if self.reward < CENT:
            raise InvalidInput("The reward is $0.00. A quiz is work and pays at least $0.01.")
        limits = {
            "places": (1, MOST_PLACES),
            "minutes": (1, 24 * 60),
            "round_number": (1, 10_000),
            "lifetime_hours": (1, 365 * 24),
            "auto_approval_hours": (0, 30 * 24),
            "assignment_minutes": (1, 7 * 24 * 60),
        }
        for field, (least, most) in limits.items():
            value = getattr(self, field)
            if not least <= value <= most:
                raise InvalidInput(f"{field.replace('_', ' ')} is {value:,}; it must be from {least:,} to {most:,}.")
        if self.minutes > self.assignment_minutes:
            raise InvalidInput(
                f"The quiz takes {self.minutes} minutes, but workers would have only {self.assignment_minutes}."
                " Raise the assignment minutes."
            )


@dataclass(frozen=True)
class QuizPlan:
    """What launching a quiz would do and cost at most: everybody uses every try and is paid for each."""

    terms: QuizTerms
    kind: str
    version: int
    is_new_version: bool
    qualification: str
    endpoint: str
    title: str
    batch_id: int | None
    existing_hits: int
    missing_hits: int
    tries: int
    drawn: int
    needed: int
    pool: int
    worst: WorstCase
    hourly_wage: Decimal
    below_floor: str | None
    over_budget: str | None
    balance: Decimal

    @property
    def notes(self) -> list[str]:
        """What a requester should know before saying yes, in sentences."""
        found = [note for note in (self.below_floor, self.over_budget) if note is not None]
        if self.left < ZERO:
            found.append(f"The balance does not cover the worst case; {display(-self.left)} are missing.")
        return found

    @property
    def left(self) -> Decimal:
        """What would remain of the balance; negative when it does not suffice."""
        return self.balance - self.worst.total

    @property
    def finished(self) -> bool:
        """This very launch has been made before and all its HITs exist."""
        return self.batch_id is not None and self.missing_hits == 0

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON types; amounts are strings of dollars."""
        terms = {key: str(value) if isinstance(value, Decimal) else value for key, value in asdict(self.terms).items()}
        return {
            "terms": terms,
            "quiz": self.kind,
            "version": self.version,
            "new_version": self.is_new_version,
            "qualification": self.qualification,
            "endpoint": self.endpoint,
            "title": self.title,
            "batch": self.batch_id,
            "hits_existing": self.existing_hits,
            "hits_to_create": self.missing_hits,
            "assignments": self.worst.assignments,
            "pool": self.pool,
            "questions": self.drawn,
            "right_answers_needed": self.needed,
            "tries": self.tries,
            "cost": {
                "rewards": str(self.worst.rewards),
                "reward_fees": str(self.worst.reward_fees),
                "worst_case": str(self.worst.total),
            },
            "hourly_wage": str(self.hourly_wage),
            "notes": self.notes,
            "balance": str(self.balance),
            "balance_left": str(self.left),
        }


@dataclass(frozen=True)
class Published:
    """What became of publishing a quiz on the marketplace itself; ``changed`` is False if it stood there so."""

    kind: str
    version: int
    qualification: str
    questions: int
    changed: bool


@dataclass(frozen=True)
class QuizStanding:
    """One version of a quiz: is it what the task's file says now, and what people made of it."""

    kind: str
    number: int
    is_current: bool
    is_accepted: bool
    answered: int
    passed: int
    is_published: bool

    def as_json(self) -> dict[str, Any]:
        """Return the standing as JSON types."""
        return {
            "quiz": self.kind,
            "version": self.number,
            "current": self.is_current,
            "accepted": self.is_accepted,
            "tries": self.answered,
            "passed": self.passed,
            "published": self.is_published,
        }


def quiz_standings(session: Session) -> list[QuizStanding]:
    """Return every version there is, by quiz. Tries are those that the marketplace has shown. Reads only."""
    now = {}
    for code in TASKS:
        for audience in QuizFor:
            try:
                quiz = quiz_for(code, audience.value)
            except NoSuchQuiz:
                continue
            now[quiz.kind] = digest_of_quiz(quiz)
    counted = QuizResult.counted_at.is_not(None)
    rows = session.execute(
        select(
            QuizVersion,
            select(func.count(QuizResult.id)).where(QuizResult.version_id == QuizVersion.id, counted).scalar_subquery(),
            select(func.count(QuizResult.id))
            .where(QuizResult.version_id == QuizVersion.id, counted, QuizResult.passed.is_(True))
            .scalar_subquery(),
            select(QuizForm.id)
            .where(QuizForm.version_id == QuizVersion.id, QuizForm.published_at.is_not(None))
            .exists(),
        ).order_by(QuizVersion.kind, QuizVersion.number)
    ).all()
    found = [
        QuizStanding(
            kind=row.kind,
            number=row.number,
            is_current=now.get(row.kind) == row.digest,
            is_accepted=row.retired_at is None,
            answered=answered,
            passed=passed,
            is_published=bool(published),
        )
        for row, answered, passed, published in rows
    ]
    session.rollback()
    return found


def plan_quiz(session: Session, mturk: MTurk, settings: Settings, clock: Clock, terms: QuizTerms) -> QuizPlan:
    """Return what launching would do and cost. Writes nothing, here or on the marketplace.

    Raises NotFound, NoSuchQuiz, InvalidInput for terms or addresses that can't work, MTurkError without the
    marketplace.
    """
    quiz = quiz_for(terms.task_code, terms.quiz_for)
    spec = task(terms.task_code)
    check_addresses(settings.service_url, mturk.endpoint)
    _round(session, spec, terms.round_number)
    version, is_new = _version_to_be(session, quiz)
    batch_id = session.scalar(select(HitBatch.id).where(HitBatch.key == quiz_batch_key(terms, quiz, mturk.endpoint)))
    existing = 0
    if batch_id is not None:
        there = (Hit.batch_id == batch_id) & Hit.mturk_hit_id.is_not(None)
        existing = session.scalar(select(func.count()).select_from(Hit).where(there)) or 0
    session.rollback()
    missing = quiz.tries - existing
    worst = worst_case(missing, terms.places, terms.reward, ZERO, on=clock.now().date())
    wage = stated_wage(terms.reward, terms.minutes)
    over_budget = None
    if batch_id is None:
        over_budget = budgets.shortfall(session, worst.total, f"{spec.code}/{terms.round_number}", clock.now())
        session.rollback()
    return QuizPlan(
        terms=terms,
        kind=quiz.kind,
        version=version,
        is_new_version=is_new,
        qualification=name_of(settings, quiz.kind),
        endpoint=mturk.endpoint,
        title=title_of(spec, quiz),
        batch_id=batch_id,
        existing_hits=existing,
        missing_hits=missing,
        tries=quiz.tries,
        drawn=quiz.drawn,
        needed=quiz.needed,
        pool=len(quiz.items),
        worst=worst,
        hourly_wage=wage,
        below_floor=None if batch_id is not None else _below_floor(settings, terms, wage),
        over_budget=over_budget,
        balance=mturk.balance(),
    )


def launch_quiz(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    terms: QuizTerms,
    *,
    on_created: OnCreated | None = None,
) -> LaunchResult:
    """Create the quiz's HITs, one for each try. The same launch again creates only what is missing.

    Raises NotEnoughMoney before anything is created when the balance does not cover the worst case, and when it runs
    out half-way, OverBudget when a budget has no room for the worst case, which is set aside first, WageBelowFloor
    without a reason; else as plan_quiz and create_hits.
    """
    plan = plan_quiz(session, mturk, settings, clock, terms)
    if plan.finished and plan.batch_id is not None:
        return LaunchResult(plan.batch_id, 0, plan.existing_hits)
    if plan.below_floor is not None and not terms.wage_reason.strip():
        raise WageBelowFloor(f"{plan.below_floor} Nothing was created. Pay more, or say why (--reason).")
    if plan.left < ZERO:
        raise NotEnoughMoney(
            f"The quiz can cost up to {display(plan.worst.total)}, but the balance at {plan.endpoint} is"
            f" {display(plan.balance)}: {display(-plan.left)} are missing. Nothing was created."
            " Top up the account, or offer fewer places."
        )
    # The type must be there before anybody has passed, so that writers' HITs can ask for it.
    type_of(session, mturk, settings, plan.kind)
    batch_id = _stored_batch(session, clock.now(), plan)
    try:
        created = create_hits(session, mturk, settings, clock, batch_id, on_created=on_created)
    except InsufficientFunds as error:
        raise NotEnoughMoney(
            "The marketplace says that the account's money ran out. The quiz HITs that exist stay."
            " Top up the account and run the same command again; it creates only the missing ones."
        ) from error
    return LaunchResult(batch_id, created, plan.existing_hits)


def publish_quiz(
    session: Session, mturk: MTurk, settings: Settings, clock: Clock, task_code: str, audience: str
) -> Published:
    """Put the quiz's fixed form and its key on the qualification type, where the marketplace scores it.

    Who passes holds the version's number as value; nobody is paid for it. Doing it again changes nothing. It counts as
    published only once the marketplace shows it as it was sent. Raises NotFound, NoSuchQuiz, QuizNotPublished,
    MTurkError.
    """
    quiz = quiz_for(task_code, audience)
    version = current_version(session, quiz, clock.now())
    version_id, number = version.id, version.number
    warning = task(task_code).content_warning
    session.commit()
    name = name_of(settings, quiz.kind)
    type_id = type_of(session, mturk, settings, quiz.kind)
    form, key = question_form(quiz, warning), answer_key(quiz, number)
    form_id, published = _stored_form(session, mturk.endpoint, version_id, type_id)
    shown = _shows(mturk, type_id, form, key)
    if not shown:
        mturk.put_quiz(
            type_id,
            form_xml=form,
            key_xml=key,
            seconds=int(FORM_TIME.total_seconds()),
            retry_seconds=settings.quiz_retry_hours * 3600,
        )
        if not _shows(mturk, type_id, form, key):
            raise QuizNotPublished(name)
    row = session.get_one(QuizForm, form_id, populate_existing=True)
    row.published_at = row.published_at or clock.now()
    session.commit()
    return Published(quiz.kind, number, name, quiz.drawn, changed=not (shown and published))


def _shows(mturk: MTurk, type_id: str, form: str, key: str) -> bool:
    there = mturk.quiz(type_id)
    return all(there) and tuple(map(canonical, there)) == (canonical(form), canonical(key))


def _stored_form(session: Session, endpoint: str, version_id: int, type_id: str) -> tuple[int, bool]:
    """Return the row's id, and whether it was published before; stored, with its commit, on first sight."""
    known = select(QuizForm).where(QuizForm.version_id == version_id, QuizForm.endpoint == endpoint)
    row = session.scalar(known)
    if row is None:
        row = QuizForm(version_id=version_id, endpoint=endpoint, qualification_type_id=type_id)
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:
            row = session.execute(known).scalar_one()
    row.qualification_type_id = type_id
    found = row.id, row.published_at is not None
    session.commit()
    return found


def quiz_batch_key(terms: QuizTerms, quiz: Quiz, endpoint: str) -> str:
    """Return what makes a launch the same launch: its terms, its quiz as it stands, its name and its marketplace."""
    given = asdict(terms)
    # A reason changes nothing that is offered.
    del given["wage_reason"]
    parts = {
        **{key: str(value) for key, value in given.items()},
        "quiz": digest_of_quiz(quiz),
        "endpoint": endpoint,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def title_of(spec: TaskSpec, quiz: Quiz) -> str:
    """Return the title of a quiz's HITs."""
    does = "write" if quiz.quiz_for.value == "writer" else "judge"
    return spec.hit_title(f"Paid quiz: {quiz.drawn} questions; who passes may {does} {spec.item_name}s, {spec.code}")


def _description(spec: TaskSpec, quiz: Quiz) -> str:
    does = "write" if quiz.quiz_for.value == "writer" else "judge"
    return (
        f"Read the rules of the {spec.code} task and answer {quiz.drawn} questions about them. You are paid whether you"
        f" pass or not, and see at once what was right. {quiz.needed} right answers earn the qualification to {does}"
        f" {spec.item_name}s. There are {quiz.tries} tries, each paid, with other questions each time."
        + (f" {spec.content_warning}" if spec.content_warning else "")
    )


def _version_to_be(session: Session, quiz: Quiz) -> tuple[int, bool]:
    digest = digest_of_quiz(quiz)
    known = session.scalar(
        select(QuizVersion.number).where(QuizVersion.kind == quiz.kind, QuizVersion.digest == digest)
    )
    if known is not None:
        return known, False
    newest = session.scalar(select(func.max(QuizVersion.number)).where(QuizVersion.kind == quiz.kind)) or 0
    return newest + 1, True


def _round(session: Session, spec: TaskSpec, number: int) -> Round | None:
    return session.scalar(select(Round).where(Round.task_code == spec.code, Round.number == number))


def _below_floor(settings: Settings, terms: QuizTerms, wage: Decimal) -> str | None:
    floor = settings.wage_floor
    if floor is None or wage >= floor:
        return None
    least = (floor * terms.minutes / 60).quantize(CENT, rounding=ROUND_UP)
    return (
        f"The quiz comes to {display(wage)} an hour, and the floor (DYNAHIT_WAGE_FLOOR) is {display(floor)}: for"
        f" {terms.minutes} minutes that is {display(least)}."
    )


def _stored_batch(session: Session, now: datetime, plan: QuizPlan) -> int:
    try:
        return _store_rows(session, now, plan)
    except IntegrityError:
        # The same launch, or the round's first one, was stored by another process since we looked.
        session.rollback()
        return _store_rows(session, now, plan)


def _store_rows(session: Session, now: datetime, plan: QuizPlan) -> int:
    """Commit round, version, batch and planned HITs in one transaction, or find them; return the batch's id."""
    terms, endpoint = plan.terms, plan.endpoint
    spec = task(terms.task_code)
    quiz = quiz_for(terms.task_code, terms.quiz_for)
    key = quiz_batch_key(terms, quiz, endpoint)
    known = session.scalar(select(HitBatch.id).where(HitBatch.key == key))
    if known is not None:
        session.rollback()
        return known
    round_ = _round(session, spec, terms.round_number)
    if round_ is None:
        round_ = Round(task_code=spec.code, number=terms.round_number, task_version=spec.version, created_at=now)
        session.add(round_)
        begun(session, round_, by="launch of a quiz", now=now)
    version = current_version(session, quiz, now)
    session.flush()
    batch = HitBatch(
        round_id=round_.id,
        kind=HitKind.QUALIFICATION,
        key=key,
        endpoint=endpoint,
        title=title_of(spec, quiz),
        description=_description(spec, quiz),
        keywords=", ".join(("quiz", "qualification", *spec.keywords)),
        reward=terms.reward,
        bonus=ZERO,
        tries=1,
        minutes=terms.minutes,
        assignment_seconds=terms.assignment_minutes * 60,
        auto_approval_seconds=terms.auto_approval_hours * 3600,
        lifetime_seconds=terms.lifetime_hours * 3600,
        wage_reason=terms.wage_reason[:500] if plan.below_floor is not None else None,
        created_at=now,
    )
    session.add(batch)
    session.flush()
    session.add(QuizBatch(batch_id=batch.id, version_id=version.id))
    session.add_all(
        Hit(
            batch_id=batch.id,
            position=position,
            reference=new_reference(),
            request_token=new_token(),
            state=HitState.PLANNED,
            max_assignments=terms.places,
        )
        for position in range(1, quiz.tries + 1)
    )
    batch_id = batch.id
    try:
        budgets.reserve(session, batch, plan.worst.total, now=now)
    except OverBudget:
        session.rollback()
        raise
    session.commit()
    return batch_id
