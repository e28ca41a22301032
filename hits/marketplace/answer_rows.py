"""Answers as a person reads them: one row for each question of QuestionFormAnswers, in the order of the XML."""

from __future__ import annotations

from lxml import etree

from hits.marketplace.xmltext import parse


def answer_rows(xml: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return (question, values) for each answer; a question without an answer has no values."""
    rows = []
    for answer in parse("Answer", xml):
        texts = [(etree.QName(part).localname, part.text or "") for part in answer]
        question = next((text for name, text in texts if name == "QuestionIdentifier"), "")
        values = tuple(text for name, text in texts if name != "QuestionIdentifier" and text)
        rows.append((question, values))
    return rows
