"""What comes next is said with all that it lacks and the command for it; an open or archived round is recorded."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.freeze import freeze_round
from app.operations.move_round import COMMANDS, archive_round, list_rounds, open_round, standing_of
from app.operations.stop_rules import set_rules
from hits.clock import FixedClock
from hits.errors import Refused
from hits.manifest import SplitTerms
from hits.models import Round
from hits.models.frozen import FREEZING
from hits.rounds import MOVES, NotReady, StopRules, move
from hits.states import RoundState
from tests import factories as make
from tests.rounds import collected

ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def test_every_move_has_its_command() -> None:
    assert set(COMMANDS) == {(before, after) for before, states in MOVES.items() for after in states}


@ON_SQLITE
def test_the_standing_says_what_each_next_move_lacks(session: Session, clock: FixedClock) -> None:
    round_ = make.make_round(session, state=RoundState.VALIDATING)
    make.make_example(session)
    session.commit()

    found = {one.to: one for one in standing_of(session, "sentiment", 1, clock.now()).next_moves}

    assert set(found) == {RoundState.FROZEN, RoundState.COLLECTING, RoundState.ARCHIVED}
    assert found[RoundState.FROZEN].command == "dynahit round freeze sentiment 1"
    said = "\n".join(found[RoundState.FROZEN].missing)
    assert "not closed; `dynahit hits expire" in said
    assert "1 example without a verdict yet" in said
    assert found[RoundState.COLLECTING].missing == ()
    assert len(found[RoundState.ARCHIVED].missing) == 1
    with pytest.raises(NotReady, match="can't be archived yet"):
        archive_round(session, clock, "sentiment", 1, by="Ada")
    assert session.get_one(Round, round_.id).state is RoundState.VALIDATING


@ON_SQLITE
def test_a_collected_round_goes_through_freezing_to_the_archive_and_each_step_is_kept(
    session: Session, clock: FixedClock
) -> None:
    collected(session, 8)
    session.commit()
    freeze_round(session, clock, "sentiment", 1, SplitTerms(), by="Ada")
    assert list_rounds(session, clock.now())[0].then is RoundState.TRAINED
    round_ = session.scalars(select(Round)).one()
    move(session, round_, RoundState.TRAINED, by="train", now=clock.now(), note="a model")
    session.commit()

    assert archive_round(session, clock, "sentiment", 1, by="Bob")

    found = standing_of(session, "sentiment", 1, clock.now())
    assert [(one.before, one.after, one.by) for one in found.moves] == [
        ("collecting", "validating", "Ada"),
        ("validating", "frozen", "Ada"),
        ("frozen", "trained", "train"),
        ("trained", "archived", "Bob"),
    ]
    assert found.next_moves == ()
    assert not archive_round(session, clock, "sentiment", 1, by="Bob")
    assert list_rounds(session, clock.now()) == []
    assert [one.state for one in list_rounds(session, clock.now(), archived=True)] == [RoundState.ARCHIVED]
    assert session.scalars(select(AuditEntry.action)).all() == ["round.freeze", "round.archive"]
    with pytest.raises(Refused, match="is archived and can't become collecting"):
        open_round(session, clock, "sentiment", 1, by="Ada")


@ON_SQLITE
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"stop_at": make.NOON - timedelta(days=1)}, "its stop rule is fulfilled"),
        ({"origin": [{"complete": True}]}, "imported from a published set"),
        ({"frozen_at": make.NOON, "manifest_sha256": "freezing"}, "it is being frozen"),
    ],
)
def test_a_closed_round_opens_again_unless_something_stands_in_the_way(
    session: Session, clock: FixedClock, fields: dict[str, object], said: str
) -> None:
    make.make_round(session, number=1, state=RoundState.VALIDATING)
    make.make_round(session, number=2, state=RoundState.VALIDATING, **fields)
    session.commit()

    assert open_round(session, clock, "sentiment", 1, by="Ada")
    assert not open_round(session, clock, "sentiment", 1, by="Ada")
    with pytest.raises(NotReady, match=said):
        open_round(session, clock, "sentiment", 2, by="Ada")
    session.rollback()
    assert session.scalars(select(Round.state).order_by(Round.number)).all() == [
        RoundState.COLLECTING,
        RoundState.VALIDATING,
    ]


@ON_SQLITE
def test_a_round_whose_freezing_was_interrupted_is_frozen_before_it_is_archived(
    session: Session, clock: FixedClock
) -> None:
    make.make_round(session, state=RoundState.VALIDATING, frozen_at=clock.now(), manifest_sha256=FREEZING)
    session.commit()

    with pytest.raises(NotReady, match="being frozen; `dynahit round freeze sentiment 1` goes on"):
        archive_round(session, clock, "sentiment", 1, by="Ada")

    assert session.scalars(select(Round.state)).one() is RoundState.VALIDATING


@ON_SQLITE
def test_a_pilot_is_not_opened_but_released(session: Session, clock: FixedClock) -> None:
    make.make_round(session, state=RoundState.PILOTING)
    session.commit()

    with pytest.raises(Refused, match="dynahit round release sentiment 1"):
        open_round(session, clock, "sentiment", 1, by="Ada")


@ON_SQLITE
def test_rules_of_a_frozen_round_stay(session: Session, clock: FixedClock) -> None:
    collected(session, 4)
    session.commit()
    freeze_round(session, clock, "sentiment", 1, SplitTerms(), by="Ada")

    with pytest.raises(Refused, match="was frozen on"):
        set_rules(session, clock, "sentiment", 1, lambda _: StopRules(validated=5), by="Ada")
