"""Reads the Question of a HIT and writes the answers of an assignment."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from lxml import etree

from hits.marketplace.errors import unfit_parameter
from hits.marketplace.xmltext import SCHEMAS, legal, parse

EXTERNAL_QUESTION: Final = f"{SCHEMAS}2006-07-14/ExternalQuestion.xsd"
QUESTION_FORM_ANSWERS: Final = f"{SCHEMAS}2005-10-01/QuestionFormAnswers.xsd"
RESERVED_FIELDS: Final = frozenset({"assignmentId", "hitId", "turkSubmitTo", "workerId"})
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_HIGHEST_FRAME: Final = 100_000


@dataclass(frozen=True)
class ExternalQuestion:
    """A page of the requester's own, shown in a frame; height 0 fills the window."""

    url: str
    frame_height: int


def read_question(text: str, *, allow_http_loopback: bool) -> ExternalQuestion:
    """Return the question of a HIT.

    Raises MarketplaceError (ParameterValidationError) for anything but a valid ExternalQuestion; the other two
    kinds come with the complete API.
    """
    root = parse("Question", text)
    name = etree.QName(root)
    if name.localname in {"HTMLQuestion", "QuestionForm"}:
        raise unfit_parameter(
            f"This marketplace shows ExternalQuestions only so far; {name.localname} comes with the complete API."
        )
    if root.tag != f"{{{EXTERNAL_QUESTION}}}ExternalQuestion":
        raise unfit_parameter(
            f"The root element of Question must be ExternalQuestion in the namespace {EXTERNAL_QUESTION}, "
            f"got {root.tag!r}."
        )
    children = [child for child in root if isinstance(child.tag, str)]
    expected = [f"{{{EXTERNAL_QUESTION}}}{part}" for part in ("ExternalURL", "FrameHeight")]
    if [child.tag for child in children] != expected or any(len(child) for child in children):
        raise unfit_parameter("An ExternalQuestion consists of ExternalURL and FrameHeight, in this order.")
    url, height = (("".join(str(part) for part in child.itertext())).strip() for child in children)
    return ExternalQuestion(_checked_url(url, allow_http_loopback), _checked_height(height))


def write_answers(answers: Mapping[str, str]) -> str:
    """Return QuestionFormAnswers as MTurk writes them: declared ASCII, one FreeText per field, no white space.

    Characters that XML cannot carry are left out. A field whose name is empty then is left out too.
    """
    root = etree.Element("QuestionFormAnswers", nsmap={None: QUESTION_FORM_ANSWERS})
    for field, value in answers.items():
        if name := legal(field):
            answer = etree.SubElement(root, "Answer")
            etree.SubElement(answer, "QuestionIdentifier").text = name
            etree.SubElement(answer, "FreeText").text = legal(value)
    body = etree.tostring(root, encoding="ASCII", xml_declaration=False).decode("ascii")
    return f'<?xml version="1.0" encoding="ASCII"?>{body}'


def _checked_url(url: str, allow_http_loopback: bool) -> str:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise unfit_parameter(f"ExternalURL is not a URL: {url!r}.") from error
    if not host or parts.scheme not in {"https", "http"} or any(c.isspace() for c in url):
        raise unfit_parameter(f"ExternalURL must be an absolute https URL, got {url!r}.")
    if not _HOST.fullmatch(host):
        # It goes into headers of this site; names with other letters have an ASCII form (xn--...).
        raise unfit_parameter(
            f"The host of ExternalURL must be written in ASCII letters, digits and '.-_', got {url!r}."
        )
    if parts.username is not None or parts.password is not None:
        raise unfit_parameter("ExternalURL must not carry a user name or password.")
    if parts.scheme == "http" and not (allow_http_loopback and _is_loopback(parts)):
        allowed = "https (or http on a loopback host)" if allow_http_loopback else "https"
        raise unfit_parameter(f"ExternalURL must use {allowed}, got {url!r}.")
    return url


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_height(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) > _HIGHEST_FRAME:
        raise unfit_parameter(f"FrameHeight must be a whole number from 0 to {_HIGHEST_FRAME}, got {text[:40]!r}.")
    return int(text)
