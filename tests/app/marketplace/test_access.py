"""Coming in and getting back in: open sign-up, forgotten passwords, e-mail addresses, sessions that end."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.mails import Letter
from hits.marketplace.settings import MarketplaceSettings
from tests.app.marketplace.conftest import CONTENT_URL, PASSWORD, Account, Visitor

NEW = "a brand new password"


class Mailbox:
    """Takes letters, and knows the link of the newest one."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []

    def post(self, letter: Letter) -> None:
        self.letters.append(letter)

    @property
    def link(self) -> str:
        """The path and query of the link in the newest letter."""
        (found,) = re.findall(r"http://127\.0\.0\.1:8000(/\S+\?token=\S+)", self.letters[-1].text)
        return str(found)


@pytest.fixture
def engine(clock: TestClock) -> Any:
    settings = MarketplaceSettings.for_tests(content_url=CONTENT_URL, sends_mail=True)
    opened = Marketplace("sqlite://", settings=settings, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def box(engine: Marketplace) -> Mailbox:
    return Mailbox()


@pytest.fixture
def posted(engine: Marketplace, box: Mailbox) -> Callable[[], int]:
    """Send what is due and return how many letters that were."""

    def post() -> int:
        before = len(box.letters)
        engine.send_mail_due(box)
        return len(box.letters) - before

    return post


@pytest.fixture
def site(settings: Settings, engine: Marketplace) -> Callable[..., Flask]:
    """Make the app with some settings changed."""

    def make(**changes: Any) -> Flask:
        mail = {"smtp_host": "127.0.0.1", "mail_from": "market@example.org"}
        app = create_app(settings.model_copy(update={**mail, "sign_up": "open", **changes}), marketplace=engine)
        app.testing = True
        return app

    return make


def visitor_of(app: Flask) -> Visitor:
    return Visitor(app.test_client())


def with_address(site: Callable[..., Flask], posted: Callable[[], int], box: Mailbox, name: str, email: str) -> Visitor:
    """Sign somebody up by mail."""
    person = visitor_of(site())
    person.get("/sign-up")
    person.post("/sign-up", {"email": email})
    assert posted() == 1
    person.get(box.link)
    response = person.post("/sign-up/finish", {"token": token_of(box), "user_name": name, "password": PASSWORD})
    assert response.request.path == "/hits", person.text()
    return person


def token_of(box: Mailbox) -> str:
    return box.link.partition("token=")[2]


def signed_in(app: Flask, name: str, password: str) -> bool:
    person = visitor_of(app)
    person.get("/sign-in")
    return person.post("/sign-in", {"user_name": name, "password": password}).request.path == "/hits"


def test_open_sign_up_confirms_the_address_before_there_is_an_account(
    site: Callable[..., Flask], engine: Marketplace, posted: Callable[[], int], box: Mailbox
) -> None:
    person = visitor_of(site())
    person.get("/sign-up")
    person.post("/sign-up", {"email": "Ada@example.org"})

    assert "is on its way" in person.text()
    assert box.letters == [], "nothing is sent while somebody waits for a page"
    assert posted() == 1
    assert (box.letters[0].address, box.letters[0].subject) == ("Ada@example.org", "Your new account")
    person.get(box.link)
    assert "Ada@example.org" in person.text()
    person.post("/sign-up/finish", {"token": token_of(box), "user_name": "ada", "password": "short"})
    assert "at least 8" in person.text().lower() or "8 to" in person.text()
    person.post("/sign-up/finish", {"token": token_of(box), "user_name": "ada", "password": PASSWORD})

    account = engine.authenticate_worker("ada", PASSWORD)
    assert (account.email, account.email_is_confirmed) == ("Ada@example.org", True)
    assert visitor_of(site()).get(box.link).status_code == 410, "a link opens one account"


def test_an_address_that_has_an_account_gets_the_same_answer_and_another_mail(
    site: Callable[..., Flask], posted: Callable[[], int], box: Mailbox, clock: TestClock
) -> None:
    with_address(site, posted, box, "ada", "ada@example.org")
    answers = []
    for email in ("ada@example.org", "ben@example.org"):
        person = visitor_of(site())
        person.get("/sign-up")
        answers.append(person.post("/sign-up", {"email": email}).text.replace(email, "X"))

    assert re.sub(r'value="[^"]+"', "", answers[0]) == re.sub(r'value="[^"]+"', "", answers[1])
    assert posted() == 2
    known, new = box.letters[-2:]
    assert (known.subject, new.subject) == ("You have an account already", "Your new account")
    assert "ada" in known.text


def test_without_mail_an_account_is_made_at_once(site: Callable[..., Flask], engine: Marketplace) -> None:
    person = visitor_of(site(smtp_host=None, mail_from=None))
    person.get("/sign-up")
    person.post("/sign-up", {"user_name": "ada", "email": "not an address", "password": PASSWORD})
    assert person.page.find(id="email-error") is not None
    person.post("/sign-up", {"user_name": "ada", "email": "ada@example.org", "password": PASSWORD})

    account = engine.authenticate_worker("ada", PASSWORD)
    assert (account.email, account.email_is_confirmed) == ("ada@example.org", False)
    other = visitor_of(site(smtp_host=None, mail_from=None))
    other.get("/sign-up")
    other.post("/sign-up", {"user_name": "ADA", "email": "", "password": PASSWORD})
    assert other.page.find(id="user_name-error") is not None


def test_by_invitation_only_sign_up_leads_to_the_invitation(site: Callable[..., Flask], box: Mailbox) -> None:
    person = visitor_of(site(sign_up="invitation"))

    assert person.get("/sign-up").request.path == "/join"
    assert person.post("/sign-up", {"email": "ada@example.org"}).request.path == "/join"
    assert person.get("/sign-up/finish?token=x").status_code == 404
    assert "Create an account" not in person.get("/sign-in").text


@pytest.mark.parametrize("limits", [{"sign_up_limit": "2 per hour"}, {"sign_up_total_limit": "2 per hour"}])
def test_sign_ups_are_limited_by_address_and_in_all(site: Callable[..., Flask], limits: dict[str, str]) -> None:
    app = site(**limits)
    statuses = []
    for number in range(3):
        person = visitor_of(app)
        where = {"REMOTE_ADDR": f"192.0.2.{number}"} if "sign_up_total_limit" in limits else {}
        person.get("/sign-up")
        data = {"csrf_token": person.token, "email": f"person{number}@example.org"}
        statuses.append(person.client.post("/sign-up", data=data, environ_overrides=where).status_code)
    assert statuses == [200, 200, 429]


def test_one_address_gets_few_mails(site: Callable[..., Flask], posted: Callable[[], int]) -> None:
    app = site(mail_limit="2 per hour")
    statuses = []
    for number in range(3):
        person = visitor_of(app)
        person.get("/password/forgotten")
        data = {"csrf_token": person.token, "email": "Ada@example.org" if number else "ada@EXAMPLE.org"}
        where = {"REMOTE_ADDR": f"192.0.2.{number}"}
        statuses.append(person.client.post("/password/forgotten", data=data, environ_overrides=where).status_code)
    assert statuses == [200, 200, 429]


def test_a_forgotten_password_is_replaced_once_and_every_session_ends(
    site: Callable[..., Flask], posted: Callable[[], int], box: Mailbox, clock: TestClock
) -> None:
    elsewhere = with_address(site, posted, box, "ada", "ada@example.org")
    app = site()
    person = visitor_of(app)
    person.get("/password/forgotten")
    person.post("/password/forgotten", {"email": "ADA@example.org"})
    assert posted() == 1
    assert box.letters[-1].address == "ada@example.org", "the address that was confirmed, however it was typed"
    link = box.link

    person.get(link)
    assert "ada" in person.text()
    person.post("/password/new", {"token": token_of(box), "password": NEW})

    assert person.page.find("h1").get_text() == "Sign in"
    assert not signed_in(app, "ada", PASSWORD)
    assert signed_in(app, "ada", NEW)
    assert person.get(link).status_code == 410
    assert elsewhere.get("/hits").request.path == "/sign-in"
    assert "You are signed out" in elsewhere.text()
    assert posted() == 1
    assert box.letters[-1].subject == "Your password was changed"


def test_a_link_ends_with_its_hour_and_only_for_what_it_was_made(
    site: Callable[..., Flask], posted: Callable[[], int], box: Mailbox, clock: TestClock
) -> None:
    person = with_address(site, posted, box, "ada", "ada@example.org")
    person.get("/password/forgotten")
    person.post("/password/forgotten", {"email": "ada@example.org"})
    posted()
    token = token_of(box)

    for path in ("/requester/password/new", "/sign-up/finish", "/address/confirm"):
        assert person.get(f"{path}?token={token}").status_code == 410, path
    changed = token[:-2] + ("AA" if token[-2:] != "AA" else "BB")
    for broken in (changed, token[:20], "", "\x00", "é.é", token + "x"):
        assert visitor_of(site()).get("/password/new", query_string={"token": broken}).status_code == 410, broken
    clock.advance(timedelta(hours=1))
    assert person.get(box.link).status_code == 410


def test_an_unknown_address_gets_the_same_answer_and_no_mail(
    site: Callable[..., Flask], posted: Callable[[], int], engine: Marketplace, box: Mailbox
) -> None:
    code = engine.create_invitation()
    engine.register_worker(code, "ben", PASSWORD, email="ben@example.org")
    posted()
    person = visitor_of(site())
    for email in ("nobody@example.org", "ben@example.org"):
        person.get("/password/forgotten")
        assert "is on its way" in person.post("/password/forgotten", {"email": email}).text

    assert posted() == 0, "an address that was never confirmed may be a stranger's"


def test_without_mail_the_page_says_whom_to_ask_and_the_operators_link_works(
    site: Callable[..., Flask], engine: Marketplace
) -> None:
    worker = engine.register_worker(engine.create_invitation(), "ada", PASSWORD)
    app = site(smtp_host=None, mail_from=None, contact="help@example.org")
    person = visitor_of(app)

    person.get("/password/forgotten")
    assert "help@example.org" in person.text()
    assert person.page.find("input", {"name": "email"}) is None
    link = engine.reset_link(worker.worker_id).removeprefix("http://127.0.0.1:8000")
    person.get(link)
    person.post("/password/new", {"token": link.partition("token=")[2], "password": NEW})

    assert signed_in(app, "ada", NEW)


def test_requesters_get_back_in_by_mail_too(
    site: Callable[..., Flask], account: Account, engine: Marketplace, posted: Callable[[], int], box: Mailbox
) -> None:
    person = visitor_of(site())
    person.get("/requester/password/forgotten")
    person.post("/requester/password/forgotten", {"email": "lab@example.org"})
    assert posted() == 1
    assert box.link.startswith("/requester/password/new?token=")

    person.get(box.link)
    assert "Sentiment Lab" in person.text()
    person.post("/requester/password/new", {"token": token_of(box), "password": NEW})

    assert engine.authenticate_requester("lab@example.org", NEW).requester_id == account.requester_id


def test_a_password_is_changed_by_the_old_one_and_this_session_goes_on(
    site: Callable[..., Flask], engine: Marketplace
) -> None:
    engine.register_worker(engine.create_invitation(), "ada", PASSWORD)
    app = site()
    here, elsewhere = visitor_of(app), visitor_of(app)
    for person in (here, elsewhere):
        person.get("/sign-in")
        person.post("/sign-in", {"user_name": "ada", "password": PASSWORD})

    here.get("/profile/password")
    here.post("/profile/password", {"old": "not it at all", "password": NEW})
    assert here.page.find(id="old-error") is not None
    here.post("/profile/password", {"old": PASSWORD, "password": NEW})

    assert here.get("/hits").request.path == "/hits"
    assert elsewhere.get("/hits").request.path == "/sign-in"
    assert signed_in(app, "ada", NEW)


def test_an_address_counts_once_it_is_confirmed_and_the_old_one_is_told(
    site: Callable[..., Flask], engine: Marketplace, posted: Callable[[], int], box: Mailbox
) -> None:
    person = with_address(site, posted, box, "ada", "ada@example.org")
    person.get("/profile/address")
    person.post("/profile/address", {"email": "new@example.org", "old": "wrong password"})
    assert person.page.find(id="old-error") is not None
    person.post("/profile/address", {"email": "new@example.org", "old": PASSWORD})
    assert posted() == 1
    link = box.link
    assert engine.authenticate_worker("ada", PASSWORD).email == "ada@example.org"

    person.get(link)
    assert engine.authenticate_worker("ada", PASSWORD).email == "ada@example.org", "looking changes nothing"
    person.post("/address/confirm", {"token": token_of(box)})

    assert engine.authenticate_worker("ada", PASSWORD).email == "new@example.org"
    assert posted() == 1
    assert (box.letters[-1].address, box.letters[-1].subject) == ("ada@example.org", "Your e-mail address was changed")
    assert person.get(link).status_code == 410


def test_a_requester_changes_the_address_that_they_sign_in_with(
    site: Callable[..., Flask], engine: Marketplace, posted: Callable[[], int], box: Mailbox
) -> None:
    engine.create_requester("Lab", email="lab@example.org", password=PASSWORD)
    app = site()
    person = visitor_of(app)
    person.get("/requester/sign-in")
    person.post("/requester/sign-in", {"email": "lab@example.org", "password": PASSWORD})
    person.get("/requester/account")
    assert "E-mail address lab@example.org" in person.text()
    person.get("/requester/address/change")
    for email, old, error in (("new@example.org", "wrong", "old"), ("", PASSWORD, "email"), ("x", PASSWORD, "email")):
        assert person.post("/requester/address/change", {"email": email, "old": old}).status_code == 422
        assert person.page.find(id=f"{error}-error") is not None
    person.post("/requester/address/change", {"email": "new@example.org", "old": PASSWORD})
    assert "A mail to new@example.org is on its way" in person.text()
    assert posted() == 1

    # The link is opened in a browser that is not signed in.
    reader = visitor_of(app)
    reader.get(box.link)
    assert "You sign in with it from then on." in reader.text()
    assert engine.authenticate_requester("lab@example.org", PASSWORD).email == "lab@example.org"
    response = reader.post("/requester/address/confirm", {"token": token_of(box)})

    assert response.request.path == "/requester/sign-in"
    reader.post("/requester/sign-in", {"email": "new@example.org", "password": PASSWORD})
    assert reader.get("/requester/account").status_code == 200
    assert "E-mail address new@example.org" in reader.text()
    assert posted() == 1
    assert (box.letters[-1].address, box.letters[-1].subject) == ("lab@example.org", "Your e-mail address was changed")


def test_a_requesters_address_that_another_has_is_refused_at_once_without_mail(
    settings: Settings, engine: Marketplace
) -> None:
    object.__setattr__(engine.settings, "sends_mail", False)
    for name in ("lab", "other"):
        engine.create_requester(name, email=f"{name}@example.org", password=PASSWORD)
    person = visitor_of(create_app(settings, marketplace=engine))
    person.get("/requester/sign-in")
    person.post("/requester/sign-in", {"email": "lab@example.org", "password": PASSWORD})
    person.get("/requester/address/change")
    assert "This site sends no mail, so the new address counts at once." in person.text()

    response = person.post("/requester/address/change", {"email": "Other@example.org", "old": PASSWORD})
    assert response.status_code == 422
    assert "belongs to another account" in person.text()
    assert person.post("/requester/address/change", {"email": "new@example.org", "old": PASSWORD}).request.path == (
        "/requester/account"
    )
    assert engine.authenticate_requester("new@example.org", PASSWORD).name == "lab"


@pytest.mark.parametrize("path", ["/profile/password", "/profile/address", "/requester/address/change"])
def test_a_stolen_session_guesses_a_password_ten_times_at_most_from_wherever(
    site: Callable[..., Flask], engine: Marketplace, path: str
) -> None:
    engine.create_requester("Lab", email="lab@example.org", password=PASSWORD)
    engine.register_worker(engine.create_invitation(), "ada", PASSWORD)
    person = visitor_of(site(sign_up_limit="1000 per hour", mail_limit="1000 per hour"))
    sign_in = "/requester/sign-in" if "requester" in path else "/sign-in"
    person.get(sign_in)
    person.post(sign_in, {"email": "lab@example.org", "user_name": "ada", "password": PASSWORD})
    person.get(path)

    answers = []
    for number in range(11):
        person.client.environ_base["REMOTE_ADDR"] = f"192.0.2.{number}"
        form = {"old": f"guess {number}", "email": "x@example.org", "password": "a new password"}
        answers.append(person.post(path, form).status_code)

    assert answers == [422] * 10 + [429]


def test_an_address_belongs_to_one_account(
    site: Callable[..., Flask], engine: Marketplace, posted: Callable[[], int], box: Mailbox
) -> None:
    engine.register_worker(engine.create_invitation(), "ben", PASSWORD, email="ada@example.org")
    assert posted() == 1
    bens = box.link
    with_address(site, posted, box, "ada", "ada@example.org")

    ben = visitor_of(site())
    ben.get(bens)
    response = ben.post("/address/confirm", {"token": bens.partition("token=")[2]})

    assert response.status_code == 409
    assert "another account" in ben.text()
    assert not engine.authenticate_worker("ben", PASSWORD).email_is_confirmed


def test_a_chosen_language_is_kept(site: Callable[..., Flask], engine: Marketplace) -> None:
    engine.register_worker(engine.create_invitation(), "ada", PASSWORD)
    app = site()
    person = visitor_of(app)
    person.get("/sign-in")
    person.post("/sign-in", {"user_name": "ada", "password": PASSWORD})
    person.get("/profile")
    for wanted, kept in (("en", "en"), ("", None), ("xx", None)):
        person.post("/profile/language", {"language": wanted})
        assert engine.authenticate_worker("ada", PASSWORD).language == kept


@pytest.mark.parametrize(
    ("addresses", "is_one"),
    [
        ([f"2001:db8:1:2:{number:x}::1" for number in range(1, 5)], True),
        ([f"2001:db8:1:{number:x}::1" for number in range(1, 5)], False),
        ([f"::ffff:192.0.2.{number}" for number in range(1, 5)], False),
        (["::ffff:192.0.2.7", "192.0.2.7", "::ffff:c000:207", "192.0.2.7"], True),
        ([f"192.0.2.{number}" for number in range(1, 5)], False),
        (["fe80::1%eth0", "fe80::2%eth0", "fe80::3", "fe80::4"], True),
        (["unknown"] * 4, True),
    ],
)
def test_a_network_of_one_household_is_one_client(
    site: Callable[..., Flask], addresses: list[str], is_one: bool
) -> None:
    person = visitor_of(site(sign_in_limit="3 per hour"))
    person.get("/sign-in")

    answers = []
    for number, address in enumerate(addresses):
        person.client.environ_base["REMOTE_ADDR"] = address
        answers.append(person.post("/sign-in", {"user_name": f"guess{number}", "password": "x"}).status_code)

    assert answers == [422, 422, 422, 429 if is_one else 422]


def test_too_many_links_for_one_address_are_a_page_that_names_the_time(
    site: Callable[..., Flask], engine: Marketplace
) -> None:
    person = visitor_of(site(mail_limit="1000 per hour"))
    person.get("/password/forgotten")

    answers = [person.post("/password/forgotten", {"email": "ada@example.org"}).status_code for _ in range(11)]

    assert answers == [200] * 10 + [429]
    assert "10 mails with a link were asked for within 24 hours" in person.text()
    assert "1 Dec" in person.text() or "2026-12-01" in person.text()
