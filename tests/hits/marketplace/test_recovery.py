"""New passwords: by a link once, by the old one, and what else ends with them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hits.marketplace.errors import AddressUnfit, LinkUnfit, NotSignedIn, OperatorError, PasswordUnfit, PasswordWrong
from hits.marketplace.mails import RESET_LIFE
from tests.hits.marketplace.people import KEY, NEW, PASSWORD, house
from tests.hits.marketplace.test_work import all_at_once


def test_a_link_sets_one_password_however_many_use_it_at_once(database_url: str) -> None:
    with house(database_url) as opened:
        worker_id = opened.worker()
        opened.engine.ask_for_reset("ada@example.org")
        opened.post()
        token = opened.box.token()

        results = all_at_once(
            [lambda number=number: opened.engine.reset_password(token, f"password {number}") for number in range(4)]
        )

        assert sorted(type(result).__name__ for result in results) == ["LinkUnfit"] * 3 + ["str"]
        assert opened.engine.worker(worker_id).session_number == 1
        working = 0
        for number in range(4):
            try:
                working += opened.engine.authenticate_worker("ada", f"password {number}").worker_id == worker_id
            except NotSignedIn:
                continue
        assert working == 1


def test_two_links_die_together() -> None:
    with house() as opened:
        opened.worker()
        for _ in range(2):
            opened.engine.ask_for_reset("ada@example.org")
        opened.post()
        first, second = opened.box.token(-2), opened.box.token(-1)
        assert opened.engine.reset_name(first) == "ada"

        opened.engine.reset_password(second, NEW)

        for call in (opened.engine.reset_name, lambda token: opened.engine.reset_password(token, PASSWORD)):
            with pytest.raises(LinkUnfit):
                call(first)


def test_a_link_counts_its_hour_from_when_it_was_sent() -> None:
    with house() as opened:
        opened.worker()
        opened.engine.ask_for_reset("ada@example.org")
        opened.clock.advance(RESET_LIFE - timedelta(minutes=1))
        opened.post()
        token = opened.box.token()
        opened.clock.advance(minutes=59)
        assert opened.engine.reset_name(token) == "ada"
        opened.clock.advance(minutes=1)
        with pytest.raises(LinkUnfit):
            opened.engine.reset_name(token)


def test_a_password_that_does_not_fit_leaves_the_link_good() -> None:
    with house() as opened:
        opened.worker()
        opened.engine.ask_for_reset("ada@example.org")
        opened.post()
        with pytest.raises(PasswordUnfit):
            opened.engine.reset_password(opened.box.token(), "short")

        assert opened.engine.reset_password(opened.box.token(), NEW) == "ada"


def test_the_old_password_is_needed_for_a_change_and_sessions_end() -> None:
    with house() as opened:
        worker_id = opened.worker()
        assert opened.engine.worker_in_session(worker_id, 0, KEY) is not None
        with pytest.raises(PasswordWrong):
            opened.engine.change_worker_password(worker_id, "not the password", NEW)
        assert opened.engine.worker_in_session(worker_id, 0, KEY) is not None

        changed = opened.engine.change_worker_password(worker_id, PASSWORD, NEW)

        assert opened.engine.worker_in_session(worker_id, 0, KEY) is None
        assert opened.engine.worker_in_session(worker_id, changed.session_number, KEY) is not None
        opened.post()
        assert opened.box.letters[-1].subject == "Your password was changed"


def test_requesters_have_the_same_two_ways() -> None:
    with house() as opened:
        requester = opened.engine.create_requester("Lab", email="Lab@example.org", password=PASSWORD)
        opened.engine.ask_for_reset("LAB@example.org", requester=True)
        opened.post()
        with pytest.raises(LinkUnfit):
            opened.engine.reset_name(opened.box.token())
        assert opened.engine.reset_password(opened.box.token(), NEW, requester=True) == "Lab"
        assert opened.engine.requester_in_session(requester.requester_id, 0, KEY) is None

        opened.engine.change_requester_password(requester.requester_id, NEW, PASSWORD)

        assert opened.engine.requester_in_session(requester.requester_id, 2, KEY) is not None
        with pytest.raises(OperatorError):
            opened.engine.change_requester_password("nobody", NEW, PASSWORD)


def test_nobody_and_no_address_are_refused() -> None:
    with house() as opened:
        with pytest.raises(AddressUnfit):
            opened.engine.ask_for_reset("nobody")
        with pytest.raises(OperatorError, match="no account"):
            opened.engine.reset_link("A0")
        assert opened.post().waiting == 0
