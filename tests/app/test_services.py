"""What a request reaches besides the database."""

from __future__ import annotations

from types import SimpleNamespace

from flask import Flask

from app.services import Services, services
from app.settings import Settings
from hits.clock import FixedClock
from tests.app.conftest import RuleEngine


def test_the_services_are_those_of_the_application(app: Flask, engine: RuleEngine, clock: FixedClock) -> None:
    with app.app_context():
        found = services()

    assert (found.engine, found.clock) == (engine, clock)
    assert found.tokens is found.tokens


def test_the_marketplace_is_reached_as_configured(settings: Settings, engine: RuleEngine, clock: FixedClock) -> None:
    known = Services(settings.model_copy(update={"marketplace_endpoint": "http://127.0.0.1:9"}), clock, engine)

    assert known.mturk.endpoint == "http://127.0.0.1:9"
    assert known.mturk is known.mturk


def test_a_model_that_tells_its_state_is_believed(settings: Settings, engine: RuleEngine, clock: FixedClock) -> None:
    class Loading(RuleEngine):
        def state(self) -> SimpleNamespace:
            return SimpleNamespace(name="loading")

    assert Services(settings, clock, engine).model_state() == "ready"
    assert Services(settings, clock, Loading()).model_state() == "loading"
