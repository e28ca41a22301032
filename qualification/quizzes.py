"""The quizzes of the tasks: their content, their versions, whose turn it is, which items they get, and the score.

The key is in ``Quiz`` and in the database only. A page gets ``Asked`` items, which have none, and which items they are
and in which order does not depend on the key.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.attempts import locked_hit
from hits.errors import AlreadySubmitted, InvalidAnswer, InvalidInput, NotFound, Refused
from hits.models import Assignment, Worker
from hits.states import AssignmentState
from hits.tasks import Fit, QuizItem, TaskSpec, WriterItem, task
from hits.validations.queue import UNSUBMITTED_AFTER
from qualification.errors import NoSuchQuiz, QuizNotOpen
from qualification.grants import is_barred, is_held, latest_grant
from qualification.models import QuizBatch, QuizResult, QuizVersion

log = logging.getLogger(__name__)

#: How many items one try asks, and how many of them must be right. Guessing passes one try in 16 where two answers
#: are possible, one in 145 where three are.
DRAWN = 7
NEEDED = 6
#: A pool gives each person this many tries at least without showing an item twice.
FRESH_TRIES = 2
#: At most so many shuffles are tried; about one in ten allows to pass with one answer.
_SHUFFLES = 200

_FITS: tuple[tuple[str, str], ...] = (
    (Fit.FITS.value, "It will do: readers agree that it is what was asked for, and it keeps the rules"),
    (Fit.OTHER_LABEL.value, "It won't do: readers would call it something else"),
    (Fit.BREAKS_RULE.value, "It won't do: it breaks a rule"),
)


class QuizFor(StrEnum):
    """Whom a quiz is for."""

    WRITER = "writer"
    VALIDATOR = "validator"


@dataclass(frozen=True)
class Part:
    """One text of an item or example. ``start`` and ``end`` mark a stretch of it, in characters."""

    label: str
    text: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Asked:
    """One item as a page may show it."""

    id: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Item:
    """One item with its key."""

    id: str
    parts: tuple[Part, ...]
    right: str
    feedback: str

    @property
    def asked(self) -> Asked:
        """The item without its key."""
        return Asked(self.id, self.parts)


@dataclass(frozen=True)
class Example:
    """A worked example that is shown before the quiz."""

    parts: tuple[Part, ...]
    label: str
    note: str


@dataclass(frozen=True)
class Quiz:
    """One quiz, whole; what its version is stands in its digest."""

    task_code: str
    quiz_for: QuizFor
    question: str
    choices: tuple[tuple[str, str], ...]
    drawn: int
    needed: int
    instructions: tuple[str, ...]
    rules: tuple[str, ...]
    examples: tuple[Example, ...]
    items: tuple[Item, ...]

    @property
    def kind(self) -> str:
        """Return what the quiz and the qualification that it earns are called: ``writer:nli``."""
        return kind_of(self.quiz_for, self.task_code)

    @property
    def tries(self) -> int:
        """How many tries one person has: as many as there are items that they have not seen."""
        return len(self.items) // self.drawn

    @property
    def choice_codes(self) -> tuple[str, ...]:
        """The values that an answer can have."""
        return tuple(code for code, _ in self.choices)

    def item(self, item_id: str) -> Item:
        """Return an item. Raises LookupError for one that is not in the pool."""
        return next(item for item in self.items if item.id == item_id)

    def choice(self, code: str) -> str:
        """Return a choice in words."""
        return dict(self.choices)[code]


def kind_of(quiz_for: QuizFor, task_code: str) -> str:
    """Return what a quiz and the qualification that it earns are called: ``writer:nli``."""
    return f"{quiz_for.value}:{task_code}"


def quiz_of(spec: TaskSpec, quiz_for: QuizFor) -> Quiz:
    """Return the quiz as the task's file has it now. Raises NoSuchQuiz when its pool is too small."""
    items = _writer_items(spec) if quiz_for is QuizFor.WRITER else _reader_items(spec)
    least = FRESH_TRIES * DRAWN
    if len(items) < least:
        raise NoSuchQuiz(
            f"The {quiz_for.value}s' quiz of the {spec.code} task has {len(items)} items; {least} are needed, so that"
            f" a second try can ask others. Add items to the task's file."
        )
    if len({item.id for item in items}) < len(items):
        raise NoSuchQuiz(f"The {quiz_for.value}s' quiz of the {spec.code} task asks the same thing twice.")
    writers = quiz_for is QuizFor.WRITER
    return Quiz(
        task_code=spec.code,
        quiz_for=quiz_for,
        question=f"Will this {spec.item_name} do?" if writers else spec.validation_question,
        choices=_FITS if writers else tuple((label.code, label.choice) for label in spec.labels),
        drawn=DRAWN,
        needed=NEEDED,
        instructions=spec.instructions if writers else (),
        rules=spec.rules,
        examples=tuple(_examples(spec)),
        items=items,
    )


