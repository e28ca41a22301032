"""A round's states, the moves between them, and when collecting stops. The rules are in docs/rounds.md."""

from hits.rounds.moves import MOVES, NotReady, begun, move, moves_of
from hits.rounds.stop_rules import Facts, StopRules, rules_of

__all__ = ["MOVES", "Facts", "NotReady", "StopRules", "begun", "move", "moves_of", "rules_of"]
