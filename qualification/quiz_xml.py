"""A quiz as the marketplace's own form: QuestionForm and AnswerKey, built element by element and checked by schema.

The form is fixed: the same items for everybody who takes the version. It holds no key and no feedback; the key is a
document of its own that only the marketplace reads.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lxml import etree

from hits.mturk.questions import SCHEMAS
from qualification.errors import NoSuchQuiz
from qualification.quizzes import Item, Quiz, fixed_items

QUESTION_FORM = SCHEMAS + "2017-11-06/QuestionForm.xsd"
ANSWER_KEY = SCHEMAS + "2005-10-01/AnswerKey.xsd"
#: What the marketplace takes of each document.
MOST_BYTES = 65_535

_FOLDER = Path(__file__).parent / "schemas"


def question_form(quiz: Quiz, content_warning: str | None = None) -> str:
    """Return the quiz's fixed form. Raises NoSuchQuiz for one that the schema or the marketplace's limit refuses."""
    root = etree.Element(etree.QName(QUESTION_FORM, "QuestionForm"), nsmap={None: QUESTION_FORM})
    overview = _under(root, "Overview")
    _under(overview, "Title", "Before you begin")
    if content_warning:
        _under(overview, "Text", content_warning)
    _under(overview, "Text", f"{quiz.drawn} questions, one answer each. {quiz.needed} right answers pass.")
    for title, lines in (("What it is about", quiz.instructions), ("Rules", quiz.rules)):
        if lines:
            _under(overview, "Title", title)
            listed = _under(overview, "List")
            for line in lines:
                _under(listed, "ListItem", line)
    _under(overview, "Title", "Examples")
    for example in quiz.examples:
        for part in example.parts:
            _under(overview, "Text", f"{part.label}: {part.text}")
        _under(overview, "Text", f"{example.label.capitalize()}. {example.note}")
    for number, item in enumerate(fixed_items(quiz), start=1):
        _question(root, quiz, item, number)
    return _checked(root, "question_form")


def answer_key(quiz: Quiz, value: int) -> str:
    """Return the key to the fixed form: who passes gets the value, who doesn't gets 0. Raises NoSuchQuiz."""
    root = etree.Element(etree.QName(ANSWER_KEY, "AnswerKey"), nsmap={None: ANSWER_KEY})
    for item in fixed_items(quiz):
        question = _under(root, "Question")
        _under(question, "QuestionIdentifier", item.id)
        option = _under(question, "AnswerOption")
        _under(option, "SelectionIdentifier", item.right)
        _under(option, "AnswerScore", "1")
        _under(question, "DefaultScore", "0")
    ranges = _under(_under(root, "QualificationValueMapping"), "RangeMapping")
    passed = _under(ranges, "SummedScoreRange")
    _under(passed, "InclusiveLowerBound", str(quiz.needed))
    _under(passed, "InclusiveUpperBound", str(quiz.drawn))
    _under(passed, "QualificationValue", str(value))
    _under(ranges, "OutOfRangeQualificationValue", "0")
    return _checked(root, "answer_key")


def canonical(document: str) -> str:
    """Return a document in the one form in which equal documents are equal, to compare what a marketplace shows."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_blank_text=True)
    return str(etree.tostring(etree.fromstring(document.encode(), parser), method="c14n2").decode())


def _question(root: etree._Element, quiz: Quiz, item: Item, number: int) -> None:
    question = _under(root, "Question")
    _under(question, "QuestionIdentifier", item.id)
    _under(question, "DisplayName", f"Question {number} of {quiz.drawn}")
    _under(question, "IsRequired", "true")
    content = _under(question, "QuestionContent")
    for part in item.parts:
        _under(content, "Text", f"{part.label}: {part.text}")
    _under(content, "Text", quiz.question)
    answer = _under(_under(question, "AnswerSpecification"), "SelectionAnswer")
    _under(answer, "MinSelectionCount", "1")
    _under(answer, "MaxSelectionCount", "1")
    _under(answer, "StyleSuggestion", "radiobutton")
    selections = _under(answer, "Selections")
    for code, words in quiz.choices:
        selection = _under(selections, "Selection")
        _under(selection, "SelectionIdentifier", code)
        _under(selection, "Text", words)


def _under(parent: etree._Element, name: str, text: str | None = None) -> etree._Element:
    child = etree.SubElement(parent, etree.QName(etree.QName(parent).namespace, name))
    child.text = text
    return child


def _checked(root: etree._Element, schema: str) -> str:
    validator = _schema(schema)
    if not validator.validate(root):
        raise NoSuchQuiz(f"The quiz can't be written as a form of the marketplace: {validator.error_log[0].message}")
    document = str(etree.tostring(root, encoding="unicode"))
    if (size := len(document.encode())) > MOST_BYTES:
        raise NoSuchQuiz(
            f"The quiz's form has {size:,} bytes; the marketplace takes {MOST_BYTES:,}."
            " Shorten its passages, or launch it as a HIT."
        )
    return document


@cache
def _schema(name: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(str(_FOLDER / f"{name}.xsd")))
