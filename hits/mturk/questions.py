"""Question XML, built element by element so that nothing in a value can break out of it."""

from __future__ import annotations

from lxml import etree

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/"
EXTERNAL_QUESTION = SCHEMAS + "2006-07-14/ExternalQuestion.xsd"


def external_question(url: str, frame_height: int = 0) -> str:
    """Return an ExternalQuestion that shows ``url`` in a frame; a height of 0 fits the worker's window."""
    root = etree.Element(etree.QName(EXTERNAL_QUESTION, "ExternalQuestion"), nsmap={None: EXTERNAL_QUESTION})
    etree.SubElement(root, etree.QName(EXTERNAL_QUESTION, "ExternalURL")).text = url
    etree.SubElement(root, etree.QName(EXTERNAL_QUESTION, "FrameHeight")).text = str(frame_height)
    return str(etree.tostring(root, encoding="unicode"))
