"""The token of a HIT page: what it stands for, how long, and that nobody else can make one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.tokens import GRACE_SECONDS, Claim, TokenExpired, TokenInvalid, Tokens
from hits.clock import FixedClock

CLAIM = Claim("ASSIGNMENT1", "AWORKER1", "reference-1")


@pytest.fixture
def tokens(clock: FixedClock) -> Tokens:
    return Tokens("secret", clock)


def test_a_token_says_whom_it_stands_for(tokens: Tokens, clock: FixedClock) -> None:
    token = tokens.issue(CLAIM, valid_until=clock.now() + timedelta(minutes=30))

    assert tokens.read(token) == CLAIM


def test_a_token_serves_until_an_hour_after_the_deadline(tokens: Tokens, clock: FixedClock) -> None:
    token = tokens.issue(CLAIM, valid_until=clock.now() + timedelta(minutes=30))

    clock.advance(timedelta(minutes=30, seconds=GRACE_SECONDS))
    assert tokens.read(token) == CLAIM
    clock.advance(timedelta(seconds=1))
    with pytest.raises(TokenExpired):
        tokens.read(token)


def test_a_token_made_after_the_deadline_still_serves_an_hour(tokens: Tokens, clock: FixedClock) -> None:
    token = tokens.issue(CLAIM, valid_until=clock.now() - timedelta(days=1))

    assert tokens.read(token) == CLAIM


@pytest.mark.parametrize("change", ["", "x", "not.a.token", "\0", "é" * 50])
def test_what_is_no_token_is_refused(tokens: Tokens, change: str) -> None:
    with pytest.raises(TokenInvalid):
        tokens.read(change)


def test_a_changed_token_is_refused_wherever_it_is_changed(tokens: Tokens, clock: FixedClock) -> None:
    token = tokens.issue(CLAIM, valid_until=clock.now())

    for place in range(len(token) - 1):
        other = "A" if token[place] != "A" else "B"
        with pytest.raises(TokenInvalid):
            tokens.read(token[:place] + other + token[place + 1 :])


def test_a_token_of_another_secret_is_refused(tokens: Tokens, clock: FixedClock) -> None:
    foreign = Tokens("another secret", clock).issue(CLAIM, valid_until=clock.now())

    with pytest.raises(TokenInvalid):
        tokens.read(foreign)


def test_a_receipt_is_always_the_same_for_an_assignment_and_differs_between_two(tokens: Tokens) -> None:
    assert tokens.receipt("A1") == tokens.receipt("A1")
    assert tokens.receipt("A1") != tokens.receipt("A2")
    assert tokens.receipt("A1").startswith("DH-")


def test_a_second_question_is_answered_within_a_quarter_of_an_hour_and_by_its_own_token_only(
    tokens: Tokens, clock: FixedClock
) -> None:
    token = tokens.ask_again("1", "ASSIGNMENT", "no_work", "Nothing was done.")

    assert tokens.asked_about(token) == ["1", "ASSIGNMENT", "no_work", "Nothing was done."]
    for wrong in ("", token[:-1], tokens.issue(CLAIM, valid_until=clock.now()), Tokens("other", clock).ask_again("1")):
        with pytest.raises(TokenInvalid):
            tokens.asked_about(wrong)
    clock.advance(timedelta(minutes=15, seconds=1))
    with pytest.raises(TokenExpired):
        tokens.asked_about(token)
