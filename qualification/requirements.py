"""What HIT types ask of workers: requirements as people write them, checked before the marketplace is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import InvalidInput
from hits.models import Round
from hits.mturk.client import MTurk, Requirement
from qualification.limits_models import EVERY_ROUND, AllowList, LimitPer, ListKind, RoundExclusion, Work, WorkLimit

#: Of one HIT type.
MOST_REQUIREMENTS = 10
ACTIONS_GUARDED = ("Accept", "PreviewAndAccept", "DiscoverPreviewAndAccept")
#: Of In and NotIn.
MOST_VALUES, MOST_LOCALES = 15, 30

MASTERS, MASTERS_SANDBOX = "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6"
NUMBER_APPROVED, LOCALE = "00000000000000000040", "00000000000000000071"
ADULT, PERCENT_APPROVED = "00000000000000000060", "000000000000000000L0"
#: What the marketplace itself knows of its workers, by the name that it has in `--require`.
SYSTEM: Mapping[str, str] = {
    "masters": MASTERS,
    "number-approved": NUMBER_APPROVED,
    "locale": LOCALE,
    "adult": ADULT,
    "percent-approved": PERCENT_APPROVED,
}
#: The values that a system qualification can have at all.
_RANGES: Mapping[str, tuple[int, int]] = {
    NUMBER_APPROVED: (0, 2**31 - 1),
    ADULT: (0, 1),
    PERCENT_APPROVED: (0, 100),
}

#: As people write it -> as the Requester API has it.
COMPARATORS: Mapping[str, str] = {
    "held": "Exists",
    "not held": "DoesNotExist",
    "<": "LessThan",
    "<=": "LessThanOrEqualTo",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqualTo",
    "=": "EqualTo",
    "!=": "NotEqualTo",
    "in": "In",
    "not in": "NotIn",
}
_PRESENCE = ("Exists", "DoesNotExist")
_SETS = ("In", "NotIn")
_OF_LOCALES = ("EqualTo", "NotEqualTo", *_SETS)
_ENTITY_ID = re.compile(r"[A-Z0-9]{20,64}")
_LOCALE = re.compile(r"[A-Z]{2}(-[A-Z]{2})?")
_WRITTEN = re.compile(
    r"(?P<name>\S.*?)\s*(?P<comparator>(?<=\s)not\s+held|(?<=\s)held|(?<=\s)not\s+in\s|(?<=\s)in\s|<=|>=|!=|<|>|=)"
    r"\s*(?P<values>(?:-?\d+|[A-Z]{2}(?:-[A-Z]{2})?)(?:\s*,\s*(?:-?\d+|[A-Z]{2}(?:-[A-Z]{2})?))*)?"
)


@dataclass(frozen=True)
class Wanted:
    """One requirement as a requester wrote it; ``name`` is of SYSTEM, or a qualification type's own name or id."""

    name: str
    comparator: str
    values: tuple[int, ...] = ()
    locales: tuple[str, ...] = ()
    actions_guarded: str = "DiscoverPreviewAndAccept"

    @property
    def as_written(self) -> Requirement:
        """The requirement with a name of the requester's own in the place of an id, to be checked before any call."""
        return self.of(SYSTEM.get(self.name, self.name))

    def of(self, qualification_type_id: str) -> Requirement:
        """Return the requirement of this qualification type."""
        return Requirement(
            qualification_type_id,
            actions_guarded=self.actions_guarded,
            comparator=self.comparator,
            values=self.values,
            locales=self.locales,
            name=self.name,
        )


def read_wanted(written: str) -> Wanted:
    """Return a requirement that is written like "percent-approved >= 95" or "locale in US, GB".

    Raises InvalidInput for what can't be read, and for values that don't fit, before anything is looked up.
    """
    found = _WRITTEN.fullmatch(" ".join(written.split()))
    if found is None:
        raise InvalidInput(
            f"The requirement {written!r} can't be read. Write a name, a comparison and its values, such as"
            ' "percent-approved >= 95", "locale in US, GB" or "my qualification held".'
            f" The comparisons are {', '.join(COMPARATORS)}."
        )
    comparator = COMPARATORS[" ".join(found["comparator"].split())]
    listed = [value.strip() for value in (found["values"] or "").split(",") if value.strip()]
    locales = tuple(value for value in listed if _LOCALE.fullmatch(value))
    values = tuple(int(value) for value in listed if not _LOCALE.fullmatch(value))
    wanted = Wanted(found["name"], comparator, values, locales)
    check_requirements([wanted.as_written])
    return wanted