def _writer_items(spec: TaskSpec) -> tuple[Item, ...]:
    return tuple(
        _item((Part("The writer was asked", spec.goal_sentence(item.goal)), *_parts(spec, item)), item)
        for item in spec.writer_quiz
    )


def _reader_items(spec: TaskSpec) -> tuple[Item, ...]:
    return tuple(_item(tuple(_parts(spec, item)), item) for item in spec.quiz)


def _item(parts: tuple[Part, ...], item: QuizItem | WriterItem) -> Item:
    # The id says nothing of the key: a changed key gives another version, not another id.
    asked = json.dumps([asdict(part) for part in parts], sort_keys=True, ensure_ascii=False)
    return Item(hashlib.sha256(asked.encode()).hexdigest()[:12], parts, str(item.right), item.feedback)


def _parts(spec: TaskSpec, item: QuizItem | WriterItem) -> list[Part]:
    parts = _context_parts(spec, item.context, item.marked)
    parts.append(Part(spec.item_name.capitalize(), item.text))
    if item.marked:
        parts.append(Part("Marked answer", item.marked))
    return parts


def _context_parts(spec: TaskSpec, context: Mapping[str, str], marked: str = "") -> list[Part]:
    parts = []
    span = spec.span_input
    for part in spec.context_fields:
        if part.name not in context:
            continue
        text = context[part.name]
        if span is not None and span.of == part.name and marked:
            start = text.casefold().find(marked.casefold()) if marked not in text else text.find(marked)
            parts.append(Part(part.label, text, start, start + len(marked)))
        else:
            parts.append(Part(part.label, text))
    return parts


def _examples(spec: TaskSpec) -> list[Example]:
    span = spec.span_input
    found = []
    for example in spec.examples:
        marked = example.answer.get(span.name, "") if span is not None else ""
        parts = _context_parts(spec, example.context, marked)
        parts += [Part(_for_readers(item.label), example.answer[item.name]) for item in spec.text_inputs]
        if marked:
            parts.append(Part("Marked answer", marked))
        found.append(Example(tuple(parts), spec.label(example.label).name, example.note))
    return found


def _for_readers(label: str) -> str:
    return label.removeprefix("Your ").capitalize()


