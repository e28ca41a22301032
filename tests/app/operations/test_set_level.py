"""A person raises and lowers levels for a reason; experts hold their task's qualification, and only they."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.grant import revoke
from app.operations.set_level import level_now, set_level
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import NotFound, Refused
from hits.models import Worker
from qualification import grants
from qualification.models import Level
from tests.factories import make_worker
from tests.market import Market


@pytest.fixture
def ada(session: Session, market: Market) -> Worker:
    return make_worker(session, mturk_worker_id=market.person("ada"))


def holders(market: Market) -> list[str]:
    type_id = market.mturk.find_qualification("dynahit sentiment expert")
    return [seen.worker_id for seen in market.mturk.holders(type_id)] if type_id is not None else []


def test_an_expert_holds_the_tasks_qualification_until_lowered(
    session: Session, market: Market, settings: Settings, clock: FixedClock, ada: Worker
) -> None:
    common = (session, market.mturk, settings, clock, ada, "sentiment")
    assert level_now(session, ada, "sentiment") is Level.NOVICE

    assert set_level(*common, Level.EXPERT, reason="Wrote the rules", by="robin").granted == 1
    assert (level_now(session, ada, "sentiment"), level_now(session, ada, "nli")) == (Level.EXPERT, Level.NOVICE)
    assert holders(market) == [ada.mturk_worker_id]

    assert set_level(*common, Level.WRITER, reason="secret of the end", by="robin").ended == 1
    assert level_now(session, ada, "sentiment") is Level.WRITER
    assert holders(market) == []
    entries = session.scalars(select(AuditEntry).where(AuditEntry.action == "qualification.level")).all()
    assert [one.detail for one in entries] == [
        {"task": "sentiment", "from": "novice", "to": "expert"},
        {"task": "sentiment", "from": "expert", "to": "writer"},
    ]

    assert set_level(*common, Level.EXPERT, reason="After all", by="robin").granted == 1
    assert holders(market) == [ada.mturk_worker_id]


def test_without_a_reason_or_a_change_nothing_is_set(
    session: Session, market: Market, settings: Settings, clock: FixedClock, ada: Worker
) -> None:
    common = (session, market.mturk, settings, clock, ada)

    with pytest.raises(Refused, match="for a reason only"):
        set_level(*common, "sentiment", Level.WRITER, reason="  ", by="robin")
    with pytest.raises(Refused, match="is a novice in sentiment already"):
        set_level(*common, "sentiment", Level.NOVICE, reason="no", by="robin")
    with pytest.raises(NotFound):
        set_level(*common, "poetry", Level.WRITER, reason="yes", by="robin")


def test_taking_the_qualification_away_ends_the_level_too(
    session: Session, market: Market, settings: Settings, clock: FixedClock, ada: Worker
) -> None:
    common = (session, market.mturk, settings, clock, ada)
    set_level(*common, "sentiment", Level.WRITER, reason="Writes well", by="robin")
    set_level(*common, "sentiment", Level.EXPERT, reason="Reads well", by="robin")

    revoke(*common, grants.expert_kind("sentiment"), reason="Shares answers", by="robin")

    assert level_now(session, ada, "sentiment") is Level.WRITER
    assert holders(market) == []
