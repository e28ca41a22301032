"""The outbox of mail: written when it goes out, tried again, given up, and never sent twice by two at once."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from sqlalchemy import select

from hits.marketplace.errors import MailsAskedTooOften
from hits.marketplace.mails import MOST_ASKED, MOST_NEWS, Letter, MailReport, Undeliverable
from hits.marketplace.outbox import KEPT_FOR
from hits.marketplace.tables import MailRow
from hits.marketplace.words import Words
from tests.hits.marketplace.people import NEW, PASSWORD, House, Mailbox, house
from tests.hits.marketplace.test_work import all_at_once


class Down(Mailbox):
    """Fails as it is told to, as long as it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error or OSError("no route")
        self.tried = 0
        self.is_down = True

    def post(self, letter: Letter) -> None:
        self.tried += 1
        if self.is_down:
            raise self.error
        super().post(letter)


def rows(opened: House) -> list[MailRow]:
    with opened.engine.store.session(writes=False) as session:
        return list(session.scalars(select(MailRow).order_by(MailRow.seq)))


def test_nothing_secret_waits_in_the_database() -> None:
    with house() as opened:
        opened.worker()
        opened.engine.ask_for_reset("ada@example.org")
        opened.post()

        token = opened.box.token()
        assert all(token not in str(vars(row)) and "token" not in str(row.details) for row in rows(opened))


def test_four_senders_send_each_mail_once(database_url: str) -> None:
    with house(database_url) as opened:
        for number in range(8):
            opened.engine.ask_to_sign_up(f"person{number}@example.org")

        for report in all_at_once([opened.post] * 4):
            assert isinstance(report, MailReport)
        opened.post()

        assert sorted(letter.address for letter in opened.box.letters) == [f"person{n}@example.org" for n in range(8)]


def test_a_server_that_is_down_is_asked_once_per_round_with_growing_pauses(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with house() as opened:
        for number in range(3):
            opened.engine.ask_to_sign_up(f"person{number}@example.org")
        opened.box = down = Down()

        assert opened.post() == MailReport(sent=0, failed=1, dropped=0, waiting=3)
        assert down.tried == 1
        down.is_down = False
        assert opened.post().sent == 2
        opened.clock.advance(seconds=10)
        assert opened.post() == MailReport(sent=1, failed=0, dropped=0, waiting=0)

    assert len(caplog.records) == 1
    assert "attempt 1 failed: OSError" in caplog.text
    assert "@" not in caplog.text


def test_an_address_that_does_not_exist_is_given_up_at_once_and_holds_back_nobody() -> None:
    with house() as opened:
        for number in range(2):
            opened.engine.ask_to_sign_up(f"person{number}@example.org")
        opened.box = gone = Down(Undeliverable("550"))
        opened.post()
        gone.is_down = False

        assert opened.post().sent == 1
        assert [row.state for row in rows(opened)] == ["Failed", "Delivered"]


def test_what_would_come_too_late_is_given_up() -> None:
    with house() as opened:
        opened.worker()
        opened.engine.ask_for_reset("ada@example.org")
        opened.box = Down()
        opened.clock.advance(hours=1)

        assert opened.post().failed == 1
        assert rows(opened)[-1].state == "Failed"


def test_a_mail_for_nobody_is_dropped_and_all_are_forgotten_in_a_month() -> None:
    with house() as opened:
        opened.engine.ask_for_reset("nobody@example.org")
        assert opened.post() == MailReport(sent=0, failed=0, dropped=1, waiting=0)
        assert len(rows(opened)) == 1
        opened.clock.advance(KEPT_FOR + timedelta(seconds=1))
        opened.post()
        assert rows(opened) == []


def test_letters_are_plain_and_in_the_readers_language() -> None:
    said: list[str | None] = []

    def translate(language: str | None, words: Words) -> str:
        said.append(language)
        return f"[{words}]"

    with house() as opened:
        opened.engine.ask_to_sign_up("ada@example.org", language="de")
        opened.engine.send_mail_due(opened.box, translate=translate)

    (letter,) = opened.box.letters
    assert letter.subject == "[Your new account]"
    assert letter.text.startswith(
        "[To finish your account, choose a user name and a password here:]\n\nhttp://127.0.0.1"
    )
    assert letter.text.endswith("[This mail comes from Marketplace, http://127.0.0.1:8000.]\n")
    assert set(said) == {"de"}


def test_once_asked_to_stop_nothing_is_begun() -> None:
    with house() as opened:
        opened.engine.ask_to_sign_up("ada@example.org")

        assert opened.engine.send_mail_due(opened.box, stop=lambda: True).waiting == 1
        assert opened.post().sent == 1


def test_one_address_gets_so_many_links_a_day_whoever_asks_and_whatever_for(database_url: str) -> None:
    with house(database_url) as opened:
        engine = opened.engine
        for number in range(MOST_ASKED // 2):
            opened.clock.advance(minutes=1)
            engine.ask_for_reset("Ada@example.org", requester=number % 2 == 0)
            engine.ask_to_sign_up(" ada@EXAMPLE.org")

        for call in (engine.ask_for_reset, engine.ask_to_sign_up):
            with pytest.raises(MailsAskedTooOften, match=f"{MOST_ASKED} mails with a link") as caught:
                call("ada@example.org")
        engine.ask_for_reset("ben@example.org")
        assert len(rows(opened)) == MOST_ASKED + 1

        opened.clock.advance(caught.value.again_at - opened.clock.now() - timedelta(seconds=1))
        with pytest.raises(MailsAskedTooOften):
            engine.ask_for_reset("ada@example.org")
        opened.clock.advance(seconds=1)
        engine.ask_for_reset("ada@example.org")


def test_one_account_sends_so_many_links_a_day_to_whatever_addresses(database_url: str) -> None:
    with house(database_url) as opened:
        engine, worker_id = opened.engine, opened.worker("ada", None)
        requester_id = engine.create_requester("Lab", email="lab@example.org", password=PASSWORD).requester_id
        before = len(rows(opened))
        for change, account_id in (
            (engine.change_address, worker_id),
            (engine.change_requester_address, requester_id),
        ):
            results = all_at_once(
                [
                    lambda number=number, change=change, account_id=account_id: change(
                        account_id, PASSWORD, f"stranger{number}@example.org"
                    )
                    for number in range(MOST_ASKED + 3)
                ]
            )
            assert sorted(type(one).__name__ for one in results) == ["MailsAskedTooOften"] * 3 + ["bool"] * MOST_ASKED
        assert len(rows(opened)) == before + 2 * MOST_ASKED


def test_news_for_an_account_are_few_a_day_and_what_they_tell_of_is_done_all_the_same() -> None:
    with house() as opened:
        engine, worker_id = opened.engine, opened.worker()
        before = len(rows(opened))

        for number in range(MOST_NEWS + 2):
            engine.set_payout_details(worker_id, PASSWORD, f"account {number}")

        assert engine.payout_details(worker_id) == f"account {MOST_NEWS + 1}"
        assert len(rows(opened)) == before + MOST_NEWS
        engine.change_worker_password(worker_id, PASSWORD, NEW)
        assert rows(opened)[-1].kind == "password changed"
        opened.clock.advance(days=1)
        engine.set_payout_details(worker_id, NEW, "account")
        assert rows(opened)[-1].kind == "payout changed"


def test_where_no_mail_is_sent_nothing_is_counted() -> None:
    with house() as opened:
        object.__setattr__(opened.engine.settings, "sends_mail", False)
        for _ in range(MOST_ASKED + 1):
            opened.engine.ask_for_reset("ada@example.org")

        assert rows(opened) == []
