"""Reading QuestionForm XML."""

from __future__ import annotations

import pytest

from hits.marketplace.errors import MarketplaceError
from hits.marketplace.form_reader import read_form
from hits.marketplace.forms import Bullets, FreeText, Markup, Media, Overview, Selection, Words
from tests.hits.marketplace.forms_for_tests import BASE, TEST, free_text, question, question_form, selection

PICTURE = (
    "<Binary><MimeType><Type>image</Type><SubType>gif</SubType></MimeType>"
    "<DataURL>https://example.org/a.gif</DataURL><AltText>A cat</AltText></Binary>"
)
FILM = (
    "<EmbeddedBinary><EmbeddedMimeType>video/mp4</EmbeddedMimeType><DataURL>https://example.org/a.mp4</DataURL>"
    "<AltText>A dog</AltText><Width>320</Width><Height>200</Height>"
    "<ApplicationParameter><Name>loop</Name><Value>1</Value></ApplicationParameter></EmbeddedBinary>"
)


@pytest.mark.parametrize("day", ["2005-10-01", "2017-11-06"])
def test_every_kind_of_content_is_read_in_its_order(day: str) -> None:
    overview = (
        "<Overview><Title>About</Title><Text> Two &amp; two </Text><List><ListItem>a</ListItem><ListItem>b</ListItem>"
        f"</List>{PICTURE}{FILM}<FormattedContent><![CDATA[<p>Hi <b>you</b>&nbsp;&amp; all</p>]]></FormattedContent>"
        "</Overview>"
    )

    form = read_form("Question", question_form(overview, question("q", free_text()), day=day))

    first = form.parts[0]
    assert isinstance(first, Overview)
    assert first.content == (
        Words("title", "About"),
        Words("text", "Two & two"),
        Bullets(("a", "b")),
        Media("image", "image/gif", "https://example.org/a.gif", "A cat"),
        Media("video", "video/mp4", "https://example.org/a.mp4", "A dog", 320, 200),
        Markup("<p>Hi <b>you</b>\xa0&amp; all</p>"),
    )
    (only,) = form.questions
    assert (only.identifier, only.field, only.other_field) == ("q", "question-1", "question-1-other")
    assert (only.is_required, only.display_name) == (False, None)


def test_constraints_of_free_texts_are_read() -> None:
    constraints = (
        '<IsNumeric minValue="-3" maxValue="9"/><Length minLength="2" maxLength="5"/>'
        '<AnswerFormatRegex regex="^[a-z]+$" errorText="Letters, please." flags="i"/><AnswerFormatRegex regex="x"/>'
    )
    rest = "<DefaultText>abc</DefaultText><NumberOfLinesSuggestion>4</NumberOfLinesSuggestion>"

    (only,) = read_form("Question", question_form(question("q", free_text(constraints, rest)))).questions

    answer = only.answer
    assert isinstance(answer, FreeText)
    assert (answer.is_numeric, answer.min_value, answer.max_value) == (True, -3, 9)
    assert (answer.min_length, answer.max_length, answer.default_text, answer.lines) == (2, 5, "abc", 4)
    assert [(p.regex, p.error_text, p.ignores_case) for p in answer.patterns] == [
        ("^[a-z]+$", "Letters, please.", True),
        ("x", None, False),
    ]
    assert only.is_required, "a least length needs an answer"


def test_selections_are_read_with_counts_style_and_other_words() -> None:
    xml = selection(
        "a",
        "b",
        counts="<MinSelectionCount>1</MinSelectionCount><MaxSelectionCount>2</MaxSelectionCount>",
        style="<StyleSuggestion>checkbox</StyleSuggestion>",
        other="<OtherSelection><NumberOfLinesSuggestion>2</NumberOfLinesSuggestion></OtherSelection>",
    )

    (only,) = read_form("Question", question_form(question("q", xml, required=True))).questions

    answer = only.answer
    assert isinstance(answer, Selection)
    assert (answer.minimum, answer.maximum, answer.style) == (1, 2, "checkbox")
    assert [(choice.identifier, choice.label) for choice in answer.choices] == [
        ("a", Words("text", "A")),
        ("b", Words("text", "B")),
    ]
    assert answer.other == FreeText(lines=2)
    assert only.is_required


@pytest.mark.parametrize(
    "xml",
    [
        "<QuestionForm/>",
        question_form(),
        question_form(day="2099-01-01"),
        TEST.replace("<Text>Why?</Text>", ""),
        TEST.replace("<Text>Why?</Text>", "<Text>a<b/></Text>"),
        TEST.replace("<Text>Why?</Text>", "<Riddle/>"),
        TEST.replace("<Text>Why?</Text>", '<Text xmlns="urn:other">a</Text>'),
        TEST.replace("<Text>Why?</Text>", "<List/>"),
        TEST.replace("<Text>Why?</Text>", PICTURE.replace("https:", "javascript:")),
        TEST.replace("<Text>Why?</Text>", PICTURE.replace(">image<", ">application<")),
        TEST.replace("<Text>Why?</Text>", FILM.replace("320", "wide")),
        TEST.replace("<Text>Why?</Text>", "<Application><JavaApplet/></Application>"),
        TEST.replace("primes", "sky"),
        TEST.replace("red", "blue"),
        TEST.replace("<QuestionIdentifier>sky</QuestionIdentifier>", ""),
        TEST.replace("<IsRequired>true", "<IsRequired>yes"),
        TEST.replace("</AnswerSpecification>", "<FreeTextAnswer/></AnswerSpecification>", 1),
        TEST.replace("</QuestionForm>", "<Footer/></QuestionForm>"),
        question_form(question("q", "<FileUploadAnswer><MaxFileSizeInBytes>9</MaxFileSizeInBytes></FileUploadAnswer>")),
        question_form(question("q", "<Telepathy/>")),
        question_form(question("q", "")),
        question_form(question("q", free_text('<IsNumeric minValue="4" maxValue="3"/>'))),
        question_form(question("q", free_text('<Length minLength="-1"/>'))),
        question_form(question("q", free_text('<AnswerFormatRegex regex="("/>'))),
        question_form(question("q", free_text('<AnswerFormatRegex errorText="?"/>'))),
        question_form(question("q", free_text('<AnswerFormatRegex regex="a" flags="g"/>'))),
        question_form(question("q", selection("a", counts="<MinSelectionCount>2</MinSelectionCount>"))),
        question_form(question("q", selection("a", style="<StyleSuggestion>wheel</StyleSuggestion>"))),
        question_form(question("q", selection())),
    ],
)
def test_forms_that_are_refused(xml: str) -> None:
    with pytest.raises(MarketplaceError) as caught:
        read_form("Question", xml)

    assert caught.value.type == "ParameterValidationError"
    assert "Question" in caught.value.message
    assert len(caught.value.message) < 1000


def test_the_namespace_of_the_refusal_is_named() -> None:
    with pytest.raises(MarketplaceError, match=f"{BASE}2017-11-06/QuestionForm.xsd"):
        read_form("Test", "<QuestionForm/>")
