"""Which of Amazon's crowd-html elements this marketplace can show, and which a page needs besides."""

from __future__ import annotations

import re
from typing import Final

from lxml import etree, html

#: Where Amazon's script stood. A page that brings its own elements from elsewhere is left alone.
SCRIPT: Final = re.compile(
    r"(?:https?:)?//assets\.crowd(?:\.amazonaws\.com|\.amazon\.com|\.aws)/(?:[\w.-]+/)*crowd-html-elements(?:-without-ce-polyfill)?\.js"
)
#: Those that the site's own script defines.
SHOWN: Final = frozenset(
    {
        "crowd-alert",
        "crowd-badge",
        "crowd-button",
        "crowd-card",
        "crowd-checkbox",
        "crowd-classifier",
        "crowd-classifier-multi-select",
        "crowd-fab",
        "crowd-form",
        "crowd-icon-button",
        "crowd-image-classifier",
        "crowd-image-classifier-multi-select",
        "crowd-input",
        "crowd-instructions",
        "crowd-modal",
        "crowd-radio-button",
        "crowd-radio-group",
        "crowd-slider",
        "crowd-tab",
        "crowd-tabs",
        "crowd-text-area",
        "crowd-toast",
        "crowd-toggle-button",
    }
)
#: The rest of Amazon's list. Without them a page cannot be answered.
NOT_SHOWN: Final = frozenset(
    {
        "crowd-3d-point-cloud",
        "crowd-bounding-box",
        "crowd-entity-annotation",
        "crowd-instance-segmentation",
        "crowd-keypoint",
        "crowd-line",
        "crowd-polygon",
        "crowd-polyline",
        "crowd-rekognition-detect-moderation-labels",
        "crowd-semantic-segmentation",
        "crowd-textract-analyze-document",
    }
)
_IMAGES: Final = ("crowd-image-classifier", "crowd-image-classifier-multi-select")


def missing(page: str) -> tuple[str, ...]:
    """Return the elements of Amazon's in a page of HTML that cannot be shown here, by name, without spaces.

    An image to classify that has an overlay of boxes or regions counts as `crowd-image-classifier[overlay]`. What a
    script writes into the page later is not seen here.
    """
    if not SCRIPT.search(page):
        return ()
    try:
        parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
        root = html.document_fromstring(page.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return ()
    found = {str(element.tag) for element in root.iter() if element.tag in NOT_SHOWN}
    found |= {f"{tag}[overlay]" for tag in _IMAGES if any(element.get("overlay") for element in root.iter(tag))}
    return tuple(sorted(found))
