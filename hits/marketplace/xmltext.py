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
        raise _unreadable(name, str(error)) from error
    if root.getroottree().docinfo.doctype:
        raise _unreadable(name, "a document type declaration is not allowed")
    return root


def legal(text: str) -> str:
    """Return the text without the characters that XML 1.0 cannot carry."""
    return _ILLEGAL.sub("", text)


def _unreadable(name: str, detail: str) -> MarketplaceError:
    return unfit_parameter(
        f"There was an error parsing the XML data in your request.  Please make sure the data is well-formed and "
        f"validates against the appropriate schema. Details: {name}: {detail}"
    )
