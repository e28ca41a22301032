"""Worker accounts and invitations."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hits.marketplace.errors import (
    InvitationUnknown,
    InvitationUsed,
    NotSignedIn,
    OperatorError,
    PasswordUnfit,
    UserNameTaken,
    UserNameUnfit,
    WorkerUnknown,
)
from hits.marketplace.system_qualifications import ADULT, LOCALE, MASTERS_PRODUCTION
from hits.marketplace.tables import WorkerRow
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.test_qualifications import create
from tests.hits.marketplace.test_work import all_at_once


def test_an_invitation_makes_one_worker_with_its_qualifications(market: Market) -> None:
    type_id = create(market)
    code = market.engine.create_invitation("validator 1", grants={type_id: 3})

    worker = market.engine.register_worker(f" {code.lower()} ", "Zoë", "a good password")

    assert re.fullmatch("A[A-Z0-9]{13}", worker.worker_id)
    assert market.engine.worker(worker.worker_id) == worker
    score = market.client.get_qualification_score(QualificationTypeId=type_id, WorkerId=worker.worker_id)
    assert score["Qualification"]["IntegerValue"] == 3
    [invitation] = market.engine.invitations()
    assert (invitation.note, invitation.worker_id) == ("validator 1", worker.worker_id)
    with pytest.raises(InvitationUsed):
        market.engine.register_worker(code, "another", "a good password")


def test_an_invitation_cannot_grant_what_does_not_exist(market: Market) -> None:
    with pytest.raises(OperatorError, match="3NOTHERE"):
        market.engine.create_invitation("x", grants={"3NOTHERE": 1})


def test_registrations_that_are_refused(market: Market) -> None:
    code = market.engine.create_invitation()
    market.engine.register_worker(market.engine.create_invitation(), "Anna", "a good password")

    with pytest.raises(InvitationUnknown):
        market.engine.register_worker("WRONG", "somebody", "a good password")
    with pytest.raises(UserNameTaken, match="ANNA"):
        market.engine.register_worker(code, "ANNA", "a good password")
    for name in ("ab", "with space", "x" * 65, "-dash", "nul\x00name", ""):
        with pytest.raises(UserNameUnfit):
            market.engine.register_worker(code, name, "a good password")
    for password in ("short", "x" * 257):
        with pytest.raises(PasswordUnfit, match="8 to 256"):
            market.engine.register_worker(code, "somebody", password)
    assert market.engine.register_worker(code, "somebody", "a good password")


def test_one_of_many_at_once_gets_the_invitation(stored_market: Market) -> None:
    code = stored_market.engine.create_invitation()

    outcomes = all_at_once(
        [lambda n=n: stored_market.engine.register_worker(code, f"racer{n}", "a good password") for n in range(6)]
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["InvitationUsed"] * 5 + ["Worker"]


def test_one_of_many_at_once_gets_the_user_name(stored_market: Market) -> None:
    codes = [stored_market.engine.create_invitation() for _ in range(6)]

    outcomes = all_at_once(
        [lambda c=c: stored_market.engine.register_worker(c, "same", "a good password") for c in codes]
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["UserNameTaken"] * 5 + ["Worker"]


def test_signing_in(market: Market) -> None:
    code = market.engine.create_invitation()
    worker = market.engine.register_worker(code, "Anna", "correct horse \N{GREEK SMALL LETTER ALPHA}")

    assert market.engine.authenticate_worker(" anna ", "correct horse \N{GREEK SMALL LETTER ALPHA}") == worker
    for name, password in (
        ("anna", "wrong horse"),
        ("nobody", "correct horse"),
        ("nul\x00", "x"),
        ("\ud800", "\ud800"),
    ):
        with pytest.raises(NotSignedIn, match="do not belong together"):
            market.engine.authenticate_worker(name, password)
    with pytest.raises(WorkerUnknown):
        market.engine.worker("A1NOBODY")


def test_passwords_are_stored_as_salted_scrypt_hashes(market: Market) -> None:
    workers = [
        market.engine.register_worker(market.engine.create_invitation(), name, "the same password").worker_id
        for name in ("first", "second")
    ]

    with market.engine.store.session(writes=False) as session:
        stored = [session.get_one(WorkerRow, worker_id).password_hash for worker_id in workers]

    assert all(text.startswith("scrypt$") for text in stored)
    assert stored[0] != stored[1]


def test_the_operator_decides_on_masters_and_workers_on_the_rest(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()

    def opens(requirement: dict[str, Any]) -> bool:
        hit_id = market.create_hit(QualificationRequirements=[requirement])
        return engine.preview(worker_id, hit_id).qualified

    masters = {"QualificationTypeId": MASTERS_PRODUCTION, "Comparator": "Exists"}
    adult = {"QualificationTypeId": ADULT, "Comparator": "EqualTo", "IntegerValues": [1]}
    california = {
        "QualificationTypeId": LOCALE,
        "Comparator": "EqualTo",
        "LocaleValues": [{"Country": "US", "Subdivision": "CA"}],
    }
    assert not any(opens(requirement) for requirement in (masters, adult, california))

    engine.set_master(worker_id, True)
    engine.set_adult(worker_id, True)
    worker = engine.set_locale(worker_id, "US", "CA")

    assert (worker.country, worker.subdivision, worker.is_adult, worker.is_master) == ("US", "CA", True, True)
    assert engine.worker(worker_id) == worker
    assert all(opens(requirement) for requirement in (masters, adult, california))
    engine.set_master(worker_id, False)
    engine.set_locale(worker_id, None)
    assert not any(opens(requirement) for requirement in (masters, california))


def test_places_and_workers_that_cannot_be(market: Market) -> None:
    worker_id = market.worker()
    for country, subdivision in (("usa", None), ("us", None), ("DE", "BY"), (None, "CA"), ("US", "C")):
        with pytest.raises(OperatorError):
            market.engine.set_locale(worker_id, country, subdivision)
    for refuse in (market.engine.set_master, market.engine.set_adult):
        with pytest.raises(WorkerUnknown):
            refuse("A1NOBODY", True)
