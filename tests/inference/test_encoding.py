"""What a model reads: every character accounted for, whatever the text, the cut and the tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.emoji_names import spell_out
from inference.encoding import PASSAGE, QUESTION, Encoded, encode_pair, encode_text, encode_windows
from inference.tiny import tiny_model

tokenizers = pytest.importorskip("tokenizers")

TOKENIZER = tiny_model().tokenizer
TOKENIZER.no_truncation()
CLS, SEP = TOKENIZER.token_to_id("[CLS]"), TOKENIZER.token_to_id("[SEP]")

ORDINARY = st.sampled_from("the food good 'n.\t\n")
COMPOSED = st.sampled_from("a \u0301é👍🏽\u200d👩❤️🇩🇪ש١\r\nß")
TEXTS = st.text(ORDINARY | st.characters(codec="utf-8"), max_size=60) | st.text(COMPOSED, max_size=30)


def byte_level() -> tokenizers.Tokenizer:
    """A tokenizer of RoBERTa's kind: bytes, no type ids of its own, two separators between texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    letters = pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {piece: index for index, piece in enumerate(["<s>", "<pad>", "</s>", *sorted(letters)])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True)
    return tokenizer


BYTES = byte_level()
BOTH = pytest.mark.parametrize("tokenizer", [TOKENIZER, BYTES], ids=["word pieces", "bytes"])


def read_of(encoded: Encoded, field: int) -> list[tuple[int, int]]:
    return [(piece.start, piece.end) for piece in encoded.pieces if piece.field == field]


def check_shape(encoded: Encoded, texts: dict[int, str], max_length: int) -> None:
    assert len(encoded.ids) == len(encoded.type_ids) == len(encoded.special) == len(encoded.pieces) <= max_length
    assert [piece.field is None for piece in encoded.pieces] == list(encoded.special)
    for field, text in texts.items():
        spans = read_of(encoded, field)
        assert all(0 <= start <= end <= len(text) for start, end in spans)
        assert all(first[0] <= second[0] and first[1] <= second[1] for first, second in pairwise(spans))
        assert encoded.characters_read[field] <= len(text)
        assert all(end <= encoded.characters_read[field] for _, end in spans)
    all_read = all(encoded.characters_read[field] == len(text) for field, text in texts.items())
    assert encoded.truncated or all_read


@BOTH
@given(text=TEXTS, max_length=st.integers(6, 40), emoji_names=st.booleans())
def test_a_texts_pieces_lie_in_order_in_the_text(
    tokenizer: tokenizers.Tokenizer, text: str, max_length: int, emoji_names: bool
) -> None:
    encoded = encode_text(tokenizer, text, max_length, emoji_names=emoji_names)

    check_shape(encoded, {0: text}, max_length)
    whole = encode_text(tokenizer, text, 10_000, emoji_names=emoji_names)
    assert not whole.truncated
    assert encoded.truncated == (len(whole.ids) > max_length)
    assert encoded.ids[:-1] == whole.ids[: len(encoded.ids) - 1]


