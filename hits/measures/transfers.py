"""Named maps by which a model of one task is measured on another task's rows, or on fewer labels of its own.

Nothing is mapped that is not named here: that two tasks' labels look alike means little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hits.errors import InvalidInput

#: Stands for the row's text in a map's ``inputs``.
TEXT: Final = "{text}"


@dataclass(frozen=True)
class Transfer:
    """How a model of ``model_task`` answers for rows of ``set_task``.

    ``said`` takes the model's labels and ``gold`` the set's labels to ``classes``, between which the figures are
    reckoned. ``inputs`` makes what the model reads out of a row's texts: TEXT is replaced by the row's only text; empty
    means that the model reads the row as it is.
    """

    code: str
    model_task: str
    set_task: str
    classes: tuple[str, ...]
    said: Mapping[str, str]
    gold: Mapping[str, str]
    meaning: str
    inputs: tuple[str, ...] = ()

    def reads(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """Return what the model is given of a row's texts."""
        return tuple(one.replace(TEXT, texts[0]) for one in self.inputs) if self.inputs else texts


TRANSFERS: Final[Mapping[str, Transfer]] = {
    one.code: one
    for one in (
        Transfer(
            "nli-two-way",
            "nli",
            "nli",
            ("entailment", "not_entailment"),
            said={"entailment": "entailment", "neutral": "not_entailment", "contradiction": "not_entailment"},
            gold={"entailment": "entailment", "neutral": "not_entailment", "contradiction": "not_entailment"},
            meaning="entailment against the other two labels together, as in RTE and in sets with two labels",
        ),
        Transfer(
            "sentiment-as-hate",
            "sentiment",
            "hate",
            ("not_hateful", "hateful"),
            said={"negative": "hateful", "positive": "not_hateful", "neutral": "not_hateful"},
            gold={"hateful": "hateful", "not_hateful": "not_hateful"},
            meaning="what a sentiment model finds negative is taken for hateful; shows how far bad mood explains hate",
        ),
        Transfer(
            "hate-as-sentiment",
            "hate",
            "sentiment",
            ("negative", "not_negative"),
            said={"hateful": "negative", "not_hateful": "not_negative"},
            gold={"negative": "negative", "positive": "not_negative", "neutral": "not_negative"},
            meaning="what a hate model finds hateful is taken for negative",
        ),
        Transfer(
            "nli-as-hate",
            "nli",
            "hate",
            ("not_hateful", "hateful"),
            said={"entailment": "hateful", "neutral": "not_hateful", "contradiction": "not_hateful"},
            gold={"hateful": "hateful", "not_hateful": "not_hateful"},
            meaning="asked whether the text entails “This text is hateful.” (zero-shot, as Yin and others 2019)",
            inputs=(TEXT, "This text is hateful."),
        ),
        Transfer(
            "nli-as-sentiment",
            "nli",
            "sentiment",
            ("negative", "positive", "neutral"),
            said={"entailment": "positive", "contradiction": "negative", "neutral": "neutral"},
            gold={"negative": "negative", "positive": "positive", "neutral": "neutral"},
            meaning="asked whether the text entails “The writer is pleased.”; a contradiction is taken for negative",
            inputs=(TEXT, "The writer is pleased."),
        ),
    )
}


def transfer(code: str) -> Transfer:
    """Return the map of this name. Raises InvalidInput with those that there are."""
    if code not in TRANSFERS:
        raise InvalidInput(f"There is no map {code!r} between tasks. The maps are {', '.join(sorted(TRANSFERS))}.")
    return TRANSFERS[code]


def transfers_of(set_task: str) -> Sequence[Transfer]:
    """Return the maps by which rows of a task are measured with other labels or other tasks' models."""
    return [one for one in TRANSFERS.values() if one.set_task == set_task]
