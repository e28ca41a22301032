"""The records of the consoles."""

from __future__ import annotations

from hits.marketplace.console_views import Actor, PayoutLine


def test_a_payout_line_adds_up_in_cents_and_dollars() -> None:
    line = PayoutLine("A1", "ada", None, rewards=2, rewards_cents=61, bonuses=1, bonuses_cents=150)

    assert line.amount_cents == 211
    assert (f"{line.rewards_amount}", f"{line.bonuses_amount}", f"{line.amount}") == ("0.61", "1.50", "2.11")


def test_actors_say_who_they_are() -> None:
    actors = [Actor.operator("o"), Actor.command_line("c"), Actor.requester("r"), Actor.worker("w")]

    assert [(one.kind, one.name) for one in actors] == [
        ("operator", "o"),
        ("command line", "c"),
        ("requester", "r"),
        ("worker", "w"),
    ]
