"""E-mail addresses: their form, and that a confirmed one belongs to one account."""

from __future__ import annotations

import pytest

from hits.marketplace.addresses import checked
from hits.marketplace.errors import AddressTaken, AddressUnfit, LinkUnfit, NotSignedIn, PasswordWrong
from tests.hits.marketplace.people import NEW, PASSWORD, House, house
from tests.hits.marketplace.test_work import all_at_once


@pytest.mark.parametrize(
    "text", ["ada@example.org", "  a+b.c@sub.example.co.uk ", "o'hara@example.org", "x@xn--bcher-kva.example"]
)
def test_addresses_are_taken_without_the_space_around_them(text: str) -> None:
    assert checked(text) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ada",
        "ada@localhost",
        "@example.org",
        "ada@example.org, ben@example.org",
        "ada@example.org\nBcc: ben@example.org",
        "Ada <ada@example.org>",
        "ada@exa mple.org",
        "ada@-example.org",
        "a\x00b@example.org",
        "größe@example.org",
        "a" * 65 + "@example.org",
        "a@" + "b" * 63 + ("." + "c" * 63) * 3 + ".example.org",
    ],
)
def test_what_no_mail_can_be_sent_to_is_refused(text: str) -> None:
    with pytest.raises(AddressUnfit):
        checked(text)


def test_two_accounts_confirm_one_address_and_one_of_them_gets_it(database_url: str) -> None:
    with house(database_url) as opened:
        workers = {name: opened.worker(name, None) for name in ("ada", "ben", "eve")}
        for worker_id in workers.values():
            assert opened.engine.change_address(worker_id, PASSWORD, "Shared@example.org")
        assert opened.post().sent == 3
        tokens = [opened.box.token(index) for index in range(3)]

        results = all_at_once([lambda token=token: opened.engine.confirm_address(token) for token in tokens])

        assert sorted(type(result).__name__ for result in results) == ["AddressTaken", "AddressTaken", "str"]
        confirmed = [opened.engine.worker(one).email_is_confirmed for one in workers.values()]
        assert confirmed.count(True) == 1
        with pytest.raises((AddressTaken, LinkUnfit)):
            opened.engine.confirm_address(tokens[0])


def test_an_older_link_does_not_take_a_newer_address_back() -> None:
    with house() as opened:
        worker_id = opened.worker()
        for email in ("first@example.org", "second@example.org"):
            opened.engine.change_address(worker_id, PASSWORD, email)
        opened.post()
        first, second = opened.box.token(-2), opened.box.token(-1)

        opened.engine.confirm_address(second)

        with pytest.raises(LinkUnfit):
            opened.engine.confirm_address(first)
        assert opened.engine.worker(worker_id).email == "second@example.org"


def test_a_new_password_ends_links_for_another_address() -> None:
    with house() as opened:
        worker_id = opened.worker()
        opened.engine.change_address(worker_id, PASSWORD, "thief@example.org")
        opened.post()
        token = opened.box.token()

        opened.engine.change_worker_password(worker_id, PASSWORD, NEW)

        with pytest.raises(LinkUnfit):
            opened.engine.confirm_address(token)


def test_an_address_is_taken_back_with_the_password_and_its_reader_is_told() -> None:
    with house() as opened:
        worker_id = opened.worker()
        with pytest.raises(PasswordWrong):
            opened.engine.change_address(worker_id, "not the password", None)

        assert not opened.engine.change_address(worker_id, PASSWORD, None)

        assert opened.engine.worker(worker_id).email is None
        assert opened.post().sent == 1
        assert opened.box.letters[-1].address == "ada@example.org"


def test_without_mail_an_address_is_stored_as_it_is() -> None:
    opened = House()
    object.__setattr__(opened.engine.settings, "sends_mail", False)
    worker_id = opened.worker("ada", None)

    assert not opened.engine.change_address(worker_id, PASSWORD, "ada@example.org")

    worker = opened.engine.worker(worker_id)
    assert (worker.email, worker.email_is_confirmed) == ("ada@example.org", False)
    opened.engine.close()


def requester(opened: House, name: str = "Lab", email: str = "lab@example.org") -> str:
    return opened.engine.create_requester(name, email=email, password=PASSWORD).requester_id


