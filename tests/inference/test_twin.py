"""The second way through a model's weights: the same numbers, the same tensors, and no way back to the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.classify import Classifier
from inference.tiny import LABELS, tiny_model, tiny_reader

torch = pytest.importorskip("torch")

TEXT = ("the food was not good but very cold",)


@pytest.fixture
def classifier() -> Classifier:
    return Classifier(tiny_model(), LABELS)


def test_it_gives_the_models_own_numbers_and_gradients(classifier: Classifier) -> None:
    from inference.twin import twin_of

    score = classifier.score(TEXT, "positive")
    twin = twin_of(classifier.loaded.model, half=False)
    inputs = score.inputs.clone().requires_grad_()
    own = score.values(inputs)
    other = score.values(inputs, twin)

    assert torch.allclose(own, other, atol=1e-6)
    for left, right in zip(
        torch.autograd.grad(own.sum(), inputs), torch.autograd.grad(other.sum(), inputs), strict=True
    ):
        assert torch.allclose(left, right, atol=1e-5)


def test_in_half_precision_it_stays_near(classifier: Classifier) -> None:
    from inference.twin import twin_of

    score = classifier.score(TEXT, "positive")
    half = twin_of(classifier.loaded.model, half=True)

    difference = float((score.values(score.inputs) - score.values(score.inputs, half)).abs())
    assert 0 < difference < 0.1
    kept = {name: buffer.dtype for name, buffer in half.named_buffers() if name.endswith("weight")}
    assert kept["classifier.weight"] == kept["bert.pooler.dense.weight"] == torch.float32
    assert kept["bert.encoder.layer.0.attention.self.query.weight"] == torch.bfloat16


def test_it_shares_every_tensor_but_the_module_tree(classifier: Classifier) -> None:
    from inference.twin import twin_of

    model = classifier.loaded.model
    twin = twin_of(model, half=False)

    own = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    assert {tensor.data_ptr() for tensor in (*twin.parameters(), *twin.buffers())} <= own
    assert not {id(module) for module in twin.modules()} & {id(module) for module in model.modules()}
    twin.bert.encoder.layer[0].register_forward_hook(lambda *_: 1 / 0)
    assert classifier.predict(*TEXT).label in LABELS


def test_a_reader_of_passages_has_one_too() -> None:
    from inference.twin import twin_of

    loaded = tiny_reader()
    ids = torch.tensor([[2, 5, 6, 3]])

    own, twin = loaded.model(ids), twin_of(loaded.model, half=False)(ids)

    assert torch.allclose(own.start_logits, twin.start_logits, atol=1e-6)
    assert torch.allclose(own.end_logits, twin.end_logits, atol=1e-6)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16 rdtscp\n", True),
        ("model name\t: x\nflags\t\t: fpu amx_bf16\n", True),
        ("Features\t: fp asimd bf16\n", True),
        ("flags\t\t: fpu avx2 fma\n", False),
        ("flags\t\t: notavx512_bf16\n", False),
        ("", False),
        (None, False),
    ],
)
def test_half_precision_is_for_processors_that_say_so(tmp_path: Path, lines: str | None, expected: bool) -> None:
    from inference.twin import half_is_fast

    path = tmp_path / "cpuinfo"
    if lines is not None:
        path.write_text(lines)

    assert half_is_fast(path) is expected
