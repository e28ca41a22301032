"""Where a training starts: the encoder's weights with a head of the task's labels, from the seed or as it was tuned."""

from __future__ import annotations

from pathlib import Path

import pytest

from hits.errors import InvalidInput
from hits.tasks import task
from inference.errors import LabelsUnknown, ModelUnusable
from inference.training.starts import start_from
from tests.inference.published import save_model

torch = pytest.importorskip("torch")


def test_a_new_head_is_drawn_by_the_seed_and_the_encoder_is_the_folder_s(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", "bert", ("x", "y"), card={"license": "mit"})
    spec = task("sentiment")

    one, same, other = (start_from(spec, f"dir:{folder}", "pretrained", seed=seed) for seed in (1, 1, 2))

    assert one.labels == spec.label_codes
    assert one.model.config.id2label == dict(enumerate(spec.label_codes))
    assert torch.equal(one.model.classifier.weight, same.model.classifier.weight)
    assert not torch.equal(one.model.classifier.weight, other.model.classifier.weight)
    assert torch.equal(
        one.model.bert.embeddings.word_embeddings.weight, other.model.bert.embeddings.word_embeddings.weight
    )
    assert (one.licence, one.max_length, one.embeddings_learn) == ("mit", 64, True)
    with pytest.raises(LabelsUnknown):
        start_from(spec, f"dir:{folder}", "tuned", seed=1)


@pytest.mark.parametrize("architecture", ["distilbert", "roberta"])
def test_other_architectures_start_as_well(tmp_path: Path, architecture: str) -> None:
    folder = save_model(tmp_path / "m", architecture, None)

    start = start_from(task("qa"), f"dir:{folder}", "pretrained", seed=1)

    assert (start.labels, start.as_loaded().head) == ((), "span")


def test_what_can_not_be_trained_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be trained"):
        start_from(task("nli"), "served:nli", "tuned", seed=1)
    with pytest.raises(ModelUnusable, match="no safetensors"):
        start_from(task("nli"), f"dir:{tmp_path}", "pretrained", seed=1)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("code", ["sentiment", "qa"])
def test_the_embedded_model_starts_without_touching_what_others_share(code: str, base_folder: Path) -> None:
    from inference.embedded import load_embedded

    spec = task(code)
    labels = spec.label_codes if code == "sentiment" else ()
    tuned, fresh = (
        start_from(spec, f"embedded:{code}", kind, seed=1, base=base_folder) for kind in ("tuned", "pretrained")
    )  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in (*tuned.model.parameters(), *fresh.model.parameters()):
            parameter.fill_(0)

    served = load_embedded(code, labels, base=base_folder)

    assert all(float(parameter.abs().sum()) > 0 for parameter in served.model.bert.embeddings.parameters())
    assert tuned.weights != fresh.weights
    assert not tuned.embeddings_learn
