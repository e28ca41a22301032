"""Accounts through the engine: sign-up by link, races for a name, sessions, the requester of test servers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hits.marketplace.errors import LinkUnfit, OperatorError, PasswordUnfit, UserNameTaken
from tests.hits.marketplace.people import KEY, NEW, PASSWORD, house
from tests.hits.marketplace.test_work import all_at_once


def test_a_link_opens_one_account_however_many_use_it_at_once(database_url: str) -> None:
    with house(database_url) as opened:
        opened.engine.ask_to_sign_up("ada@example.org")
        opened.post()
        token = opened.box.token()
        assert opened.engine.sign_up_address(token) == "ada@example.org"

        results = all_at_once(
            [lambda name=name: opened.engine.sign_up_by_link(token, name, PASSWORD) for name in ("ada", "ben", "eve")]
        )

        assert sorted(type(result).__name__ for result in results) == ["LinkUnfit", "LinkUnfit", "Worker"]
        with pytest.raises(LinkUnfit):
            opened.engine.sign_up_address(token)


def test_one_name_goes_to_one_of_those_who_want_it_at_once(database_url: str) -> None:
    with house(database_url) as opened:
        results = all_at_once([lambda: opened.engine.sign_up("Ada", PASSWORD)] * 4)

        assert sorted(type(result).__name__ for result in results) == ["UserNameTaken"] * 3 + ["Worker"]


def test_a_name_that_is_taken_leaves_the_link_good() -> None:
    with house() as opened:
        opened.worker("ada", None)
        opened.engine.ask_to_sign_up("new@example.org")
        opened.post()
        with pytest.raises(UserNameTaken):
            opened.engine.sign_up_by_link(opened.box.token(), "ADA", PASSWORD)
        with pytest.raises(PasswordUnfit):
            opened.engine.sign_up_by_link(opened.box.token(), "new", "short")

        worker = opened.engine.sign_up_by_link(opened.box.token(), "new", PASSWORD)

        assert (worker.email, worker.email_is_confirmed) == ("new@example.org", True)


def test_workers_are_found_by_name_and_by_id() -> None:
    with house() as opened:
        worker_id = opened.worker("Ada", None)

        assert opened.engine.worker_called(" ada ").worker_id == worker_id
        assert opened.engine.worker_called(worker_id).user_name == "Ada"
        for name in ("nobody", "", "a\x00"):
            with pytest.raises(OperatorError, match="no worker"):
                opened.engine.worker_called(name)


def test_sessions_of_nobody_are_not_good() -> None:
    with house() as opened:
        worker_id = opened.worker("ada", None)

        assert opened.engine.worker_in_session(worker_id, 0, KEY) is not None
        assert opened.engine.worker_in_session(worker_id, 1, KEY) is None
        assert opened.engine.worker_in_session("A0", 0, KEY) is None
        assert opened.engine.requester_in_session("A0", 0, KEY) is None


def test_the_language_is_kept_and_taken_back() -> None:
    with house() as opened:
        worker_id = opened.worker("ada", None)

        assert opened.engine.set_language(worker_id, "de").language == "de"
        assert opened.engine.set_language(worker_id, None).language is None


def test_the_requester_of_a_test_server_is_made_once() -> None:
    with house() as opened:
        first = opened.engine.default_requester(Decimal("10.00"))

        assert opened.engine.default_requester(Decimal("99.00")) == first
        assert opened.engine.balance(first.requester_id).available == Decimal("10.00")


def test_a_password_of_before_is_no_password() -> None:
    with house() as opened:
        worker_id = opened.worker()
        opened.engine.change_worker_password(worker_id, PASSWORD, NEW)

        assert opened.engine.authenticate_worker("ada", NEW).session_number == 1
