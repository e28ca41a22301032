"""Accounts of workers and requesters in the operator console."""

from __future__ import annotations

import re

import pytest

from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor
from tests.app.marketplace.operator.conftest import Submit, token_of


def test_the_overview_says_what_waits(operator: Visitor, handed_in: Submit) -> None:
    handed_in("ApproveAssignment")

    operator.get("/operator/")

    facts = [div.get_text(" ", strip=True) for div in operator.page.select(".figures > div")]
    assert "worker 1" in facts
    assert "requester 1" in facts
    assert "operator added" in operator.text()


def test_workers_are_found_and_described(operator: Visitor, worker_id: str, engine: Marketplace) -> None:
    operator.get("/operator/workers?q=AD")
    assert worker_id in operator.text()
    operator.get("/operator/workers?q=nobody%00")
    assert "No worker found." in operator.text()
    operator.get(f"/operator/workers/{worker_id}")

    form = {"is_master": "1", "country": "us", "subdivision": "ca"}
    operator.post(f"/operator/workers/{worker_id}/traits", form)

    found = engine.worker(worker_id)
    assert (found.is_master, found.is_adult, found.country, found.subdivision) == (True, False, "US", "CA")
    assert "worker's locale set" in operator.text()
    operator.post(f"/operator/workers/{worker_id}/traits", {"country": "Norway"})
    assert "two capital letters" in operator.text()


def test_a_worker_is_disabled_and_signed_out(
    operator: Visitor, worker: Visitor, worker_id: str, engine: Marketplace
) -> None:
    operator.get(f"/operator/workers/{worker_id}/disable")
    assert "Work that they hold can still be handed in" in operator.text()

    operator.post(f"/operator/workers/{worker_id}/disable", {"disabled": "1"})

    assert worker.get("/hits").request.path == "/sign-in"
    worker.post("/sign-in", {"user_name": "ada", "password": "correct horse battery staple"})
    assert "disabled by the operator" in worker.text()
    operator.post(f"/operator/workers/{worker_id}/disable", {"disabled": "0"})
    assert not engine.worker(worker_id).is_disabled


@pytest.mark.parametrize("page", ["traits", "disable"])
def test_an_address_with_a_user_name_changes_nobody_and_the_operator_stays_signed_in(
    operator: Visitor, worker: Visitor, engine: Marketplace, page: str
) -> None:
    operator.get("/operator/")

    response = operator.post(f"/operator/workers/ADA/{page}", {"disabled": "1", "is_master": "1"})

    assert response.status_code == 404
    assert operator.get("/operator/").request.path == "/operator/"
    account = engine.worker_account("ada").worker
    assert not account.is_disabled
    assert not account.is_master


def test_a_requester_is_found_and_disabled(operator: Visitor, account: Account, engine: Marketplace) -> None:
    operator.get("/operator/requesters?q=lab@")
    assert account.requester_id in operator.text()
    operator.get(f"/operator/requesters/{account.requester_id}/disable")

    operator.post(f"/operator/requesters/{account.requester_id}/disable", {"disabled": "1"})

    assert engine.requester(account.requester_id).is_disabled
    assert "requester disabled" in operator.text()
    assert account.secret not in operator.text()


def test_a_top_up_is_confirmed_and_added_once(operator: Visitor, account: Account, engine: Marketplace) -> None:
    address = f"/operator/requesters/{account.requester_id}/top-up"
    operator.get(address)
    form = {"amount": "$1,250.00", "note": "invoice 7", "token": token_of(operator)}

    operator.post(address, form)
    assert "$1,350.00 is available afterwards." in operator.text()
    assert f"{engine.balance(account.requester_id).deposited}" == "100.00"
    for _ in range(2):
        operator.post(address, {**form, "step": "sure"})

    assert f"{engine.balance(account.requester_id).deposited}" == "1350.00"
    assert "invoice 7" in operator.text()
    (line,) = engine.audit_log(action="top-up").entries
    assert (line.actor_kind, line.actor, line.details["amount"]) == ("operator", "olga", "1250.00")


def test_a_form_that_comes_back_with_another_amount_is_not_called_done(
    operator: Visitor, account: Account, engine: Marketplace
) -> None:
    address = f"/operator/requesters/{account.requester_id}/top-up"
    operator.get(address)
    form = {"amount": "10.00", "token": token_of(operator), "step": "sure"}
    operator.post(address, form)

    response = operator.post(address, {**form, "amount": "20.00"})

    assert response.status_code == 409
    assert "was added" not in operator.text()
    assert f"{engine.balance(account.requester_id).deposited}" == "110.00"


@pytest.mark.parametrize("amount", ["", "0", "-5", "0.001", "NaN", "Infinity", "1e12", "x", "9" * 80])
def test_an_amount_that_is_none_is_refused(
    operator: Visitor, account: Account, engine: Marketplace, amount: str
) -> None:
    address = f"/operator/requesters/{account.requester_id}/top-up"
    operator.get(address)

    response = operator.post(address, {"amount": amount, "token": "t" * 20, "step": "sure"})

    assert response.status_code == 422
    assert f"{engine.balance(account.requester_id).deposited}" == "100.00"


def test_invitations_are_made_and_logged(operator: Visitor, engine: Marketplace) -> None:
    operator.get("/operator/invitations")

    response = operator.post("/operator/invitations", {"count": "2", "note": "for the lab"})

    assert response.status_code == 201
    codes = re.findall(r"http://127\.0\.0\.1:8000/join\?code=(\S+)", operator.text())
    assert len(codes) == 2
    assert {one.code for one in engine.invitations()} == set(codes)
    assert engine.audit_log(action="invitations made").entries[0].details["count"] == "2"
    for count in ("0", "51", "x", "000151", "0001" + "0" * 5000):
        assert operator.post("/operator/invitations", {"count": count}).status_code == 400
    assert len(engine.invitations()) == 2


def test_the_log_is_searched(operator: Visitor, account: Account, worker_id: str) -> None:
    operator.get(f"/operator/audit?about={account.requester_id}")
    assert "access key created" in operator.text()
    rows = operator.page.select("tbody tr")

    operator.get("/operator/audit?action=operator+added")

    assert len(operator.page.select("tbody tr")) == 1
    assert len(rows) == 1
    operator.get("/operator/audit?about=nobody&page=x")
    assert "Nothing yet." in operator.text()


def test_the_english_names_of_what_was_done_are_marked_as_english(operator: Visitor) -> None:
    operator.get("/operator/audit")

    options = {str(one["value"]): one.get("lang") for one in operator.page.select("select[name=action] option")}
    assert options[""] is None
    assert "operator added" in options
    assert {lang for value, lang in options.items() if value} == {"en"}
