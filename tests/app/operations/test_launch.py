"""Planning changes nothing; a launch makes each HIT once, whatever happens on the way."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.launch import (
    LaunchTerms,
    NotEnoughMoney,
    WageBelowFloor,
    batch_key,
    check_addresses,
    launch_batch,
    plan_launch,
)
from app.operations.round_policy import RoundPolicy, set_policy
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import InvalidInput
from hits.models import Context, Hit, HitBatch, Round
from hits.money import MoneyError
from hits.mturk.errors import MTurkRefused, MTurkUnavailable
from hits.states import HitState
from hits.validations import Policy
from payments.budgets import committed, set_budget
from payments.errors import OverBudget
from payments.models import BudgetScope, Reservation
from tests import market as markets
from tests.app.operations.conftest import CONTEXTS, TERMS, terms
from tests.app.operations.crashes import Killed, killed_at
from tests.market import ENDPOINT, Market, failing

Sessions = sessionmaker[Session]


def launched(session: Session, market: Market, settings: Settings, clock: FixedClock, **changes: object) -> int:
    return launch_batch(session, market.mturk, settings, clock, terms(**changes), CONTEXTS).created


def test_a_launch_creates_the_hits_and_stores_each_id(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    seen: list[tuple[int, int]] = []

    result = launch_batch(
        session,
        market.mturk,
        settings,
        clock,
        TERMS,
        CONTEXTS,
        on_created=lambda done, total: seen.append((done, total)),
    )

    hits = {hit["HITId"]: hit for hit in market.hits()}
    rows = session.scalars(select(Hit)).all()
    assert (result.created, result.existing) == (3, 0)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert {row.mturk_hit_id for row in rows} == set(hits)
    for row in rows:
        hit = hits[row.mturk_hit_id or ""]
        assert row.state is HitState.CREATED
        assert row.expires_at == clock.now() + timedelta(hours=168)
        assert hit["RequesterAnnotation"] == f"dynahit:{row.reference}"
        assert f"http://localhost:8001/work/{row.reference}" in hit["Question"]
        assert hit["Reward"] == "0.30"
        assert hit["AutoApprovalDelayInSeconds"] == 72 * 3600
        assert hit["AssignmentDurationInSeconds"] == 3600
        assert hit["MaxAssignments"] == 1


def test_contexts_and_goals_are_balanced(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    launched(session, market, settings, clock, hits=18)

    rows = session.scalars(select(Hit)).all()
    assert Counter(row.goal_label for row in rows) == {"negative": 6, "positive": 6, "neutral": 6}
    assert set(Counter((row.context_id, row.goal_label) for row in rows).values()) == {2}


def test_a_second_batch_takes_the_least_used_contexts_first(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    launched(session, market, settings, clock, hits=2)
    launched(session, market, settings, clock, hits=1, name="more")

    assert session.scalar(select(func.count(Hit.context_id.distinct()))) == 3
    assert session.scalar(select(func.count()).select_from(Round)) == 1
    assert session.scalar(select(func.count()).select_from(Context)) == 3


def test_launching_again_creates_nothing(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    launched(session, market, settings, clock)

    again = launch_batch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    plan = plan_launch(session, market.mturk, settings, clock, TERMS, CONTEXTS)

    assert (again.created, again.existing) == (0, 3)
    assert len(market.hits()) == 3
    assert plan.finished
    assert "--batch NAME" in plan.notes[0]


def test_another_name_is_another_batch(session: Session, market: Market, settings: Settings, clock: FixedClock) -> None:
    launched(session, market, settings, clock)

    assert launched(session, market, settings, clock, name="second") == 3
    assert len(market.hits()) == 6


@pytest.mark.parametrize(
    ("moment", "hours"), [("before_commit", 0), ("after_commit", 0), ("before_commit", 25), ("after_commit", 25)]
)
def test_a_kill_at_any_commit_leaves_exactly_the_hits_asked_for(
    session_factory: Sessions, settings: Settings, clock: FixedClock, moment: str, hours: int
) -> None:
    with session_factory() as session, killed_at(session, moment, 0) as count:
        launch_batch(session, Market(clock).mturk, settings, clock, TERMS, CONTEXTS)
    assert count["commits"] >= 10

    for number in range(1, count["commits"] + 1):
        market, name = Market(clock), f"{moment} {number} {hours}"
        with session_factory() as session, killed_at(session, moment, number), pytest.raises(Killed):
            launched(session, market, settings, clock, name=name)
        clock.advance(timedelta(hours=hours))

        with session_factory() as session:
            launched(session, market, settings, clock, name=name)
            key = batch_key(terms(name=name), CONTEXTS, ENDPOINT)
            stored = session.scalars(select(Hit).join(Hit.batch).where(HitBatch.key == key)).all()

        there = {(hit["HITId"], hit["RequesterAnnotation"]) for hit in market.hits()}
        assert len(there) == 3, number
        assert {(row.mturk_hit_id, f"dynahit:{row.reference}") for row in stored} == there


@pytest.mark.parametrize("hours", [0, 22, 25, 24 * 30])
def test_a_lost_answer_does_not_make_a_second_hit(
    session: Session, market: Market, settings: Settings, clock: FixedClock, hours: int
) -> None:
    def lose(operation: str) -> None:
        if operation == "CreateHITWithHITType" and len(market.hits()) == 2:
            raise Killed

    market.after = lose
    with pytest.raises(Killed):
        launched(session, market, settings, clock)
    session.rollback()
    market.after = None
    clock.advance(timedelta(hours=hours))

    assert launched(session, market, settings, clock) == 2
    assert len(market.hits()) == 3
    assert {row.mturk_hit_id for row in session.scalars(select(Hit))} == {hit["HITId"] for hit in market.hits()}


def test_a_hit_that_the_list_does_not_show_yet_is_found_by_its_token(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    def lose(operation: str) -> None:
        if operation == "CreateHITWithHITType":
            raise Killed

    market.after = lose
    with pytest.raises(Killed):
        launched(session, market, settings, clock)
    session.rollback()
    market.after = None
    empty = b'{"NumResults": 0, "HITs": []}'
    market.before = lambda operation: (200, {}, empty) if operation == "ListHITs" else None

    assert launched(session, market, settings, clock) == 3
    assert len(market.hits()) == 3


def test_a_forgotten_token_is_replaced_only_after_the_list_shows_nothing(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    def die(operation: str) -> None:
        if operation == "CreateHITWithHITType":
            raise Killed

    market.before = die
    with pytest.raises(Killed):
        launched(session, market, settings, clock)
    session.rollback()
    market.before = None
    first = session.scalars(select(Hit).order_by(Hit.position)).first()
    assert first is not None
    token = first.request_token
    session.commit()
    clock.advance(timedelta(hours=25))
    market.calls.clear()

    launched(session, market, settings, clock)

    assert market.calls.index("ListHITs") < market.calls.index("CreateHITWithHITType")
    assert market.calls.count("ListHITs") == 1
    session.refresh(first)
    assert first.request_token != token
    assert len(market.hits()) == 3


def test_a_marketplace_that_fails_twice_gets_each_hit_once(
    session: Session, settings: Settings, clock: FixedClock
) -> None:
    market = Market(clock, attempts=4)
    market.after = failing("CreateHITWithHITType", times=2)

    assert launched(session, market, settings, clock) == 3
    assert len(market.hits()) == 3


def test_two_launches_at_the_same_time_make_each_hit_once(
    session_factory: Sessions, market: Market, settings: Settings, clock: FixedClock
) -> None:
    together = threading.Barrier(2)
    failures: list[BaseException] = []

    def launch() -> None:
        try:
            with session_factory() as session:
                together.wait(10)
                launch_batch(session, market.client(), settings, clock, terms(hits=8), CONTEXTS)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=launch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(market.hits()) == 8
    with session_factory() as session:
        stored = session.scalars(select(Hit.mturk_hit_id)).all()
        assert sorted(filter(None, stored)) == sorted(hit["HITId"] for hit in market.hits())
        assert session.scalar(select(func.count()).select_from(HitBatch)) == 1


@pytest.mark.parametrize(("status", "kind"), [(500, "ServiceFault"), (400, "ThrottlingException")])
def test_a_marketplace_that_stays_away_leaves_what_exists_and_the_next_run_goes_on(
    session: Session, market: Market, settings: Settings, clock: FixedClock, status: int, kind: str
) -> None:
    def later(operation: str) -> tuple[int, dict[str, str], bytes] | None:
        if operation == "CreateHITWithHITType" and len(market.hits()) == 1:
            return status, {}, f'{{"__type":"{kind}","Message":"Rate exceeded"}}'.encode()
        return None

    market.before = later
    with pytest.raises(MTurkUnavailable, match="can be run again"):
        launched(session, market, settings, clock)
    session.rollback()
    market.before = None

    assert launched(session, market, settings, clock) == 2
    assert len(market.hits()) == 3


def test_a_plan_changes_nothing(session: Session, market: Market, settings: Settings, clock: FixedClock) -> None:
    plan = plan_launch(session, market.mturk, settings, clock, terms(hits=20), CONTEXTS)

    assert market.calls == ["GetAccountBalance"]
    assert session.scalar(select(func.count()).select_from(Round)) == 0
    assert session.scalar(select(func.count()).select_from(HitBatch)) == 0
    assert plan.worst.assignments == 20
    assert plan.worst.rewards == Decimal("6.00")
    assert plan.worst.reward_fees == Decimal("1.20")
    assert plan.worst.bonuses == Decimal("6.00")
    assert plan.worst.bonus_fees == Decimal("1.20")
    assert plan.validation == 20 * 3 * Decimal("0.30")
    assert plan.cost == Decimal("32.40")
    assert plan.hourly_wage == Decimal("3.00")
    assert plan.left == Decimal("9967.60")
    assert sum(plan.goals.values()) == 20
    assert plan.most_hits_per_context == 7
    assert any("used again" in note for note in plan.notes)
    assert plan.as_json()["cost"]["worst_case"] == "32.40"


def test_a_round_that_validates_more_than_fooling_examples_can_cost_more(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    set_policy(session, clock, "sentiment", 1, RoundPolicy(Policy(2, 5, 3), non_fooling_percent=10), by="ada")

    plan = plan_launch(session, market.mturk, settings, clock, terms(), CONTEXTS)

    assert plan.validation_votes == 5
    assert plan.validation == plan.worst.assignments * terms().tries * 5 * Decimal("0.30")


def test_the_plan_counts_what_readers_can_earn_besides_gold_where_the_round_has_some(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    paying = settings.model_copy(update={"gold_bonus": Decimal("0.20"), "validation_bonus": Decimal("0.05")})
    bare = plan_launch(session, market.mturk, settings, clock, terms(), CONTEXTS)
    before = plan_launch(session, market.mturk, paying, clock, terms(), CONTEXTS)
    set_policy(session, clock, "sentiment", 1, RoundPolicy(gold_items=1), by="ada")

    plan = plan_launch(session, market.mturk, paying, clock, terms(), CONTEXTS)

    votes = plan.worst.assignments * plan.validation_votes
    assert before.validation - bare.validation == votes * Decimal("0.06")
    assert plan.validation - before.validation == votes * Decimal("0.24")


def test_the_plan_is_what_the_launch_then_does(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    plan = plan_launch(session, market.mturk, settings, clock, terms(hits=7), CONTEXTS)
    launched(session, market, settings, clock, hits=7)

    rows = session.scalars(select(Hit)).all()
    done = Counter((row.context.fields["prompt"], row.goal_label) for row in rows if row.context)
    assert done == Counter(
        {(context, label): count for context, goals in plan.goals_by_context for label, count in goals.items()}
    )


def test_ten_assignments_show_the_higher_fee(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    plan = plan_launch(session, market.mturk, settings, clock, terms(assignments=10), CONTEXTS)

    assert plan.worst.reward_fees == 30 * Decimal("0.12")
    assert any("40 %" in note for note in plan.notes)


def test_hits_for_masters_are_planned_and_set_aside_with_what_the_marketplace_holds_for_them(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    for_masters = terms(requirements=("masters held",))
    plan = plan_launch(session, market.mturk, settings, clock, for_masters, CONTEXTS)

    launch_batch(session, market.mturk, settings, clock, for_masters, CONTEXTS)

    assert plan.worst.reward_fees == 3 * Decimal("0.08")
    assert plan.fee_percent == 25
    assert not any("HITs with fewer avoid that" in note for note in plan.notes)
    assert market.engine.balance(market.requester_id).on_hold == plan.worst.hold
    assert session.scalars(select(Reservation.held)).one() == plan.cost
    without = plan_launch(session, market.mturk, settings, clock, terms(requirements=("masters not held",)), CONTEXTS)
    assert without.worst.reward_fees == 3 * Decimal("0.06")


def test_a_balance_that_is_too_small_stops_before_the_first_hit(
    session: Session, settings: Settings, clock: FixedClock
) -> None:
    market = Market(clock, balance="4.85")

    with pytest.raises(NotEnoughMoney, match=r"\$4\.86.*\$4\.85.*\$0\.01 are missing"):
        launched(session, market, settings, clock)

    assert market.hits() == []
    assert session.scalar(select(func.count()).select_from(HitBatch)) == 0


def test_money_that_runs_out_half_way_keeps_what_exists(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    def spend(operation: str) -> None:
        if operation == "CreateHITWithHITType" and len(market.hits()) == 1 and "CreateHIT" not in market.calls:
            market.calls.append("CreateHIT")
            # Somebody else spends the account's money meanwhile.
            market.call(
                "CreateHIT",
                Title="Another",
                Description="Another",
                Reward="9999.00",
                AssignmentDurationInSeconds=60,
                LifetimeInSeconds=3600,
                Question=market.hits()[0]["Question"],
            )

    market.engine.top_up(market.requester_id, Decimal("1999.60"), "so that one more HIT does not fit")
    market.before = spend

    with pytest.raises(NotEnoughMoney, match="of 3 HITs exist and stay"):
        launched(session, market, settings, clock)
    market.before = None
    session.rollback()
    market.engine.top_up(market.requester_id, Decimal("100.00"), "more")

    launched(session, market, settings, clock)
    ours = [hit for hit in market.hits() if hit.get("RequesterAnnotation")]
    assert len(ours) == 3


@pytest.mark.parametrize("reward", ["0.001", "-0.30", "NaN", "Infinity", "much"])
def test_an_amount_that_is_none_is_refused(reward: str) -> None:
    with pytest.raises(MoneyError):
        terms(reward=reward)


@pytest.mark.parametrize(
    "changes",
    [
        {"reward": Decimal("0.00")},
        {"hits": 0},
        {"tries": 0},
        {"assignments": 0},
        {"minutes": 90},
        {"lifetime_hours": 9000},
        {"auto_approval_hours": 721},
        {"round_number": 0},
        {"reward": "10000.01"},
        {"bonus": "99999999.00"},
        {"seed": 2**31},
    ],
)
def test_terms_that_cannot_be_offered_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        terms(**changes)


@pytest.mark.parametrize(
    ("service", "endpoint", "works"),
    [
        ("http://localhost:8001", "http://127.0.0.1:8000", True),
        ("https://hits.example.org", "https://market.example.org", True),
        ("https://hits.example.org", "http://127.0.0.1:8000", True),
        ("http://hits.example.org", "https://market.example.org", False),
        ("http://localhost:8001", "https://market.example.org", False),
        ("http://10.0.0.5:8001", "http://127.0.0.1:8000", False),
        ("hits.example.org", "http://127.0.0.1:8000", False),
    ],
)
def test_an_address_that_frames_cannot_show_is_refused(service: str, endpoint: str, works: bool) -> None:
    if works:
        check_addresses(service, endpoint)
    else:
        with pytest.raises(InvalidInput, match=r"https|web address"):
            check_addresses(service, endpoint)


def test_an_unreachable_service_address_launches_nothing(session: Session, market: Market, clock: FixedClock) -> None:
    with pytest.raises(InvalidInput, match="not https"):
        launched(session, market, markets.settings(service_url="http://hits.example.org"), clock)

    assert market.calls == []


def test_a_round_of_another_version_of_the_task_is_refused(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    session.add(Round(task_code="sentiment", number=1, task_version=99, created_at=clock.now()))
    session.commit()

    with pytest.raises(InvalidInput, match="Open round 2"):
        launched(session, market, settings, clock)


def test_every_term_is_part_of_what_makes_a_launch_the_same() -> None:
    others: list[LaunchTerms] = [
        terms(reward="0.31"),
        terms(hits=4),
        terms(name="x"),
        terms(seed=1),
        terms(tries=4),
        terms(assignments=2),
    ]

    keys = {batch_key(one, CONTEXTS, ENDPOINT) for one in [TERMS, *others]}
    keys.add(batch_key(TERMS, CONTEXTS[:2], ENDPOINT))
    keys.add(batch_key(TERMS, CONTEXTS, "http://127.0.0.1:9000"))

    assert len(keys) == 9


FLOOR = Decimal("9.00")


def test_a_launch_below_the_wage_floor_needs_a_reason_which_is_kept(
    session: Session, market: Market, clock: FixedClock
) -> None:
    settings = markets.settings(wage_floor=FLOOR, validation_reward="0.60")

    with pytest.raises(WageBelowFloor, match=r"comes to \$3\.00 an hour.*for 6 minutes that is \$0\.90\..*--reason"):
        launched(session, market, settings, clock)
    with pytest.raises(WageBelowFloor):
        launched(session, market, settings, clock, wage_reason="  \n")
    assert (market.hits(), session.scalars(select(HitBatch)).all()) == ([], [])
    session.rollback()

    assert launched(session, market, settings, clock, wage_reason=" A pilot. ") == 3
    [batch] = session.scalars(select(HitBatch))
    assert batch.wage_reason == "A pilot."


def test_a_plan_shows_what_is_below_the_floor_and_at_the_floor_nothing(
    session: Session, market: Market, clock: FixedClock
) -> None:
    settings = markets.settings(wage_floor=FLOOR, validation_reward="0.60")

    below = plan_launch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    at = plan_launch(session, market.mturk, settings, clock, terms(reward=Decimal("0.90")), CONTEXTS)

    assert below.notes[0].startswith("The reward comes to $3.00 an hour")
    assert below.as_json()["below_floor"] == list(below.below_floor)
    assert at.below_floor == ()


def test_readers_are_not_paid_below_the_floor_either(session: Session, market: Market, clock: FixedClock) -> None:
    settings = markets.settings(wage_floor=FLOOR, validation_reward="0.25")

    with pytest.raises(WageBelowFloor, match=r"set DYNAHIT_VALIDATION_REWARD to 0\.60 or more"):
        launched(session, market, settings, clock, reward=Decimal("0.90"))


def test_a_batch_that_was_begun_is_finished_whatever_the_floor_is_by_then(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    market.before = failing("CreateHITWithHITType", 400, "AccessDeniedException")
    with pytest.raises(MTurkRefused):
        launched(session, market, settings, clock)
    session.rollback()
    market.before = None

    assert launched(session, market, markets.settings(wage_floor=FLOOR), clock) == 3


def test_launches_from_before_requirements_and_practice_are_found_again() -> None:
    """The key of a launch that uses neither is what it was when neither could be said."""
    assert batch_key(TERMS, CONTEXTS, ENDPOINT) == batch_key(terms(wage_reason="A pilot."), CONTEXTS, ENDPOINT)
    assert batch_key(TERMS, CONTEXTS, ENDPOINT) == "be1f44aa88aca212e9b928c07bc467e0476d4f4ed2cc2bf02b295fa608665af4"
    others = {
        batch_key(terms(**changes), CONTEXTS, ENDPOINT)
        for changes in ({"practice": 3}, {"requirements": ("adult = 1",)}, {"requirements": ("adult = 0",)}, {})
    }
    assert len(others) == 4


@pytest.mark.parametrize(("field", "value"), [("practice", -1), ("practice", 101), ("wage_reason", "x" * 501)])
def test_terms_that_can_not_be_kept_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput):
        terms(**{field: value})


def test_a_launch_sets_its_worst_case_aside_before_the_first_hit_exists(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    plan = plan_launch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    market.before = failing("CreateHITWithHITType")

    with pytest.raises(MTurkUnavailable):
        launched(session, market, settings, clock)

    assert market.hits() == []
    reservation = session.scalars(select(Reservation)).one()
    assert (reservation.held, reservation.validation) == (plan.cost, plan.validation)
    assert reservation.bonuses == plan.worst.bonuses + plan.worst.bonus_fees
    session.commit()
    market.before = None
    launched(session, market, settings, clock)
    assert session.scalars(select(Reservation.held)).all() == [plan.cost]


def test_a_launch_that_no_budget_has_room_for_leaves_nothing_behind(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    set_budget(session, BudgetScope.ROUND, "sentiment/1", Decimal("1.00"), now=clock.now())
    session.commit()

    plan = plan_launch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    with pytest.raises(OverBudget, match="budget of round sentiment/1") as refusal:
        launched(session, market, settings, clock)

    assert plan.over_budget == str(refusal.value)
    assert plan.over_budget in plan.notes
    assert market.hits() == []
    for table in (HitBatch, Hit, Round, Reservation):
        assert session.scalar(select(func.count()).select_from(table)) == 0


def test_of_ten_launches_at_once_only_what_the_budget_covers_is_created(
    session_factory: Sessions, market: Market, settings: Settings, clock: FixedClock
) -> None:
    with session_factory() as session:
        cost = plan_launch(session, market.mturk, settings, clock, TERMS, CONTEXTS).cost
        set_budget(session, BudgetScope.PROJECT, "", 3 * cost, now=clock.now())
        session.commit()
    together = threading.Barrier(10)
    outcomes: list[str] = []

    def launch(number: int) -> None:
        with session_factory() as session:
            together.wait(timeout=60)
            try:
                launched(session, market, settings, clock, name=f"launch {number}")
                outcomes.append("created")
            except OverBudget:
                outcomes.append("refused")

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Counter(outcomes) == {"created": 3, "refused": 7}
    assert len(market.hits()) == 9
    with session_factory() as session:
        assert committed(session, BudgetScope.PROJECT, "") == 3 * cost
        assert session.scalar(select(func.count()).select_from(HitBatch)) == 3


def test_terms_that_came_later_leave_the_key_of_earlier_launches_alone() -> None:
    later = terms(streak_length=0, streak_bonus=Decimal("0.00"), sure_percent=0, sure_bonus=Decimal("0.00"))

    assert batch_key(later, CONTEXTS, ENDPOINT) == batch_key(TERMS, CONTEXTS, ENDPOINT)
    assert batch_key(terms(sure_percent=90, sure_bonus=Decimal("0.10")), CONTEXTS, ENDPOINT) != batch_key(
        TERMS, CONTEXTS, ENDPOINT
    )
