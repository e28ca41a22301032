"""HIT layouts: pages with `${placeholders}`, registered by their requester, that HITs are made from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import select

from hits.marketplace import accounts, limits, questions
from hits.marketplace.errors import (
    PARAMETER_OUT_OF_RANGE,
    MarketplaceError,
    OperatorError,
    invalid_parameter,
    request_error,
    unfit_parameter,
)
from hits.marketplace.identifiers import new_entity_id
from hits.marketplace.tables import HitLayoutRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import HitLayout
from hits.marketplace.words import words
from hits.marketplace.xmltext import legal

_PLACEHOLDER: Final = re.compile(r"\$\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}")
_MOST_BYTES: Final = limits.BYTES["Question"]


def create(transaction: Transaction, requester_id: str, name: str, html: str, frame_height: int) -> HitLayout:
    """Register a layout.

    Raises OperatorError for an unknown requester, a blank name, or a page that no HIT could show.
    """
    accounts.find(transaction, requester_id)
    if not 0 < len(name.strip()) <= 200:
        raise OperatorError(words("A layout's name has 1 to 200 characters, got “%(name)s”.", name=name))
    if html != legal(html) or len(html.encode()) > _MOST_BYTES or not 0 <= frame_height <= questions.HIGHEST_FRAME:
        raise OperatorError(
            words(
                "A layout has at most %(bytes)d bytes without control characters, "
                "and a frame of 0 to %(pixels)d pixels.",
                bytes=_MOST_BYTES,
                pixels=questions.HIGHEST_FRAME,
            )
        )
    try:
        questions.checked_html(html)
    except MarketplaceError as error:
        raise OperatorError(error.message) from error
    row = HitLayoutRow(
        layout_id=new_entity_id(),
        requester_id=requester_id,
        name=name.strip(),
        html=html,
        frame_height=frame_height,
        created_at=transaction.now,
    )
    transaction.session.add(row)
    return _view(row)


def every(transaction: Transaction, requester_id: str) -> list[HitLayout]:
    """Return a requester's layouts, oldest first."""
    query = select(HitLayoutRow).where(HitLayoutRow.requester_id == requester_id).order_by(HitLayoutRow.seq)
    return [_view(row) for row in transaction.session.scalars(query)]


def fill(transaction: Transaction, requester_id: str, layout_id: str, parameters: Sequence[Mapping[str, Any]]) -> str:
    """Return the HTMLQuestion that a layout becomes with the values put in, as they are, for its placeholders.

    Raises MarketplaceError for a layout that the requester has not, and for values that are missing, there twice or
    without a placeholder.
    """
    query = select(HitLayoutRow).where(HitLayoutRow.layout_id == layout_id, HitLayoutRow.requester_id == requester_id)
    row = transaction.session.scalar(query)
    if row is None:
        raise invalid_parameter("HITLayoutId", layout_id)
    values = {item["Name"]: legal(item["Value"]) for item in parameters}
    wanted = set(_PLACEHOLDER.findall(row.html))
    if len(values) < len(parameters):
        raise unfit_parameter("HITLayoutParameters name a placeholder twice.")
    if missing := sorted(wanted - set(values)):
        raise unfit_parameter(f"HITLayoutParameters lack {', '.join(missing)}.")
    if surplus := sorted(set(values) - wanted):
        raise unfit_parameter(f"The layout has no placeholder {', '.join(surplus)[:200]}.")
    html = _PLACEHOLDER.sub(lambda match: values[match.group(1)], row.html)
    text = questions.write_html_question(html, row.frame_height)
    if len(text.encode()) > _MOST_BYTES:
        raise request_error(
            PARAMETER_OUT_OF_RANGE,
            reason=f"The question has {len(text.encode())} bytes with its values; at most {_MOST_BYTES} are allowed.",
        )
    return text


def _view(row: HitLayoutRow) -> HitLayout:
    placeholders = tuple(dict.fromkeys(_PLACEHOLDER.findall(row.html)))
    return HitLayout(row.layout_id, row.name, row.html, row.frame_height, row.created_at, placeholders)
