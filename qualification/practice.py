"""The practice round: a reviewer grades a new writer's first examples in words, and passing raises the level."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.errors import InvalidAnswer, Refused
from hits.frozen import require_open
from hits.models import Assignment, Example, HitBatch, Round
from hits.states import PracticeState
from hits.validations import override
from qualification.grants import level_of, raise_level
from qualification.limits_models import PracticeGrade
from qualification.models import Level

WORDS_MAX_CHARACTERS = 2000
#: Why an example is out that a reviewer did not pass.
NOT_PASSED = "Practice, not passed."


def begin(session: Session, batch: HitBatch, examples: Sequence[Example]) -> int:
    """Keep the new examples of a writer who practises for a reviewer, and return how many. Flushes, never commits.

    A novice of the task practises until as many examples as the batch says have passed; what waits counts as passing,
    so that a reviewer who is slow holds up nobody. What waits is drawn for no validator.
    """
    if not batch.practice or not examples:
        return 0
    writer_id, task_code = examples[0].writer_id, batch.round.task_code
    if level_of(session, writer_id, task_code) is not Level.NOVICE:
        return 0
    left = batch.practice - _counted(session, writer_id, task_code, PracticeState.WAITING, PracticeState.PASSED)
    kept = examples[: max(left, 0)]
    for example in kept:
        example.practice_state = PracticeState.WAITING
    session.flush()
    return len(kept)


def grade(session: Session, example: Example, *, passed: bool, words: str, by: str, now: datetime) -> PracticeGrade:
    """Store what a reviewer says about a practice example, and act on it. Flushes; the caller holds the row's lock.

    Passed, it goes to the validators like any other; failed, it is out of the data, as by an override that can be
    lifted. Base pay hangs on neither. Raises InvalidAnswer for empty or overlong words, and Refused for an example that
    does not wait, that was retracted, or whose round is frozen.
    """
    require_open(session, example.round_id)
    if example.practice_state is not PracticeState.WAITING:
        raise Refused("This example waits for no grade: somebody has graded it already. Nothing was changed.")
    if example.retracted_at is not None:
        raise Refused("This example was retracted, so that it needs no grade. Nothing was changed.")
    said = _checked(words)
    example.practice_state = PracticeState.PASSED if passed else PracticeState.FAILED
    if not passed and example.overridden_at is None:
        # What was said stands in the grade, where it can be erased with its writer.
        override(session, example, label=None, reason=NOT_PASSED, now=now)
    found = PracticeGrade(example_id=example.id, passed=passed, words=said, graded_at=now, graded_by=by[:80])
    session.add(found)
    session.flush()
    batch, task_code = example.attempt.hit.batch, example.round.task_code
    if passed and _counted(session, example.writer_id, task_code, PracticeState.PASSED) >= batch.practice:
        raise_level(
            session,
            example.writer_id,
            task_code,
            Level.WRITER,
            by=by,
            reason=f"{batch.practice} practice examples passed",
            now=now,
        )
    return found


def waiting(session: Session) -> Sequence[Example]:
    """Return the examples that wait for a reviewer, the oldest first. Reads only."""
    return session.scalars(
        select(Example)
        .where(Example.practice_state == PracticeState.WAITING, Example.retracted_at.is_(None))
        .order_by(Example.collected_at, Example.id)
    ).all()


def show(session: Session, assignment: Assignment) -> None:
    """Let the writer's page show the grades that no page has shown yet. Flushes, never commits.

    Only grades of the same task: what was said about one helps nobody in another.
    """
    fresh = session.scalars(
        select(PracticeGrade)
        .join(PracticeGrade.example)
        .join(Example.round)
        .where(Example.writer_id == assignment.worker_id, Round.task_code == assignment.hit.batch.round.task_code)
        .where(PracticeGrade.shown_assignment_id.is_(None))
    ).all()
    for one in fresh:
        one.shown_assignment_id = assignment.id
    session.flush()


def shown_on(session: Session, assignment: Assignment) -> Sequence[PracticeGrade]:
    """Return the grades that this assignment's page shows, also when it is loaded again. Reads only."""
    of_page = PracticeGrade.shown_assignment_id == assignment.id
    return session.scalars(select(PracticeGrade).where(of_page).order_by(PracticeGrade.id)).all()


def _counted(session: Session, writer_id: int, task_code: str, *states: PracticeState) -> int:
    count = session.scalar(
        select(func.count())
        .select_from(Example)
        .join(Example.round)
        .where(Example.writer_id == writer_id, Round.task_code == task_code, Example.practice_state.in_(states))
        .where(Example.retracted_at.is_(None))
    )
    return count or 0


def _checked(words: str) -> str:
    said = words.strip()
    if not said:
        raise InvalidAnswer("words", "Say in words why it passes or not. The writer learns from that.")
    if len(said) > WORDS_MAX_CHARACTERS:
        raise InvalidAnswer(
            "words",
            f"Your words have {len(said):,} characters; at most {WORDS_MAX_CHARACTERS:,} can be sent. Cut them.",
        )
    if any(not (c.isprintable() or c in "\n\r\t") for c in said):
        raise InvalidAnswer("words", "Your words hold a character that can't be stored. Write it anew.")
    return said
