"""Reads QuestionForm XML (2005-10-01 and 2017-11-06) into records and refuses what the schema does not know."""

from __future__ import annotations

from typing import Final, cast, get_args
from urllib.parse import urlsplit

import regex
from lxml import etree

from hits.marketplace.forms import (
    Bullets,
    Choice,
    Content,
    FreeText,
    Markup,
    Media,
    MediaKind,
    Overview,
    Pattern,
    Question,
    QuestionForm,
    Selection,
    Style,
    Words,
)
from hits.marketplace.markup import read_markup
from hits.marketplace.xmltext import SCHEMAS, Elements, parse, unreadable

NAMESPACES: Final = frozenset(f"{SCHEMAS}{day}/QuestionForm.xsd" for day in ("2005-10-01", "2017-11-06"))
_BIGGEST: Final = 2**31 - 1


def read_form(name: str, text: str) -> QuestionForm:
    """Return the form in the parameter `name`.

    Raises MarketplaceError (ParameterValidationError) for XML that is broken or is not such a form.
    """
    root = parse(name, text)
    tag = etree.QName(root)
    if tag.localname != "QuestionForm" or tag.namespace not in NAMESPACES:
        raise unreadable(name, f"the root must be QuestionForm in one of {sorted(NAMESPACES)}, got {root.tag!r}")
    elements = Elements(name, root)
    parts: list[Overview | Question] = []
    while elements.peek() is not None:
        part = elements.take()
        if part.tag == "Overview":
            parts.append(Overview(_content(part)))
        elif part.tag == "Question":
            parts.append(_question(part, f"question-{sum(isinstance(p, Question) for p in parts) + 1}"))
        else:
            raise unreadable(name, f"{part.tag} does not belong at this place of QuestionForm")
    form = QuestionForm(tuple(parts))
    identifiers = [question.identifier for question in form.questions]
    if not parts or len(set(identifiers)) < len(identifiers):
        raise unreadable(name, "a QuestionForm has at least one part, and each QuestionIdentifier once")
    return form


def _question(elements: Elements, field: str) -> Question:
    identifier = _identifier(elements.one("QuestionIdentifier"))
    display_name = elements.maybe("DisplayName")
    required = elements.maybe("IsRequired")
    content = _content(elements.one("QuestionContent"))
    specification = elements.one("AnswerSpecification")
    elements.end()
    kind = specification.take()
    specification.end()
    answer: FreeText | Selection
    if kind.tag == "FreeTextAnswer":
        answer = _free_text(kind)
    elif kind.tag == "SelectionAnswer":
        answer = _selection(kind)
    elif kind.tag == "FileUploadAnswer":
        raise unreadable(elements.name, "FileUploadAnswer is not supported since 12 December 2017")
    else:
        raise unreadable(elements.name, f"{kind.tag} is no kind of answer")
    return Question(
        identifier,
        field,
        display_name.text() if display_name is not None else None,
        (required is not None and _boolean(required)) or bool(isinstance(answer, FreeText) and answer.min_length),
        content,
        answer,
    )


def _content(elements: Elements) -> tuple[Content, ...]:
    found: list[Content] = []
    while elements.peek() is not None:
        found.append(_content_part(elements.take()))
    if not found:
        raise unreadable(elements.name, f"{elements.tag} must not be empty")
    return tuple(found)


def _content_part(part: Elements) -> Content:
    if part.tag in {"Title", "Text"}:
        return Words("title" if part.tag == "Title" else "text", part.text())
    if part.tag == "List":
        items = tuple(item.text() for item in part.many("ListItem"))
        part.end()
        return Bullets(items)
    if part.tag == "FormattedContent":
        return Markup(read_markup(part.name, part.text()))
    if part.tag == "Binary":
        return _binary(part)
    if part.tag == "EmbeddedBinary":
        return _embedded(part)
    if part.tag == "Application":
        raise unreadable(part.name, "Application (Java and Flash) is not supported; no browser runs it any more")
    raise unreadable(part.name, f"{part.tag} is no kind of content")


def _binary(part: Elements) -> Media:
    mime = part.one("MimeType")
    kind = mime.one("Type").text()
    subtype = mime.maybe("SubType")
    mime.end()
    url, alt = _address(part.one("DataURL")), part.one("AltText").text()
    part.end()
    return _media(part, kind, subtype.text() if subtype is not None else "*", url, alt)


def _embedded(part: Elements) -> Media:
    kind, _, subtype = part.one("EmbeddedMimeType").text().partition("/")
    url, alt = _address(part.one("DataURL")), part.one("AltText").text()
    width, height = (part.one(side).number(least=1, most=10_000) for side in ("Width", "Height"))
    for parameter in part.many("ApplicationParameter", least=0):
        parameter.one("Name")
        parameter.one("Value")
        parameter.end()
    part.end()
    return _media(part, kind, subtype or "*", url, alt, width, height)


