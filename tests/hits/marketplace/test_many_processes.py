"""Several processes on one database, as several servers are: no place, token or dollar is given out twice."""

from __future__ import annotations

import multiprocessing
import random
import traceback
from collections.abc import Callable
from typing import Any

from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import HitNotAvailable, MarketplaceError
from hits.marketplace.settings import MarketplaceSettings
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question

PROCESSES = 8
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.hits.marketplace.test_many_processes"])

Job = Callable[..., list[tuple[str, str]]]


def _work(job: Job, number: int, start: Any, answers: Any, url: str, settings: MarketplaceSettings, args: Any) -> None:
    try:
        engine = Marketplace(url, settings=settings, clock=TestClock())
        engine.settle()
        start.wait(300)
        answers.put((number, job(engine, number, *args)))
        engine.close()
    except BaseException:
        answers.put((number, traceback.format_exc()))


def in_eight_processes(market: Market, job: Job, *args: Any) -> list[list[tuple[str, str]]]:
    """Run the job in eight processes that start together, each with its number, and return what each answered."""
    start, answers = _processes.Barrier(PROCESSES), _processes.Queue()
    running = [
        _processes.Process(target=_work, args=(job, number, start, answers, market.url, market.settings, args))
        for number in range(PROCESSES)
    ]
    for process in running:
        process.start()
    found = dict(answers.get(timeout=300) for _ in running)
    for process in running:
        process.join(60)
    failures = [answer for answer in found.values() if isinstance(answer, str)]
    assert not failures, failures[0]
    return [found[number] for number in range(PROCESSES)]


def accept_for_everybody(engine: Marketplace, number: int, hit_id: str, workers: list[str]) -> list[tuple[str, str]]:
    """Try to accept for each of the workers, in this process's own order."""
    got = []
    for worker_id in random.Random(number).sample(workers, len(workers)):
        try:
            got.append((worker_id, engine.accept(worker_id, hit_id).assignment_id))
        except HitNotAvailable:
            got.append((worker_id, ""))
    return got


def test_eight_processes_hammering_a_hit_with_fifty_places_get_fifty_assignments(stored_market: Market) -> None:
    market = stored_market
    hit_id = market.create_hit(MaxAssignments=50)
    workers = [market.worker() for _ in range(60)]

    answers = in_eight_processes(market, accept_for_everybody, hit_id, workers)

    assert all(len(one) == len(workers) for one in answers)
    given = {pair for one in answers for pair in one if pair[1]}
    assert len(given) == 50
    assert len({worker_id for worker_id, _id in given}) == 50
    assert len({assignment_id for _worker, assignment_id in given}) == 50
    assert market.counters(hit_id) == ("Unassignable", 0, 50, 0)
    for worker_id, assignment_id in given:
        assert [held.assignment_id for held in market.engine.held(worker_id)] == [assignment_id]


def create_with_tokens(engine: Marketplace, number: int, requester_id: str) -> list[tuple[str, str]]:
    """Send this process's share of 500 CreateHIT; the five with one token go to five processes at about one time."""
    got = []
    for request in range(number, 500, PROCESSES):
        token = f"token-{request // 5}"
        try:
            made = engine.call(
                requester_id,
                "CreateHIT",
                {
                    **HIT_PROPERTIES,
                    "LifetimeInSeconds": 3600,
                    "Question": external_question(),
                    "UniqueRequestToken": token,
                },
            )
        except MarketplaceError as error:
            # Any other refusal has no such words, and ends the process.
            got.append((token, error.message.split('The HIT with ID "')[1].split('" already exists.')[0]))
        else:
            got.append((token, "new " + made["HIT"]["HITId"]))
    return got


def test_500_creations_with_100_tokens_in_eight_processes_make_100_hits(stored_market: Market) -> None:
    market = stored_market

    answers = [pair for one in in_eight_processes(market, create_with_tokens, market.requester_id) for pair in one]

    assert len(answers) == 500
    created = {token: hit_id.removeprefix("new ") for token, hit_id in answers if hit_id.startswith("new ")}
    assert len(created) == sum(hit_id.startswith("new ") for _token, hit_id in answers) == 100
    assert all(created[token] == hit_id.removeprefix("new ") for token, hit_id in answers)
    pages = market.client.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": 100})
    assert {hit["HITId"] for page in pages for hit in page["HITs"]} == set(created.values())
    assert market.balance() == ("964.00", "36.00")


def pay_bonuses(engine: Marketplace, number: int, requester_id: str, worker_id: str, assignment_id: str) -> Any:
    """Send twenty bonuses of $5.00, of which all processes together can afford a part."""
    got = []
    for turn in range(20):
        try:
            engine.call(
                requester_id,
                "SendBonus",
                {
                    "WorkerId": worker_id,
                    "AssignmentId": assignment_id,
                    "BonusAmount": "5.00",
                    "Reason": f"{number} {turn}",
                },
            )
            got.append(("paid", f"{number} {turn}"))
        except MarketplaceError as error:
            got.append((str(error.turk_code), ""))
    return got


def test_eight_processes_cannot_spend_more_than_there_is(stored_market: Market) -> None:
    market = stored_market
    assignment_id = market.submitted(market.create_hit(Reward="0.00"))
    worker_id = market.worker_of(assignment_id)
    # $999.99 less $399.99 buys a hundred bonuses of $5.00 and their fees of $1.00.
    market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount="333.33", Reason="before")
    assert market.balance()[0] == "599.99"

    answers = in_eight_processes(market, pay_bonuses, market.requester_id, worker_id, assignment_id)

    outcomes = [outcome for one in answers for outcome, _reason in one]
    assert outcomes.count("paid") == 99
    assert outcomes.count("AWS.MechanicalTurk.InsufficientFunds") == 61
    assert market.balance()[0] == "5.99"
