"""Hashes of passwords."""

from __future__ import annotations

from unittest import mock

import pytest

from hits.marketplace import passwords


@pytest.mark.parametrize("password", ["a good password", "pässwörd", "\ud800 lone", "x" * 256])
def test_a_hash_matches_its_password_only(password: str) -> None:
    stored = passwords.hashed(password, n=16)

    assert passwords.matches(password, stored, n=16)
    assert not passwords.matches(password + "x", stored, n=16)
    assert not passwords.matches("", stored, n=16)


def test_a_hash_keeps_its_own_cost() -> None:
    stored = passwords.hashed("a good password", n=32)

    assert stored.startswith("scrypt$32$")
    assert passwords.matches("a good password", stored, n=16)
    assert len(stored) <= 255


def test_an_unknown_user_costs_the_same_work() -> None:
    with mock.patch.object(passwords, "_derive", wraps=passwords._derive) as derive:
        assert not passwords.matches("anything", None, n=16)

    assert derive.call_count == 1
