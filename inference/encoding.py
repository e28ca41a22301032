"""Turns texts into what a model reads, with exact characters: one way for training, predicting and explaining.

Works with any raw tokenizer (BERT's, RoBERTa's, ...): what it puts around and between texts is taken from its own
encoding, and cutting happens here, so that nothing about a tokenizer has to be changed between two calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference.emoji_names import SpelledOut, spell_out

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PASSAGE, QUESTION = 0, 1
"""The fields of a window, in the order of a span task's model fields; the model itself reads the question first."""


@dataclass(frozen=True)
class Piece:
    """One word piece: ``text[start:end]`` of the field, or field None for what the tokenizer itself put there."""

    field: int | None
    start: int
    end: int


_SPECIAL = Piece(None, 0, 0)


@dataclass(frozen=True)
class Encoded:
    """One sequence for the model; ``ids``, ``type_ids``, ``special`` and ``pieces`` are position by position.

    ``characters_read`` tells by field how many of its first characters the model gets to see, and equals the field's
    length unless ``truncated``. Of a window of a passage, it counts what all windows see together.
    """

    ids: tuple[int, ...]
    type_ids: tuple[int, ...]
    special: tuple[bool, ...]
    pieces: tuple[Piece, ...]
    characters_read: tuple[int, ...]
    truncated: bool

    def holds(self, field: int) -> bool:
        """Tell whether there is anything to read of this field."""
        return any(piece.field == field for piece in self.pieces)


Window = Encoded
"""A part of a passage with the whole question."""


def encode_text(tokenizer: Tokenizer, text: str, max_length: int, *, emoji_names: bool = False) -> Encoded:
    """Return the text, cut at its end to at most max_length positions.

    With ``emoji_names`` the model reads emoji as words (inference.emoji_names); all characters are the text's own.
    Raises ValueError for a tokenizer that cuts or pads by itself, or a max_length without room for text.
    """
    whole = _Whole(tokenizer, (text,), emoji_names)
    room = whole.room(max_length)
    return whole.part([(0, min(room, whole.count(0)))])


def encode_pair(
    tokenizer: Tokenizer, first: str, second: str, max_length: int, *, emoji_names: bool = False
) -> Encoded:
    """Return two texts in one sequence of at most max_length positions, each cut at its end.

    The first (a premise) is cut before the second (a hypothesis) is; but a quarter of the room is the first's, if it
    needs it. Raises as encode_text does.
    """
    whole = _Whole(tokenizer, (first, second), emoji_names)
    room = whole.room(max_length)
    kept_second = min(whole.count(1), room - min(whole.count(0), room // 4))
    kept_first = min(whole.count(0), room - kept_second)
    return whole.part([(0, kept_first), (0, kept_second)])


def encode_windows(
    tokenizer: Tokenizer, question: str, passage: str, max_length: int, stride: int, *, emoji_names: bool = False
) -> list[Window]:
    """Return windows over the passage, each with the question before it, that together cover the whole passage.

    ``stride`` is how many word pieces two neighbours share (as the word is used for readers), at most half a window.
    The last window is as full as the others. A question is cut when it fills more than half the room. Fields are
    PASSAGE and QUESTION. Raises as encode_text does.
    """
    whole = _Whole(tokenizer, (question, passage), emoji_names, fields=(QUESTION, PASSAGE))
    room = whole.room(max_length)
    asked = min(whole.count(0), room // 2)
    total = whole.count(1)
    size = room - asked
    step = size - min(max(stride, 0), size // 2)
    starts = [*range(0, max(total - size, 0), step), max(total - size, 0)]
    return [whole.part([(0, asked), (start, min(start + size, total))], reaches=(asked, total)) for start in starts]


class _Whole:
    """The uncut encoding of one or two texts: the tokenizer's own positions, and each text's between them."""

    def __init__(
        self, tokenizer: Tokenizer, texts: Sequence[str], emoji_names: bool, fields: Sequence[int] = (0, 1)
    ) -> None:
        if tokenizer.truncation is not None or tokenizer.padding is not None:
            raise ValueError("the tokenizer must neither cut nor pad; call no_truncation() and no_padding() once")
        self.texts = tuple(texts)
        self.fields = fields
        self.spelled: list[SpelledOut | None] = [spell_out(text) if emoji_names else None for text in texts]
        read = [text if spelled is None else spelled.text for text, spelled in zip(texts, self.spelled, strict=True)]
        encoding = tokenizer.encode(read[0], read[1] if len(read) > 1 else None)
        self.ids, self.type_ids, self.offsets = encoding.ids, encoding.type_ids, encoding.offsets
        owners = encoding.sequence_ids
        self.positions = [[at for at, owner in enumerate(owners) if owner == text] for text in range(len(texts))]
        self.own = [at for at, owner in enumerate(owners) if owner is None]

    def count(self, text: int) -> int:
        return len(self.positions[text])

    def room(self, max_length: int) -> int:
        room = max_length - len(self.own)
        if room < 4:
            raise ValueError(f"max_length {max_length} leaves {room} positions for text; 4 are the least")
        return room

    def part(self, kept: Sequence[tuple[int, int]], reaches: Sequence[int] | None = None) -> Encoded:
        """Return the sequence with only these positions (start, end) of each text.

        ``reaches`` is the last position + 1 of each text that the model sees here or elsewhere.
        """
        reaches = [end for _, end in kept] if reaches is None else reaches
        chosen = [(at, text) for text, (start, end) in enumerate(kept) for at in self.positions[text][start:end]]
        owner = dict(chosen)
        order = sorted([*self.own, *owner])
        read = {self.fields[text]: self._characters_read(text, reaches[text]) for text in range(len(self.texts))}
        return Encoded(
            ids=tuple(self.ids[at] for at in order),
            type_ids=tuple(self.type_ids[at] for at in order),
            special=tuple(at not in owner for at in order),
            pieces=tuple(self._piece(at, owner[at]) if at in owner else _SPECIAL for at in order),
            characters_read=tuple(read[field] for field in sorted(read)),
            truncated=any(reaches[text] < self.count(text) for text in range(len(self.texts))),
        )

    def _piece(self, at: int, text: int) -> Piece:
        start, end = self.offsets[at]
        spelled = self.spelled[text]
        if spelled is not None:
            start, end = spelled.origin(start, end)
        return Piece(self.fields[text], start, end)

    def _characters_read(self, text: int, reach: int) -> int:
        if reach == self.count(text):
            return len(self.texts[text])
        return self._piece(self.positions[text][reach - 1], text).end if reach else 0
