"""How a launch hands contexts out: by a strategy, within a limit, also when two launch at once."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.launch import batch_key, contexts_of_round, launch_batch, plan_launch
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound
from hits.models import Context, ContextScore, Hit, HitBatch, RetiredContext, Round
from hits.states import AssignmentState, Verdict
from tests.app.operations.conftest import CONTEXTS, TERMS, terms
from tests.factories import NOON, make_assignment, make_attempt, make_example
from tests.market import ENDPOINT, Market

SIX = [{"prompt": f"A ferry was early, story {number}."} for number in range(6)]


def test_two_launches_at_once_give_no_context_to_more_hits_than_meant(
    session_factory: sessionmaker[Session], market: Market, settings: Settings, clock: FixedClock
) -> None:
    # The round must be there: of two that make it, one begins again.
    with session_factory() as session:
        launch_batch(session, market.mturk, settings, clock, terms(hits=1, per_context=1), SIX[:1])
    gate, errors = threading.Barrier(2), []

    def launch(number: int) -> None:
        mine = terms(hits=2, per_context=1, name=str(number), seed=number)
        try:
            with session_factory() as session:
                gate.wait(timeout=30)
                launch_batch(session, market.mturk, settings, clock, mine, SIX)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    with session_factory() as session:
        taken = Counter(session.scalars(select(Hit.context_id)))
        assert (len(taken), set(taken.values())) == (5, {1})
        with pytest.raises(InvalidInput, match="1 HITs can be given a context by least-used"):
            launch_batch(session, market.mturk, settings, clock, terms(hits=2, per_context=1, name="more"), SIX)
        # Nobody worked on them, so that their time's end sets them free.
        clock.advance(timedelta(hours=TERMS.lifetime_hours + 1))
        launch_batch(session, market.mturk, settings, clock, terms(hits=6, per_context=1, name="later"), SIX)


def test_failed_contexts_are_issued_again_and_the_batch_says_how_it_chose(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    launch_batch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    for hit, verdict in zip(session.scalars(select(Hit).order_by(Hit.id)).all(), _VERDICTS, strict=True):
        assignment = make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
        make_example(session, attempt=make_attempt(session, assignment=assignment), verdict=verdict)
    failed = session.scalars(select(Hit.context_id).order_by(Hit.id)).first()
    session.commit()

    again = terms(hits=1, name="again", contexts_by="reissue")
    assert any(
        "chosen by reissue" in note
        for note in plan_launch(session, market.mturk, settings, clock, again, CONTEXTS).notes
    )
    batch_id = launch_batch(session, market.mturk, settings, clock, again, CONTEXTS).batch_id

    assert session.scalars(select(Hit.context_id).where(Hit.batch_id == batch_id)).one() == failed
    assert session.get_one(HitBatch, batch_id).contexts_by == "reissue"


_VERDICTS = (Verdict.INVALID, Verdict.VALID_AND_MODEL_WRONG, Verdict.PENDING)


def test_uncertainty_needs_scores_and_takes_the_most_unsure(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    launch_batch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    unsure = terms(hits=1, name="unsure", contexts_by="uncertainty")
    with pytest.raises(InvalidInput, match="dynahit contexts score sentiment --round 1"):
        plan_launch(session, market.mturk, settings, clock, unsure, CONTEXTS)
    ids = session.scalars(select(Context.id).order_by(Context.id)).all()
    session.add_all(
        ContextScore(context_id=one, model_id="m", model_revision="r", uncertainty=score, texts=1, at=NOON)
        for one, score in zip(ids, (0.2, 0.9, 0.4), strict=True)
    )
    session.commit()

    batch_id = launch_batch(session, market.mturk, settings, clock, unsure, CONTEXTS).batch_id

    assert session.scalars(select(Hit.context_id).where(Hit.batch_id == batch_id)).one() == ids[1]


def test_a_launch_from_the_round_s_contexts_stays_the_same_when_others_come(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    with pytest.raises(NotFound):
        contexts_of_round(session, "sentiment", 1)
    launch_batch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    mine = terms(of_round=True, name="mine", hits=1)
    round_id = session.scalars(select(Round.id)).one()
    retired = session.scalars(select(Context)).first()
    assert retired is not None
    session.add(RetiredContext(context_id=retired.id, reason="a name", by="robin", at=NOON))
    session.commit()

    assert batch_key(mine, CONTEXTS, ENDPOINT) == batch_key(mine, SIX, ENDPOINT)
    assert contexts_of_round(session, "sentiment", 1) == [one for one in CONTEXTS if one != retired.fields]
    launch_batch(session, market.mturk, settings, clock, mine, contexts_of_round(session, "sentiment", 1))
    session.add(Context(round_id=round_id, fields=SIX[0], digest="d" * 64, created_at=NOON))
    session.commit()
    again = launch_batch(session, market.mturk, settings, clock, mine, contexts_of_round(session, "sentiment", 1))

    assert (again.created, again.existing) == (0, 1)
    assert session.scalar(select(func.count()).select_from(HitBatch)) == 2


def test_the_way_of_choosing_is_part_of_what_makes_a_launch_the_same() -> None:
    others = [terms(contexts_by="uniform"), terms(per_context=1), terms(of_round=True), TERMS]

    assert len({batch_key(one, CONTEXTS, ENDPOINT) for one in others}) == 4
    with pytest.raises(InvalidInput, match="chosen by 'best'"):
        terms(contexts_by="best")
