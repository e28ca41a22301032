"""The tests' own model is what it promises: small, seeded, the real machinery."""

from __future__ import annotations

import pytest

from inference.tiny import tiny_model

torch = pytest.importorskip("torch")


def test_the_same_seed_gives_the_same_model_and_another_seed_another() -> None:
    one, same, other = tiny_model(seed=1), tiny_model(seed=1), tiny_model(seed=2)

    weights = [loaded.model.classifier.weight for loaded in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_building_it_leaves_the_callers_random_numbers_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    tiny_model()

    assert torch.equal(torch.rand(3), expected)


def test_any_latin_word_is_spelled_out_and_the_rest_is_unknown() -> None:
    tokenizer = tiny_model().tokenizer

    assert tokenizer.encode("good zig ж").tokens == ["[CLS]", "good", "z", "##i", "##g", "[UNK]", "[SEP]"]
