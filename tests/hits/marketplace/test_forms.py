"""Forms as records."""

from __future__ import annotations

from hits.marketplace.form_reader import read_form
from hits.marketplace.forms import Markup, Question
from tests.hits.marketplace.forms_for_tests import TEST, question_form


def test_each_question_has_fields_of_its_own() -> None:
    form = read_form("Test", TEST.replace("</QuestionForm>", "<Overview><Text>End</Text></Overview></QuestionForm>"))

    assert len(form.parts) == 3
    assert all(isinstance(part, Question) for part in form.questions)
    fields = [name for question in form.questions for name in (question.field, question.other_field)]
    assert fields == ["question-1", "question-1-other", "question-2", "question-2-other"]
    assert read_form("Test", question_form("<Overview><Text>x</Text></Overview>")).questions == ()


def test_checked_markup_says_that_it_is_html() -> None:
    assert Markup("<b>x</b>").__html__() == "<b>x</b>"
