"""Disputes: who may object and when, what overturning moves, and what both sides read."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import update

from hits.marketplace.console_views import Actor
from hits.marketplace.errors import (
    AlreadyDisputed,
    AssignmentUnknown,
    DisputeNotPossible,
    DisputeUnfit,
    OperatorError,
)
from hits.marketplace.tables import AssignmentRow
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.test_work import all_at_once

OPERATOR = Actor.operator("olga")


def rejected(market: Market, worker_id: str, **properties: object) -> str:
    assignment_id = market.submitted(market.create_hit(**properties), worker_id)
    market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="Too short.")
    return assignment_id


def test_overturning_pays_the_worker_from_the_requesters_balance(stored_market: Market) -> None:
    engine, worker_id = stored_market.engine, stored_market.worker()
    assignment_id = rejected(stored_market, worker_id)
    before = stored_market.balance()
    dispute = engine.open_dispute(worker_id, assignment_id, "The task asked for one sentence.")

    decided = engine.overturn_dispute(dispute.dispute_id, "One sentence was asked for.", by=OPERATOR)

    assert before == ("1000.00", "0.00")
    assert stored_market.balance() == ("999.64", "0.00")
    assert (decided.state, decided.decided_by, f"{decided.cost}") == ("Overturned", "olga", "0.36")
    assert (
        stored_market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["AssignmentStatus"] == "Approved"
    )
    assert f"{engine.earnings(worker_id).approved}" == "0.30"


def test_a_balance_that_is_too_low_changes_nothing_and_says_the_next_step(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    assignment_id = rejected(market, worker_id)
    dispute = engine.open_dispute(worker_id, assignment_id, "Unfair.")
    market.create_hit(MaxAssignments=2, Reward="357.00")
    assert market.balance()[0] == "143.20"
    market.create_hit(MaxAssignments=1, Reward="119.33")
    assert market.balance()[0] == "0.00"

    with pytest.raises(OperatorError, match=r"has \$0.00 available.*costs \$0.36.*Top up"):
        engine.overturn_dispute(dispute.dispute_id, "It was fine.", by=OPERATOR)

    assert engine.dispute(dispute.dispute_id).state == "Open"
    assert engine.audit_log(action="dispute overturned").total == 0


def test_upholding_moves_no_money_and_tells_both(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    dispute = engine.open_dispute(worker_id, rejected(market, worker_id), "Unfair.")
    engine.reply_to_dispute(market.requester_id, dispute.dispute_id, "The answer was empty.")

    decided = engine.uphold_dispute(dispute.dispute_id, "The answer is empty indeed.", by=OPERATOR)

    assert (decided.state, decided.reply) == ("Upheld", "The answer was empty.")
    assert market.balance() == ("1000.00", "0.00")
    told = engine.requester_messages(market.requester_id).messages
    assert [one.text.split(" ")[0] for one in told] == ["The", "Worker"]
    assert "The answer is empty indeed." in told[0].text
    assert "The answer is empty indeed." in engine.messages(worker_id).messages[0].text


def test_a_dispute_is_decided_once_by_whoever_comes_first(stored_market: Market) -> None:
    engine, worker_id = stored_market.engine, stored_market.worker()
    dispute = engine.open_dispute(worker_id, rejected(stored_market, worker_id), "Unfair.")

    outcomes = all_at_once(
        [
            lambda: engine.overturn_dispute(dispute.dispute_id, "Yes.", by=OPERATOR),
            lambda: engine.overturn_dispute(dispute.dispute_id, "Yes.", by=Actor.operator("otto")),
            lambda: engine.uphold_dispute(dispute.dispute_id, "No.", by=Actor.operator("oda")),
        ]
    )

    assert sum(isinstance(one, OperatorError) for one in outcomes) == 2
    spent = engine.balance(stored_market.requester_id).spent
    assert f"{spent}" == ("0.36" if engine.dispute(dispute.dispute_id).state == "Overturned" else "0.00")


def test_the_same_form_twice_decides_once(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    dispute = engine.open_dispute(worker_id, rejected(market, worker_id), "Unfair.")

    first, second = (
        engine.overturn_dispute(dispute.dispute_id, "Yes.", by=OPERATOR, token="form-token-0123456") for _ in range(2)
    )

    assert first == second
    assert f"{engine.balance(market.requester_id).spent}" == "0.36"


def test_what_is_disposed_can_still_be_overturned(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    assignment_id = rejected(market, worker_id)
    hit_id = market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["HITId"]
    market.client.delete_hit(HITId=hit_id)
    dispute = engine.open_dispute(worker_id, assignment_id, "Unfair.")

    engine.overturn_dispute(dispute.dispute_id, "Yes.", by=OPERATOR)

    assert market.balance() == ("999.64", "0.00")
    assert f"{engine.earnings(worker_id).approved}" == "0.30"


def test_a_requester_who_approves_after_all_settles_the_dispute(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    assignment_id = rejected(market, worker_id)
    dispute = engine.open_dispute(worker_id, assignment_id, "Unfair.")

    market.client.approve_assignment(AssignmentId=assignment_id, OverrideRejection=True)

    settled = engine.dispute(dispute.dispute_id)
    assert (settled.state, settled.decided_by) == ("Settled", "the requester")
    with pytest.raises(OperatorError, match="settled by the requester"):
        engine.overturn_dispute(dispute.dispute_id, "Yes.", by=OPERATOR)
    assert market.balance() == ("999.64", "0.00")


def test_a_dispute_and_an_approval_at_the_same_moment_end_in_one_payment(stored_market: Market) -> None:
    market, engine = stored_market, stored_market.engine
    for _ in range(3):
        worker_id = market.worker()
        assignment_id = rejected(market, worker_id)
        override = {"AssignmentId": assignment_id, "OverrideRejection": True}
        spent = engine.balance(market.requester_id).spent

        all_at_once(
            [
                partial(engine.open_dispute, worker_id, assignment_id, "Unfair."),
                partial(engine.call, market.requester_id, "ApproveAssignment", override),
            ]
        )

        assert f"{engine.balance(market.requester_id).spent - spent}" == "0.36"
        assert engine.disputes().total == 0


def test_what_is_approved_already_is_never_paid_again(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    dispute = engine.open_dispute(worker_id, rejected(market, worker_id), "Unfair.")
    with engine.store.session(writes=True) as session:
        session.execute(update(AssignmentRow).values(state="Approved"))

    with pytest.raises(OperatorError, match="not rejected any more"):
        engine.overturn_dispute(dispute.dispute_id, "Yes.", by=OPERATOR)

    assert market.balance() == ("1000.00", "0.00")


def test_who_may_dispute_and_what(market: Market) -> None:
    engine, worker_id, other = market.engine, market.worker(), market.worker()
    waiting = market.submitted(market.create_hit(), worker_id)
    assignment_id = rejected(market, worker_id)

    with pytest.raises(AssignmentUnknown):
        engine.open_dispute(other, assignment_id, "Not mine.")
    with pytest.raises(AssignmentUnknown):
        engine.open_dispute(worker_id, "3NONE", "No such.")
    with pytest.raises(DisputeNotPossible):
        engine.open_dispute(worker_id, waiting, "Too early.")
    for words in (" ", "x" * 2001):
        with pytest.raises(DisputeUnfit):
            engine.open_dispute(worker_id, assignment_id, words)
    engine.open_dispute(worker_id, assignment_id, "Unfair.")
    with pytest.raises(AlreadyDisputed):
        engine.open_dispute(worker_id, assignment_id, "Again.")
    assert engine.disputes().total == 1


def test_a_rejection_can_be_disputed_for_thirty_days(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    late, in_time = rejected(market, worker_id), rejected(market, worker_id)

    market.clock.advance(seconds=30 * 86_400 - 1)
    engine.open_dispute(worker_id, in_time, "In time.")
    market.clock.advance(seconds=1)

    with pytest.raises(DisputeNotPossible, match="30 days"):
        engine.open_dispute(worker_id, late, "Late.")


def test_another_requester_neither_sees_nor_answers_it(market: Market) -> None:
    engine, worker_id, other = market.engine, market.worker(), market.other_requester()
    dispute = engine.open_dispute(worker_id, rejected(market, worker_id), "Unfair.")

    assert engine.disputes(requester_id=other).total == 0
    with pytest.raises(OperatorError, match="There is no dispute"):
        engine.dispute(dispute.dispute_id, requester_id=other)
    with pytest.raises(OperatorError, match="There is no dispute"):
        engine.reply_to_dispute(other, dispute.dispute_id, "Mine?")


def test_words_are_needed_for_a_decision(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    dispute = engine.open_dispute(worker_id, rejected(market, worker_id), "Unfair.")

    for decide in (engine.overturn_dispute, engine.uphold_dispute):
        with pytest.raises(OperatorError, match="Say why"):
            decide(dispute.dispute_id, " ", by=OPERATOR)
    assert engine.dispute(dispute.dispute_id).state == "Open"
