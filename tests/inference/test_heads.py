"""Heads on the base: both kinds, complete, frozen, and without copies of what is shared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inference.heads import model_of, untrained_state
from inference.tiny import LABELS, tiny_model

torch = pytest.importorskip("torch")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(tiny_model().model.config.to_dict()), encoding="utf-8")
    return tmp_path


def body() -> dict[str, Any]:
    return {name: value for name, value in tiny_model().model.state_dict().items() if name.startswith("bert.")}


@pytest.mark.parametrize(
    ("labels", "kind"), [(LABELS, "BertForSequenceClassification"), ((), "BertForQuestionAnswering")]
)
def test_a_head_is_put_on_the_same_body(folder: Path, labels: tuple[str, ...], kind: str) -> None:
    model = model_of(folder, untrained_state(folder, body(), labels), labels)

    assert type(model).__name__ == kind
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    own = model.state_dict()
    for name, value in body().items():
        assert name not in own or torch.equal(own[name], value)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not labels or model.config.id2label == dict(enumerate(labels))
    output = model(input_ids=torch.tensor([[2, 5, 3]]))
    assert all(bool(value.isfinite().all()) for value in output.values())


def test_tensors_are_taken_as_they_are_and_copied_for_training(folder: Path) -> None:
    name = "bert.embeddings.word_embeddings.weight"
    state = untrained_state(folder, body(), LABELS)

    first, second = (model_of(folder, state, LABELS) for _ in range(2))

    assert first.state_dict()[name].data_ptr() == second.state_dict()[name].data_ptr() == state[name].data_ptr()
    given = body()
    assert untrained_state(folder, given, LABELS)[name].data_ptr() != given[name].data_ptr()


@pytest.mark.parametrize("change", ["missing", "left over"])
def test_a_state_that_does_not_fit_is_refused_by_name(folder: Path, change: str) -> None:
    state = untrained_state(folder, body(), LABELS)
    if change == "missing":
        del state["classifier.bias"]
    else:
        state["classifier.more"] = state["classifier.bias"]

    with pytest.raises(ValueError, match=rf"{change}: \['classifier"):
        model_of(folder, state, LABELS)
