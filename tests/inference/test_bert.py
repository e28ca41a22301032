"""Tokenizers from plain files, and batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.bert import load_tokenizer, padded
from inference.tiny import tiny_model

torch = pytest.importorskip("torch")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    loaded = tiny_model()
    loaded.tokenizer.enable_padding(length=32)
    loaded.tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_a_files_own_padding_and_special_tokens_are_not_applied(folder: Path) -> None:
    tokenizer = load_tokenizer(folder / "tokenizer.json", max_length=6)

    assert tokenizer.encode("good").tokens == ["[CLS]", "good", "[SEP]"]
    assert len(tokenizer.encode("good " * 9).ids) == 6
    assert tokenizer.encode("[SEP]").tokens[1] == "["


def test_a_batch_is_padded_and_masked() -> None:
    ids, mask = padded([[5, 6, 7], [8]], 0)

    assert ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]
