"""What an operator sees of accounts and HITs, and does to them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from botocore.exceptions import ClientError

from hits.marketplace import oversight
from hits.marketplace.console_views import Actor
from hits.marketplace.errors import AccountDisabled, HitNotAvailable, OperatorError
from tests.hits.marketplace.market import Market, refused
from tests.hits.marketplace.test_work import all_at_once

OLGA = Actor.operator("olga")


def test_workers_are_found_by_id_and_by_part_of_the_name(market: Market) -> None:
    engine = market.engine
    ada, bob = market.worker(user_name="Ada", user_name_key="ada"), market.worker(user_name="Bob", user_name_key="b_b")
    assignment_id = market.submitted(market.create_hit(), ada)
    market.client.approve_assignment(AssignmentId=assignment_id)
    market.submitted(market.create_hit(), ada)
    market.client.create_worker_block(WorkerId=ada, Reason="r")

    (found,) = engine.worker_accounts("AD").entries

    assert found.worker.worker_id == ada
    assert (found.submitted, found.approved, found.rejected, found.blocks) == (1, 1, 0, 1)
    assert [one.worker.worker_id for one in engine.worker_accounts(bob).entries] == [bob]
    assert engine.worker_accounts("_").total == 1, "an underscore is no wild card"
    assert engine.worker_accounts("nobody\x00").total == 0
    assert engine.worker_accounts().total == 2
    assert engine.worker_account("ada") == found == engine.worker_account(ada)
    with pytest.raises(OperatorError, match="no worker “zoe”"):
        engine.worker_account("zoe")


def test_nobody_is_taken_for_the_one_whose_id_they_took_for_a_user_name(market: Market) -> None:
    engine = market.engine
    ids = [market.worker() for _ in range(3)]
    for worker_id in ids:
        market.worker(user_name=worker_id, user_name_key=worker_id.casefold())

    assert [engine.worker_account(one).worker.worker_id for one in ids] == ids
    assert [engine.worker_called(one).worker_id for one in ids] == ids
    assert [engine.set_worker_disabled(one, True, by=OLGA).worker.worker_id for one in ids] == ids


def test_lists_come_in_pages(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oversight, "PAGE_SIZE", 2)
    for _ in range(5):
        market.worker()

    pages = [market.engine.worker_accounts(page=page) for page in (1, 2, 3, 9)]

    assert [(one.page, one.pages, len(one.entries)) for one in pages] == [(1, 3, 2), (2, 3, 2), (3, 3, 1), (3, 3, 1)]
    assert len({one.worker.worker_id for page in pages for one in page.entries}) == 5


def test_requesters_are_found_with_their_money(market: Market) -> None:
    engine = market.engine
    other = engine.create_requester("Vision 100%", email="eye@example.org").requester_id

    assert [one.requester.requester_id for one in engine.requester_accounts("100%").entries] == [other]
    assert [one.requester.requester_id for one in engine.requester_accounts("EYE@").entries] == [other]
    (found,) = engine.requester_accounts(market.requester_id).entries
    assert f"{found.balance.available}" == "1000.00"
    assert engine.requester_account(other).balance.available == 0
    with pytest.raises(OperatorError):
        engine.requester_account("A0")


def test_a_disabled_worker_cannot_sign_in_and_loses_nothing(market: Market) -> None:
    engine, ada = market.engine, market.worker(user_name_key="ada")
    held = market.accepted(market.create_hit(), ada)

    engine.set_worker_disabled(ada, True, by=OLGA)
    engine.set_worker_disabled(ada, True, by=OLGA)

    with pytest.raises(AccountDisabled):
        engine.authenticate_worker("ada", "a good password")
    assert engine.worker(ada).is_disabled
    assert engine.external_submit(held, {"a": ["1"]}).state == "Submitted"
    engine.set_worker_disabled(ada, False, by=OLGA)
    assert engine.authenticate_worker("ada", "a good password").worker_id == ada
    assert [one.action for one in engine.audit_log(about=ada).entries] == ["worker enabled", "worker disabled"]


def test_a_disabled_requester_reaches_neither_console_nor_api(market: Market) -> None:
    engine = market.engine
    lab = engine.create_requester("Lab", email="lab@example.org", password="a good password").requester_id
    client = market.client_for(lab)

    engine.set_requester_disabled(lab, True, by=OLGA)

    with pytest.raises(AccountDisabled):
        engine.authenticate_requester("lab@example.org", "a good password")
    for call in (client.get_account_balance, client.list_hits):
        with pytest.raises(ClientError, match=r"AccessDeniedException.*disabled"):
            call()
    engine.set_requester_disabled(lab, False, by=OLGA)
    assert client.get_account_balance()["AvailableBalance"] == "0.00"


def test_traits_and_places_are_set_and_logged(market: Market) -> None:
    engine, ada = market.engine, market.worker()

    engine.set_worker_trait(ada, "is_master", True, by=OLGA)
    engine.set_worker_trait(ada, "is_adult", True, by=OLGA)
    found = engine.set_worker_locale(ada, "US", "CA", by=OLGA).worker

    assert (found.is_master, found.is_adult, found.country, found.subdivision) == (True, True, "US", "CA")
    assert engine.audit_log(about=ada).total == 3
    assert not engine.set_worker_trait(ada, "is_master", False, by=OLGA).worker.is_master
    with pytest.raises(OperatorError, match="trait"):
        engine.set_worker_trait(ada, "password_hash", True, by=OLGA)
    with pytest.raises(OperatorError):
        engine.set_worker_locale(ada, "Norway", by=OLGA)


def test_one_form_tops_up_once_however_often_it_arrives(stored_market: Market) -> None:
    engine = stored_market.engine

    all_at_once(
        [
            lambda: engine.operator_top_up(
                stored_market.requester_id, Decimal("2.50"), "gift", by=OLGA, token="form-token-0123456"
            )
            for _ in range(4)
        ]
    )

    assert f"{engine.balance(stored_market.requester_id).deposited}" == "1002.50"
    assert engine.account_lines(stored_market.requester_id, kind="deposit").total == 2
    assert engine.audit_log(action="top-up").total == 1


def test_a_hit_that_is_taken_down_stays_down(market: Market) -> None:
    engine, ada = market.engine, market.worker()
    hit_id, other = market.create_hit(MaxAssignments=3), market.create_hit(Title="Another")
    held = market.accepted(hit_id, ada)

    assert engine.take_down(hit_id, "It asks for passwords.", by=OLGA) == 1

    with pytest.raises(HitNotAvailable):
        engine.accept(market.worker(), hit_id)
    with refused("RequestError", "InvalidHITState", says="took down"):
        market.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=market.clock.now() + timedelta(days=1))
    market.client.create_additional_assignments_for_hit(HITId=hit_id, NumberOfAdditionalAssignments=1)
    with pytest.raises(HitNotAvailable):
        engine.accept(market.worker(), hit_id)
    engine.external_submit(held, {"a": ["1"]})
    market.client.approve_assignment(AssignmentId=held)
    assert engine.earnings(ada).approved == Decimal("0.30")
    assert market.balance() == ("999.28", "0.36")
    assert market.hit(other)["HITStatus"] == "Assignable"
    assert "It asks for passwords." in engine.requester_messages(market.requester_id).messages[0].text
    assert engine.take_down(hit_id, "Again.", by=OLGA) == 0
    assert engine.audit_log(action="HIT taken down").total == 1


def test_a_whole_type_is_taken_down_batch_by_batch(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oversight, "BATCH", 2)
    hits = [market.create_hit() for _ in range(5)]
    other = market.create_hit(Title="Another")

    assert market.engine.take_down(hits[0], "Spam.", whole_type=True, by=OLGA) == 5

    assert {market.hit(hit_id)["HITStatus"] for hit_id in hits} == {"Reviewable"}
    assert market.hit(other)["HITStatus"] == "Assignable"
    assert market.engine.requester_messages(market.requester_id).total == 1
    assert market.balance() == ("999.64", "0.36")


def test_a_reason_is_needed_and_a_hit(market: Market) -> None:
    with pytest.raises(OperatorError, match="Say why"):
        market.engine.take_down(market.create_hit(), " ", by=OLGA)
    with pytest.raises(OperatorError, match="no HIT"):
        market.engine.take_down("3NONE", "Why.", by=OLGA)
