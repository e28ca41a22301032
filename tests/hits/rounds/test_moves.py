"""A round goes only from a state to one that may follow it, each move is kept, and of two at once one is refused."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import sampled_from
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session, sessionmaker

from hits.db import Base
from hits.errors import Refused
from hits.models import Round
from hits.rounds import MOVES, begun, move, moves_of
from hits.states import RoundState
from tests import factories as make
from tests.factories import NOON


def test_every_state_has_its_moves_and_all_but_the_draft_can_be_reached() -> None:
    assert set(MOVES) == set(RoundState)
    assert {after for states in MOVES.values() for after in states} == set(RoundState) - {RoundState.DRAFT}


def test_a_move_is_kept_with_who_when_and_what_was_said(session: Session) -> None:
    round_ = make.make_round(session, state=RoundState.DRAFT)
    begun(session, round_, by="Ada", now=NOON)

    move(session, round_, RoundState.COLLECTING, by="Bob", now=NOON + timedelta(hours=1), note="a launch")

    assert round_.state is RoundState.COLLECTING
    kept = [(one.from_state, one.to_state, one.at, one.by, one.note) for one in moves_of(session, round_.id)]
    assert kept == [
        (None, RoundState.DRAFT, NOON, "Ada", ""),
        ("draft", RoundState.COLLECTING, NOON + timedelta(hours=1), "Bob", "a launch"),
    ]
    session.commit()
    for statement in ("UPDATE round_move SET note = 'other'", "DELETE FROM round_move"):
        with pytest.raises(DatabaseError, match="append-only"):
            session.execute(text(statement))
        session.rollback()


def test_two_that_move_a_round_at_once_make_one_move(session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        round_id = make.make_round(session).id
        session.commit()
    together = threading.Barrier(2)
    said: list[str] = []

    def go(to: RoundState) -> None:
        with session_factory() as session:
            round_ = session.get_one(Round, round_id)
            session.rollback()
            together.wait(10)
            try:
                made = move(session, round_, to, by="Ada", now=NOON)
                session.commit()
                said.append("moved" if made is not None else "there")
            except Refused as refused:
                said.append("refused" if "by somebody else" in str(refused) else str(refused))

    threads = [threading.Thread(target=go, args=(RoundState.VALIDATING,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert said.count("moved") == 1
    assert set(said) <= {"moved", "there", "refused"}
    with session_factory() as session:
        assert session.get_one(Round, round_id).state is RoundState.VALIDATING
        assert len(moves_of(session, round_id)) == 1


class Rounds(RuleBasedStateMachine):
    """Any sequence of moves: the state is the last one that was allowed, and the record tells how it came there."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = create_engine("sqlite://")
        Base.metadata.create_all(self.engine)
        self.session = Session(self.engine)
        self.round = make.make_round(self.session, state=RoundState.DRAFT)
        self.session.commit()
        self.path = [RoundState.DRAFT]

    @rule(to=sampled_from(RoundState))
    def moves(self, to: RoundState) -> None:
        before = self.path[-1]
        if to is before:
            assert move(self.session, self.round, to, by="Ada", now=NOON) is None
        elif to in MOVES[before]:
            move(self.session, self.round, to, by="Ada", now=NOON)
            self.path.append(to)
        else:
            with pytest.raises(Refused, match=f"is {before.value} and can't become {to.value}"):
                move(self.session, self.round, to, by="Ada", now=NOON)
        self.session.commit()

    @precondition(lambda self: len(self.path) > 1)
    @rule(to=sampled_from(RoundState))
    def is_taken_back_by_a_rollback(self, to: RoundState) -> None:
        if to in MOVES[self.path[-1]]:
            move(self.session, self.round, to, by="Ada", now=NOON)
        self.session.rollback()

    @invariant()
    def the_record_is_the_path(self) -> None:
        kept = moves_of(self.session, self.round.id)
        assert [one.to_state for one in kept] == self.path[1:]
        assert [one.from_state for one in kept] == [state.value for state in self.path[:-1]]
        assert self.round.state is self.path[-1]

    def teardown(self) -> None:
        self.session.close()
        self.engine.dispose()


TestRounds = Rounds.TestCase
TestRounds.settings = settings(
    max_examples=10, stateful_step_count=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