def test_a_requesters_address_counts_once_it_is_confirmed_and_the_old_one_is_told(database_url: str) -> None:
    with house(database_url) as opened:
        engine, requester_id = opened.engine, requester(opened)
        engine.ask_for_reset("lab@example.org", requester=True)
        opened.post()
        reset = opened.box.token()
        with pytest.raises(PasswordWrong):
            engine.change_requester_address(requester_id, "not the password", "New@example.org")

        assert engine.change_requester_address(requester_id, PASSWORD, "New@example.org")
        opened.post()
        assert opened.box.letters[-1].address == "New@example.org"
        assert "the requester account “Lab”" in opened.box.letters[-1].text
        token = opened.box.token()
        assert engine.address_to_confirm(token, requester=True) == "New@example.org"
        assert engine.authenticate_requester("lab@example.org", PASSWORD).email == "lab@example.org"

        assert engine.confirm_address(token, requester=True) == "New@example.org"

        assert engine.authenticate_requester("new@EXAMPLE.org", PASSWORD).email == "new@example.org"
        with pytest.raises(NotSignedIn):
            engine.authenticate_requester("lab@example.org", PASSWORD)
        for call in (engine.confirm_address, engine.address_to_confirm):
            with pytest.raises(LinkUnfit):
                call(token, requester=True)
        with pytest.raises(LinkUnfit):
            engine.reset_password(reset, NEW, requester=True)
        assert opened.post().sent == 1
        assert (opened.box.letters[-1].address, opened.box.letters[-1].subject) == (
            "lab@example.org",
            "Your e-mail address was changed",
        )
        (line,) = engine.audit_log(about=requester_id, action="e-mail address changed").entries
        assert (line.actor_kind, line.actor) == ("requester", requester_id)
        assert "example.org" not in str(line.details)


def test_one_of_two_requesters_who_confirm_an_address_gets_it(database_url: str) -> None:
    with house(database_url) as opened:
        ids = [requester(opened, f"Lab {number}", f"lab{number}@example.org") for number in range(3)]
        for requester_id in ids:
            assert opened.engine.change_requester_address(requester_id, PASSWORD, "Shared@example.org")
        assert opened.post().sent == 3
        tokens = [opened.box.token(index) for index in range(3)]

        results = all_at_once(
            [lambda token=token: opened.engine.confirm_address(token, requester=True) for token in tokens]
        )

        assert sorted(type(result).__name__ for result in results) == ["AddressTaken", "AddressTaken", "str"]
        addresses = [one.email for one in opened.engine.requesters()]
        assert addresses.count("shared@example.org") == 1


def test_a_link_for_a_worker_is_none_for_a_requester() -> None:
    with house() as opened:
        worker_id, requester_id = opened.worker("ada", None), requester(opened)
        opened.engine.change_address(worker_id, PASSWORD, "ada@example.org")
        opened.engine.change_requester_address(requester_id, PASSWORD, "new@example.org")
        opened.post()
        workers, requesters = opened.box.token(-2), opened.box.token(-1)

        with pytest.raises(LinkUnfit):
            opened.engine.confirm_address(workers, requester=True)
        with pytest.raises(LinkUnfit):
            opened.engine.confirm_address(requesters)
        assert "/address/confirm" in opened.box.letters[-2].text
        assert "/requester/address/confirm" in opened.box.letters[-1].text


@pytest.mark.parametrize("email", ["", "  ", "lab", "a@b@c.example"])
def test_a_requester_who_signs_in_with_the_address_keeps_one(email: str) -> None:
    with house() as opened:
        requester_id = requester(opened)

        with pytest.raises(AddressUnfit):
            opened.engine.change_requester_address(requester_id, PASSWORD, email)

        assert opened.engine.authenticate_requester("lab@example.org", PASSWORD).email == "lab@example.org"


def test_without_mail_a_requesters_address_counts_at_once_unless_another_has_it() -> None:
    opened = House()
    object.__setattr__(opened.engine.settings, "sends_mail", False)
    requester_id = requester(opened)
    requester(opened, "Other", "other@example.org")

    with pytest.raises(AddressTaken):
        opened.engine.change_requester_address(requester_id, PASSWORD, "OTHER@example.org")
    assert not opened.engine.change_requester_address(requester_id, PASSWORD, "new@example.org")

    assert opened.engine.authenticate_requester("new@example.org", PASSWORD).requester_id == requester_id
    opened.engine.close()
