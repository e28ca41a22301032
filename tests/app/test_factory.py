"""The application as a whole: guards, start, health."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from flask import Blueprint, Flask
from flask.testing import FlaskClient

from app.factory import audiences, create_app, default_engine, model_references
from app.settings import Settings
from hits.errors import InvalidInput
from tests.app.conftest import RuleEngine


def test_every_endpoint_has_a_guard(app: Flask) -> None:
    guarded = {audience.blueprint.name for audience in audiences()}

    unguarded = [
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if rule.endpoint != "static" and rule.endpoint.rpartition(".")[0] not in guarded
    ]

    assert unguarded == []


def test_an_endpoint_without_a_guard_is_never_answered(
    settings: Settings, session_factory: object, engine: RuleEngine
) -> None:
    app = create_app(settings, engine=engine)
    stray = Blueprint("stray", __name__)
    stray.add_url_rule("/stray", "page", lambda: "open to everybody")
    app.register_blueprint(stray)

    response = app.test_client().get("/stray")

    assert response.status_code == 404
    assert "open to everybody" not in response.text


@pytest.mark.parametrize("path", ["/rounds", "/rounds/sentiment/1", "/finance"])
def test_a_staff_page_leads_strangers_to_the_sign_in(client: FlaskClient, path: str) -> None:
    response = client.get(path)

    assert response.status_code == 302
    assert response.location.startswith("/staff/sign-in?next=")


def test_a_request_for_another_host_is_refused(client: FlaskClient) -> None:
    assert client.get("/sign-in", headers={"Host": "evil.example"}).status_code == 400
    assert client.get("/healthz", headers={"Host": "127.0.0.1:8001"}).status_code == 200


def test_importing_and_building_the_service_leaves_torch_alone() -> None:
    code = (
        "import sys\n"
        "from app.factory import create_app\n"
        "from app.settings import Settings\n"
        "create_app(Settings(database_url='sqlite://', secret_key='s', pseudonym_key='p',"
        " aws_access_key_id='a', aws_secret_access_key='b'))\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules, 'imported'\n"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr


def test_the_model_loads_at_the_first_request_not_before(settings: Settings, session_factory: object) -> None:
    class Loading(RuleEngine):
        started = 0

        def start(self) -> None:
            self.started += 1

    engine = Loading()
    app = create_app(settings, engine=engine)
    assert engine.started == 0

    app.test_client().get("/healthz")
    assert engine.started == 1


@pytest.mark.parametrize(
    ("models", "error"),
    [
        ({"poetry": "embedded:poetry"}, "names the task 'poetry'. The tasks are hate, nli, qa, sentiment"),
        ({"nli": "somewhere"}, "somewhere"),
        ({"nli": "hub:owner/name"}, "hub:owner/name"),
    ],
)
def test_a_model_that_can_not_be_served_stops_the_start(settings: Settings, models: dict[str, str], error: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(error)):
        default_engine(settings.model_copy(update={"models": models}))


def test_a_way_to_explain_that_there_is_not_stops_the_start(settings: Settings) -> None:
    with pytest.raises(InvalidInput, match=r"'guessing'\. The methods are integrated-gradients"):
        default_engine(settings.model_copy(update={"explain_method": "guessing"}))


def test_each_task_has_the_model_that_is_set_or_comes_with_it(settings: Settings) -> None:
    changed = settings.model_copy(update={"models": {"nli": "hub:owner/name@main"}})

    assert model_references(changed)["nli"] == "hub:owner/name@main"
    assert model_references(changed)["sentiment"] == "embedded:sentiment"
