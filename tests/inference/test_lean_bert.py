"""The fast way through BERT models: the same logits and gradients as the model's own, or not used at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inference.bert import LoadedModel
from inference.errors import CallerGone
from inference.published import load_published
from inference.right_of_way import stopping_at
from inference.tiny import tiny_model, tiny_reader
from tests.inference.published import save_model

torch = pytest.importorskip("torch")

ROWS, POSITIONS = 3, 11


def inputs_of(loaded: LoadedModel, *, seed: int = 5) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    size = loaded.model.config.hidden_size
    types = torch.tensor([[0] * 5 + [1] * (POSITIONS - 5)]).expand(ROWS, -1)
    return {"inputs_embeds": torch.randn(ROWS, POSITIONS, size, generator=generator), "token_type_ids": types}


@pytest.mark.parametrize("name", ["logits", "start_logits", "end_logits"])
def test_logits_and_gradients_are_the_models_own(name: str) -> None:
    from inference.lean_bert import lean_bert_of

    loaded = tiny_model(seed=4) if name == "logits" else tiny_reader(seed=4)
    lean = lean_bert_of(loaded.model, half=False)
    assert lean is not None
    found = []
    for way in (loaded.model, lean):
        inputs = inputs_of(loaded)
        inputs["inputs_embeds"].requires_grad_()
        logits = getattr(way(**inputs), name)
        found.append((logits, torch.autograd.grad(logits[:, 1].sum(), inputs["inputs_embeds"])[0]))

    (own, own_gradient), (logits, gradient) = found
    assert own.shape == logits.shape
    assert torch.allclose(own, logits, atol=1e-5)
    assert torch.allclose(own_gradient, gradient, atol=1e-5)


def test_in_half_precision_it_stays_near() -> None:
    from inference.lean_bert import lean_bert_of

    loaded = tiny_model()
    half = lean_bert_of(loaded.model, half=True)
    assert half is not None
    inputs = inputs_of(loaded)

    difference = float((loaded.model(**inputs).logits - half(**inputs).logits).abs().max())

    assert 0 < difference < 0.2


def test_it_passes_checkpoints() -> None:
    from inference.lean_bert import lean_bert_of

    lean = lean_bert_of(tiny_model().model, half=False)
    assert lean is not None

    def end() -> None:
        raise CallerGone

    with stopping_at(end), pytest.raises(CallerGone):
        lean(**inputs_of(tiny_model()))


@pytest.mark.parametrize("architecture", ["electra", "roberta", "distilbert"])
def test_it_is_for_plain_bert_only(tmp_path: Path, architecture: str) -> None:
    from inference.lean_bert import lean_bert_of

    folder = save_model(tmp_path, architecture, ("a", "b"))
    loaded = load_published(folder, ("a", "b"), source="x", model_id="x")

    assert lean_bert_of(loaded.model, half=False) is None


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"is_decoder": True}, {"type_vocab_size": 1}])
def test_a_bert_with_another_design_is_left_to_the_twin(change: dict[str, object]) -> None:
    from inference.lean_bert import lean_bert_of

    model = tiny_model().model
    for name, value in change.items():
        setattr(model.config, name, value)

    assert lean_bert_of(model, half=False) is None


def test_a_bert_that_answers_otherwise_is_left_to_the_twin() -> None:
    """Whatever is different about it, its answers tell."""
    from inference.lean_bert import lean_bert_of

    model = tiny_model().model
    model.bert.encoder.layer[1].attention.register_forward_hook(lambda module, given, out: (out[0] * 1.5, *out[1:]))

    assert lean_bert_of(model, half=False) is None


def test_the_real_models_go_this_way(base_folder: Path) -> None:
    from inference.embedded import load_embedded
    from inference.lean_bert import lean_bert_of

    loaded = load_embedded("sentiment", ("negative", "positive", "neutral"), base=base_folder)

    assert lean_bert_of(loaded.model, half=False) is not None
