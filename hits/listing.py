"""A round's examples page by page, the newest first, as far as they fit what is looked for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Select, Text, Tuple, cast, func, literal, select, tuple_
from sqlalchemy.orm import Session

from hits.db import UtcDateTime
from hits.models import ArmAssignment, Attempt, Example, Round, Worker
from hits.states import Verdict
from hits.tasks import TaskSpec

#: Examples on a page, and how many are looked through at a time for a text.
PER_PAGE, CHUNK = 50, 20_000
#: For so long a text is looked for before the page says how far it came.
SECONDS = 0.6
#: So few are sorted by us: the database might walk through a whole round to find them in order.
FEW = 2_000
#: Stands for the writers who were drawn for no arm; no arm can have this name.
IN_NO_ARM: Final = "-"


@dataclass(frozen=True)
class Wanted:
    """What is looked for; None and an empty text leave it open.

    ``writer`` is a pseudonym, ``arm`` that of the writer in this round; ``text`` stands in what the writer wrote, upper
    and lower case alike.
    """

    verdict: Verdict | None = None
    fooled: bool | None = None
    label: str | None = None
    writer: str | None = None
    arm: str | None = None
    text: str = ""


@dataclass(frozen=True)
class Place:
    """Where an example stands in the list."""

    collected_at: datetime
    id: int


@dataclass(frozen=True)
class Page:
    """The ids of a page, the newest first. ``newer`` and ``older`` are where the neighbouring pages begin, if any.

    ``total`` is how many fit, None where a text is looked for. ``searched`` is then how many were looked through, and
    ``is_whole`` tells that it was all there is in this direction: otherwise ``older`` goes on with the search.
    """

    ids: tuple[int, ...]
    newer: Place | None
    older: Place | None
    total: int | None
    searched: int = 0
    is_whole: bool = True


def place_of(session: Session, public_id: str) -> Place | None:
    """Return where an example stands; None if there is none of this name."""
    row = session.execute(
        select(Example.collected_at, Example.id).join(Example.attempt).where(Attempt.public_id == public_id)
    ).one_or_none()
    return None if row is None else Place(row.collected_at, row.id)


def page_of(
    session: Session,
    round_: Round,
    spec: TaskSpec,
    wanted: Wanted,
    *,
    older_than: Place | None = None,
    newer_than: Place | None = None,
    per_page: int = PER_PAGE,
    now: Callable[[], float] = time.monotonic,
) -> Page:
    """Return a page of a round's examples. Reads only."""
    conditions = _conditions(session, round_, wanted)
    if conditions is None:
        return Page((), None, None, 0)
    if wanted.text:
        return _searched(session, spec, wanted, conditions, older_than, per_page, now)
    total = session.scalar(select(func.count()).select_from(Example).where(*conditions)) or 0
    backwards = newer_than is not None
    if total <= FEW:
        # Bounded, so that the database finds them by what they are, and not by their order.
        listed = session.execute(select(Example.collected_at, Example.id).where(*conditions).limit(FEW)).all()
        places = sorted((Place(at, number) for at, number in listed), key=_order, reverse=not backwards)
        places = [one for one in places if _is_beyond(one, older_than, newer_than)][: per_page + 1]
    else:
        query = _ordered(_places(conditions, older_than, newer_than), backwards=backwards).limit(per_page + 1)
        places = [Place(at, number) for at, number in session.execute(query)]
    more, places = len(places) > per_page, places[:per_page]
    if backwards:
        places.reverse()
    if not places:
        return Page((), None, None, total)
    is_first = not more if backwards else older_than is None
    is_last = False if backwards else not more
    return Page(
        ids=tuple(one.id for one in places),
        newer=None if is_first else places[0],
        older=None if is_last else places[-1],
        total=total,
    )


