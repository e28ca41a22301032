"""The forward pass as one graph: the same numbers at every size, and the model itself where a graph would differ."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from inference.classify import Classifier
from inference.tiny import LABELS, tiny_model, tiny_reader

torch = pytest.importorskip("torch")

from inference.graph import Graph, LeanGraph, graph_of, lean_graph_of  # noqa: E402 - it imports torch

CLASSIFIES = ("logits",)
READS = ("start_logits", "end_logits")


def inputs(rows: int, positions: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(positions)
    ids = torch.randint(5, 20, (rows, positions), generator=generator)
    mask = torch.ones_like(ids)
    mask[0, positions - positions // 3 :] = 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}


@pytest.mark.parametrize(("rows", "positions"), [(1, 2), (1, 40), (2, 7), (5, 23)])
def test_it_says_what_the_model_says(rows: int, positions: int) -> None:
    for loaded, names in ((tiny_model(), CLASSIFIES), (tiny_reader(max_length=40), READS)):
        graph = graph_of(loaded.model, names, takes_type_ids=True, longest=40)
        assert graph is not None
        with torch.inference_mode():
            own, other = loaded.model(**inputs(rows, positions)), graph(**inputs(rows, positions))
        for name in names:
            assert torch.equal(getattr(own, name), getattr(other, name))


@pytest.mark.parametrize("lengths", [[1], [30], [1, 2], [3, 17, 9]])
def test_a_plain_classifier_takes_the_fast_way_alone_and_together(lengths: list[int]) -> None:
    classifier = Classifier(tiny_model(), LABELS)
    assert isinstance(classifier.loaded._pass, LeanGraph)
    sequences = [classifier.encode(("good bad " * length,)) for length in lengths]

    found = classifier.loaded.forward(sequences).logits

    for row, sequence in zip(found, sequences, strict=True):
        with torch.inference_mode():
            own = classifier.loaded.model(
                input_ids=torch.tensor([sequence.ids]), token_type_ids=torch.tensor([sequence.type_ids])
            )
        assert torch.allclose(row, own.logits[0], atol=1e-5)


def test_a_reader_and_other_classifiers_take_a_graph_of_their_own() -> None:
    other = tiny_model()
    other.model.config.hidden_act = "relu"

    for loaded in (tiny_reader(max_length=40), other):
        assert isinstance(loaded._pass, Graph)


def test_a_fast_way_that_answers_otherwise_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny_model()
    monkeypatch.setattr("inference.graph._Lean.forward", lambda self, ids, *_: self.words(ids)[:, 0, :3])

    assert lean_graph_of(loaded.model, longest=40) is None


class LengthCounts(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A model that reads the length in Python, which a graph keeps as it was when it was traced."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(20, 3)

    def get_input_embeddings(self) -> Any:
        return self.words

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        class Output:
            logits = self.words(input_ids).mean(1) * float(input_ids.shape[1])

        return Output


class LooksAtNumbers(LengthCounts):
    """A model whose way depends on the numbers so that tracing fails."""

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        raise RuntimeError("not like this")


@pytest.mark.parametrize("kind", [LengthCounts, LooksAtNumbers])
def test_where_a_graph_would_differ_or_cannot_be_there_is_none(kind: type[Any]) -> None:
    assert graph_of(kind().eval(), CLASSIFIES, takes_type_ids=True, longest=40) is None


def test_what_a_graph_cannot_follow_answers_by_the_model_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = Classifier(tiny_model(), LABELS).encode(("the food was good",))
    expected = tiny_model().forward([sequence]).logits
    monkeypatch.setattr("inference.graph.graph_of", lambda *_, **__: None)
    monkeypatch.setattr("inference.graph.lean_graph_of", lambda *_, **__: None)
    loaded = tiny_model()

    assert torch.allclose(loaded.forward([sequence]).logits, expected, atol=1e-5)
    assert loaded._pass is loaded.model


def test_several_threads_may_run_it_at_once() -> None:
    graph = graph_of(tiny_model().model, CLASSIFIES, takes_type_ids=True, longest=40)
    assert graph is not None
    sizes = [(1, 4), (3, 9), (2, 30)]
    with torch.inference_mode():
        expected = {size: graph(**inputs(*size)).logits for size in sizes}
    wrong: list[tuple[int, int]] = []

    def ask() -> None:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            for size in sizes:
                with torch.inference_mode():
                    if not torch.equal(graph(**inputs(*size)).logits, expected[size]):
                        wrong.append(size)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
