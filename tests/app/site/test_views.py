"""The front door and the health checks."""

from __future__ import annotations

from flask.testing import FlaskClient
from pydantic import SecretStr

from app.factory import create_app
from app.settings import Settings
from hits.clock import FixedClock
from tests.app.conftest import RuleEngine


def test_the_front_door_leads_strangers_to_the_sign_in(client: FlaskClient) -> None:
    response = client.get("/", follow_redirects=True)

    assert response.request.path == "/staff/sign-in"


def test_the_service_is_healthy_and_ready(client: FlaskClient) -> None:
    assert client.get("/healthz").json == {"status": "ok"}
    assert client.get("/readyz").json == {"database": "ok", "model": "ready"}


def test_without_a_database_the_service_is_alive_and_not_ready(engine: RuleEngine, clock: FixedClock) -> None:
    settings = Settings(
        database_url="sqlite:////nowhere/at/all.db",
        secret_key=SecretStr("s"),
        pseudonym_key=SecretStr("p"),
        aws_access_key_id=SecretStr("a"),
        aws_secret_access_key=SecretStr("b"),
    )
    client = create_app(settings, engine=engine, clock=clock).test_client()

    assert client.get("/healthz").status_code == 200
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json == {"database": "unreachable", "model": "ready"}
