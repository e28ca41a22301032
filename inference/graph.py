"""A model's forward pass as one graph, which runs without the interpreter between its operations.

The interpreter's lock is asked for after each of hundreds of operations; where other threads of the process are busy
(pages, database), a pass of 16 ms took 60. Importing this module imports torch.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from inference.lean_bert import LeanBert, lean_bert_of
from inference.runtime import single_threaded_torch

single_threaded_torch()
import torch  # noqa: E402 - the thread settings must stand before it is imported

TRACED_AT = (2, 7)
#: Rows and positions at which a graph must say what its model says: what it took for fixed shows at other sizes.
COMPARED_AT = ((1, 3), (3, 19), (1, 141))
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Outputs:
    """What a pass gives: ``logits`` of shape (rows, labels), or the two of shape (rows, positions)."""

    logits: torch.Tensor | None = None
    start_logits: torch.Tensor | None = None
    end_logits: torch.Tensor | None = None


class Graph:
    """Called as the model is: ids, mask and, if the model takes them, token types of shape (rows, positions)."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...], *, takes_type_ids: bool) -> None:
        self._names = names
        self._takes_type_ids = takes_type_ids
        example = _example(*TRACED_AT, vocabulary=_vocabulary(model), takes_type_ids=takes_type_ids)
        self._graph = _traced(_Positional(model, names), example)

    def __call__(
        self, *, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor | None = None
    ) -> Outputs:
        more = (token_type_ids,) if self._takes_type_ids else ()
        return Outputs(**dict(zip(self._names, self._graph(input_ids, attention_mask, *more), strict=True)))


class _Positional(torch.nn.Module):
    """Takes and gives tuples, as tracing wants it."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, *types: torch.Tensor) -> Any:
        more = {"token_type_ids": types[0]} if types else {}
        output = self.model(input_ids=input_ids, attention_mask=attention_mask, **more)
        return tuple(getattr(output, name) for name in self.names)


class LeanGraph:
    """Called as the model is: the fast way through a BERT classifier, a single row without a mask."""

    def __init__(self, model: torch.nn.Module, lean: LeanBert) -> None:
        ids, mask, types = _example(*TRACED_AT, vocabulary=_vocabulary(model), takes_type_ids=True)
        way = _Lean(model, lean)
        self._alone = _traced(way, (ids, types))
        self._together = _traced(way, (ids, types, mask))

    def __call__(
        self, *, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> Outputs:
        if len(input_ids) == 1:
            return Outputs(logits=self._alone(input_ids, token_type_ids))
        return Outputs(logits=self._together(input_ids, token_type_ids, attention_mask))


class _Lean(torch.nn.Module):
    def __init__(self, model: Any, lean: LeanBert) -> None:
        super().__init__()
        self.words = model.get_input_embeddings()
        self._lean = lean

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor, *mask: torch.Tensor) -> Any:
        embedded = self.words(input_ids)
        seen = mask[0] if mask else None
        return self._lean(inputs_embeds=embedded, token_type_ids=token_type_ids, attention_mask=seen).logits


def lean_graph_of(model: torch.nn.Module, *, longest: int) -> LeanGraph | None:
    """Return the fast graph of a plain BERT classifier; None for any other model, and where it answers otherwise."""
    with torch.inference_mode():
        lean = lean_bert_of(model, half=False, times=torch.nn.functional.linear)
        if lean is None or not hasattr(model, "classifier"):
            return None
        graph = LeanGraph(model, lean)
        return graph if _agree(model, graph, ("logits",), takes_type_ids=True, longest=longest) else None


def _traced(module: torch.nn.Module, example: tuple[torch.Tensor, ...]) -> Any:
    with warnings.catch_warnings():
        # Of every Python branch on a size it warns that the graph keeps one side; the comparison decides.
        warnings.simplefilter("ignore")
        return torch.jit.trace(module, example, check_trace=False)  # type: ignore[no-untyped-call]


def _agree(
    model: torch.nn.Module,
    graph: Graph | LeanGraph,
    names: tuple[str, ...],
    *,
    takes_type_ids: bool,
    longest: int,
) -> bool:
    for rows, positions in COMPARED_AT:
        ids, mask, *types = _example(
            rows, min(positions, longest), vocabulary=_vocabulary(model), takes_type_ids=takes_type_ids
        )
        inputs = {"input_ids": ids, "attention_mask": mask}
        inputs |= {"token_type_ids": types[0]} if types else {}
        own, other = model(**inputs), graph(**inputs)
        for name in names:
            if not torch.allclose(getattr(own, name), getattr(other, name), rtol=0, atol=TOLERANCE):
                return False
    return True


def graph_of(model: torch.nn.Module, names: tuple[str, ...], *, takes_type_ids: bool, longest: int) -> Graph | None:
    """Return the graph of a model in evaluation mode, None for one that can't be traced or answers otherwise then.

    ``longest`` is how many positions the model takes; the comparison does not go beyond.
    """
    with torch.inference_mode():
        try:
            graph = Graph(model, names, takes_type_ids=takes_type_ids)
            agree = _agree(model, graph, names, takes_type_ids=takes_type_ids, longest=longest)
        except (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, NotImplementedError):
            # A model that tracing can't follow runs as it is.
            return None
    return graph if agree else None


def _vocabulary(model: torch.nn.Module) -> int:
    embeddings: Any = model.get_input_embeddings()  # type: ignore[operator]  # every transformers model has it
    return int(embeddings.num_embeddings)


def _example(rows: int, positions: int, *, vocabulary: int, takes_type_ids: bool) -> tuple[torch.Tensor, ...]:
    """Return made-up ids, a mask that hides the end of the first of several rows, and types of two texts."""
    generator = torch.Generator().manual_seed(rows * positions)
    ids = torch.randint(0, vocabulary, (rows, positions), generator=generator)
    mask = torch.ones_like(ids)
    if rows > 1:
        mask[0, positions // 2 :] = 0
    types = torch.zeros_like(ids)
    types[:, positions // 2 :] = 1
    return (ids, mask, types) if takes_type_ids else (ids, mask)