def as_json(quiz: Quiz) -> dict[str, Any]:
    """Return a quiz as JSON types, key included."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(quiz)))
    return found


def from_json(content: Mapping[str, Any]) -> Quiz:
    """Return the quiz that as_json made ``content`` of."""
    return Quiz(
        task_code=content["task_code"],
        quiz_for=QuizFor(content["quiz_for"]),
        question=content["question"],
        choices=tuple((code, words) for code, words in content["choices"]),
        drawn=content["drawn"],
        needed=content["needed"],
        instructions=tuple(content["instructions"]),
        rules=tuple(content["rules"]),
        examples=tuple(Example(_as_parts(one["parts"]), one["label"], one["note"]) for one in content["examples"]),
        items=tuple(
            Item(one["id"], _as_parts(one["parts"]), one["right"], one["feedback"]) for one in content["items"]
        ),
    )


def _as_parts(parts: Sequence[Mapping[str, Any]]) -> tuple[Part, ...]:
    return tuple(Part(**part) for part in parts)


def digest_of_quiz(quiz: Quiz) -> str:
    """Return what tells versions apart: everything that is asked, shown and scored."""
    return hashlib.sha256(json.dumps(as_json(quiz), sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def current_version(session: Session, quiz: Quiz, now: datetime) -> QuizVersion:
    """Return the version that has exactly this content, stored with the next number if it is new.

    Flushes, never commits. Two processes that store the same content at once get the same row.
    """
    digest = digest_of_quiz(quiz)
    known = select(QuizVersion).where(QuizVersion.kind == quiz.kind, QuizVersion.digest == digest)
    while (found := session.scalar(known)) is None:
        newest = session.scalar(select(func.max(QuizVersion.number)).where(QuizVersion.kind == quiz.kind)) or 0
        row = QuizVersion(kind=quiz.kind, number=newest + 1, digest=digest, content=as_json(quiz), created_at=now)
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:
            # Another process took the number, for this content or for another one.
            continue
        return row
    return found


def stored_version(session: Session, kind: str, number: int | None = None) -> QuizVersion:
    """Return a version by number, the newest without one. Raises NotFound with what there is."""
    numbers = session.scalars(select(QuizVersion.number).where(QuizVersion.kind == kind)).all()
    wanted = number if number is not None else max(numbers, default=None)
    found = session.scalar(select(QuizVersion).where(QuizVersion.kind == kind, QuizVersion.number == wanted))
    if found is None:
        there = (
            ", ".join(str(one) for one in sorted(numbers)) or "none yet; `dynahit qualification quiz launch` makes one"
        )
        raise NotFound(f"There is no version {wanted or 1} of the quiz {kind!r}. Its versions: {there}.")
    return found


def version_of_batch(session: Session, batch_id: int) -> QuizVersion:
    """Return the version that a qualification batch asks. Raises NotFound for another kind of batch."""
    found = session.scalar(select(QuizVersion).join(QuizBatch).where(QuizBatch.batch_id == batch_id))
    if found is None:
        raise NotFound(f"Batch {batch_id} asks no quiz.")
    return found


def draw(quiz: Quiz, seed: str, number: int) -> tuple[str, ...]:
    """Return the ids of the items that try ``number`` asks of the person whom ``seed`` stands for.

    The pool is shuffled once for each person and dealt out try by try, so that no item comes twice before the pool is
    used up; then it is shuffled anew. Nobody passes by giving one answer to everything: a shuffle that would allow it
    is not used.
    """
    time_through, part = divmod(number - 1, quiz.tries)
    dealt: list[tuple[str, ...]] = []
    for shuffle in range(_SHUFFLES):
        dealt = _dealt(quiz, f"{seed}:{time_through}:{shuffle}")
        if all(_most_alike(quiz, items) < quiz.needed for items in dealt):
            break
    return dealt[part]


def _dealt(quiz: Quiz, seed: str) -> list[tuple[str, ...]]:
    order = sorted(item.id for item in quiz.items)
    random.Random(seed).shuffle(order)  # noqa: S311 - the seed holds a keyed pseudonym; a fair order, not a secret
    return [tuple(order[start * quiz.drawn : (start + 1) * quiz.drawn]) for start in range(quiz.tries)]


def _most_alike(quiz: Quiz, items: tuple[str, ...]) -> int:
    return max(Counter(quiz.item(item_id).right for item_id in items).values())


def fixed_items(quiz: Quiz) -> tuple[Item, ...]:
    """Return the items of the version's one fixed form, for the marketplace's own quiz."""
    return tuple(quiz.item(item_id) for item_id in draw(quiz, digest_of_quiz(quiz), 1))


def open_quiz(session: Session, assignment: Assignment, *, retry_delay: timedelta, now: datetime) -> QuizResult:
    """Return the try that the assignment's worker is at, its items drawn on first sight. Flushes, never commits.

    Opened again before it is answered, in this or another HIT, it is the same try with the same items, and the place
    where it was opened last is where it is answered. One that was passed and that the marketplace never got, because
    the HIT's time ran out, comes back answered and is handed in with this assignment. Raises QuizNotOpen for somebody
    who can't take the quiz now, with the reason in words, AlreadySubmitted when this HIT's try is answered.
    """
    hit = locked_hit(session, assignment)
    version = version_of_batch(session, hit.batch_id)
    here = result_of(session, assignment)
    if here is not None:
        return here
    if assignment.state is not AssignmentState.OPENED:
        raise AlreadySubmitted
    quiz = from_json(version.content)
    _lock_worker(session, assignment.worker_id)
    mine = session.scalars(
        select(QuizResult)
        .where(QuizResult.worker_id == assignment.worker_id, QuizResult.version_id == version.id)
        .order_by(QuizResult.number)
        .execution_options(populate_existing=True)
    ).all()
    left = next((one for one in mine if _was_left_passed(one, now)), None)
    _check_turn(session, assignment, version, quiz, [one for one in mine if one is not left], retry_delay, now)
    if left is not None:
        left.assignment_id = assignment.id
        assignment.state, assignment.saved_at = AssignmentState.SAVED, now
        session.flush()
        return left
    waiting = next((one for one in mine if one.answered_at is None), None)
    if waiting is not None:
        waiting.assignment_id = assignment.id
        session.flush()
        return waiting
    number = max((one.number for one in mine), default=0) + 1
    result = QuizResult(
        version_id=version.id,
        worker_id=assignment.worker_id,
        assignment_id=assignment.id,
        number=number,
        items=list(draw(quiz, f"{assignment.worker.pseudonym}:{version.kind}:{version.number}", number)),
        opened_at=now,
    )
    session.add(result)
    session.flush()
    return result


def tries_used(session: Session, result: QuizResult) -> int:
    """Return how many of the person's tries at this version are answered and count."""
    used = select(func.count()).where(
        QuizResult.worker_id == result.worker_id,
        QuizResult.version_id == result.version_id,
        QuizResult.answered_at.is_not(None),
        QuizResult.set_aside_at.is_(None),
    )
    return session.scalar(used) or 0


