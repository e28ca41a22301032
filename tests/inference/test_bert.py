"""Building classifiers and tokenizers from plain files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inference.bert import build_classifier, load_tokenizer, padded
from inference.tiny import LABELS, tiny_model

torch = pytest.importorskip("torch")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    loaded = tiny_model()
    (tmp_path / "config.json").write_text(json.dumps(loaded.model.config.to_dict(), default=str))
    loaded.tokenizer.enable_padding(length=32)
    loaded.tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_a_model_built_from_files_answers_as_the_one_they_came_from(folder: Path) -> None:
    loaded = tiny_model()
    ids, mask = padded([loaded.tokenizer.encode("the food was good").ids], loaded.pad_token_id)

    built = build_classifier(folder, loaded.model.state_dict(), LABELS)

    assert torch.equal(built(input_ids=ids, attention_mask=mask).logits, loaded.model(ids, mask).logits)
    assert built.config.id2label == dict(enumerate(LABELS))
    assert built.training is False
    assert {parameter.dtype for parameter in built.parameters()} == {torch.float32}


def test_missing_and_left_over_tensors_are_named(folder: Path) -> None:
    state = tiny_model().model.state_dict()
    state["stranger"] = state.pop("classifier.bias")

    with pytest.raises(ValueError, match=r"classifier\.bias.*stranger"):
        build_classifier(folder, state, LABELS)


def test_a_files_own_padding_and_special_tokens_are_not_applied(folder: Path) -> None:
    tokenizer = load_tokenizer(folder / "tokenizer.json", max_length=6)

    assert tokenizer.encode("good").tokens == ["[CLS]", "good", "[SEP]"]
    assert len(tokenizer.encode("good " * 9).ids) == 6
    assert tokenizer.encode("[SEP]").tokens[1] == "["


def test_a_batch_is_padded_and_masked() -> None:
    ids, mask = padded([[5, 6, 7], [8]], 0)

    assert ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]
