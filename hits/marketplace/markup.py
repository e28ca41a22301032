"""Reads FormattedContent: the part of XHTML that a form may carry, turned into HTML that is safe to show."""

from __future__ import annotations

import html.entities
import re
from typing import Final
from urllib.parse import urlsplit

from lxml import etree

from hits.marketplace.xmltext import parse, unreadable

_COMMON: Final = frozenset({"title", "dir", "lang"})
_CELL: Final = frozenset({"colspan", "rowspan", "align", "valign", "width", "height", "scope"})
# fmt: off
_PLAIN: Final = (
    "abbr", "b", "bdo", "big", "blockquote", "br", "caption", "center", "cite", "code", "dd", "del", "div", "dl",
    "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "ins", "kbd", "p", "pre", "q", "s", "samp", "small",
    "span", "strong", "sub", "sup", "tbody", "tfoot", "thead", "tr", "u", "ul", "var",
)
# fmt: on
ALLOWED: Final = {
    **dict.fromkeys(_PLAIN, frozenset[str]()),
    "a": frozenset({"href", "target"}),
    "col": frozenset({"span", "width"}),
    "colgroup": frozenset({"span", "width"}),
    "font": frozenset({"color", "size", "face"}),
    "img": frozenset({"src", "alt", "width", "height"}),
    "li": frozenset({"value"}),
    "ol": frozenset({"start", "type"}),
    "table": frozenset({"border", "cellpadding", "cellspacing", "summary", "width", "align"}),
    "td": _CELL,
    "th": _CELL,
}
_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]*;)")
_OF_XML: Final = {"amp;", "lt;", "gt;", "quot;", "apos;"}


def read_markup(name: str, text: str) -> str:
    """Return safe HTML for an XHTML fragment.

    Raises MarketplaceError (ParameterValidationError) for anything that is not well formed or not in the subset.
    """
    root = parse(name, f"<div>{_ENTITY.sub(_character, text)}</div>")
    for element in root.iterdescendants():
        _check(name, element)
    pieces = [html.escape(root.text or "", quote=False)]
    pieces += [etree.tostring(child, encoding="unicode", method="html") for child in root]
    return "".join(pieces)


def _character(match: re.Match[str]) -> str:
    entity = match.group(1)
    return match.group() if entity in _OF_XML else html.entities.html5.get(entity, match.group())


def _check(name: str, element: etree._Element) -> None:
    tag = str(element.tag)
    if tag not in ALLOWED:
        raise unreadable(name, f"the element {tag[:60]!r} is not allowed in FormattedContent")
    for attribute, value in element.attrib.items():
        if attribute not in ALLOWED[tag] | _COMMON:
            raise unreadable(name, f"the attribute {str(attribute)[:60]!r} of {tag} is not allowed in FormattedContent")
        schemes = {"href": {"http", "https", "mailto"}, "src": {"http", "https"}}.get(str(attribute))
        if schemes is not None and _scheme(str(value)) not in schemes:
            raise unreadable(name, f"{attribute} must be an absolute address ({', '.join(sorted(schemes))})")
    if tag == "a":
        element.set("target", "_blank")
        element.set("rel", "noopener noreferrer")


def _scheme(address: str) -> str:
    try:
        return urlsplit(address.strip()).scheme.lower()
    except ValueError:
        return ""
