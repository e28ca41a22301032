"""Qualification requirements: which are accepted, and which workers meet them."""

from __future__ import annotations

from typing import Any

import pytest

from hits.marketplace import system_qualifications
from hits.marketplace.errors import NotQualified
from hits.marketplace.system_qualifications import (
    ADULT,
    LOCALE,
    MASTERS_PRODUCTION,
    NUMBER_APPROVED,
    PERCENT_APPROVED,
)
from tests.hits.marketplace.market import Market, refused
from tests.hits.marketplace.test_qualifications import create


def requirement(type_id: str, comparator: str, *integers: int, **more: Any) -> dict[str, Any]:
    values = {"IntegerValues": list(integers)} if integers else {}
    return {"QualificationTypeId": type_id, "Comparator": comparator, **values, **more}


def may_accept(market: Market, worker_id: str, **needed: Any) -> bool:
    hit_id = market.create_hit(QualificationRequirements=[needed])
    try:
        market.engine.accept(worker_id, hit_id)
    except NotQualified:
        return False
    return True


@pytest.mark.parametrize(
    ("comparator", "integers", "expected"),
    [
        ("LessThan", (5,), False),
        ("LessThan", (6,), True),
        ("LessThanOrEqualTo", (5,), True),
        ("LessThanOrEqualTo", (4,), False),
        ("GreaterThan", (5,), False),
        ("GreaterThan", (4,), True),
        ("GreaterThanOrEqualTo", (5,), True),
        ("GreaterThanOrEqualTo", (6,), False),
        ("EqualTo", (5,), True),
        ("EqualTo", (4,), False),
        ("NotEqualTo", (5,), False),
        ("NotEqualTo", (4,), True),
        ("In", (4, 5), True),
        ("In", (4, 6), False),
        ("NotIn", (4, 5), False),
        ("NotIn", (4, 6), True),
        ("Exists", (), True),
        ("DoesNotExist", (), False),
    ],
)
def test_each_comparator_on_a_value_of_five_and_on_none(
    market: Market, comparator: str, integers: tuple[int, ...], expected: bool
) -> None:
    type_id, holder, stranger = create(market), market.worker(), market.worker()
    market.client.associate_qualification_with_worker(QualificationTypeId=type_id, WorkerId=holder, IntegerValue=5)
    needed = requirement(type_id, comparator, *integers)

    assert may_accept(market, holder, **needed) is expected
    assert may_accept(market, stranger, **needed) is (comparator == "DoesNotExist")


def test_a_revoked_qualification_counts_as_not_held(market: Market) -> None:
    type_id, worker_id = create(market), market.worker()
    market.client.associate_qualification_with_worker(QualificationTypeId=type_id, WorkerId=worker_id)
    market.client.disassociate_qualification_from_worker(QualificationTypeId=type_id, WorkerId=worker_id)

    assert not may_accept(market, worker_id, **requirement(type_id, "Exists"))
    assert may_accept(market, worker_id, **requirement(type_id, "DoesNotExist"))


def test_locales(market: Market) -> None:
    in_california = market.worker(country="US", subdivision="CA")
    nowhere = market.worker()
    us, california, texas, india = (
        {"Country": "US"},
        {"Country": "US", "Subdivision": "CA"},
        {"Country": "US", "Subdivision": "TX"},
        {"Country": "IN"},
    )

    def allows(worker_id: str, comparator: str, *places: dict[str, str]) -> bool:
        return may_accept(market, worker_id, **requirement(LOCALE, comparator, LocaleValues=list(places)))

    assert allows(in_california, "EqualTo", us)
    assert allows(in_california, "EqualTo", california)
    assert not allows(in_california, "EqualTo", texas)
    assert allows(in_california, "In", india, us)
    assert not allows(in_california, "NotIn", india, us)
    assert allows(in_california, "NotEqualTo", india)
    assert not allows(nowhere, "NotEqualTo", india)


