"""Every refusal of the worker site has a status that fits, and a page in plain words."""

from __future__ import annotations

import pytest
from flask import Flask

from app.marketplace.errors import STATUS, TITLES, status_of
from hits.marketplace import errors as refusals


def test_a_refusal_has_the_status_of_its_nearest_kind() -> None:
    class Odd(refusals.HitUnknown):
        pass

    assert status_of(refusals.HitUnknown()) == 404
    assert status_of(Odd()) == 404
    assert status_of(refusals.UserNameUnfit()) == 400


def test_every_status_that_is_used_has_a_title() -> None:
    assert set(STATUS.values()) <= set(TITLES)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nothing-here", 404), ("/hits/3UNKNOWN", 404), ("/mturk/externalSubmit?assignmentId=3X", 404)],
)
def test_what_is_not_there_is_answered_with_a_page(app: Flask, path: str, status: int) -> None:
    response = app.test_client().get(path)

    assert response.status_code == status
    assert response.mimetype == "text/html"
    assert "<h1" in response.text
    assert "Traceback" not in response.text


def test_a_forged_form_changes_nothing_and_says_so(app: Flask) -> None:
    response = app.test_client().post("/sign-in", data={"user_name": "ada", "password": "x"})

    assert response.status_code == 400
    assert "nothing was changed" in response.text
