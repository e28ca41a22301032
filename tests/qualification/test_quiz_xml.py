"""Quizzes as the marketplace's forms: sound by our schema and by the marketplace's reader, and without the key."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from lxml import etree

from hits.marketplace.answer_keys import read_answer_key
from hits.marketplace.form_reader import read_form
from hits.tasks import TASKS
from qualification.errors import NoSuchQuiz
from qualification.quiz_xml import answer_key, canonical, question_form
from qualification.quizzes import DRAWN, NEEDED, Part, Quiz, QuizFor, fixed_items, quiz_for

QUIZZES = [quiz_for(code, audience.value) for code in TASKS for audience in QuizFor]
every_quiz = pytest.mark.parametrize("quiz", QUIZZES, ids=lambda quiz: quiz.kind)


@every_quiz
def test_the_marketplace_reads_form_and_key_and_scores_as_we_would(quiz: Quiz) -> None:
    form = read_form("Test", question_form(quiz, "A warning."))
    key = read_answer_key(answer_key(quiz, 5), form)
    items = fixed_items(quiz)

    assert [question.identifier for question in form.questions] == [item.id for item in items]
    assert all(question.is_required for question in form.questions)
    for right in range(DRAWN + 1):
        given = {
            item.id: frozenset(
                [item.right if place < right else next(code for code in quiz.choice_codes if code != item.right)]
            )
            for place, item in enumerate(items)
        }
        assert key.score(given) == (5 if right >= NEEDED else 0)
    assert key.score({}) == 0


@every_quiz
def test_the_form_holds_no_feedback_and_is_the_same_whatever_the_key(quiz: Quiz) -> None:
    form = question_form(quiz)
    codes = quiz.choice_codes
    turned = dataclasses.replace(
        quiz,
        items=tuple(
            dataclasses.replace(item, right=codes[(codes.index(item.right) + 1) % len(codes)], feedback="x")
            for item in quiz.items
        ),
    )

    asked = set(etree.fromstring(form.encode()).itertext())
    assert not any(item.feedback in text for item in quiz.items for text in asked)
    by_item = {
        one.findtext("{*}QuestionIdentifier"): canonical(etree.tostring(one, encoding="unicode"))
        for one in etree.fromstring(form.encode()).iter("{*}Question")
    }
    # The fixed items are drawn by the version's digest, which the key is part of; each one asked looks the same.
    for one in etree.fromstring(question_form(turned).encode()).iter("{*}Question"):
        identifier = one.findtext("{*}QuestionIdentifier")
        one.find("{*}DisplayName").text = "Question"
        if identifier in by_item:
            there = etree.fromstring(by_item[identifier].encode())
            there.find("{*}DisplayName").text = "Question"
            assert canonical(etree.tostring(one, encoding="unicode")) == canonical(
                etree.tostring(there, encoding="unicode")
            )


def test_the_fixed_form_is_fixed() -> None:
    for quiz in QUIZZES:
        assert question_form(quiz) == question_form(quiz)
        assert canonical(question_form(quiz)) == canonical(question_form(quiz).replace("><", ">\n  <"))
    for one, other in itertools.combinations(QUIZZES, 2):
        assert canonical(question_form(one)) != canonical(question_form(other))


def test_markup_in_a_text_stays_text() -> None:
    quiz = quiz_for("sentiment", "writer")
    hostile = "</Text><Text>&amp; <script>]]> “ok” 👍"
    items = tuple(dataclasses.replace(item, parts=(Part("Statement", hostile),)) for item in quiz.items)

    form = read_form("Test", question_form(dataclasses.replace(quiz, items=items)))

    assert any(hostile in str(part.text) for part in form.questions[0].content if hasattr(part, "text"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"choices": (("yes", "Yes"),)}, "can't be written as a form"),
        ({"choices": (("yes", "Yes"), ("yes", "No"))}, "can't be written as a form"),
        ({"choices": (("yes", "Yes"), ("no no", "No"))}, "can't be written as a form"),
        ({"rules": ("x" * 70_000,)}, "the marketplace takes 65,535"),
        ({"rules": ("",)}, "can't be written as a form"),
    ],
)
def test_what_the_marketplace_would_refuse_is_refused_here(changes: dict[str, object], message: str) -> None:
    quiz = dataclasses.replace(quiz_for("nli", "writer"), **changes)  # type: ignore[arg-type]

    with pytest.raises(NoSuchQuiz, match=message):
        question_form(quiz)


def test_a_value_of_0_is_no_pass() -> None:
    with pytest.raises(NoSuchQuiz, match="can't be written"):
        answer_key(quiz_for("nli", "writer"), 0)


def test_a_hostile_document_is_read_without_fetching_anything() -> None:
    assert "file" not in canonical('<!DOCTYPE a [<!ENTITY x "y">]><a><b>1</b></a>')