def test_system_values_come_from_real_history(market: Market) -> None:
    worker_id = market.worker(is_adult=True)
    approved = market.submitted(market.create_hit(), worker_id)
    market.client.approve_assignment(AssignmentId=approved)
    rejected = market.submitted(market.create_hit(), worker_id)
    market.client.reject_assignment(AssignmentId=rejected, RequesterFeedback="No.")

    assert may_accept(market, worker_id, **requirement(NUMBER_APPROVED, "EqualTo", 1))
    assert may_accept(market, worker_id, **requirement(PERCENT_APPROVED, "EqualTo", 100))
    assert may_accept(market, worker_id, **requirement(ADULT, "EqualTo", 1))
    assert not may_accept(market, worker_id, **requirement(MASTERS_PRODUCTION, "Exists"))
    assert may_accept(market, market.worker(is_master=True), **requirement(MASTERS_PRODUCTION, "Exists"))


def test_the_percentage_counts_from_a_number_of_submissions_on(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system_qualifications.PERCENT_COUNTS_FROM == 100
    monkeypatch.setattr(system_qualifications, "PERCENT_COUNTS_FROM", 8)
    worker_id = market.worker()
    for number in range(8):
        assert may_accept(market, market.worker(), **requirement(PERCENT_APPROVED, "EqualTo", 100))
        assignment_id = market.submitted(market.create_hit(Reward="0.01"), worker_id)
        if number % 4 == 0:
            market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")
        else:
            market.client.approve_assignment(AssignmentId=assignment_id)

    assert may_accept(market, worker_id, **requirement(PERCENT_APPROVED, "EqualTo", 75))


@pytest.mark.parametrize(
    "needed",
    [
        requirement(NUMBER_APPROVED, "Exists", 1),
        requirement(NUMBER_APPROVED, "EqualTo"),
        requirement(NUMBER_APPROVED, "EqualTo", 1, 2),
        requirement(NUMBER_APPROVED, "EqualTo", LocaleValues=[{"Country": "US"}]),
        requirement(LOCALE, "EqualTo", 1),
        requirement(LOCALE, "GreaterThan", LocaleValues=[{"Country": "US"}]),
        requirement(LOCALE, "EqualTo", LocaleValues=[{"Country": "DE", "Subdivision": "BY"}]),
        requirement(MASTERS_PRODUCTION, "EqualTo", 1),
        requirement(NUMBER_APPROVED, "In", *range(16)),
        requirement(NUMBER_APPROVED, "EqualTo", 1, RequiredToPreview=True, ActionsGuarded="Accept"),
    ],
)
def test_requirements_that_cannot_be(market: Market, needed: dict[str, Any]) -> None:
    with refused("ParameterValidationError"):
        market.create_hit(QualificationRequirements=[needed])


def test_requirements_need_an_existing_active_type(market: Market) -> None:
    inactive = create(market, QualificationTypeStatus="Inactive")

    with refused("RequestError", "QualificationTypeDoesNotExist"):
        market.create_hit(QualificationRequirements=[requirement("3NOTHERE", "Exists")])
    with refused("RequestError", "InvalidQualificationTypeState"):
        market.create_hit(QualificationRequirements=[requirement(inactive, "Exists")])
    with refused("ParameterValidationError", says="at most 10"):
        market.create_hit(QualificationRequirements=[requirement(NUMBER_APPROVED, "EqualTo", 1)] * 11)


def test_what_each_guard_keeps_from_an_unqualified_worker(market: Market) -> None:
    type_id, worker_id = create(market), market.worker()

    def can(guard: str) -> tuple[bool, bool, bool]:
        hit_id = market.create_hit(
            Title=guard, QualificationRequirements=[requirement(type_id, "Exists", ActionsGuarded=guard)]
        )
        listing = {group.hit_id: group for group in market.engine.hit_groups(worker_id).groups}.get(hit_id)
        try:
            market.engine.preview(worker_id, hit_id)
            previews = True
        except NotQualified:
            previews = False
        with pytest.raises(NotQualified, match="“dynahit validator”"):
            market.engine.accept(worker_id, hit_id)
        assert listing is None or (not listing.qualified and listing.reasons and listing.can_preview is previews)
        return listing is not None, previews, False

    assert can("Accept") == (True, True, False)
    assert can("PreviewAndAccept") == (True, False, False)
    assert can("DiscoverPreviewAndAccept") == (False, False, False)
    with pytest.raises(NotQualified):
        market.engine.preview(
            None, market.create_hit(QualificationRequirements=[requirement(type_id, "Exists", RequiredToPreview=True)])
        )
