"""Question XML, built element by element so that nothing in a value can break out of it."""

from __future__ import annotations

from lxml import etree

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/"
EXTERNAL_QUESTION = SCHEMAS + "2006-07-14/ExternalQuestion.xsd"
QUESTION_FORM = SCHEMAS + "2017-11-06/QuestionForm.xsd"


def external_question(url: str, frame_height: int = 0) -> str:
    """Return an ExternalQuestion that shows ``url`` in a frame; a height of 0 fits the worker's window."""
    root = etree.Element(etree.QName(EXTERNAL_QUESTION, "ExternalQuestion"), nsmap={None: EXTERNAL_QUESTION})
    etree.SubElement(root, etree.QName(EXTERNAL_QUESTION, "ExternalURL")).text = url
    etree.SubElement(root, etree.QName(EXTERNAL_QUESTION, "FrameHeight")).text = str(frame_height)
    return str(etree.tostring(root, encoding="unicode"))


def notice_form(title: str, text: str, question: str) -> str:
    """Return a QuestionForm that tells something and asks one question that may be left empty.

    The marketplace itself shows it, without any page of ours and without scripts.
    """
    root = etree.Element(etree.QName(QUESTION_FORM, "QuestionForm"), nsmap={None: QUESTION_FORM})
    overview = etree.SubElement(root, etree.QName(QUESTION_FORM, "Overview"))
    etree.SubElement(overview, etree.QName(QUESTION_FORM, "Title")).text = title
    etree.SubElement(overview, etree.QName(QUESTION_FORM, "Text")).text = text
    asked = etree.SubElement(root, etree.QName(QUESTION_FORM, "Question"))
    etree.SubElement(asked, etree.QName(QUESTION_FORM, "QuestionIdentifier")).text = "words"
    etree.SubElement(asked, etree.QName(QUESTION_FORM, "IsRequired")).text = "false"
    content = etree.SubElement(asked, etree.QName(QUESTION_FORM, "QuestionContent"))
    etree.SubElement(content, etree.QName(QUESTION_FORM, "Text")).text = question
    answer = etree.SubElement(asked, etree.QName(QUESTION_FORM, "AnswerSpecification"))
    etree.SubElement(answer, etree.QName(QUESTION_FORM, "FreeTextAnswer"))
    return str(etree.tostring(root, encoding="unicode"))