def _check_turn(
    session: Session,
    assignment: Assignment,
    version: QuizVersion,
    quiz: Quiz,
    mine: Sequence[QuizResult],
    retry_delay: timedelta,
    now: datetime,
) -> None:
    latest = latest_grant(session, assignment.worker_id, version.kind, assignment.hit.batch.endpoint)
    if latest is not None and is_barred(latest):
        raise QuizNotOpen(
            "This qualification was taken back from you, so the quiz can't be taken again."
            + (f" The reason: {latest.reason}" if latest.reason else "")
        )
    if latest is not None and latest.version >= version.number and is_held(latest, now):
        raise QuizNotOpen("You hold this qualification already, so there is nothing to do here.")
    answered = [one for one in mine if one.answered_at is not None and one.set_aside_at is None]
    if any(one.passed for one in answered):
        raise QuizNotOpen("You have passed this quiz already. The qualification follows within minutes.")
    if len(answered) >= quiz.tries:
        raise QuizNotOpen(
            f"You have used all {quiz.tries} tries at this quiz. You were paid for each one you submitted, and nothing"
            " else changes for you."
        )
    if answered:
        again_at = max(one.answered_at for one in answered if one.answered_at is not None) + retry_delay
        if now < again_at:
            raise QuizNotOpen("It is too soon for your next try at this quiz.", again_at)


def _was_left_passed(result: QuizResult, now: datetime) -> bool:
    """Tell whether a quiz was passed in an assignment that was not submitted on the marketplace in time."""
    if not result.passed or result.counted_at is not None or result.set_aside_at is not None:
        return False
    deadline = result.assignment.deadline_at
    lapsed = deadline is not None and now >= deadline + UNSUBMITTED_AFTER
    return lapsed and result.assignment.state is AssignmentState.SAVED


