"""A marketplace that sends mail, with a mailbox in place of the mail server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.mails import Letter, MailReport
from hits.marketplace.settings import MarketplaceSettings

PASSWORD = "correct horse battery"
NEW = "a brand new password"
#: Of a session.
KEY = "k" * 32


class Mailbox:
    """Keeps the letters it is given."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []

    def post(self, letter: Letter) -> None:
        self.letters.append(letter)

    def token(self, index: int = -1) -> str:
        """Return the token of a letter's link."""
        (found,) = re.findall(r"\?token=(\S+)", self.letters[index].text)
        return str(found)


class House:
    """A marketplace with its clock and its mailbox."""

    def __init__(self, database_url: str = "sqlite://") -> None:
        self.clock = TestClock()
        self.box = Mailbox()
        self.engine = Marketplace(
            database_url, settings=MarketplaceSettings.for_tests(sends_mail=True), clock=self.clock
        )
        self.engine.create_schema()

    def post(self) -> MailReport:
        """Send what is due."""
        return self.engine.send_mail_due(self.box)

    def worker(self, name: str = "ada", email: str | None = "ada@example.org") -> str:
        """Make a worker whose address is confirmed, and return the worker id."""
        worker = self.engine.register_worker(self.engine.create_invitation(), name, PASSWORD, email=email)
        if email is not None:
            self.post()
            self.engine.confirm_address(self.box.token())
        return worker.worker_id


@contextmanager
def house(database_url: str = "sqlite://") -> Iterator[House]:
    """Open one and close it."""
    opened = House(database_url)
    try:
        yield opened
    finally:
        opened.engine.close()
