"""Checks qualification requirements when they are given, and workers against them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from hits.marketplace import qualifications
from hits.marketplace import system_qualifications as system
from hits.marketplace.errors import unfit_parameter
from hits.marketplace.tables import QualificationRow, QualificationTypeRow, WorkerRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.views import MissingQualification
from hits.marketplace.words import Words, words

Requirement = Mapping[str, Any]
_PRESENCE: Final = ("Exists", "DoesNotExist")
_SETS: Final = ("In", "NotIn")
_WORDS: Final[dict[str, Callable[[str, str], Words]]] = {
    "LessThan": lambda name, value: words("“%(name)s” must be less than %(value)s", name=name, value=value),
    "LessThanOrEqualTo": lambda name, value: words("“%(name)s” must be at most %(value)s", name=name, value=value),
    "GreaterThan": lambda name, value: words("“%(name)s” must be more than %(value)s", name=name, value=value),
    "GreaterThanOrEqualTo": lambda name, value: words("“%(name)s” must be at least %(value)s", name=name, value=value),
    "EqualTo": lambda name, value: words("“%(name)s” must be exactly %(value)s", name=name, value=value),
    "NotEqualTo": lambda name, value: words("“%(name)s” must be anything but %(value)s", name=name, value=value),
    "In": lambda name, value: words("“%(name)s” must be one of %(value)s", name=name, value=value),
    "NotIn": lambda name, value: words("“%(name)s” must be none of %(value)s", name=name, value=value),
}


@dataclass(frozen=True)
class Eligibility:
    """What a worker may do with a HIT, in words what is missing for the rest, and what of that can be asked for."""

    may_discover: bool
    may_preview: bool
    may_accept: bool
    reasons: tuple[str, ...]
    missing: tuple[MissingQualification, ...]


def canonical(transaction: Transaction, requirements: Sequence[Requirement]) -> list[dict[str, Any]]:
    """Return checked requirements in the one form in which equal ones are equal.

    Raises MarketplaceError for values that do not fit the comparator, and types that cannot be required.
    """
    if len(requirements) > 10:
        raise unfit_parameter(f"A HIT has at most 10 QualificationRequirements, got {len(requirements)}.")
    return sorted((_canonical(transaction, item) for item in requirements), key=lambda item: json.dumps(item))


def judge(transaction: Transaction, worker: WorkerRow | None, requirements: Sequence[Requirement]) -> Eligibility:
    """Return what a worker may do under these requirements; None is a visitor, who meets none of them."""
    return Judge(transaction, worker).verdict(requirements)


class Judge:
    """One worker against the requirements of many HIT types; what it has looked up it does not look up again."""

    def __init__(self, transaction: Transaction, worker: WorkerRow | None) -> None:
        """Look up nothing yet; None is a visitor, who meets no requirement."""
        self._transaction = transaction
        self._worker = worker
        self._system: dict[str, int | None] = {}
        self._granted: dict[str, int] | None = None
        self._names: dict[str, str] = {}

    def unmet(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        """Return the requirements that the worker does not meet."""
        return [item for item in requirements if self._worker is None or not self._is_met(self._worker, item)]

    def verdict(self, requirements: Sequence[Requirement]) -> Eligibility:
        """Return what the worker may do under these requirements."""
        unmet = self.unmet(requirements)
        guards = {item["ActionsGuarded"] for item in unmet}
        return Eligibility(
            may_discover="DiscoverPreviewAndAccept" not in guards,
            may_preview=not guards & {"PreviewAndAccept", "DiscoverPreviewAndAccept"},
            may_accept=not guards,
            reasons=tuple(self._reason(item) for item in unmet),
            missing=tuple(
                MissingQualification(item["QualificationTypeId"], self._name(item["QualificationTypeId"]))
                for item in unmet
                if item["QualificationTypeId"] not in system.SYSTEM_TYPES and item["Comparator"] != "DoesNotExist"
            ),
        )

    def _is_met(self, worker: WorkerRow, item: Requirement) -> bool:
        type_id: str = item["QualificationTypeId"]
        comparator: str = item["Comparator"]
        if type_id == system.LOCALE:
            return _locale_is_met(worker, comparator, item.get("LocaleValues", []))
        value = self._value(worker, type_id)
        if comparator in _PRESENCE:
            return (value is not None) == (comparator == "Exists")
        if value is None:
            return False
        wanted: Sequence[int] = item["IntegerValues"]
        return {
            "LessThan": value < wanted[0],
            "LessThanOrEqualTo": value <= wanted[0],
            "GreaterThan": value > wanted[0],
            "GreaterThanOrEqualTo": value >= wanted[0],
            "EqualTo": value == wanted[0],
            "NotEqualTo": value != wanted[0],
            "In": value in wanted,
            "NotIn": value not in wanted,
        }[comparator]

    def _value(self, worker: WorkerRow, type_id: str) -> int | None:
        if type_id in system.SYSTEM_TYPES:
            if type_id not in self._system:
                self._system[type_id] = system.value_of(self._transaction, worker, type_id)
            return self._system[type_id]
        if self._granted is None:
            held = select(QualificationRow.qualification_type_id, QualificationRow.value).where(
                QualificationRow.worker_id == worker.worker_id, QualificationRow.status == "Granted"
            )
            self._granted = dict(self._transaction.session.execute(held).all())
        return self._granted.get(type_id)

    def _reason(self, item: Requirement) -> str:
        type_id, comparator = item["QualificationTypeId"], item["Comparator"]
        name = self._name(type_id)
        if comparator == "Exists":
            return words("you need the qualification “%(name)s”", name=name)
        if comparator == "DoesNotExist":
            return words("the HIT is for workers without the qualification “%(name)s”", name=name)
        places = ("-".join(filter(None, (p["Country"], p.get("Subdivision")))) for p in item.get("LocaleValues", []))
        values = ", ".join([*map(str, item.get("IntegerValues", [])), *places])
        return _WORDS[comparator](name, values)

    def _name(self, type_id: str) -> str:
        if type_id in system.SYSTEM_TYPES:
            return system.SYSTEM_TYPES[type_id].name
        if type_id not in self._names:
            query = select(QualificationTypeRow.name).where(QualificationTypeRow.qualification_type_id == type_id)
            self._names[type_id] = self._transaction.session.scalar(query) or type_id
        return self._names[type_id]


def require_active_types(transaction: Transaction, requirements: Sequence[Requirement]) -> None:
    """Check that HITs can still be created with these requirements, which were checked when they were stored.

    Raises MarketplaceError for a qualification type that is inactive by now.
    """
    for item in requirements:
        if item["QualificationTypeId"] not in system.SYSTEM_TYPES:
            qualifications.require_active(transaction, item["QualificationTypeId"])


def _canonical(transaction: Transaction, item: Requirement) -> dict[str, Any]:
    type_id, comparator = item["QualificationTypeId"], item["Comparator"]
    integers, locales = item.get("IntegerValues", []), item.get("LocaleValues", [])
    _check_values(type_id, comparator, integers, locales)
    if type_id not in system.SYSTEM_TYPES:
        qualifications.require_active(transaction, type_id)
    if "RequiredToPreview" in item and "ActionsGuarded" in item:
        raise unfit_parameter("RequiredToPreview is deprecated and must not be combined with ActionsGuarded.")
    guarded = item.get("ActionsGuarded", "PreviewAndAccept" if item.get("RequiredToPreview") else "Accept")
    form: dict[str, Any] = {"QualificationTypeId": type_id, "Comparator": comparator, "ActionsGuarded": guarded}
    if integers:
        form["IntegerValues"] = sorted(set(integers))
    if locales:
        form["LocaleValues"] = sorted((dict(sorted(place.items())) for place in locales), key=json.dumps)
    return form


def _check_values(type_id: str, comparator: str, integers: Sequence[int], locales: Sequence[Requirement]) -> None:
    where = f"the requirement of {type_id}"
    if comparator in _PRESENCE:
        if integers or locales:
            raise unfit_parameter(f"{comparator} takes no values in {where}.")
        return
    if type_id in system.MASTERS:
        raise unfit_parameter(f"Masters can be compared with Exists or DoesNotExist only, got {comparator}.")
    most = (30 if type_id == system.LOCALE else 15) if comparator in _SETS else 1
    values: Sequence[Any] = locales if type_id == system.LOCALE else integers
    unwanted: Sequence[Any] = integers if type_id == system.LOCALE else locales
    if unwanted:
        raise unfit_parameter(
            f"LocaleValues go with Worker_Locale ({system.LOCALE}) only, IntegerValues with the rest."
        )
    if type_id == system.LOCALE and comparator not in {"EqualTo", "NotEqualTo", *_SETS}:
        raise unfit_parameter(f"Worker_Locale can be compared with EqualTo, NotEqualTo, In, NotIn, not {comparator}.")
    if not 1 <= len(values) <= most:
        raise unfit_parameter(f"{comparator} takes {'1' if most == 1 else f'1 to {most}'} values in {where}.")
    for place in locales:
        if "Subdivision" in place and place["Country"] != "US":
            raise unfit_parameter(f"Subdivision is for US only, not for {place['Country']!r}.")


def _locale_is_met(worker: WorkerRow, comparator: str, places: Sequence[Requirement]) -> bool:
    if comparator in _PRESENCE:
        return (worker.country is not None) == (comparator == "Exists")
    if worker.country is None:
        return False
    inside = any(
        place["Country"] == worker.country and place.get("Subdivision") in {None, worker.subdivision}
        for place in places
    )
    return inside == (comparator in {"EqualTo", "In"})
