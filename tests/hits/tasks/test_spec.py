"""What a task takes and refuses."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.errors import AmbiguousAnswer, InvalidAnswer, InvalidInput
from hits.predictions import AnswerSpan, MemberAnswer, Prediction
from hits.tasks import (
    AnswerKind,
    ContextField,
    Fit,
    QuizItem,
    SpanInput,
    WriterItem,
    digest_of,
    incomplete,
    task,
    token_f1,
)
from hits.tasks._spans import widened
from hits.tasks._spec import _holds_word, checked_text

SENTIMENT, NLI, QA = task("sentiment"), task("nli"), task("qa")


def test_a_text_is_trimmed_outside_and_untouched_inside() -> None:
    text = checked_text("statement", "Your statement", "  so\r\nwhat?  \u202b\u05e9\u05dc\u05d5\u05dd\u202c 👍\t", 100)

    assert text == "so\nwhat?  \u202b\u05e9\u05dc\u05d5\u05dd\u202c 👍"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "is missing"),
        (7, "must be text, not int"),
        ("", "is empty"),
        (" \u200b\n ", "is empty"),
        ("x" * 101, r"has 101 characters; 100 are the most"),
        ("x" * 100_000, r"has 100,000 characters"),
        ("a\0b", r"U\+0000 at 2"),
        ("a\ud800", r"U\+D800 at 2"),
    ],
)
def test_unusable_text_is_refused_with_the_reason(value: object, message: str) -> None:
    with pytest.raises(InvalidAnswer, match=message) as caught:
        checked_text("statement", "Your statement", value, 100)
    assert caught.value.field == "statement"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "expected an object with 'prompt', not list"),
        ({"prompt": "p", "extra": "x"}, "unknown field 'extra'"),
        ({}, "Prompt is missing"),
    ],
)
def test_an_unusable_context_is_refused_with_the_reason(raw: object, message: str) -> None:
    with pytest.raises(InvalidAnswer, match=message):
        SENTIMENT.check_context(raw)


def test_the_model_reads_the_model_fields_only() -> None:
    assert SENTIMENT.model_input({"prompt": "p"}, {"statement": "s"}) == {"statement": "s"}


@pytest.mark.parametrize(
    ("code", "kind"), [("sentiment", AnswerKind.TEXT), ("hate", AnswerKind.TEXT), ("nli", "pair"), ("qa", "span")]
)
def test_the_kind_follows_from_the_fields(code: str, kind: AnswerKind) -> None:
    assert task(code).kind is AnswerKind(kind)


def test_a_model_that_reads_three_fields_is_of_no_embedded_kind() -> None:
    wider = dataclasses.replace(NLI, model_fields=("premise", "hypothesis", "hypothesis"))

    assert wider.kind is AnswerKind.FIELDS


def said(label: str, sure: float = 0.8, **fields: object) -> Prediction:
    rest = (1 - sure) / 2
    others = [code for code in SENTIMENT.label_codes if code != label]
    return Prediction("m", "1", label, {label: sure, others[0]: rest, others[1]: rest}, 1.0, **fields)  # type: ignore[arg-type]


def member(name: str, label: str, sure: float) -> MemberAnswer:
    return MemberAnswer(name, "1", label, said(label, sure).probabilities)


def test_a_classifier_is_fooled_when_it_says_another_label() -> None:
    fooled = SENTIMENT.judge("negative", {"statement": "s"}, said("neutral"))
    held = SENTIMENT.judge("neutral", {"statement": "s"}, said("neutral"))

    assert (fooled.predicted_label, fooled.fooled, fooled.f1) == ("neutral", True, None)
    assert (held.fooled, held.shown.model_id) == (False, "m")
    with pytest.raises(InvalidInput, match="'sad' is not a label of the sentiment task"):
        SENTIMENT.judge("sad", {"statement": "s"}, said("neutral"))
    with pytest.raises(InvalidInput, match="'LABEL_0' is not a label"):
        SENTIMENT.judge("neutral", {"statement": "s"}, said("LABEL_0"))


@pytest.mark.parametrize(
    ("needed", "labels", "fooled", "shown"),
    [
        (1, ["negative", "positive", "negative"], True, "b"),
        (2, ["negative", "positive", "negative"], False, "c"),
        (2, ["positive", "positive", "negative"], True, "b"),
        (3, ["positive", "neutral", "positive"], True, "c"),
        (1, ["negative", "negative", "negative"], False, "c"),
    ],
)
def test_an_ensemble_is_fooled_when_enough_members_are_wrong(
    needed: int, labels: list[str], fooled: bool, shown: str
) -> None:
    members = tuple(
        member(name, label, 0.5 + at / 10) for at, (name, label) in enumerate(zip("abc", labels, strict=True))
    )
    prediction = said("negative", members=members, wrong_members_needed=needed, policy=f"wrong>={needed}")

    judged = SENTIMENT.judge("negative", {"statement": "s"}, prediction)

    assert (judged.fooled, judged.shown.model_id) == (fooled, shown)
    assert judged.predicted_label == dict(zip("abc", labels, strict=True))[shown]


def test_an_ensemble_that_gives_one_answer_is_judged_by_it() -> None:
    prediction = said("positive", members=(member("a", "negative", 0.9), member("b", "positive", 0.99)), policy="mean")

    judged = SENTIMENT.judge("negative", {"statement": "s"}, prediction)

    assert (judged.fooled, judged.shown.model_id) == (True, "m")


PASSAGE = "one two three four five six seven eight nine ten"


def span(text: str, sure: float | None = 0.5, **fields: object) -> Prediction:
    start = PASSAGE.index(text)
    found = AnswerSpan(start, start + len(text), text)
    return Prediction("m", "1", "", {}, 1.0, span=found, confidence=sure, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("marked", "read", "fooled", "label"),
    [
        ("two three", "two three", False, "right"),
        ("one two three four five", "five six seven eight nine", True, "wrong"),
        ("one two three four five", "four five six seven eight", False, "right"),
        ("one two", "two three four", False, "right"),
        ("one two", "two three four five", True, "wrong"),
    ],
)
def test_a_reader_is_fooled_strictly_below_the_threshold(marked: str, read: str, fooled: bool, label: str) -> None:
    judged = QA.judge("right", {"question": "q", "answer": marked, "answer_start": "0"}, span(read))

    assert (judged.fooled, judged.predicted_label) == (fooled, label)
    assert judged.f1 == token_f1(read, marked)
    assert judged.shown.span is not None
    assert judged.shown.span.text == read


def test_of_readers_the_most_confident_wrong_one_is_shown_when_enough_are_wrong() -> None:
    members = tuple(
        MemberAnswer(name, "1", "", {}, span(text).span, sure)
        for name, text, sure in (("a", "one two", 0.9), ("b", "six", 0.4), ("c", "ten", 0.6))
    )
    answer = {"question": "q", "answer": "one two", "answer_start": "0"}

    two = QA.judge("right", answer, span("ten", members=members, wrong_members_needed=2))
    three = QA.judge("right", answer, span("ten", members=members, wrong_members_needed=3))

    assert (two.fooled, two.shown.model_id, two.predicted_label, two.f1) == (True, "c", "wrong", 0.0)
    assert (three.fooled, three.shown.model_id, three.predicted_label, three.f1) == (False, "a", "right", 1.0)


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
HARD = f"Ze\u0301bra {FAMILY} \u05e9\u05dc\u05d5\u05dd\nthe toll, then the toll."


def answered(passage: str = HARD, **fields: str) -> dict[str, str]:
    return QA.check_answer({"question": "What is it then?", **fields}, {"passage": passage})


def test_a_mark_through_an_article_is_no_answer() -> None:
    with pytest.raises(InvalidAnswer, match="holds no word"):
        answered("Over THE hill", answer="T", answer_start="5")


@given(st.data(), st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60))
def test_what_the_browser_marks_is_stored_as_it_stands_with_its_place(data: st.DataObject, passage: str) -> None:
    start = data.draw(st.integers(0, len(passage) - 1))
    end = data.draw(st.integers(start + 1, len(passage)))
    marked = passage[start:end]
    units = len(passage[:start].encode("utf-16-le")) // 2
    first = start + len(marked) - len(marked.lstrip())
    whole = slice(*widened(passage, first, first + len(marked.strip()))) if marked.strip() else slice(0)
    if not _holds_word(marked.strip()) or not _holds_word(passage[whole]):
        with pytest.raises(InvalidAnswer):
            answered(passage, answer=marked, answer_start_utf16=str(units))
        return

    stored = answered(passage, answer=marked, answer_start_utf16=str(units))

    at = int(stored["answer_start"])
    assert passage[at : at + len(stored["answer"])] == stored["answer"]
    assert (at, at + len(stored["answer"])) == widened(passage, first, first + len(marked.strip()))
    assert answered(passage, answer=stored["answer"], answer_start=stored["answer_start"]) == stored


@pytest.mark.parametrize(
    ("passage", "marked", "stored"),
    [
        ("It was the bridge then.", "bridg", "bridge"),
        ("It was the bridge then.", "ridge th", "bridge then"),
        ("the cafe\u0301 there", "cafe", "cafe\u0301"),
        ("it cost 1,500.50 pounds.", "500", "1,500.50"),
        ("they didn\u2019t go.", "didn", "didn\u2019t"),
        (f"we saw \u0444{FAMILY} x", "\u0444\U0001f468", f"\u0444{FAMILY}"),
        ("a well-known man", "known", "known"),
        ("\u6771\u4eac\u90fd", "\u4eac", "\u4eac"),
    ],
)
def test_half_a_word_is_no_answer_that_a_right_model_would_miss(passage: str, marked: str, stored: str) -> None:
    place = str(passage.index(marked))

    for sent in ({}, {"answer_start": place}):
        found = answered(passage, answer=marked, **sent)
        assert found["answer"] == stored
        assert passage[int(found["answer_start"]) :].startswith(stored)
        said = Prediction("m", "1", "", {}, 1.0, span=AnswerSpan(0, len(stored), stored), confidence=0.9)
        assert not QA.judge("right", found, said).fooled


def test_an_answer_is_found_by_its_text_when_no_place_is_sent_or_a_false_one() -> None:
    at = HARD.index("\u05e9")

    for sent in ({}, {"answer_start": "x"}, {"answer_start_utf16": "-1"}, {"answer_start": "3"}, {"answer_start": ""}):
        assert answered(answer=" \u05e9\u05dc\u05d5\u05dd ", **sent)["answer_start"] == str(at)
    assert answered(answer="z\u00e9bra")["answer"] == "Ze\u0301bra"
    assert answered("The toll\nrose", answer="toll\r\nrose")["answer"] == "toll\nrose"


def test_an_answer_at_several_places_is_asked_for() -> None:
    with pytest.raises(AmbiguousAnswer, match="2 times") as caught:
        answered(answer="TOLL")

    first, second = caught.value.places
    assert (HARD[first[0] :][:4], first[2], second[3]) == ("toll", "toll", ".")
    assert answered(answer="TOLL", answer_start=str(second[0]))["answer_start"] == str(HARD.rindex("toll"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "is missing"),
        ("", "is missing"),
        ("the", "holds no word"),
        ("?!", "holds no word"),
        ("\u2014", "holds no word"),
        ("\u201cthe\u201d", "holds no word"),
        ("nowhere in it", "does not stand in the text"),
        ("x" * 5000, "does not stand"),
        ("a\0b", "does not stand"),
    ],
)
def test_what_is_no_answer_is_refused_with_the_next_step(answer: str | None, message: str) -> None:
    with pytest.raises(InvalidAnswer, match=message) as caught:
        QA.check_answer({"question": "What is it?", "answer": answer}, {"passage": HARD})
    assert caught.value.field == "answer"


WALL = " ".join(f"brick{number}" for number in range(40))


@pytest.mark.parametrize("first", [0, 9])
def test_a_marked_answer_has_thirty_words_at_most(first: int) -> None:
    words = WALL.split()
    longest, too_long = " ".join(words[first : first + 30]), " ".join(words[first : first + 31])

    assert answered(WALL, answer=longest)["answer"] == longest
    place = str(WALL.index(too_long))
    for sent in ({}, {"answer_start": place}, {"answer_start_utf16": place}):
        with pytest.raises(InvalidAnswer, match="has 31 words; 30 are the most") as caught:
            answered(WALL, answer=too_long, **sent)
        assert caught.value.field == "answer"


def test_words_that_the_mark_cuts_through_count() -> None:
    begun = " ".join([*WALL.split()[:30], "b"])

    with pytest.raises(InvalidAnswer, match="31 words"):
        answered(WALL, answer=begun, answer_start="0")


def test_the_page_says_how_many_words_a_marked_answer_has() -> None:
    span = QA.span_input
    assert span is not None
    assert span.full_hint.endswith("that answers it. 30 words at most.")
    assert dataclasses.replace(span, max_words=None).full_hint == span.hint
    unlimited = dataclasses.replace(QA, answer_fields=(QA.answer_fields[0], dataclasses.replace(span, max_words=None)))
    assert unlimited.check_answer({"question": "What is it?", "answer": WALL}, {"passage": WALL})["answer"] == WALL


def test_a_sentence_has_words() -> None:
    with pytest.raises(InvalidAnswer, match="has 1 word; write a whole sentence, 3 words at least"):
        NLI.check_answer({"hypothesis": "No."}, {"premise": "p"})


def test_the_goal_is_a_sentence() -> None:
    assert SENTIMENT.goal_sentence("neutral") == "Write a NEUTRAL statement that the model takes for something else."


def test_equal_fields_have_equal_digests_whatever_their_order() -> None:
    assert digest_of({"a": "1", "b": "2"}) == digest_of({"b": "2", "a": "1"})
    assert digest_of({"a": "1"}) != digest_of({"a": "2"})


def test_every_finding_about_a_task_is_told() -> None:
    broken = dataclasses.replace(
        SENTIMENT,
        labels=(SENTIMENT.labels[0], SENTIMENT.labels[0]),
        model_fields=("nowhere",),
        answer_fields=(dataclasses.replace(SENTIMENT.answer_fields[0], name="prompt"),),
    )

    findings = incomplete(broken)

    assert len(findings) > 5
    assert incomplete(SENTIMENT) == []


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"goals": ("wrong",)}, "can't be a goal"),
        ({"goals": ("maybe",)}, "'maybe' is no label"),
        ({"goal_words": "Ask."}, "must hold {goal}"),
        ({"labels": (*QA.labels, SENTIMENT.labels[0])}, "has two labels"),
        ({"model_fields": ("question", "passage")}, "reads ('passage', question)"),
        ({"answer_fields": (*QA.answer_fields, SpanInput("second", "s", "", "passage"))}, "one answer at most"),
        ({"answer_fields": (QA.answer_fields[0], SpanInput("answer", "a", "", "page"))}, "no context field"),
        ({"answer_fields": (QA.answer_fields[0], SpanInput("answer", "a", "", "passage", 0))}, "1 or more, not 0"),
        ({"answer_fields": ()}, "nothing to answer"),
        ({"context_fields": (*QA.context_fields, ContextField("token", "t", 9))}, "a name of the page's own"),
        ({"quiz": (QuizItem("Who?", "right", "f", {"passage": "a b"}, "c"),)}, "must stand once"),
        ({"quiz": (QuizItem("Who?", "right", "f", {"page": "a b"}, "a"),)}, "unknown field 'page'"),
        (
            {"writer_quiz": (WriterItem("Who?", "wrong", Fit.FITS, "f", {"passage": "a b"}, "a"),)},
            "'wrong', which writers are never asked for",
        ),
        (
            {"writer_quiz": (WriterItem("Who?", "right", Fit.FITS, "f", {"passage": "a b"}, "c"),)},
            "must stand once",
        ),
    ],
)
def test_a_task_with_a_marked_answer_is_looked_through(changes: dict[str, object], finding: str) -> None:
    assert incomplete(QA) == []
    assert finding in "; ".join(incomplete(dataclasses.replace(QA, **changes)))  # type: ignore[arg-type]
