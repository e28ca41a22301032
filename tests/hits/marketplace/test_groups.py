"""The counts that the worker's list is read from, against a recount; random walks count again at every step."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hits.marketplace import groups
from hits.marketplace.questions import write_html_question
from hits.marketplace.review_policies import KNOWN_ANSWERS
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question
from tests.hits.marketplace.recount import check_groups
from tests.hits.marketplace.test_review_policies import policy
from tests.hits.marketplace.test_work import all_at_once

PAGE = "<form action='externalSubmit'><input name='a'></form>"


def counted(market: Market) -> list[tuple[int, int, int | None]]:
    with market.engine.store.session(writes=False) as session:
        return sorted(check_groups(session).values(), key=str)


def test_hits_are_counted_while_they_have_a_place(stored_market: Market) -> None:
    market = stored_market
    worker_id = market.worker()
    plain, _html = market.create_hit(), market.create_hit(Question=write_html_question(PAGE, 0))
    assert counted(market) == [(1, 1, None)]

    assignment_id = market.accepted(plain, worker_id)
    assert counted(market) == [(0, 1, None)]
    market.engine.return_assignment(worker_id, assignment_id)
    assert counted(market) == [(1, 1, None)]
    market.submitted(plain, worker_id)
    market.client.create_additional_assignments_for_hit(HITId=plain, NumberOfAdditionalAssignments=1)
    assert counted(market) == [(1, 1, None)]
    market.clock.advance(hours=2)
    market.engine.settle()
    assert counted(market) == [(0, 0, None)]
    market.client.update_expiration_for_hit(HITId=plain, ExpireAt=market.clock.now().timestamp() + 60)
    assert counted(market) == [(1, 0, None)]


def test_a_hit_that_moves_is_counted_where_it_is(market: Market) -> None:
    hit_id = market.create_hit()
    other = market.client.create_hit_type(**{**HIT_PROPERTIES, "Title": "Other"})["HITTypeId"]

    market.client.update_hit_type_of_hit(HITId=hit_id, HITTypeId=other)

    with market.engine.store.session(writes=False) as session:
        assert check_groups(session)[other] == (1, 0, None)


def test_an_extension_that_there_is_no_money_for_counts_nothing(market: Market) -> None:
    extends = {"ExtendIfKnownAnswerScoreIsLessThan": "100", "ExtendMaximumAssignments": "4"}
    reviewed = policy(KNOWN_ANSWERS, {"a": ["1"]}, **extends, ExtendMinimumTimeInSeconds="60")
    hit_id = market.create_hit(Reward="450.00", AssignmentReviewPolicy=reviewed)
    market.create_hit(Reward="350.00")
    assignment_id = market.accepted(hit_id)

    market.engine.external_submit(assignment_id, {"a": ["2"]})

    results = market.client.list_review_policy_results_for_hit(HITId=hit_id)["AssignmentReviewReport"]
    assert [action["Status"] for action in results["ReviewActions"] if action["ActionName"] == "extend"] == ["Failed"]
    assert counted(market) == [(0, 0, None), (1, 0, None)]


def test_only_the_latest_work_is_measured(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = [market.worker() for _ in range(3)]
    for number, seconds in enumerate((500, 500, 500, 10, 20, 30, 40, 50)):
        assignment_id = market.accepted(market.create_hit(), workers[number % 3])
        market.clock.advance(seconds=seconds)
        market.engine.external_submit(assignment_id, {"a": ["1"]})
    assert counted(market) == [(0, 0, 45)]

    monkeypatch.setattr(groups, "_LATEST_WORK", groups._LATEST_WORK.limit(5))
    monkeypatch.setattr(groups, "LATEST", 5)
    market.submitted(market.create_hit(), workers[0])

    assert counted(market) == [(0, 0, 30)]


def test_counts_stay_right_when_everybody_acts_at_once(stored_market: Market) -> None:
    market = stored_market
    hits = [market.create_hit(MaxAssignments=2) for _ in range(4)]
    group = market.hit(hits[0])["HITGroupId"]
    workers = [market.worker() for _ in range(4)]
    new = {**HIT_PROPERTIES, "LifetimeInSeconds": 3600, "Question": external_question()}

    outcomes = all_at_once(
        [lambda w=w: market.engine.accept_next(w, group).assignment_id for w in workers for _ in range(2)]
        + [lambda: market.engine.call(market.requester_id, "CreateHIT", new) for _ in range(4)]
        + [lambda h=h: market.client.update_expiration_for_hit(HITId=h, ExpireAt=0) for h in hits[:2]]
    )

    assert not [outcome for outcome in outcomes if isinstance(outcome, AssertionError)]
    counted(market)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ([], None),
        ([("A", 9.0)] * 9, None),
        ([("A", 1.0), ("B", 2.0), ("C", 3.0), ("A", 4.0)], None),
        ([("A", 1.0), ("B", 2.0), ("C", 3.5), ("A", 4.0), ("A", 900.0)], 4),
        ([("A", 0.0), ("B", 0.0), ("C", 0.0), ("A", 0.0), ("B", 0.0)], 1),
    ],
)
def test_the_median_needs_five_pieces_of_work_by_three_workers(
    work: list[tuple[str, float]], expected: int | None
) -> None:
    assert groups.work_seconds(work) == expected


def test_a_wage_is_the_reward_for_an_hour_of_such_work() -> None:
    assert groups.hourly_wage(30, None) is None
    assert groups.hourly_wage(30, 90) == Decimal("12.00")
    assert groups.hourly_wage(1, 7) == Decimal("5.14")
    assert groups.hourly_wage(0, 7) == Decimal("0.00")
