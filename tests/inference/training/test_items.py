"""Rows as the model learns them: the answer at the very pieces that hold it, in windows of every kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.predictions import AnswerSpan
from inference.encoding import PASSAGE, encode_windows
from inference.tiny import tiny_reader
from inference.training.corpora import Asked, Row
from inference.training.items import places_in, places_of, votes_of

pytest.importorskip("torch")

TOKENIZER = tiny_reader().tokenizer


def asked(passage: str, *answers: str, question: str = "food") -> Asked:
    spans = [AnswerSpan(passage.index(text), passage.index(text) + len(text), text) for text in answers]
    return Asked(passage, question, tuple(spans), "article")


def test_texts_and_pairs_keep_their_votes_and_emoji_are_words_if_the_recipe_says_so() -> None:
    rows = [Row(("good 🐀",), "x", (0.25, 0.75)), Row(("good", "bad"), "y", (1.0, 0.0))]

    text, pair = votes_of(rows, TOKENIZER, 20, emoji_names=True)
    plain, _ = votes_of(rows, TOKENIZER, 20, emoji_names=False)

    assert (text.parts, pair.parts) == ((0.25, 0.75), (1.0, 0.0))
    assert len(text.encoded.ids) == len(plain.encoded.ids) + 2  # "rat" letter by letter instead of one [UNK]
    assert {piece.field for piece in pair.encoded.pieces} == {None, 0, 1}


def test_every_answer_weighs_the_same_at_the_pieces_that_hold_it() -> None:
    one = asked("the food was very good", "very good", "good")
    (window,) = encode_windows(TOKENIZER, one.question, one.passage, 20, 4)

    item = places_in(window, one)

    pieces = [(window.pieces[at].start, part) for at, part in item.starts.items()]
    assert sorted(pieces) == [(13, 0.5), (18, 0.5)]
    assert [(window.pieces[at].end, part) for at, part in item.ends.items()] == [(22, 1.0)]


def test_an_answer_inside_a_word_takes_the_piece_around_it() -> None:
    one = Asked("the food", "good", (AnswerSpan(5, 7, "oo"),), "a")
    (window,) = encode_windows(TOKENIZER, one.question, one.passage, 20, 4)

    item = places_in(window, one)

    assert [window.pieces[at].start for at in item.starts] == [4]


LONG = asked("the " * 30 + "room was cold " + "and " * 30, "cold")


def test_a_long_passage_gives_a_window_with_the_answer_and_if_wanted_one_without() -> None:
    (alone,) = places_of([LONG], TOKENIZER, 24, with_empty=False)
    holding, empty = places_of([LONG], TOKENIZER, 24, with_empty=True)

    assert alone == holding
    assert [LONG.passage[alone.encoded.pieces[at].start :][:4] for at in alone.starts] == ["cold"]
    assert (empty.starts, empty.ends) == ({0: 1.0}, {0: 1.0})
    assert all(LONG.passage[piece.start : piece.end] != "cold" for piece in empty.encoded.pieces)


def test_the_answer_stands_at_different_places_of_the_window() -> None:
    many = [asked(LONG.passage, "cold", question=f"food {number}") for number in range(12)]

    places = {min(item.starts) for item in places_of(many, TOKENIZER, 24, with_empty=False)}

    assert len(places) > 1


def test_an_answer_that_fits_into_no_window_is_left_out() -> None:
    passage = "the food was very good " * 10

    assert places_of([asked(passage, passage.strip())], TOKENIZER, 16, with_empty=True) == []


@given(
    st.lists(st.sampled_from(["the", "food", "was", "gôod", "👍🏽", "loud,", "ﬁsh"]), min_size=1, max_size=40),
    st.data(),
    st.integers(14, 60),
)
def test_the_marked_pieces_always_cover_the_answer(words: list[str], draw: st.DataObject, max_length: int) -> None:
    passage = " ".join(words)
    first = draw.draw(st.integers(0, len(words) - 1))
    last = draw.draw(st.integers(first, min(first + 3, len(words) - 1)))
    start = len(" ".join([*words[:first], ""]))
    end = start + len(" ".join(words[first : last + 1]))
    one = Asked(passage, "food", (AnswerSpan(start, end, passage[start:end]),), "a")

    for item in places_of([one], TOKENIZER, max_length, with_empty=False):
        ((begin, _),), ((finish, _),) = item.starts.items(), item.ends.items()
        pieces = item.encoded.pieces
        assert pieces[begin].field == pieces[finish].field == PASSAGE
        assert pieces[begin].start <= start < pieces[begin].end
        assert pieces[finish].start < end <= pieces[finish].end
