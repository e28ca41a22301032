"""What is explained: the number itself, its baseline, and where a stretch of a passage stands in windows."""

from __future__ import annotations

import pytest

from inference.encoding import PASSAGE, QUESTION, Encoded, Piece, encode_pair
from inference.score import label_score, windows_holding
from inference.tiny import LABELS, tiny_model

torch = pytest.importorskip("torch")


def window(*spans: tuple[int, int]) -> Encoded:
    """A window with a question of one piece and these pieces of the passage."""
    pieces = (Piece(None, 0, 0), Piece(QUESTION, 0, 50), *(Piece(PASSAGE, *span) for span in spans))
    numbers = tuple(range(len(pieces)))
    return Encoded(numbers, numbers, (True, *(False for _ in pieces[1:])), pieces, (99, 50), truncated=False)


LEFT, RIGHT = window((0, 3), (4, 8), (8, 9)), window((4, 8), (8, 9), (10, 14))


def test_a_stretch_is_found_in_every_window_that_holds_it_whole() -> None:
    assert windows_holding([LEFT, RIGHT], PASSAGE, 4, 9) == [(LEFT, 3, 4), (RIGHT, 2, 3)]
    assert windows_holding([LEFT, RIGHT], PASSAGE, 0, 8) == [(LEFT, 2, 3)]
    assert windows_holding([LEFT, RIGHT], PASSAGE, 5, 6) == [(LEFT, 3, 3), (RIGHT, 2, 2)]


def test_of_one_that_no_window_holds_whole_the_most_is_taken_if_it_is_half() -> None:
    assert windows_holding([LEFT, RIGHT], PASSAGE, 0, 14) == [(LEFT, 2, 4), (RIGHT, 2, 4)]
    one, other, third = window((0, 3)), window((4, 8)), window((9, 12))
    assert windows_holding([one, other, third], PASSAGE, 0, 12) == []


@pytest.mark.parametrize("stretch", [(3, 4), (14, 20), (50, 60)])
def test_where_no_piece_stands_nothing_is_found(stretch: tuple[int, int]) -> None:
    assert windows_holding([LEFT, RIGHT], PASSAGE, *stretch) == []


def test_the_score_is_the_labels_logit_and_its_baseline_keeps_what_the_tokenizer_put_there() -> None:
    loaded = tiny_model()
    sequence = encode_pair(loaded.tokenizer, "the food", "was good", loaded.max_length)
    score = label_score(loaded, sequence, "positive")
    logits = loaded.forward([sequence]).logits[0]
    blank = [token if own else loaded.pad_token_id for token, own in zip(sequence.ids, sequence.special, strict=True)]

    with torch.no_grad():
        assert float(score.values(score.inputs)[0]) == pytest.approx(float(logits[LABELS.index("positive")]), abs=1e-5)
        both = score.values(torch.cat([score.inputs, score.baseline]))
    assert both.shape == (2,)
    assert torch.equal(score.baseline[0], loaded.model.get_input_embeddings()(torch.tensor(blank)))
    assert not score.inputs.requires_grad


def test_a_label_that_the_model_lacks_is_no_score() -> None:
    loaded = tiny_model()
    with pytest.raises(ValueError, match="not in tuple"):
        label_score(loaded, encode_pair(loaded.tokenizer, "a", "b", 64), "angry")
