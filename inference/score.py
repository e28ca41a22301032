"""The number that an explanation takes apart: a label's logit, or a span's start plus end logit, by embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference.bert import LoadedModel
from inference.encoding import Encoded
from inference.runtime import single_threaded_torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Score:
    """What is explained of one sequence. ``pick`` takes the number of each row out of the model's output.

    ``inputs`` are the sequence's word embeddings, ``baseline`` the same with padding for every piece of text while the
    tokenizer's own pieces stay; both of shape (1, positions, dimensions).
    """

    loaded: LoadedModel
    sequence: Encoded
    pick: Callable[[Any], Tensor]
    inputs: Tensor
    baseline: Tensor

    def values(self, embeddings: Tensor, module: Any = None) -> Tensor:
        """Return the number for each row of embeddings, by the model itself or by another way through its weights."""
        torch = single_threaded_torch()
        more: dict[str, Tensor] = {}
        if self.loaded.takes_type_ids:
            types = torch.tensor([self.sequence.type_ids], dtype=torch.long)
            more["token_type_ids"] = types.expand(len(embeddings), -1)
        return self.pick((module or self.loaded.model)(inputs_embeds=embeddings, **more))


def score_of(loaded: LoadedModel, sequence: Encoded, pick: Callable[[Any], Tensor]) -> Score:
    """Return the score of a sequence."""
    torch = single_threaded_torch()
    ids = torch.tensor([sequence.ids], dtype=torch.long)
    special = torch.tensor([sequence.special], dtype=torch.bool)
    embed = loaded.model.get_input_embeddings()
    with torch.no_grad():
        inputs = embed(ids)
        baseline = embed(torch.where(special, ids, loaded.pad_token_id))
    return Score(loaded, sequence, pick, inputs, baseline)


def label_score(loaded: LoadedModel, sequence: Encoded, label: str) -> Score:
    """Return the score that is a label's logit. Raises ValueError for a label that the model doesn't know."""
    index = loaded.labels.index(label)
    return score_of(loaded, sequence, lambda output: output.logits[:, index].float())


def span_score(loaded: LoadedModel, window: Encoded, first: int, last: int) -> Score:
    """Return the score that is a span's: start logit at the position ``first``, end logit at ``last``."""
    return score_of(loaded, window, lambda output: (output.start_logits[:, first] + output.end_logits[:, last]).float())


def windows_holding(windows: Sequence[Encoded], field: int, start: int, end: int) -> list[tuple[Encoded, int, int]]:
    """Return the windows that hold most of a stretch of a field, with the positions of its first and last piece there.

    Usually they hold it whole; an answer that was widened to whole words at a window's edge may be held by none. A
    stretch of which no window holds half is given none. Characters without a piece (invisible ones) don't count.
    """
    touching = [
        [at for at, piece in enumerate(window.pieces) if piece.field == field and piece.start < end > start < piece.end]
        for window in windows
    ]
    all_of_it = {window.pieces[at].start for window, places in zip(windows, touching, strict=True) for at in places}
    held = [len({window.pieces[at].start for at in places}) for window, places in zip(windows, touching, strict=True)]
    if not all_of_it or max(held) * 2 < len(all_of_it):
        return []
    return [
        (window, places[0], places[-1])
        for window, places, count in zip(windows, touching, held, strict=True)
        if count == max(held)
    ]