def check_requirements(requirements: Sequence[Requirement]) -> None:
    """Raise InvalidInput for requirements that the marketplace would refuse or read in another way than meant."""
    if len(requirements) > MOST_REQUIREMENTS:
        listed = "; ".join(str(one) for one in requirements)
        raise InvalidInput(
            f"These are {len(requirements)} requirements; a HIT type has at most {MOST_REQUIREMENTS}: {listed}."
            " Leave some out."
        )
    for requirement in requirements:
        if fault := _fault(requirement):
            raise InvalidInput(f"The requirement {requirement} can't be used: {fault}.")
    if len(set(map(str, requirements))) < len(requirements):
        twice = next(one for one in requirements if sum(str(one) == str(other) for other in requirements) > 1)
        raise InvalidInput(f"The requirement {twice} stands there twice. Leave one out.")


def _fault(requirement: Requirement) -> str | None:
    type_id, locales = requirement.qualification_type_id, requirement.locales
    comparator, values = requirement.compared
    if requirement.actions_guarded not in ACTIONS_GUARDED:
        return f"it guards {requirement.actions_guarded!r}, and can guard {', '.join(ACTIONS_GUARDED)}"
    if comparator not in COMPARATORS.values():
        return f"its comparator {comparator!r} is none of {', '.join(COMPARATORS.values())}"
    if comparator in _PRESENCE:
        return "held and not held take no values" if values or locales else None
    if type_id in (MASTERS, MASTERS_SANDBOX):
        return "masters can be held or not held, and not compared"
    if type_id == LOCALE:
        return _fault_of_locales(comparator, values, locales)
    if locales:
        return f"{', '.join(locales)} are places, which only locale is compared with"
    most = MOST_VALUES if comparator in _SETS else 1
    if not 1 <= len(values) <= most:
        return f"it has {len(values)} values and takes {'1' if most == 1 else f'1 to {most}'}"
    least, greatest = _RANGES.get(type_id, (-(2**31), 2**31 - 1))
    outside = next((value for value in values if not least <= value <= greatest), None)
    return f"{outside} is not from {least:,} to {greatest:,}" if outside is not None else None


def _fault_of_locales(comparator: str, values: Sequence[int], locales: Sequence[str]) -> str | None:
    if comparator not in _OF_LOCALES:
        return "a locale is compared with =, !=, in and not in"
    if values:
        return f"{values[0]} is no place; write countries by two letters, such as US or US-NY"
    most = MOST_LOCALES if comparator in _SETS else 1
    if not 1 <= len(locales) <= most:
        return f"it has {len(locales)} places and takes {'1' if most == 1 else f'1 to {most}'}"
    for locale in locales:
        if not _LOCALE.fullmatch(locale):
            return f"{locale!r} is no place; write countries by two letters, such as US or US-NY"
        if "-" in locale and not locale.startswith("US-"):
            return f"{locale} names a part of a country, which only the US may have"
    return None


def resolved(mturk: MTurk, wanted: Wanted) -> Requirement:
    """Return a requirement with the id of its qualification type. Raises InvalidInput when there is no such type."""
    if wanted.name in SYSTEM:
        type_id = SYSTEM[wanted.name]
        is_sandbox = "sandbox" in (urlsplit(mturk.endpoint).hostname or "")
        return wanted.of(MASTERS_SANDBOX if type_id == MASTERS and is_sandbox else type_id)
    found = mturk.find_qualification(wanted.name)
    if found is None and (_ENTITY_ID.fullmatch(wanted.name) or wanted.name in (MASTERS, MASTERS_SANDBOX)):
        found = wanted.name
    if found is None:
        raise InvalidInput(
            f"There is no qualification named {wanted.name!r} at {mturk.endpoint}. Nothing was launched."
            f" Make it first, or use one of {', '.join(SYSTEM)}."
        )
    if found not in (*SYSTEM.values(), MASTERS_SANDBOX) and not mturk.qualification_is_active(found):
        raise InvalidInput(f"The qualification {wanted.name!r} is not active at {mturk.endpoint}. Activate it first.")
    return wanted.of(found)


def as_json(requirement: Requirement) -> dict[str, Any]:
    """Return a requirement as a batch keeps it."""
    comparator, values = requirement.compared
    return {
        "qualification_type_id": requirement.qualification_type_id,
        "actions_guarded": requirement.actions_guarded,
        "comparator": comparator,
        "values": list(values),
        "locales": list(requirement.locales),
        "name": requirement.name,
    }


def from_json(kept: Mapping[str, Any]) -> Requirement:
    """Return a requirement that a batch has kept."""
    return Requirement(
        kept["qualification_type_id"],
        actions_guarded=kept["actions_guarded"],
        comparator=kept["comparator"],
        values=tuple(kept["values"]),
        locales=tuple(kept["locales"]),
        name=kept["name"],
    )


