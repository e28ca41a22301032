"""Taking the answers to a form."""

from __future__ import annotations

import time

import pytest

from hits.marketplace.errors import AnswerTooLarge, FormIncomplete
from hits.marketplace.form_answers import collect
from hits.marketplace.form_reader import read_form
from hits.marketplace.forms import QuestionForm
from hits.marketplace.questions import QUESTION_FORM_ANSWERS
from tests.hits.marketplace.forms_for_tests import MANY, free_text, question, question_form, selection


def form(*questions: str) -> QuestionForm:
    return read_form("Question", question_form(*questions))


def problem(answer: str, *values: str, required: bool = False, other: str = "") -> str | None:
    fields = {"question-1": list(values), "question-1-other": [other]}
    try:
        collect(form(question("q", answer, required=required)), fields)
    except FormIncomplete as refusal:
        return refusal.problems["question-1"]
    return None


def test_answers_are_written_as_mturk_writes_them() -> None:
    asked = form(
        question("näme", free_text()),
        question("colours", selection("red", "blue", counts=MANY, other="<OtherSelection/>")),
        question("empty", selection("a")),
    )

    answers = collect(
        asked,
        {"question-1": ["Zoë\x00 <b>\r\n"], "question-2": ["blue", "red"], "question-2-other": ["grün"], "else": ["x"]},
    )

    assert answers.xml == (
        f'<?xml version="1.0" encoding="ASCII"?><QuestionFormAnswers xmlns="{QUESTION_FORM_ANSWERS}">'
        "<Answer><QuestionIdentifier>n&#228;me</QuestionIdentifier><FreeText>Zo&#235; &lt;b&gt;\n</FreeText></Answer>"
        "<Answer><QuestionIdentifier>colours</QuestionIdentifier><SelectionIdentifier>red</SelectionIdentifier>"
        "<SelectionIdentifier>blue</SelectionIdentifier><OtherSelectionText>gr&#252;n</OtherSelectionText></Answer>"
        "<Answer><QuestionIdentifier>empty</QuestionIdentifier></Answer></QuestionFormAnswers>"
    )
    assert answers.selections == {"colours": frozenset({"red", "blue"}), "empty": frozenset()}


@pytest.mark.parametrize(
    ("constraints", "text", "says"),
    [
        ("", "", None),
        ('<Length minLength="3"/>', "", "Answer"),
        ('<Length minLength="3"/>', "ab", "at least 3"),
        ('<Length minLength="3" maxLength="3"/>', "abc", None),
        ('<Length maxLength="3"/>', "abcd", "at most 3"),
        ("<IsNumeric/>", "12.5", None),
        ("<IsNumeric/>", "-.5", None),
        ("<IsNumeric/>", "twelve", "number"),
        ("<IsNumeric/>", "nan", "number"),
        ("<IsNumeric/>", "1e5", "number"),
        ("<IsNumeric/>", "٣", "number"),
        ('<IsNumeric minValue="2" maxValue="5"/>', "1.99", "at least 2"),
        ('<IsNumeric minValue="2" maxValue="5"/>', "5.01", "at most 5"),
        ('<IsNumeric minValue="2" maxValue="5"/>', "5", None),
        ('<AnswerFormatRegex regex="^[a-z]+$" errorText="Small letters."/>', "ABC", "Small letters."),
        ('<AnswerFormatRegex regex="^[a-z]+$" flags="i"/>', "ABC", None),
        ('<AnswerFormatRegex regex="b"/>', "abc", None),
        ('<AnswerFormatRegex regex="^b"/>', "abc", "form that is asked for"),
    ],
)
def test_free_texts_are_held_to_their_constraints(constraints: str, text: str, says: str | None) -> None:
    found = problem(free_text(constraints), text)

    assert (found is None) == (says is None), found
    assert says is None or says in (found or "")


@pytest.mark.parametrize(
    ("counts", "chosen", "other", "required", "says"),
    [
        ("", [], "", False, None),
        ("", [], "", True, "Answer"),
        ("", ["a"], "", True, None),
        ("", ["a", "b"], "", False, "at most 1"),
        ("<MinSelectionCount>2</MinSelectionCount>", ["a"], "", False, "at least 2"),
        ("<MinSelectionCount>2</MinSelectionCount>", ["a"], "else", False, None),
        ("", ["z"], "", False, "from what is shown"),
        ("", [""], "", False, None),
        ("", [], "mine", True, None),
        ("", ["a"], "mine", True, "at most 1"),
    ],
)
def test_selections_are_held_to_their_counts(
    counts: str, chosen: list[str], other: str, required: bool, says: str | None
) -> None:
    answer = selection("a", "b", "c", counts=counts, other="<OtherSelection/>")

    found = problem(answer, *chosen, required=required, other=other)

    assert (found is None) == (says is None), found
    assert says is None or says in (found or "")


def test_other_words_have_constraints_of_their_own() -> None:
    other = "<OtherSelection><Constraints><IsNumeric/></Constraints></OtherSelection>"
    assert problem(selection("a", other=other), other="many") == "Write a number."


def test_every_problem_is_named_at_once() -> None:
    asked = form(question("a", free_text(), required=True), question("b", selection("x"), required=True))

    with pytest.raises(FormIncomplete, match="2 answers need your attention") as caught:
        collect(asked, {})

    assert set(caught.value.problems) == {"question-1", "question-2"}


def test_a_pattern_that_never_ends_lets_the_answer_pass() -> None:
    started = time.monotonic()
    assert problem(free_text('<AnswerFormatRegex regex="^(a|a|aa)+$"/>'), "a" * 200 + "!") is None
    assert time.monotonic() - started < 5


def test_an_answer_can_be_too_large() -> None:
    with pytest.raises(AnswerTooLarge):
        collect(form(question("q", free_text())), {"question-1": ["x" * 600_000]})
