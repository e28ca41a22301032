"""The forms of identifiers."""

from __future__ import annotations

import re

import pytest

from hits.marketplace import identifiers


@pytest.mark.parametrize(
    ("make", "form"),
    [
        (identifiers.new_entity_id, "3[A-Z0-9]{29}"),
        (identifiers.new_customer_id, "A[A-Z0-9]{13}"),
        (identifiers.new_access_key_id, "AKIA[A-Z2-7]{16}"),
        (identifiers.new_secret, "[A-Za-z0-9]{40}"),
        (identifiers.new_invitation_code, "(?:[A-HJKMNP-Z2-9]{4}-){3}[A-HJKMNP-Z2-9]{4}"),
    ],
)
def test_identifiers_have_their_form_and_do_not_repeat(make: object, form: str) -> None:
    assert callable(make)
    made = [make() for _ in range(200)]

    assert all(re.fullmatch(form, text) for text in made)
    assert len(set(made)) == 200