def _lock_worker(session: Session, worker_id: int) -> None:
    """Take the person's row lock: two HITs of one quiz, opened at once, must not draw two tries."""
    session.execute(select(Worker.id).where(Worker.id == worker_id).with_for_update())


def answer_quiz(session: Session, assignment: Assignment, answers: Mapping[str, str], now: datetime) -> QuizResult:
    """Score and store the answers, by item id, and save the assignment. Flushes, never commits.

    A second answer raises AlreadySubmitted and changes nothing. Raises InvalidAnswer with the item for one that is
    missing, and Refused for items that were not drawn, choices that there are not, a try that is asked in another HIT
    by now, and after the deadline; nothing is stored then, and the log says whose answers were forged.
    """
    locked_hit(session, assignment)
    _lock_worker(session, assignment.worker_id)
    result = result_of(session, assignment)
    if result is None:
        raise Refused(
            "This quiz is not asked in this HIT, or you have opened it in another HIT since. Answer it there and return"
            " this HIT; nothing was stored."
        )
    if result.answered_at is not None or assignment.state is not AssignmentState.OPENED:
        raise AlreadySubmitted
    if assignment.deadline_at is not None and now >= assignment.deadline_at:
        raise Refused("The time for this HIT is over, so the answers were not taken. No try was used.")
    quiz = from_json(result.version.content)
    if foreign := sorted(set(answers) - set(result.items)):
        _log_forged(assignment, f"answers {len(foreign)} items that were not drawn")
        raise Refused("Answers came to questions that were not asked. Nothing was stored; load the page again.")
    if any(answer not in quiz.choice_codes for answer in answers.values()):
        _log_forged(assignment, "gives answers that there are not")
        raise Refused("An answer came that is none of the choices. Nothing was stored; load the page again.")
    missing = next((item_id for item_id in result.items if item_id not in answers), None)
    if missing is not None:
        place = result.items.index(missing) + 1
        raise InvalidAnswer(missing, f"Question {place} has no answer yet. Answer all {quiz.drawn}; no try was used.")
    result.answers = {item_id: answers[item_id] for item_id in result.items}
    result.score = sum(quiz.item(item_id).right == answer for item_id, answer in result.answers.items())
    result.passed = result.score >= quiz.needed
    result.answered_at = now
    assignment.state = AssignmentState.SAVED
    assignment.saved_at = now
    assignment.draft = None
    session.flush()
    return result


def _log_forged(assignment: Assignment, what: str) -> None:
    log.warning("quiz answers of %s in HIT %s refused: it %s", assignment.worker.pseudonym, assignment.hit_id, what)


@dataclass(frozen=True)
class Marked:
    """One answered item with what was right."""

    number: int
    parts: tuple[Part, ...]
    given: str
    right: str
    is_right: bool
    feedback: str


def marked(result: QuizResult) -> list[Marked]:
    """Return an answered try item by item. Raises InvalidInput before it is answered, so that no key gets out."""
    if result.answered_at is None or result.answers is None:
        raise InvalidInput("This quiz is not answered yet, so there is no feedback.")
    quiz = from_json(result.version.content)
    found = []
    for number, item_id in enumerate(result.items, start=1):
        item, given = quiz.item(item_id), result.answers[item_id]
        found.append(
            Marked(
                number,
                item.parts,
                quiz.choice(given),
                quiz.choice(item.right),
                given == item.right,
                item.feedback,
            )
        )
    return found


def result_of(session: Session, assignment: Assignment) -> QuizResult | None:
    """Return the try that is asked in an assignment, None where none was drawn or it moved to another HIT."""
    return session.scalar(
        select(QuizResult).where(QuizResult.assignment_id == assignment.id).execution_options(populate_existing=True)
    )


def quiz_for(task_code: str, audience: str) -> Quiz:
    """Return the quiz of a task by its code. Raises NotFound for a task or quiz that there is not, NoSuchQuiz."""
    try:
        wanted = QuizFor(audience)
    except ValueError:
        raise NotFound(f"There is no quiz for {audience!r}; quizzes are for writer or validator.") from None
    return quiz_of(task(task_code), wanted)