def words_of(requirement: Requirement, names: Mapping[str | None, str]) -> tuple[str, str, str]:
    """Return for people which qualification it is, what it is compared with, and what it guards.

    ``names`` tells further qualifications' names by id.
    """
    comparator, values = requirement.compared
    sign = next((written for written, name in COMPARATORS.items() if name == comparator), comparator)
    told = {type_id: name for name, type_id in SYSTEM.items()} | dict(names)
    name = requirement.name or told.get(requirement.qualification_type_id, requirement.qualification_type_id)
    guarded = {"Accept": "taking it", "PreviewAndAccept": "seeing its page", "DiscoverPreviewAndAccept": "finding it"}
    listed = ", ".join([*map(str, values), *requirement.locales])
    return name, f"{sign} {listed}".strip(), guarded.get(requirement.actions_guarded, requirement.actions_guarded)


@dataclass(frozen=True)
class WorkerList:
    """One of our lists of workers; the marketplace knows it as a qualification of the list's name."""

    kind: ListKind
    task_code: str
    round_number: int
    work: Work = Work.WRITING

    @property
    def comparator(self) -> str:
        """What HIT types ask about the list: that workers stand on it, or that they don't."""
        return "Exists" if self.kind is ListKind.ALLOWED else "DoesNotExist"

    def name(self, prefix: str) -> str:
        """Return the name of its qualification type. Workers see it, so that it blames nobody."""
        where = self.task_code if self.round_number == EVERY_ROUND else f"{self.task_code}, round {self.round_number}"
        return (
            prefix
            + {
                ListKind.SET_ASIDE: f": other work than {where}",
                ListKind.ALLOWED: f": invited to {where}",
                ListKind.WROTE: f": has written for {where}",
                ListKind.FULL: f": has done the most of {where}, {self.work.value}",
            }[self.kind]
        )

    @property
    def description(self) -> str:
        """What workers are told about it."""
        return {
            ListKind.SET_ASIDE: "You are offered other work than this at the moment. It does not touch what you did.",
            ListKind.ALLOWED: "You are invited to these HITs.",
            ListKind.WROTE: "You wrote statements for this round. Some other rounds are kept for other people.",
            ListKind.FULL: "You did as many of these HITs as one person may do, so that many people take part. Thanks.",
        }[self.kind]


def lists_asked(session: Session, task_code: str, round_number: int, work: Work) -> list[WorkerList]:
    """Return the lists that the HIT types of a round ask about, the most needed first. Reads only."""
    found = [WorkerList(ListKind.SET_ASIDE, task_code, EVERY_ROUND)]
    if (allowed := allow_list_of(session, task_code, round_number)) is not None:
        found.append(WorkerList(ListKind.ALLOWED, task_code, allowed.round_number))
    if limit_of(session, task_code, round_number, work, LimitPer.ROUND) is not None:
        found.append(WorkerList(ListKind.FULL, task_code, round_number, work))
    if work is Work.WRITING:
        kept_out = excluded_by(session, task_code, round_number)
        found += [WorkerList(ListKind.WROTE, task_code, number) for number in sorted(kept_out)]
    return found


def excluded_by(session: Session, task_code: str, round_number: int) -> set[int]:
    """Return the rounds of the task whose writers may not write in this round. Reads only."""
    rules = session.execute(
        select(RoundExclusion.round_number, RoundExclusion.other_number).where(RoundExclusion.task_code == task_code)
    ).all()
    exclusive = {number for number, other in rules if other == EVERY_ROUND}
    found = {other for number, other in rules if number == round_number and other != EVERY_ROUND}
    found |= exclusive
    if round_number in exclusive:
        found |= set(session.scalars(select(Round.number).where(Round.task_code == task_code)))
    return found - {round_number}


def allow_list_of(session: Session, task_code: str, round_number: int) -> AllowList | None:
    """Return the allow-list in force: the round's own, else that of every round. Reads only."""
    return session.scalar(
        select(AllowList)
        .where(AllowList.task_code == task_code, AllowList.round_number.in_((round_number, EVERY_ROUND)))
        .order_by(AllowList.round_number.desc())
        .limit(1)
    )


def limit_of(session: Session, task_code: str, round_number: int, work: Work, per: LimitPer) -> WorkLimit | None:
    """Return the limit in force: the round's own, else that of every round. Reads only."""
    return session.scalar(
        select(WorkLimit)
        .where(WorkLimit.task_code == task_code, WorkLimit.work == work, WorkLimit.per == per)
        .where(WorkLimit.round_number.in_((round_number, EVERY_ROUND)))
        .order_by(WorkLimit.round_number.desc())
        .limit(1)
    )
