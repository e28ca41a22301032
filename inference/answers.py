"""A model's answers to many inputs, in process or on a server: in batches of like length, one bad text costs no other.

This is for measuring; a worker's question goes through inference.engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hits.predictions import Prediction
from inference.errors import NothingToRead
from inference.target import ModelInput, TargetModel

AT_ONCE: Final = 32


def answers(
    model: TargetModel, inputs: Sequence[ModelInput], *, advance: Callable[[int], None] = lambda answered: None
) -> list[Prediction | None]:
    """Return the model's answers in the order of the inputs, None for a text of which it sees no word.

    ``advance`` is told how many more inputs are done.
    Raises ModelUnavailable when the model fails otherwise: an input must not count as wrong because a server is down.
    """
    # Inputs of like length share a batch, so that little is computed for padding.
    order = sorted(range(len(inputs)), key=lambda place: sum(len(text) for text in inputs[place]))
    said: dict[int, Prediction | None] = {}
    for start in range(0, len(order), AT_ONCE):
        part = order[start : start + AT_ONCE]
        said.update(zip(part, _batch(model, [inputs[place] for place in part]), strict=True))
        advance(len(part))
    return [said[place] for place in range(len(inputs))]


def _batch(model: TargetModel, inputs: Sequence[ModelInput]) -> Sequence[Prediction | None]:
    try:
        return model.predict_all(inputs)
    except NothingToRead:
        return [None] if len(inputs) == 1 else [_batch(model, [one])[0] for one in inputs]
