"""Workers whom a requester takes no work from."""

from __future__ import annotations

import pytest

from hits.marketplace import blocks
from hits.marketplace.errors import BlockedByRequester
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question, refused


def test_a_blocked_worker_neither_sees_nor_previews_nor_accepts(market: Market) -> None:
    worker_id, hit_id = market.worker(), market.create_hit()
    (group,) = market.engine.hit_groups(worker_id).groups

    market.client.create_worker_block(WorkerId=worker_id, Reason="Answers at random")

    assert market.engine.hit_groups(worker_id).groups == ()
    for refuse in (market.engine.preview, market.engine.accept):
        with pytest.raises(BlockedByRequester):
            refuse(worker_id, hit_id)
    with pytest.raises(Exception, match="no more HITs of this kind"):
        market.engine.accept_next(worker_id, group.hit_group_id)

    market.client.delete_worker_block(WorkerId=worker_id, Reason="Made up")
    assert market.engine.accept(worker_id, hit_id).hit_id == hit_id


def test_a_block_counts_for_one_requester_and_leaves_held_work(market: Market) -> None:
    worker_id, hit_id = market.worker(), market.create_hit()
    held = market.accepted(hit_id, worker_id)
    other = market.client_for(market.other_requester())
    theirs = other.create_hit(**HIT_PROPERTIES, LifetimeInSeconds=60, Question=external_question())["HIT"]["HITId"]

    market.client.create_worker_block(WorkerId=worker_id, Reason="x")

    assert market.engine.accept(worker_id, hit_id).assignment_id == held
    assert market.engine.external_submit(held, {"a": ["1"]}).state == "Submitted"
    assert market.engine.accept(worker_id, theirs).hit_id == theirs


def test_blocks_are_replaced_listed_and_paged(market: Market) -> None:
    workers = [market.worker() for _ in range(5)]
    for worker_id in workers:
        market.client.create_worker_block(WorkerId=worker_id, Reason="first")
    market.client.create_worker_block(WorkerId=workers[0], Reason="second")
    other = market.client_for(market.other_requester())

    pages = list(market.client.get_paginator("list_worker_blocks").paginate(PaginationConfig={"PageSize": 2}))

    assert [page["NumResults"] for page in pages] == [2, 2, 1, 0]
    found = [(block["WorkerId"], block["Reason"]) for page in pages for block in page["WorkerBlocks"]]
    assert found == [(workers[0], "second"), *((worker_id, "first") for worker_id in workers[1:])]
    assert other.list_worker_blocks()["WorkerBlocks"] == []


def test_blocks_need_a_known_worker(market: Market) -> None:
    with refused("ParameterValidationError", says='The value "A1NOBODY" is not valid for the parameter WorkerId. ('):
        market.client.create_worker_block(WorkerId="A1NOBODY", Reason="x")
    with refused("ParameterValidationError", says="WorkerId is invalid. ("):
        market.client.delete_worker_block(WorkerId="A1NOBODY")
    market.client.delete_worker_block(WorkerId=market.worker())


def test_there_is_a_most_of_blocks(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_BLOCKS", 1)
    market.client.create_worker_block(WorkerId=market.worker(), Reason="x")

    with refused("RequestError", "ParameterOutOfRange"):
        market.client.create_worker_block(WorkerId=market.worker(), Reason="x")
