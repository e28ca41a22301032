"""What a frozen or an imported round refuses."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from hits.errors import Refused
from hits.frozen import is_frozen, require_collecting, require_open
from hits.models.frozen import FREEZING
from tests import factories as make


def test_an_open_round_refuses_nothing(session: Session) -> None:
    round_ = make.make_round(session)

    require_open(session, round_.id)
    require_collecting(session, round_.id, lock=True)
    assert not is_frozen(round_)


@pytest.mark.parametrize(("sha256", "frozen"), [(FREEZING, False), ("a" * 64, True)])
def test_a_round_that_is_frozen_or_about_to_be_refuses_decisions_and_collecting(
    session: Session, sha256: str, frozen: bool
) -> None:
    round_ = make.make_round(session, frozen_at=make.NOON, manifest_sha256=sha256)

    assert is_frozen(round_) is frozen
    for refuse in (require_open, require_collecting):
        with pytest.raises(Refused, match="Round 1 of the sentiment task was frozen on 2026-11-15"):
            refuse(session, round_.id)


def test_nothing_is_collected_in_an_imported_round(session: Session) -> None:
    round_ = make.make_round(session, origin=[{"key": "a"}])

    require_open(session, round_.id)
    with pytest.raises(Refused, match="was imported from a published set"):
        require_collecting(session, round_.id)
