"""The pieces of creating a HIT once: addresses by kind, tokens by age, read-back. Launches test the whole."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.create_hits import create_hits, new_reference, new_token, requirements_of, unfinished_batches
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Hit, HitBatch
from hits.mturk.errors import MTurkRefused
from hits.states import HitKind, HitState
from tests import factories
from tests.market import ENDPOINT, Market, failing


def planned(session: Session, hits: int = 2, **fields: Any) -> HitBatch:
    batch = factories.make_batch(session, hit_type_id=None, **fields)
    for position in range(1, hits + 1):
        factories.make_hit(
            session,
            batch=batch,
            position=position,
            reference=new_reference(),
            request_token=new_token(),
            state=HitState.PLANNED,
            mturk_hit_id=None,
            token_sent_at=None,
            expires_at=None,
            created_at=None,
        )
    session.commit()
    return batch


def test_the_address_depends_on_what_the_hit_asks_for(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    qualification = market.mturk.find_or_create_qualification("dynahit validator", "for tests")
    round_ = factories.make_round(session)
    creation = planned(session, 1, round=round_)
    validation = planned(session, 1, round=round_, kind=HitKind.VALIDATION, qualification_type_id=qualification)

    for batch in (creation, validation):
        assert create_hits(session, market.mturk, settings, clock, batch.id) == 1

    pages = {hit["Question"].split("http://localhost:8001/")[1].split("/")[0] for hit in market.hits()}
    assert pages == {"work", "validate"}
    assert requirements_of(creation) == ()
    assert [one.qualification_type_id for one in requirements_of(validation)] == [qualification]


def test_a_token_is_kept_for_23_hours_from_when_it_was_first_sent(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    batch = planned(session, 1)
    hit = session.scalars(select(Hit)).one()
    token, first_sent = hit.request_token, clock.now()
    market.before = failing("CreateHITWithHITType", 400, "AccessDeniedException")

    seen = []
    for hours in (0, 22, 1):
        clock.advance(timedelta(hours=hours))
        with pytest.raises(MTurkRefused):
            create_hits(session, market.mturk, settings, clock, batch.id)
        session.rollback()
        session.refresh(hit)
        seen.append((hit.request_token == token, hit.token_sent_at))
        session.commit()

    assert seen == [(True, first_sent), (True, first_sent), (False, clock.now())]
    assert hit.state is HitState.CREATING


def test_a_hit_that_exists_is_not_asked_for_again(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    batch = planned(session)
    create_hits(session, market.mturk, settings, clock, batch.id)
    market.calls.clear()

    assert create_hits(session, market.mturk, settings, clock, batch.id) == 0
    assert market.calls == []


def test_unfinished_batches_are_those_of_this_marketplace_and_kind(session: Session) -> None:
    round_ = factories.make_round(session)
    ours = planned(session, 1, round=round_)
    planned(session, 1, round=round_, endpoint="https://elsewhere.example.org")
    planned(session, 1, round=round_, kind=HitKind.VALIDATION)
    factories.make_hit(session, batch=factories.make_batch(session, round=round_))
    session.commit()

    assert list(unfinished_batches(session, ENDPOINT, HitKind.CREATION)) == [ours.id]


def test_no_transaction_is_open_while_the_marketplace_works(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    batch_id = planned(session).id
    session.commit()
    open_during: list[str] = []

    def look(operation: str) -> None:
        if session.in_transaction():
            open_during.append(operation)

    market.before = look
    create_hits(session, market.mturk, settings, clock, batch_id)

    assert open_during == []
    assert market.calls.count("CreateHITWithHITType") == 2


def test_two_processes_that_create_the_same_batch_make_each_hit_once_and_leave_none_half_made(
    session: Session,
    session_factory: sessionmaker[Session],
    market: Market,
    settings: Settings,
    clock: FixedClock,
) -> None:
    batch_id = planned(session, 3).id
    session.commit()
    others: list[str] = []

    def other_goes_first(operation: str) -> None:
        # The other process does the whole batch while this one waits for its first HIT.
        if operation == "CreateHITWithHITType" and not others:
            others.append(operation)
            with session_factory() as other:
                create_hits(other, market.mturk, settings, clock, batch_id)

    market.before = other_goes_first
    create_hits(session, market.mturk, settings, clock, batch_id)

    session.expire_all()
    rows = session.scalars(select(Hit)).all()
    assert {row.state for row in rows} == {HitState.CREATED}
    assert sorted(row.mturk_hit_id or "" for row in rows) == sorted(hit["HITId"] for hit in market.hits())


def test_a_hit_that_was_left_half_made_with_its_id_is_mended(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    batch_id = planned(session, 1).id
    create_hits(session, market.mturk, settings, clock, batch_id)
    hit = session.scalars(select(Hit)).one()
    hit.state = HitState.CREATING
    session.commit()

    create_hits(session, market.mturk, settings, clock, batch_id)

    session.refresh(hit)
    assert hit.state is HitState.CREATED
    assert len(market.hits()) == 1