def _searched(
    session: Session,
    spec: TaskSpec,
    wanted: Wanted,
    conditions: Sequence[ColumnElement[bool]],
    older_than: Place | None,
    per_page: int,
    now: Callable[[], float],
) -> Page:
    """Look for a text, chunk by chunk from the newest, until the page is full or the time is over."""
    text = wanted.text.lower()
    names = [item.name for item in spec.answer_fields]
    until, at, searched = now() + SECONDS, older_than, 0
    found: list[int] = []
    while True:
        chunk = _ordered(_places(conditions, at, None)).limit(CHUNK)
        end = session.execute(chunk.offset(CHUNK - 1).limit(1)).one_or_none()
        inside = chunk.subquery()
        rows = session.execute(
            select(inside.c.collected_at, inside.c.id, Attempt.answer)
            .join(Example, Example.id == inside.c.id)
            .join(Attempt, Attempt.id == Example.attempt_id)
            .where(*_may_hold(text))
            .order_by(inside.c.collected_at.desc(), inside.c.id.desc())
        )
        for collected_at, number, answer in rows:
            if not any(text in str(answer.get(name, "")).lower() for name in names):
                continue
            if len(found) == per_page:
                # The next page begins behind the last one shown, so that this one is found again there.
                rows.close()
                return Page(tuple(found), None, at, None, searched, is_whole=False)
            found.append(number)
            at = Place(collected_at, number)
        if end is None:
            searched += session.scalar(select(func.count()).select_from(inside)) or 0
            return Page(tuple(found), None, None, None, searched)
        searched += CHUNK
        at = Place(end.collected_at, end.id)
        if now() >= until:
            return Page(tuple(found), None, at, None, searched, is_whole=False)


def _may_hold(text: str) -> list[ColumnElement[bool]]:
    """Return conditions that leave out most answers without the text: only plain letters are stored as they are."""
    plain = max(re.findall(r"[a-z0-9 ]+", text), key=len, default="")
    if len(plain) < 2:
        return []
    return [func.lower(cast(Attempt.answer, Text)).contains(plain, autoescape=True)]


def _conditions(session: Session, round_: Round, wanted: Wanted) -> list[ColumnElement[bool]] | None:
    """Return what the wanted examples fulfil; None if the writer is nobody."""
    found: list[ColumnElement[bool]] = [Example.round_id == round_.id]
    if wanted.verdict is not None:
        found.append(Example.verdict == wanted.verdict)
    if wanted.fooled is not None:
        found.append(Example.fooled.is_(wanted.fooled))
    if wanted.label is not None:
        found.append(Example.goal_label == wanted.label)
    if wanted.writer:
        writer_id = session.scalar(select(Worker.id).where(Worker.pseudonym == wanted.writer))
        if writer_id is None:
            return None
        found.append(Example.writer_id == writer_id)
    if wanted.arm is not None:
        drawn = select(ArmAssignment.worker_id).where(ArmAssignment.round_id == round_.id)
        if wanted.arm == IN_NO_ARM:
            found.append(Example.writer_id.not_in(drawn))
        else:
            found.append(Example.writer_id.in_(drawn.where(ArmAssignment.arm == wanted.arm)))
    return found


def _places(
    conditions: Sequence[ColumnElement[bool]], older_than: Place | None, newer_than: Place | None
) -> Select[datetime, int]:
    query = select(Example.collected_at, Example.id).where(*conditions)
    order = tuple_(Example.collected_at, Example.id)
    if older_than is not None:
        query = query.where(order < _literal(older_than))
    if newer_than is not None:
        query = query.where(order > _literal(newer_than))
    return query


def _literal(place: Place) -> Tuple:
    return tuple_(literal(place.collected_at, UtcDateTime()), literal(place.id))


def _ordered(query: Select[datetime, int], *, backwards: bool = False) -> Select[datetime, int]:
    if backwards:
        return query.order_by(Example.collected_at, Example.id)
    return query.order_by(Example.collected_at.desc(), Example.id.desc())


def _order(place: Place) -> tuple[datetime, int]:
    return place.collected_at, place.id


def _is_beyond(place: Place, older_than: Place | None, newer_than: Place | None) -> bool:
    return (older_than is None or _order(place) < _order(older_than)) and (
        newer_than is None or _order(place) > _order(newer_than)
    )
