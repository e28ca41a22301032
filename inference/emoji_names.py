"""Writes emoji out as plain words for tokenizers that don't know them, and finds the way back to the text."""

from __future__ import annotations

from dataclasses import dataclass

import emoji

Stretch = tuple[int, int]

PREPROCESSING = "emoji-names"
"""What a card says under ``preprocessing`` when its model reads texts this way."""


@dataclass(frozen=True)
class SpelledOut:
    """A text with its emoji as words. ``origins`` gives for each character the stretch of the original it stands for.

    All characters of a name, and the spaces set around it, stand for the whole emoji.
    """

    text: str
    origins: tuple[Stretch, ...]

    def origin(self, start: int, end: int) -> Stretch:
        """Return the stretch of the original behind ``text[start:end]``, empty where that is and no name is."""
        if start >= end:
            if 0 < start < len(self.origins) and self.origins[start - 1] == self.origins[start]:
                return self.origins[start]
            at = self.origins[start - 1][1] if start else 0
            return at, at
        return self.origins[start][0], self.origins[end - 1][1]


def spell_out(text: str) -> SpelledOut:
    """Return the text with every emoji replaced by its English short name: "I 🔪 it" becomes "I kitchen knife it".

    Spaces are set around a name where the text has none, so that it never grows together with its neighbours.
    """
    spelled = ""
    origins: list[Stretch] = []
    done = 0
    for found in emoji.emoji_list(text):
        start, end = int(found["match_start"]), int(found["match_end"])
        spelled += text[done:start]
        origins.extend((index, index + 1) for index in range(done, start))
        before = "" if not spelled or spelled[-1].isspace() else " "
        after = "" if end == len(text) or text[end].isspace() else " "
        words = before + _name(str(found["emoji"])) + after
        spelled += words
        origins.extend([(start, end)] * len(words))
        done = end
    origins.extend((index, index + 1) for index in range(done, len(text)))
    return SpelledOut(spelled + text[done:], tuple(origins))


def _name(symbol: str) -> str:
    # The names come as ":clapping_hands_medium_skin_tone:", some with dashes and typographic quotes inside.
    return str(emoji.EMOJI_DATA[symbol]["en"]).strip(":").replace("_", " ").replace("-", " ")
