"""A savepoint takes back what was done inside, in the database and in what waits for the commit."""

from __future__ import annotations

import pytest

from hits.marketplace.tables import RequesterRow
from hits.marketplace.transactions import Transaction
from tests.hits.marketplace.market import Market


@pytest.mark.parametrize("fails", [True, False])
def test_a_savepoint_is_kept_or_taken_back_as_a_whole(market: Market, fails: bool) -> None:
    with market.engine.store.session(writes=True) as session:
        transaction = Transaction(session, market.clock.now(), market.settings)
        transaction.submitted.append("3A")
        transaction.opened["3T"] = (1, 0)
        account = session.get_one(RequesterRow, market.requester_id)

        try:
            with transaction.savepoint():
                account.name = "Changed"
                transaction.submitted.append("3B")
                transaction.reviewable.append("3H")
                transaction.opened["3T"] = (2, 0)
                transaction.measured.add("3T")
                if fails:
                    raise LookupError
        except LookupError:
            assert fails

        waiting = (transaction.submitted, transaction.reviewable, transaction.opened, transaction.measured)
        name = account.name

    if fails:
        assert waiting == (["3A"], [], {"3T": (1, 0)}, set())
        assert name == "Language Lab"
    else:
        assert waiting == (["3A", "3B"], ["3H"], {"3T": (2, 0)}, {"3T"})
        assert name == "Changed"
