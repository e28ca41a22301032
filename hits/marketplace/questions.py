"""Reads the Question of a HIT and writes the answers of an assignment."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from lxml import etree, html

from hits.marketplace import crowd_elements
from hits.marketplace.errors import MarketplaceError, unfit_parameter
from hits.marketplace.form_reader import read_form
from hits.marketplace.forms import QuestionForm
from hits.marketplace.xmltext import SCHEMAS, Elements, legal, parse

HTML_QUESTION: Final = f"{SCHEMAS}2011-11-11/HTMLQuestion.xsd"
EXTERNAL_QUESTION: Final = f"{SCHEMAS}2006-07-14/ExternalQuestion.xsd"
QUESTION_FORM_ANSWERS: Final = f"{SCHEMAS}2005-10-01/QuestionFormAnswers.xsd"
RESERVED_FIELDS: Final = frozenset({"assignmentId", "hitId", "turkSubmitTo", "workerId"})
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
HIGHEST_FRAME: Final = 100_000


@dataclass(frozen=True)
class HitQuestion:
    """What a HIT shows: a page of the requester's own (`url`), HTML (`html`), or a form; height 0 fills the window.

    `missing_elements` are those of Amazon's that the HTML needs and this marketplace cannot show.
    """

    kind: Literal["ExternalQuestion", "HTMLQuestion", "QuestionForm"]
    frame_height: int = 0
    url: str | None = None
    html: str | None = None
    form: QuestionForm | None = None
    missing_elements: tuple[str, ...] = ()


def read_question(text: str, *, allow_http_loopback: bool) -> HitQuestion:
    """Return the question of a HIT.

    Raises MarketplaceError (ParameterValidationError) for anything but a valid ExternalQuestion, HTMLQuestion or
    QuestionForm.
    """
    root = parse("Question", text)
    if etree.QName(root).localname == "QuestionForm":
        form = read_form("Question", text)
        if not form.questions:
            raise unfit_parameter("A QuestionForm of a HIT needs at least one Question.")
        return HitQuestion("QuestionForm", form=form)
    parts = {
        f"{{{EXTERNAL_QUESTION}}}ExternalQuestion": "ExternalURL",
        f"{{{HTML_QUESTION}}}HTMLQuestion": "HTMLContent",
    }
    if root.tag not in parts:
        raise unfit_parameter(
            f"The root element of Question must be ExternalQuestion in the namespace {EXTERNAL_QUESTION}, HTMLQuestion "
            f"in {HTML_QUESTION}, or QuestionForm, got {root.tag!r}."
        )
    elements = Elements("Question", root)
    content, height = elements.one(parts[root.tag]), elements.one("FrameHeight")
    elements.end()
    frame_height = _checked_height(height.text())
    if content.tag == "ExternalURL":
        return HitQuestion("ExternalQuestion", frame_height, url=_checked_url(content.text(), allow_http_loopback))
    content.end()
    page = checked_html(content.element.text or "")
    return HitQuestion("HTMLQuestion", frame_height, html=page, missing_elements=crowd_elements.missing(page))


def checked_html(text: str) -> str:
    """Return the HTML of a question.

    Raises MarketplaceError (ParameterValidationError) if it cannot be read as HTML or has no form to submit.
    """
    try:
        # As bytes, since text with an XML declaration, which XHTML has, would be refused.
        parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
        page = html.document_fromstring(text.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as error:
        raise _unfit_html(str(error)) from error
    if next(page.iter("form", "crowd-form"), None) is None:
        raise _unfit_html("the content has no form element, so nothing could be submitted")
    return text


def write_html_question(content: str, frame_height: int) -> str:
    """Return the HTMLQuestion XML around a page."""
    root = etree.Element("HTMLQuestion", nsmap={None: HTML_QUESTION})
    inside = etree.SubElement(root, "HTMLContent")
    inside.text = etree.CDATA(content) if "]]>" not in content else content
    etree.SubElement(root, "FrameHeight").text = str(frame_height)
    return str(etree.tostring(root, encoding="unicode"))


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


def _unfit_html(detail: str) -> MarketplaceError:
    return unfit_parameter(
        "There was an error parsing the HTML5 data in your request.  Please make sure the data is well-formed and "
        f"validates as HTML5. Details: {detail[:300]}"
    )


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
    if parts.scheme == "http" and not (allow_http_loopback and is_loopback(parts)):
        allowed = "https (or http on a loopback host)" if allow_http_loopback else "https"
        raise unfit_parameter(f"ExternalURL must use {allowed}, got {url!r}.")
    return url


def is_loopback(parts: SplitResult) -> bool:
    """Return whether an address names this machine."""
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_height(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) > HIGHEST_FRAME:
        raise unfit_parameter(f"FrameHeight must be a whole number from 0 to {HIGHEST_FRAME}, got {text[:40]!r}.")
    return int(text)