@BOTH
@given(first=TEXTS, second=TEXTS, max_length=st.integers(10, 60), emoji_names=st.booleans())
def test_of_a_pair_the_second_is_kept_and_the_first_is_cut(
    tokenizer: tokenizers.Tokenizer, first: str, second: str, max_length: int, emoji_names: bool
) -> None:
    encoded = encode_pair(tokenizer, first, second, max_length, emoji_names=emoji_names)
    whole = encode_pair(tokenizer, first, second, 10_000, emoji_names=emoji_names)

    check_shape(encoded, {0: first, 1: second}, max_length)
    room = max_length - sum(whole.special)
    lengths = [len(read_of(whole, field)) for field in (0, 1)]
    kept = [len(read_of(encoded, field)) for field in (0, 1)]
    assert sum(kept) == min(room, sum(lengths))
    assert kept[1] == lengths[1] or kept[0] == min(lengths[0], room // 4)


@BOTH
@given(
    question=TEXTS, passage=TEXTS, max_length=st.integers(10, 40), stride=st.integers(0, 30), emoji_names=st.booleans()
)
def test_windows_cover_the_passage_and_overlap(
    tokenizer: tokenizers.Tokenizer, question: str, passage: str, max_length: int, stride: int, emoji_names: bool
) -> None:
    windows = encode_windows(tokenizer, question, passage, max_length, stride, emoji_names=emoji_names)
    whole = encode_pair(tokenizer, question, passage, 10_000, emoji_names=emoji_names)

    for window in windows:
        check_shape(window, {PASSAGE: passage, QUESTION: question}, max_length)
        assert read_of(window, QUESTION) == read_of(windows[0], QUESTION)
        assert window.characters_read[PASSAGE] == len(passage)
    everything = read_of(whole, 1)
    at = 0
    for window in windows:
        part = read_of(window, PASSAGE)
        start = next(index for index in range(at, -1, -1) if everything[index : index + len(part)] == part)
        at = start + len(part)
    assert at == len(everything)
    assert {len(read_of(window, PASSAGE)) for window in windows} == {len(read_of(windows[0], PASSAGE))}


def test_the_model_reads_the_question_first_and_its_type_ids_tell_the_texts_apart() -> None:
    (window,) = encode_windows(TOKENIZER, "food?", "the food", 20, 5)

    assert [TOKENIZER.id_to_token(number) for number in window.ids] == [
        "[CLS]", "food", "?", "[SEP]", "the", "food", "[SEP]",
    ]  # fmt: skip
    assert window.type_ids == (0, 0, 0, 0, 1, 1, 1)
    assert [piece.field for piece in window.pieces] == [None, QUESTION, QUESTION, None, PASSAGE, PASSAGE, None]
    assert read_of(window, PASSAGE) == [(0, 3), (4, 8)]
    assert window.characters_read == (8, 5)


def test_windows_share_as_many_pieces_as_the_stride_says_and_the_last_is_full() -> None:
    windows = encode_windows(TOKENIZER, "a", "b " * 20, 14, 4)

    spans = [read_of(window, PASSAGE) for window in windows]
    assert [len(part) for part in spans] == [10, 10, 10]
    assert [part[0][0] // 2 for part in spans] == [0, 6, 10]


def test_a_typed_separator_is_text() -> None:
    encoded = encode_text(tiny_without_cut(), "a [SEP] b", 40)

    assert encoded.ids.count(SEP) == 1
    assert encoded.ids[0] == CLS


def tiny_without_cut() -> tokenizers.Tokenizer:
    tokenizer = tiny_model().tokenizer
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer


def test_a_cut_text_says_how_far_it_was_read() -> None:
    encoded = encode_text(TOKENIZER, "the food was good and the", 6)

    assert encoded.truncated
    assert encoded.characters_read == (len("the food was good"),)


def test_emoji_are_read_as_words_but_counted_as_themselves() -> None:
    text = "the 👳🏾 food"

    encoded = encode_text(TOKENIZER, text, 60, emoji_names=True)

    assert encoded.ids == encode_text(TOKENIZER, spell_out(text).text, 60).ids
    assert set(read_of(encoded, 0)) == {(0, 3), (4, 6), (7, 11)}


@pytest.mark.parametrize("change", [lambda one: one.enable_truncation(8), lambda one: one.enable_padding(length=8)])
def test_a_tokenizer_that_cuts_or_pads_by_itself_is_refused(change: Callable[[object], None]) -> None:
    tokenizer = tiny_without_cut()
    change(tokenizer)

    with pytest.raises(ValueError, match="neither cut nor pad"):
        encode_text(tokenizer, "good", 20)


def test_too_little_room_is_refused_with_the_number() -> None:
    with pytest.raises(ValueError, match="max_length 5 leaves 3 positions"):
        encode_text(TOKENIZER, "good", 5)


@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_a_text_without_words_holds_nothing(text: str) -> None:
    assert not encode_text(TOKENIZER, text, 20).holds(0)
    assert encode_text(TOKENIZER, "good", 20).holds(0)


@pytest.mark.model
def test_the_bases_own_tokenizer_gives_the_ids_that_the_model_was_trained_with(base_folder: Path) -> None:
    from inference.bert import load_tokenizer

    cutting = load_tokenizer(base_folder / "tokenizer.json", max_length=12)
    plain = load_tokenizer(base_folder / "tokenizer.json", max_length=None)

    for text in ("The food was good, but the room was too loud and cold, cold, cold.", "No.", "naïve [SEP] 👍🏽"):
        encoded, expected = encode_text(plain, text, 12), cutting.encode(text)
        assert list(encoded.ids) == expected.ids
        assert [(piece.start, piece.end) for piece in encoded.pieces] == expected.offsets
        assert encoded.truncated == bool(expected.overflowing)
