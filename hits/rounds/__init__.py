"""A round's states, the moves between them, and when collecting stops. The rules are in docs/rounds.md."""

from hits.rounds.moves import MOVES, begun, move, moves_of

__all__ = ["MOVES", "begun", "move", "moves_of"]
