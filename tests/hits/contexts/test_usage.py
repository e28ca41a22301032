"""What holds a context, what has used it, and what sets it free."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from hits.contexts import usage, usage_of
from hits.models import Context, ContextScore, Hit, RetiredContext
from hits.states import AssignmentState, HitState, Verdict
from tests.factories import (
    NOON,
    make_assignment,
    make_attempt,
    make_batch,
    make_context,
    make_example,
    make_hit,
    make_round,
)


def hit_with(session: Session, **fields: object) -> tuple[Context, Hit]:
    batch = make_batch(session)
    context = make_context(session, round=make_round(session))
    return context, make_hit(session, batch=batch, context_id=context.id, goal_label="negative", **fields)


def taken(session: Session, context: Context, *, hours: int = 1) -> tuple[int, int]:
    known = usage_of(session, context.round_id, NOON + timedelta(hours=hours)).candidates[context.digest]
    return known.held, known.used


def test_a_hit_holds_its_context_until_its_time_is_over(session: Session) -> None:
    context, _ = hit_with(session)

    assert taken(session, context) == (1, 0)
    assert taken(session, context, hours=200) == (0, 0), "nobody took it"


def test_a_planned_hit_that_is_never_created_holds_it_no_longer_than_that(session: Session) -> None:
    context, _ = hit_with(session, state=HitState.PLANNED, mturk_hit_id=None, expires_at=None)

    assert taken(session, context) == (1, 0)
    assert taken(session, context, hours=200) == (0, 0)


def test_work_makes_it_used_and_a_hit_closed_without_work_sets_it_free(session: Session) -> None:
    worked, hit = hit_with(session, state=HitState.CLOSED)
    make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
    idle, empty = hit_with(session, state=HitState.CLOSED)
    make_assignment(session, hit=empty)

    assert taken(session, worked) == (0, 1)
    assert taken(session, idle) == (0, 0)


def test_somebody_who_is_still_writing_holds_it_past_the_offers_end(session: Session) -> None:
    context, hit = hit_with(session, expires_at=NOON)
    make_assignment(session, hit=hit, deadline_at=NOON + timedelta(hours=3))

    assert taken(session, context, hours=1) == (1, 0)
    assert taken(session, context, hours=4) == (0, 0)


@pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
def test_a_context_that_is_stored_and_launched_while_we_look_is_counted(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_id = make_round(session).id
    looked, meanwhile = usage._hits, []

    def later(of_round: int) -> object:
        meanwhile.append(hit_with(session)[0])
        return looked(of_round)

    monkeypatch.setattr(usage, "_hits", later)
    candidates = usage_of(session, round_id, NOON).candidates

    assert candidates[meanwhile[0].digest].held == 1


def test_examples_verdicts_scores_and_retirement_are_known_of_each(session: Session) -> None:
    context, hit = hit_with(session)
    for verdict, predicted in ((Verdict.INVALID, "positive"), (Verdict.NOT_VALIDATED, "negative")):
        assignment = make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
        attempt = make_attempt(session, assignment=assignment, predicted_label=predicted)
        make_example(session, attempt=attempt, verdict=verdict)
    for at, revision, score in ((0, "old", 0.2), (1, "new", 0.7)):
        when = NOON + timedelta(hours=at)
        session.add(
            ContextScore(
                context_id=context.id, model_id="m", model_revision=revision, uncertainty=score, texts=1, at=when
            )
        )
    session.add(RetiredContext(context_id=context.id, reason="a name", by="robin", at=NOON))
    session.flush()

    found = usage_of(session, context.round_id, NOON)

    known = found.candidates[context.digest]
    assert (known.asked, known.fooled, known.sound, known.failed, known.waiting) == (2, 1, 0, 1, 0)
    assert (known.uncertainty, known.retired, found.scored_by, found.scored) == (0.7, True, ("m", "new"), 1)
    assert found.goals[context.digest, "negative"] == 1
