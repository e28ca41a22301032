"""A pilot is launched first, reported on, and only a release lets the rest be created, each HIT once."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.jobs_pass import jobs_pass
from app.operations.launch import LaunchResult, launch_batch, plan_launch
from app.operations.pilot import Seen, forecast, pilot_report, release_pilot
from app.operations.status import batch_statuses
from app.operations.stop_rules import set_rules
from app.operations.upload_contexts import retire_contexts
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound, Refused
from hits.models import Hit, HitBatch, Round
from hits.rounds import NotReady, StopRules, moves_of
from hits.states import HitKind, HitState, RoundState
from tests import factories as make
from tests.app.operations.conftest import CONTEXTS, terms
from tests.app.operations.crashes import Killed, killed_at
from tests.app.operations.people import Crowd
from tests.market import Market

ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
TERMS = terms(hits=6, pilot=2)


def launched(crowd: Crowd) -> LaunchResult:
    return launch_batch(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, TERMS, CONTEXTS)


def passed(crowd: Crowd) -> None:
    assert jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock).findings == []


def round_of(crowd: Crowd) -> Round:
    return crowd.session.scalars(select(Round).execution_options(populate_existing=True)).one()


def piloted(crowd: Crowd) -> None:
    """Launch with a pilot, whose two HITs are done: one example fooled the model, and two readers agreed."""
    launched(crowd)
    market, session = crowd.market, crowd.session
    hits = session.scalars(select(Hit.mturk_hit_id).where(Hit.mturk_hit_id.is_not(None)).order_by(Hit.position)).all()
    session.commit()
    crowd.write(market.person("writer0"), hits[0] or "", {"A treat, cold soup.": True})
    crowd.write(market.person("writer1"), hits[1] or "", {f"Nice, a bill {number}.": False for number in range(5)})
    passed(crowd)
    crowd.clock.advance(timedelta(seconds=60))
    passed(crowd)
    reading = session.execute(
        select(Hit.mturk_hit_id, HitBatch.qualification_type_id).join(Hit.batch).where(HitBatch.kind == "validation")
    ).one()
    session.commit()
    for name in ("reader0", "reader1"):
        crowd.judge(market.person(name, grants={reading[1] or "": 1}), reading[0] or "")
    passed(crowd)
    passed(crowd)


def released(crowd: Crowd, **options: bool) -> int:
    return release_pilot(
        crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, "sentiment", 1, by="Ada", **options
    ).created


@ON_SQLITE
def test_a_pilot_is_walked_from_launch_to_release(crowd: Crowd) -> None:
    plan = plan_launch(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, TERMS, CONTEXTS)
    assert (plan.hits_now, plan.held_hits, plan.missing_hits) == (2, 4, 6)

    piloted(crowd)

    assert round_of(crowd).state is RoundState.PILOTING
    assert launched(crowd).created == 0
    held = [one.held for one in batch_statuses(crowd.session) if one.kind == HitKind.CREATION]
    assert held == [4]
    report = pilot_report(crowd.session, crowd.settings, crowd.clock, "sentiment", 1)
    assert (report.hits, report.held, report.places, report.submitted, report.waiting) == (2, 4, 2, 2, 0)
    assert (report.rates.mer.hits, report.rates.vmer.hits, report.rates.vmer.of) == (1, 1, 6)
    # Two rewards of $0.30 with $0.06, two votes of $0.25 with $0.05, and a bonus of $0.30 with $0.06.
    assert report.cost == 2 * Decimal("0.36") + 2 * vote_cost(crowd.settings) + Decimal("0.36")
    assert report.missing == ()
    assert report.forecast is not None
    assert report.forecast.cost[1] == 3 * report.cost
    assert report.forecast.verified[1] == 3
    assert report.as_json()["vmer"]["count"] == 1

    assert released(crowd) == 4

    assert (round_of(crowd).state, released(crowd)) == (RoundState.COLLECTING, 0)
    creation = [hit for hit in crowd.market.hits() if "/work/" in hit["Question"]]
    assert len(creation) == 6
    assert [one.to_state.value for one in moves_of(crowd.session, round_of(crowd).id)] == [
        "draft",
        "piloting",
        "collecting",
    ]
    entry = crowd.session.scalars(select(AuditEntry).where(AuditEntry.action == "round.release")).one()
    assert (entry.staff_name, entry.detail) == ("Ada", {"batch": report.batch_id, "pilot": 2, "early": False})
    # What came of the pilot stays what it was.
    assert pilot_report(crowd.session, crowd.settings, crowd.clock, "sentiment", 1).rates == report.rates


def vote_cost(settings: Settings) -> Decimal:
    return settings.validation_reward * 120 / 100


@ON_SQLITE
def test_a_release_lists_what_is_missing_and_creates_nothing_unless_it_is_told_to_be_early(crowd: Crowd) -> None:
    launched(crowd)
    mturk_hit_id = crowd.market.hits()[0]["HITId"]
    crowd.write(crowd.market.person("writer0"), mturk_hit_id, {"A treat, cold soup.": True})
    passed(crowd)

    with pytest.raises(NotReady) as refused:
        released(crowd)

    assert len(refused.value.missing) == 2
    for part in ("of the pilot's 2 HITs are not closed", "1 of the pilot's examples are not decided", "--early"):
        assert part in str(refused.value)
    assert round_of(crowd).state is RoundState.PILOTING
    crowd.session.rollback()
    assert released(crowd, early=True) == 4
    assert moves_of(crowd.session, round_of(crowd).id)[-1].note == "released after a pilot of 2 HITs, early"


@ON_SQLITE
def test_a_round_that_would_stop_at_once_is_not_released_early_either(crowd: Crowd) -> None:
    launched(crowd)
    passed(crowd)
    at = crowd.clock.now()
    set_rules(crowd.session, crowd.clock, "sentiment", 1, lambda _: StopRules(at=at), by="Ada")

    with pytest.raises(NotReady, match=r"stop rule is fulfilled.*`dynahit round stop-rules sentiment 1"):
        released(crowd, early=True)

    assert round_of(crowd).state is RoundState.PILOTING
    assert len(crowd.market.hits()) == 2
    set_rules(crowd.session, crowd.clock, "sentiment", 1, lambda _: StopRules(), by="Ada")
    assert released(crowd, early=True) == 4


@ON_SQLITE
def test_hits_behind_the_pilot_whose_context_was_retired_are_never_created(crowd: Crowd) -> None:
    launched(crowd)
    behind = crowd.session.scalars(select(Hit).where(Hit.position > 2).order_by(Hit.position)).all()
    bad = behind[0].context
    assert bad is not None
    with_it = [hit.id for hit in behind if hit.context_id == bad.id]
    retire_contexts(crowd.session, crowd.clock, "sentiment", 1, [bad.digest], reason="names a person", by="Ada")

    assert released(crowd, early=True) == 4 - len(with_it)

    rows = crowd.session.scalars(select(Hit).where(Hit.context_id == bad.id, Hit.position > 2)).all()
    assert [(hit.id, hit.state, hit.mturk_hit_id) for hit in rows] == [(one, HitState.CLOSED, None) for one in with_it]
    assert len(crowd.market.hits()) == 6 - len(with_it)


@ON_SQLITE
@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_a_release_that_is_killed_at_any_commit_is_finished_by_the_next(crowd: Crowd, moment: str) -> None:
    launched(crowd)
    for number in range(1, 12, 3):
        with killed_at(crowd.session, moment, number):
            try:
                released(crowd, early=True)
            except Killed:
                crowd.session.close()

    released(crowd, early=True)

    assert len(crowd.market.hits()) == 6
    assert all(hit.mturk_hit_id is not None for hit in crowd.session.scalars(select(Hit)))


@ON_SQLITE
def test_other_launches_wait_for_the_pilot_and_a_pilot_comes_before_collecting(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    def launch(**changes: object) -> int:
        return launch_batch(session, market.mturk, settings, clock, terms(**changes), CONTEXTS).created

    assert launch(hits=3, pilot=1) == 1
    with pytest.raises(Refused, match="is piloting: other HITs wait"):
        launch(hits=2, name="another")
    assert launch(round_number=2, hits=1) == 1
    with pytest.raises(Refused, match="is collecting already, and a pilot comes before that"):
        launch(round_number=2, hits=3, pilot=1)
    with pytest.raises(InvalidInput, match="leave at least 1"):
        terms(hits=3, pilot=3)
    assert len(market.hits()) == 2


@ON_SQLITE
def test_a_round_without_a_pilot_has_nothing_to_release(crowd: Crowd) -> None:
    make.make_round(crowd.session)
    crowd.session.commit()

    for ask in (
        lambda: pilot_report(crowd.session, crowd.settings, crowd.clock, "sentiment", 1),
        lambda: released(crowd),
    ):
        with pytest.raises(NotFound, match="has no pilot"):
            ask()


COSTS = {"base": Decimal("0.36"), "vote": Decimal("0.10"), "bonus": Decimal("0.36"), "votes": (2, 3)}


def test_a_forecast_holds_what_the_pilot_showed_between_its_intervals() -> None:
    found = forecast(Seen(submitted=20, validated=10, decided=10, verified=5, votes=25), 100, **COSTS)  # type: ignore[arg-type]

    assert found is not None
    # 100 rewards, 50 examples of 2.5 votes, 25 bonuses.
    assert found.cost[1] == Decimal("57.50")
    assert found.verified[1] == 25
    assert found.cost_per_verified == Decimal("2.30")
    assert found.cost[0] < found.cost[1] < found.cost[2]
    assert found.verified[0] < found.verified[1] < found.verified[2] <= 100


@pytest.mark.parametrize("seen", [Seen(0, 0, 0, 0, 0), Seen(5, 2, 0, 0, 1)])
def test_there_is_no_forecast_before_anything_is_submitted_and_decided(seen: Seen) -> None:
    assert forecast(seen, 100, **COSTS) is None  # type: ignore[arg-type]


def test_a_pilot_that_fooled_nothing_forecasts_base_pay() -> None:
    found = forecast(Seen(submitted=10, validated=0, decided=0, verified=0, votes=0), 100, **COSTS)  # type: ignore[arg-type]

    assert found is not None
    assert (found.cost[0], found.cost[1], found.verified[1]) == (Decimal("36.00"), Decimal("36.00"), 0)
    assert found.cost_per_verified is None