def _media(
    part: Elements, kind: str, subtype: str, url: str, alt: str, width: int | None = None, height: int | None = None
) -> Media:
    if kind not in get_args(MediaKind):
        raise unreadable(part.name, f"the type of {part.tag} must be image, audio or video, got {kind[:40]!r}")
    return Media(cast("MediaKind", kind), f"{kind}/{subtype}", url, alt, width, height)


def _free_text(elements: Elements) -> FreeText:
    numeric = min_value = max_value = min_length = max_length = None
    patterns: tuple[Pattern, ...] = ()
    constraints = elements.maybe("Constraints")
    if constraints is not None:
        numeric = constraints.maybe("IsNumeric")
        if numeric is not None:
            min_value, max_value = (
                numeric.attribute(side, least=-_BIGGEST, most=_BIGGEST) for side in ("minValue", "maxValue")
            )
        length = constraints.maybe("Length")
        if length is not None:
            min_length, max_length = (
                length.attribute(side, least=0, most=_BIGGEST) for side in ("minLength", "maxLength")
            )
        patterns = tuple(_pattern(item) for item in constraints.many("AnswerFormatRegex", least=0))
        constraints.end()
    default, lines = elements.maybe("DefaultText"), elements.maybe("NumberOfLinesSuggestion")
    elements.end()
    for low, high in ((min_value, max_value), (min_length, max_length)):
        if low is not None and high is not None and low > high:
            raise unreadable(elements.name, f"the least of a constraint, {low}, is more than its most, {high}")
    return FreeText(
        is_numeric=numeric is not None,
        min_value=min_value,
        max_value=max_value,
        min_length=min_length,
        max_length=max_length,
        patterns=patterns,
        default_text=default.text() if default is not None else "",
        lines=lines.number(least=1, most=1000) if lines is not None else 1,
    )


def _pattern(element: Elements) -> Pattern:
    element.end()
    expression, flags = element.element.get("regex"), element.element.get("flags", "")
    if expression is None or flags not in {"", "i"}:
        raise unreadable(element.name, "AnswerFormatRegex needs the attribute regex, and knows the flag i only")
    try:
        regex.compile(expression)
    except (regex.error, RecursionError) as error:
        raise unreadable(element.name, f"{expression[:100]!r} is not a regular expression: {error}") from error
    return Pattern(expression, element.element.get("errorText"), flags == "i")


def _selection(elements: Elements) -> Selection:
    least, most = elements.maybe("MinSelectionCount"), elements.maybe("MaxSelectionCount")
    style = elements.maybe("StyleSuggestion")
    selections = elements.one("Selections")
    elements.end()
    choices = tuple(_choice(item) for item in selections.many("Selection"))
    other = selections.maybe("OtherSelection")
    selections.end()
    minimum = least.number(least=0, most=_BIGGEST) if least is not None else 1
    maximum = most.number(least=1, most=_BIGGEST) if most is not None else max(1, minimum)
    if len({choice.identifier for choice in choices}) < len(choices):
        raise unreadable(elements.name, "each SelectionIdentifier of a question must be there once")
    if not minimum <= maximum or minimum > len(choices) + (other is not None):
        raise unreadable(elements.name, f"{minimum} to {maximum} of {len(choices)} selections cannot be chosen")
    return Selection(
        minimum,
        maximum,
        _style(style) if style is not None else None,
        choices,
        _free_text(other) if other is not None else None,
    )


def _choice(elements: Elements) -> Choice:
    identifier = _identifier(elements.one("SelectionIdentifier"))
    label = elements.take()
    elements.end()
    if label.tag not in {"Text", "FormattedContent", "Binary"}:
        raise unreadable(elements.name, f"a Selection shows Text, FormattedContent or Binary, not {label.tag}")
    return Choice(identifier, _content_part(label))


def _style(element: Elements) -> Style:
    style = element.text()
    if style not in get_args(Style):
        raise unreadable(element.name, f"StyleSuggestion must be one of {', '.join(get_args(Style))}, got {style!r}")
    return cast("Style", style)


def _identifier(element: Elements) -> str:
    identifier = element.text()
    if not 1 <= len(identifier) <= 256:
        raise unreadable(element.name, f"{element.tag} has 1 to 256 characters")
    return identifier


def _boolean(element: Elements) -> bool:
    text = element.text()
    if text not in {"true", "false", "1", "0"}:
        raise unreadable(element.name, f"{element.tag} must be true or false, got {text[:40]!r}")
    return text in {"true", "1"}


def _address(element: Elements) -> str:
    address = element.text()
    try:
        parts = urlsplit(address)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        fits = False
    if not fits or any(character.isspace() for character in address):
        raise unreadable(element.name, f"{element.tag} must be an http or https address, got {address[:100]!r}")
    return address
