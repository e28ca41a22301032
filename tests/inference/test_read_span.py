"""Answers as stretches of a passage: always exact substrings, never of the question, the same over any windows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hits.predictions import AnswerSpan, Prediction
from inference.bert import LoadedModel
from inference.encoding import PASSAGE, Encoded, Piece
from inference.errors import BadModelAnswer, ModelNotLoaded, NothingToRead
from inference.read_span import MAX_ANSWER_PIECES, SpanReader, best_span, checked_span
from inference.tiny import tiny_model, tiny_reader

torch = pytest.importorskip("torch")

TEXT = "The room was loud. The food was cold and the staff was not good, but it was very good. " * 6
QUESTION = "was the staff good?"
PASSAGES = (
    TEXT,
    "good",
    "good 👍🏽 food 👨‍👩‍👧 was cafe\u0301 cold",
    "האוכל היה good טעים",
    "line one\r\nline two good\r\n\r\nline three",
    "\ufeff the food\u200b was\u00a0good  ",
)


@pytest.fixture(scope="module")
def reader() -> SpanReader:
    return SpanReader(tiny_reader(max_length=48, stride=12))


@pytest.mark.parametrize("passage", PASSAGES)
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_a_stretch_of_whole_words_of_the_passage(passage: str, seed: int) -> None:
    prediction = SpanReader(tiny_reader(seed=seed, max_length=48, stride=12)).predict(passage, QUESTION)

    span = prediction.span
    assert span is not None
    assert passage[span.start : span.end] == span.text == span.text.strip()
    assert not (passage[span.start - 1 : span.start].isalpha() and span.text[0].isalpha())
    assert not (passage[span.end : span.end + 1].isalpha() and span.text[-1].isalpha())
    assert 0 < (prediction.confidence or 0) <= 1
    assert (prediction.label, dict(prediction.probabilities)) == ("", {})


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=40))
def test_whatever_is_asked_of_whatever_the_answer_stands_there(passage: str, question: str) -> None:
    reader = SpanReader(tiny_reader(max_length=48, stride=12))
    try:
        span = reader.predict(passage, question).span
    except NothingToRead:
        return
    assert span is not None
    assert passage[span.start : span.end] == span.text != ""


def by_hand(reader: SpanReader, passage: str, question: str) -> tuple[dict[tuple[int, int], float], float]:
    """Every allowed span with its highest score over the windows, by plain loops."""
    found: dict[tuple[int, int], float] = {}
    for window in reader.windows((passage, question)):
        starts, ends = reader.scores([window])
        places = [at for at, piece in enumerate(window.pieces) if piece.field == PASSAGE]
        for first, last in itertools.product(places, places):
            if first <= last < first + MAX_ANSWER_PIECES:
                key = window.pieces[first].start, window.pieces[last].end
                score = float(starts[0, first].double() + ends[0, last].double())
                found[key] = max(found.get(key, -1e9), score)
    return found, float(torch.tensor(list(found.values()), dtype=torch.float64).logsumexp(0))


def test_of_all_spans_of_all_windows_the_highest_wins_and_its_probability_is_among_all_of_them(
    reader: SpanReader,
) -> None:
    windows = reader.windows((TEXT, QUESTION))
    assert len(windows) > 2
    found, total = by_hand(reader, TEXT, QUESTION)
    best = max(found, key=found.__getitem__)

    scored = [(window, *(side[0] for side in reader.scores([window]))) for window in windows]
    span, confidence = best_span(scored, len(TEXT))

    assert span == best
    assert confidence == pytest.approx(float(torch.tensor(found[best] - total).exp()), rel=1e-6)


def window_of(scores: list[tuple[int | None, float, float]]) -> tuple[Encoded, object, object]:
    pieces = tuple(
        Piece(None, 0, 0) if field is None else Piece(field, at * 2, at * 2 + 1)
        for at, (field, _, _) in enumerate(scores)
    )
    special = tuple(field is None for field, _, _ in scores)
    ids = tuple(range(len(scores)))
    window = Encoded(ids, ids, special, pieces, (99, 9), truncated=False)
    starts, ends = (torch.tensor([row[side] for row in scores]) for side in (1, 2))
    return window, starts, ends


def test_neither_the_question_nor_no_answer_nor_a_backward_span_is_ever_chosen() -> None:
    none, question = None, 1
    window = window_of(
        [(none, 99, 99), (question, 50, 50), (none, 40, 40), (0, 1, 9), (0, 2, 1), (0, 8, 0), (none, 30, 30)]
    )

    span, _ = best_span([window], 99)

    # Backward, 5..3 would score 17; a single piece 3 scores 10 and is the best that is allowed.
    assert span == (6, 7)


def test_an_answer_has_at_most_so_many_pieces() -> None:
    scores: list[tuple[int | None, float, float]] = [(0, 0, 0)] * 40
    scores[0], scores[39] = (0, 9, 0), (0, 0, 9)

    (start, end), _ = best_span([window_of(scores)], 99, max_pieces=40)
    assert (start, end) == (0, 79)
    (start, end), _ = best_span([window_of(scores)], 99, max_pieces=39)
    assert (start, end) != (0, 79)


def test_a_long_passage_is_read_to_its_end(reader: SpanReader) -> None:
    seen = set()
    for seed in range(24):
        span = SpanReader(tiny_reader(seed=seed, max_length=48, stride=12)).predict(TEXT, QUESTION).span
        assert span is not None
        seen.add(span.start * 3 // len(TEXT))
    assert seen == {0, 1, 2}
    assert reader.predict(TEXT, QUESTION).truncated is False


def test_a_cut_question_is_told(reader: SpanReader) -> None:
    prediction = reader.predict(TEXT, "was it good " * 40)

    assert prediction.truncated
    assert prediction.characters_read is not None
    assert prediction.characters_read["passage"] == len(TEXT)
    assert 0 < prediction.characters_read["question"] < 480


def test_several_at_once_get_the_answers_they_get_alone(reader: SpanReader) -> None:
    inputs = [(passage, QUESTION) for passage in PASSAGES]

    for item, together in zip(inputs, reader.predict_all(inputs), strict=True):
        alone = reader.predict(*item)
        assert together.span == alone.span
        assert together.confidence == pytest.approx(alone.confidence, abs=1e-5)


@pytest.mark.parametrize("item", [("", QUESTION), (TEXT, ""), ("\u200b", QUESTION), (TEXT, " \n")])
def test_a_passage_or_question_without_a_readable_word_is_refused(reader: SpanReader, item: tuple[str, str]) -> None:
    with pytest.raises(NothingToRead):
        reader.predict(*item)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers_never_become_an_answer(broken: float) -> None:
    loaded = tiny_reader()
    with torch.no_grad():
        loaded.model.qa_outputs.bias[0] = broken

    with pytest.raises(BadModelAnswer):
        SpanReader(loaded).predict(TEXT, QUESTION)


def test_a_classifier_and_other_than_two_fields_are_refused() -> None:
    loaded: LoadedModel = tiny_reader()
    with pytest.raises(ModelNotLoaded, match="needs answers"):
        SpanReader(tiny_model())
    with pytest.raises(ModelNotLoaded, match="a passage and a question"):
        SpanReader(loaded, ("passage",))


@pytest.mark.parametrize(
    ("span", "confidence"),
    [(None, 0.5), (AnswerSpan(0, 3, "for"), 0.5), (AnswerSpan(0, 0, ""), 0.5), (AnswerSpan(0, 3, "the"), None)],
)
def test_an_answer_that_is_none_is_refused(span: AnswerSpan | None, confidence: float | None) -> None:
    good = Prediction("m", "1", "", {}, 1.0, span=AnswerSpan(0, 3, "the"), confidence=1.0)

    assert checked_span(good, "the food") is good
    with pytest.raises(BadModelAnswer):
        checked_span(replace(good, span=span, confidence=confidence), "the food")
