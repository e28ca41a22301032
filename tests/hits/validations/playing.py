"""Rounds in which made-up people judge through the real queue, votes and rule, with neither pages nor a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits import validations
from hits.clock import FixedClock
from hits.db import Base, engine_for
from hits.models import Assignment, Attempt, Example, Round, Worker
from hits.states import AssignmentState, AttemptState, HitKind, Verdict
from hits.validations import Policy
from tests import factories as make

#: Returns the label that somebody gives: of which example, the how-manieth reader of it, and who.
Judge = Callable[[int, int, Worker], str]


@dataclass(frozen=True)
class Text:
    """An example to be judged: the writer's label, the model's, and the writer."""

    goal: str
    model: str
    writer: Worker


@contextmanager
def empty_session() -> Iterator[Session]:
    """Yield a session on a database in memory with every table."""
    engine = engine_for("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        yield session
    engine.dispose()


def round_with(session: Session, policy: Policy, texts: Sequence[Text], **fields: Any) -> tuple[Round, list[Example]]:
    """Store a round whose examples are all to be validated, in order."""
    round_ = make.make_round(
        session,
        **{
            "number": 1,
            "agreeing_votes": policy.agreeing_votes,
            "max_votes": policy.max_votes,
            "split_votes": policy.split_votes,
            "senior_value": policy.senior_value,
            **fields,
        },
    )
    hit = make.make_hit(session, batch=make.make_batch(session, round=round_), context_id=None, goal_label=None)
    context = make.make_context(session, round=round_)
    works: dict[int, Assignment] = {}
    for text in texts:
        if text.writer.id not in works:
            works[text.writer.id] = make.make_assignment(
                session, hit=hit, worker=text.writer, state=AssignmentState.SUBMITTED
            )
    attempts = [
        Attempt(
            public_id=f"replayed-{number}",
            assignment_id=works[text.writer.id].id,
            hit_id=hit.id,
            worker_id=text.writer.id,
            try_number=number,
            answer={"statement": f"Text {number}"},
            answer_digest=f"{number}",
            goal_label=text.goal,
            state=AttemptState.ANSWERED,
            asked_at=make.NOON,
            seconds=60,
            predicted_label=text.model,
            fooled=text.goal != text.model,
        )
        for number, text in enumerate(texts, start=1)
    ]
    session.add_all(attempts)
    session.flush()
    examples = [
        Example(
            attempt_id=attempt.id,
            round_id=round_.id,
            context_id=context.id,
            writer_id=attempt.worker_id,
            goal_label=text.goal,
            model_label=text.model,
            fooled=text.goal != text.model,
            verdict=Verdict.PENDING,
            votes_wanted=policy.agreeing_votes,
            collected_at=make.NOON + timedelta(milliseconds=number),
        )
        for number, (attempt, text) in enumerate(zip(attempts, texts, strict=True))
    ]
    session.add_all(examples)
    session.flush()
    return round_, examples


def play(session: Session, round_: Round, people: Sequence[Worker], judge: Judge, *, items: int = 10) -> int:
    """Let the people judge in turn until nothing waits for any of them; return how many votes were given.

    People of ``senior_value`` are the last fifth, and the only ones who see ties where the round says so.
    """
    clock = FixedClock(make.NOON)
    seniors = list(people[-max(len(people) // 5, 1) :])
    readers: dict[int, int] = {}
    votes = 0
    while True:
        before = votes
        for senior_value, crowd in ((None, list(people)), (round_.senior_value, seniors)):
            if crowd is seniors and senior_value is None:
                continue
            batch = make.make_batch(
                session, round=round_, kind=HitKind.VALIDATION, items=items, senior_value=senior_value
            )
            hit = make.make_hit(session, batch=batch, max_assignments=len(crowd))
            for person in crowd:
                votes += _one_batch(
                    session, make.make_assignment(session, hit=hit, worker=person), judge, readers, clock
                )
        if votes == before:
            return votes


def _one_batch(
    session: Session, assignment: Assignment, judge: Judge, readers: dict[int, int], clock: FixedClock
) -> int:
    drawn = validations.draw(session, assignment, clock.now())
    for lease in drawn:
        if lease.example_id is None:
            validations.record_vote(session, assignment, lease.id, label="neutral", now=clock.now())
            continue
        if lease.example is None or lease.example.writer_id == assignment.worker_id:
            raise AssertionError("the queue gave somebody the own text")
        nth = readers[lease.example_id] = readers.get(lease.example_id, 0) + 1
        said = judge(lease.example_id, nth, assignment.worker)
        validations.record_vote(session, assignment, lease.id, label=said, now=clock.now())
    if not drawn:
        return 0
    validations.save_votes(session, assignment, clock.now())
    assignment.state = AssignmentState.SUBMITTED
    validations.count_votes(session, assignment, clock.now())
    ids = [lease.example_id for lease in drawn if lease.example_id is not None]
    for example in session.scalars(select(Example).where(Example.id.in_(ids), Example.votes_wanted == 0)):
        validations.decide(session, example, clock.now())
    return len(ids)
