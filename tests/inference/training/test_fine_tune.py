"""Fine-tuning: it learns what the items say, leaves what is shared, and gives the same tensors for the same seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from inference.encoding import Encoded, encode_text, encode_windows
from inference.tiny import tiny_model, tiny_reader
from inference.training.fine_tune import Places, Schedule, Votes, average, batches, fine_tune

torch = pytest.importorskip("torch")

FAST = Schedule(batch_size=8, body_rate=3e-3, head_rate=3e-3, dropout=0.0)


def votes() -> list[Votes]:
    tokenizer = tiny_model().tokenizer
    wanted = {"bad": (1.0, 0.0, 0.0), "good": (0.0, 1.0, 0.0), "room": (0.0, 0.0, 1.0)}
    return [Votes(encode_text(tokenizer, text, 16), parts) for text, parts in wanted.items()] * 8


def answers_of(model: Any, encoded: Encoded) -> Any:
    with torch.inference_mode():
        return model(input_ids=torch.tensor([encoded.ids]), token_type_ids=torch.tensor([encoded.type_ids]))


def test_a_classifier_learns_the_votes_and_its_embeddings_stay() -> None:
    loaded = tiny_model(spread=0.2)
    before = {name: value.clone() for name, value in loaded.model.state_dict().items()}
    items = votes()

    after = fine_tune(loaded.model, [items] * 40, FAST, seed=1).state

    for item in items[:3]:
        assert answers_of(loaded.model, item.encoded).logits.argmax().item() == item.parts.index(1.0)
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        assert torch.equal(after[f"bert.embeddings.{name}.weight"], before[f"bert.embeddings.{name}.weight"])
    assert not torch.equal(after["classifier.weight"], before["classifier.weight"])
    assert not loaded.model.training
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())


def test_a_reader_learns_where_answers_start_and_end_and_that_there_may_be_none() -> None:
    loaded = tiny_reader(spread=0.2)
    (holding,) = encode_windows(loaded.tokenizer, "food", "the food was good", 16, 4)
    (empty,) = encode_windows(loaded.tokenizer, "room", "the food was good", 16, 4)
    good = next(at for at, piece in enumerate(holding.pieces) if (piece.field, piece.start) == (0, 13))
    items = [Places(holding, {good - 1: 0.5, good: 0.5}, {good: 1.0}), Places(empty, {0: 1.0}, {0: 1.0})] * 8

    fine_tune(loaded.model, [items] * 60, FAST, seed=1)

    said = answers_of(loaded.model, holding)
    allowed = items[0].allowed
    starts = said.start_logits[0, allowed].softmax(-1)
    assert allowed[int(said.end_logits[0, allowed].argmax())] == good
    assert sorted(float(starts[allowed.index(at)]) for at in (good - 1, good)) == pytest.approx([0.5, 0.5], abs=0.1)
    nothing = answers_of(loaded.model, empty)
    assert int(nothing.start_logits[0, items[1].allowed].argmax()) == 0
    assert int(nothing.end_logits[0, items[1].allowed].argmax()) == 0


def test_only_the_passage_and_the_first_position_compete() -> None:
    (window,) = encode_windows(tiny_reader().tokenizer, "food", "the food", 16, 4)

    # [CLS] food [SEP] the food [SEP]
    assert Places(window, {}, {}).allowed == [0, 3, 4]


@pytest.mark.parametrize("dropout", [None, 0.1])
def test_the_same_seed_gives_the_same_tensors(dropout: float | None) -> None:
    schedule = replace(FAST, dropout=dropout)

    one, same, other = (fine_tune(tiny_model().model, [votes()] * 2, schedule, seed=seed).state for seed in (1, 1, 2))

    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_every_step_is_told_with_its_loss_and_the_loss_falls() -> None:
    losses: list[float] = []

    fine_tune(tiny_model(spread=0.2).model, [votes()] * 30, FAST, seed=1, advance=losses.append)

    assert len(losses) == 30 * 3
    assert sum(losses[-3:]) < sum(losses[:3]) / 4


def test_every_row_is_in_exactly_one_batch() -> None:
    made = list(batches([index % 7 for index in range(100)], 8, Random(1)))

    assert sorted(index for batch in made for index in batch) == list(range(100))
    assert max(len(batch) for batch in made) == 8


def test_the_average_is_the_mean_of_the_members() -> None:
    assert average([{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 6.0])}])["w"].tolist() == [2.0, 4.0]
