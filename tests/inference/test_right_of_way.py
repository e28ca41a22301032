"""Predictions go first: what gives way waits for them, for a while, and ends when nobody wants it."""

from __future__ import annotations

import threading
import time

import pytest

from inference.errors import CallerGone
from inference.right_of_way import Patience, RightOfWay, pass_checkpoint, stopping_at


def test_without_a_prediction_nobody_waits() -> None:
    assert RightOfWay().give_way(5) == 0


def test_what_gives_way_waits_until_the_last_prediction_is_done() -> None:
    way = RightOfWay()
    entered, leave = threading.Event(), [threading.Event(), threading.Event()]

    def predict(number: int) -> None:
        with way.predicting():
            entered.set()
            leave[number].wait(5)

    predicting = [threading.Thread(target=predict, args=(number,)) for number in (0, 1)]
    for thread in predicting:
        thread.start()
    entered.wait(5)
    waited: list[float] = []
    standing_back = threading.Thread(target=lambda: waited.append(way.give_way(10)))
    standing_back.start()
    leave[0].set()
    predicting[0].join(5)
    assert not waited
    leave[1].set()
    standing_back.join(5)

    assert 0 < waited[0] < 5


def test_patience_is_for_the_whole_computation_and_ends() -> None:
    way = RightOfWay()
    patience = Patience(way, 0.1)
    started = time.monotonic()
    with way.predicting():
        for _ in range(50):
            patience()

    assert 0.05 < time.monotonic() - started < 2


def test_a_computation_that_nobody_wants_ends_at_its_next_checkpoint() -> None:
    patience = Patience(RightOfWay(), 1)
    with stopping_at(patience):
        pass_checkpoint()
        patience.give_up()
        with pytest.raises(CallerGone):
            pass_checkpoint()
    pass_checkpoint()


def test_checkpoints_are_of_one_thread_and_of_the_innermost_block() -> None:
    passed: list[str] = []
    elsewhere = threading.Thread(target=pass_checkpoint)
    with stopping_at(lambda: passed.append("outer")):
        with stopping_at(lambda: passed.append("inner")):
            pass_checkpoint()
        elsewhere.start()
        elsewhere.join(5)
        pass_checkpoint()

    assert passed == ["inner", "outer"]
