"""Experts are those who passed the quiz and agree with gold; nobody else, and nobody twice."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.operations.promote import promote_validators
from hits.clock import FixedClock
from hits.models import GoldItem, Vote, Worker
from hits.states import AssignmentState, HitKind
from qualification import grants
from qualification.models import Ending, GrantState, Level, LevelChange
from tests import factories as make
from tests.factories import NOON
from tests.market import settings

KIND = "validator:sentiment"
SETTINGS = settings(gold_expert_items=5, gold_expert_percent=80)


def judged(session: Session, worker: Worker, right: int, of: int, *, counted: bool = True) -> None:
    """So many gold items judged by a worker, some of them right."""
    round_ = make.make_round(session)
    hit = make.make_hit(session, batch=make.make_batch(session, round=round_, kind=HitKind.VALIDATION))
    assignment = make.make_assignment(session, hit=hit, worker=worker, state=AssignmentState.SUBMITTED)
    for number in range(of):
        item = GoldItem(
            public_id=f"gold-{worker.id}-{number}",
            round_id=round_.id,
            context={"prompt": "A train was late."},
            answer={"statement": f"Statement {number} of {worker.id}."},
            digest=f"{worker.id}-{number}",
            label="negative",
            created_at=NOON,
        )
        session.add(item)
        session.flush()
        session.add(
            Vote(
                gold_item_id=item.id,
                validator_id=worker.id,
                assignment_id=assignment.id,
                label="negative" if number < right else "positive",
                created_at=NOON,
                counted_at=NOON if counted else None,
            )
        )
    session.flush()


def qualified(session: Session, worker: Worker) -> None:
    grants.note_held(session, worker.id, KIND, version=1, value=1, endpoint="e", granted_at=NOON, reason="", months=0)


@pytest.mark.parametrize(
    ("right", "of", "counted", "with_quiz", "level"),
    [
        (4, 5, True, True, Level.EXPERT),
        (3, 5, True, True, Level.NOVICE),
        (4, 4, True, True, Level.NOVICE),
        (5, 5, False, True, Level.NOVICE),
        (5, 5, True, False, Level.NOVICE),
    ],
)
def test_an_expert_has_passed_the_quiz_and_agrees_with_gold(
    session: Session, clock: FixedClock, right: int, of: int, counted: bool, with_quiz: bool, level: Level
) -> None:
    ada = make.make_worker(session)
    judged(session, ada, right, of, counted=counted)
    if with_quiz:
        qualified(session, ada)

    assert promote_validators(session, "e", SETTINGS, clock) == (level is Level.EXPERT)

    assert grants.level_of(session, ada.id, "sentiment") is level
    assert grants.level_of(session, ada.id, "nli") is Level.NOVICE


def test_nobody_is_raised_twice_and_the_history_says_why(session: Session, clock: FixedClock) -> None:
    ada = make.make_worker(session)
    judged(session, ada, 5, 6)
    qualified(session, ada)

    assert promote_validators(session, "e", SETTINGS, clock) == 1
    assert promote_validators(session, "e", SETTINGS, clock) == 0

    assert session.scalar(select(func.count()).select_from(LevelChange)) == 1
    change = session.scalars(select(LevelChange)).one()
    assert (change.by, change.reason) == ("gold", "Passed the quiz, and judged 5 of 6 gold items right.")


def test_an_expert_gets_the_tasks_qualification_and_keeps_it_as_long_as_the_quiz_is_held(
    session: Session, clock: FixedClock
) -> None:
    ada = make.make_worker(session)
    judged(session, ada, 5, 5)
    qualified(session, ada)
    promote_validators(session, "e", SETTINGS, clock)

    grant = grants.latest_grant(session, ada.id, "expert:sentiment", "e")
    assert grant is not None
    assert (grant.state, grant.version, grant.value) == (GrantState.PLANNED, 0, 1)
    assert grant.expires_at == grants.months_later(clock.now(), SETTINGS.qualification_months)

    grant.state, grant.ending, grant.revoked_at = GrantState.ENDED, Ending.EXPIRED, clock.now()
    session.flush()
    assert promote_validators(session, "e", SETTINGS, clock) == 0
    again = grants.latest_grant(session, ada.id, "expert:sentiment", "e")
    assert again is not None
    assert again.state is GrantState.PLANNED


def test_who_was_lowered_is_not_raised_by_gold_again(session: Session, clock: FixedClock) -> None:
    ada = make.make_worker(session)
    judged(session, ada, 5, 5)
    qualified(session, ada)
    promote_validators(session, "e", SETTINGS, clock)
    grants.lower_level(session, ada.id, "sentiment", Level.NOVICE, by="robin", reason="Shares answers", now=clock.now())

    assert promote_validators(session, "e", SETTINGS, clock) == 0
    assert grants.level_of(session, ada.id, "sentiment") is Level.NOVICE
