"""Signed links: one purpose, some hours, and nothing that can be changed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hits.marketplace import links
from hits.marketplace.errors import LinkUnfit
from hits.marketplace.transactions import Transaction
from tests.hits.marketplace.people import house


@pytest.fixture
def transaction() -> Transaction:
    with house() as opened, opened.engine.store.session(writes=False) as session:
        return Transaction(session, opened.clock.now(), opened.engine.settings)


def later(transaction: Transaction, step: timedelta) -> Transaction:
    return Transaction(transaction.session, transaction.now + step, transaction.settings)


def test_a_link_says_what_it_was_made_for_until_its_time_is_over(transaction: Transaction) -> None:
    token = links.token(transaction, "reset", "A1", state="old hash", life=timedelta(hours=1), address="a@example.org")

    content = links.content(later(transaction, timedelta(minutes=59)), "reset", token)
    assert (content["subject"], content["address"]) == ("A1", "a@example.org")
    assert links.still_holds(transaction, "reset", content, "old hash")
    assert not links.still_holds(transaction, "reset", content, "new hash")
    assert "old hash" not in str(content)
    with pytest.raises(LinkUnfit):
        links.content(later(transaction, timedelta(hours=1)), "reset", token)


def test_no_other_purpose_no_other_site_and_no_change(transaction: Transaction) -> None:
    token = links.token(transaction, "reset", "A1", state="", life=timedelta(hours=1))
    with house() as other, other.engine.store.session(writes=False) as session:
        elsewhere = Transaction(session, transaction.now, other.engine.settings)
        for asked, purpose, tried in [
            (transaction, "confirm", token),
            (elsewhere, "reset", token),
            *(
                (transaction, "reset", token[:at] + ("B" if token[at] == "A" else "A") + token[at + 1 :])
                for at in (0, 9, -9)
            ),
            *((transaction, "reset", text) for text in ("", ".", "..", token[:-1], "\x00", "é", "a" * 10**5)),
        ]:
            with pytest.raises(LinkUnfit):
                links.content(asked, purpose, tried)
