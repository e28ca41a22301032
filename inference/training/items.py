"""Turns rows into what a model learns from: encoded inputs with the right answer at the right positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inference.encoding import PASSAGE, Window, encode_pair, encode_text, encode_windows
from inference.training.corpora import Asked, Row
from inference.training.fine_tune import Places, Votes
from inference.training.splits import place_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def votes_of(rows: Sequence[Row], tokenizer: Tokenizer, max_length: int, *, emoji_names: bool) -> list[Votes]:
    """Return one item for each row of one text or two."""
    items = []
    for row in rows:
        if len(row.texts) == 1:
            encoded = encode_text(tokenizer, row.texts[0], max_length, emoji_names=emoji_names)
        else:
            encoded = encode_pair(tokenizer, row.texts[0], row.texts[1], max_length, emoji_names=emoji_names)
        items.append(Votes(encoded, row.votes))
    return items


def places_of(asked: Sequence[Asked], tokenizer: Tokenizer, max_length: int, *, with_empty: bool) -> list[Places]:
    """Return an item for each question: a window that holds its answers, wherever in it they stand.

    ``with_empty`` adds a window without any answer for a question that has one, so that the model learns to say so and
    windows can be compared. A question whose answers fit into no window gives nothing.
    """
    items = []
    for one in asked:
        windows = encode_windows(tokenizer, one.question, one.passage, max_length, max_length)
        placed = [places_in(window, one) for window in windows]
        most = max(len(item.starts) for item in placed)
        if not most:
            continue
        # Always taking the window with the answer in its middle would teach the model to look there.
        draw = place_of(one.question)
        full = [item for item in placed if len(item.starts) == most]
        items.append(full[draw % len(full)])
        empty = [item for item in placed if not item.starts]
        if with_empty and empty:
            items.append(Places(empty[draw % len(empty)].encoded, {0: 1.0}, {0: 1.0}))
    return items


def places_in(window: Window, asked: Asked) -> Places:
    """Return where in the window the answers start and end, each answer with the same weight; none lie outside."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, piece in enumerate(window.pieces):
        if piece.field == PASSAGE:
            for character in range(piece.start, piece.end):
                first.setdefault(character, at)
                last[character] = at
    inside = [
        (first[answer.start], last[answer.end - 1])
        for answer in asked.answers
        if answer.start in first and answer.end - 1 in last
    ]
    starts: dict[int, float] = {}
    ends: dict[int, float] = {}
    for start, end in inside:
        starts[start] = starts.get(start, 0.0) + 1 / len(inside)
        ends[end] = ends.get(end, 0.0) + 1 / len(inside)
    return Places(window, starts, ends)
