"""The one XML parser of the marketplace: no DTD, no entities, no network, no huge trees."""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from hits.marketplace.errors import MarketplaceError, unfit_parameter

SCHEMAS: Final = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/"
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse(name: str, text: str) -> etree._Element:
    """Return the root element of an XML parameter.

    Raises MarketplaceError (ParameterValidationError) for anything but well-formed XML without a DTD.
    """
    parser = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise unreadable(name, str(error)) from error
    if root.getroottree().docinfo.doctype:
        raise unreadable(name, "a document type declaration is not allowed")
    return root


def legal(text: str) -> str:
    """Return the text without the characters that XML 1.0 cannot carry."""
    return _ILLEGAL.sub("", text)


class Elements:
    """The children of one element, taken in the order that a schema writes down.

    Every method raises MarketplaceError (ParameterValidationError) that names the element and what it lacks.
    """

    def __init__(self, name: str, element: etree._Element) -> None:
        """Read `element`, which belongs to the parameter `name`."""
        self.name = name
        self.element = element
        self.tag = etree.QName(element).localname
        self._namespace = etree.QName(element).namespace
        self._left = [child for child in element if isinstance(child.tag, str)]

    def peek(self) -> str | None:
        """Return the local name of the next child, None at the end."""
        if not self._left:
            return None
        found = etree.QName(self._left[0])
        if found.namespace != self._namespace:
            raise unreadable(self.name, f"{found.localname} in {self.tag} is of another namespace")
        return str(found.localname)

    def take(self) -> Elements:
        """Return the next child, whatever it is."""
        if self.peek() is None:
            raise unreadable(self.name, f"{self.tag} is incomplete")
        return Elements(self.name, self._left.pop(0))

    def maybe(self, tag: str) -> Elements | None:
        """Return the next child if it is a `tag`."""
        return self.take() if self.peek() == tag else None

    def one(self, tag: str) -> Elements:
        """Return the next child, which must be a `tag`."""
        if self.peek() != tag:
            raise unreadable(self.name, f"{self.tag} must have {tag} next, found {self.peek() or 'its end'}")
        return self.take()

    def many(self, tag: str, *, least: int = 1) -> list[Elements]:
        """Return all next children that are a `tag`."""
        found = []
        while (child := self.maybe(tag)) is not None:
            found.append(child)
        if len(found) < least:
            self.one(tag)
        return found

    def end(self) -> None:
        """Check that no child is left."""
        if (tag := self.peek()) is not None:
            raise unreadable(self.name, f"{tag} does not belong at this place of {self.tag}")

    def text(self) -> str:
        """Return the text of an element without children, trimmed."""
        self.end()
        return (self.element.text or "").strip()

    def number(self, *, least: int, most: int) -> int:
        """Return the whole number in an element."""
        return self.as_number(self.text(), self.tag, least=least, most=most)

    def attribute(self, name: str, *, least: int, most: int) -> int | None:
        """Return the whole number in an attribute, None if it is absent."""
        text = self.element.get(name)
        return None if text is None else self.as_number(text.strip(), f"{self.tag}/@{name}", least=least, most=most)

    def as_number(self, text: str, where: str, *, least: int, most: int) -> int:
        """Return the whole number in a text."""
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise unreadable(self.name, f"{where} must be a whole number from {least} to {most}, got {text[:40]!r}")
        return int(text)


def unreadable(name: str, detail: str) -> MarketplaceError:
    """Build the answer to XML that does not fit its schema."""
    return unfit_parameter(
        f"There was an error parsing the XML data in your request.  Please make sure the data is well-formed and "
        f"validates against the appropriate schema. Details: {name}: {detail}"
    )
