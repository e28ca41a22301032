"""Figures for a Prometheus server: read by those who may, each the sum of its rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from app.metrics import may_read, metrics_text
from app.models import ReconcileRun
from hits.clock import FixedClock
from hits.money import usd
from hits.states import AssignmentState
from payments.ledger import record_reward
from payments.planning import plan_bonuses
from tests import factories
from tests.market import settings
from tests.payments.builders import assignment_of, verified_example

LOOPBACK = {"authorization": None, "address": "127.0.0.1", "forwarded": False}


def read(text: bytes) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_the_figures_are_those_of_the_database(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, reward=usd("0.25"), bonus=usd("0.30"))
    for _ in range(2):
        record_reward(session, assignment_of(session, verified_example(session, batch=batch)), clock.now())
    factories.make_assignment(session, state=AssignmentState.SUBMITTED)
    plan_bonuses(session, clock.now())
    for hours, findings in ((24, []), (0, [{"kind": "missing"}])):
        at = clock.now() - timedelta(hours=hours)
        run = ReconcileRun(at=at, endpoint="http://m", clean=not findings, summary="", findings=findings)
        session.add(run)
        session.flush()

    found = read(metrics_text(session, "ready"))

    assert found[("dynahit_payouts", "planned")] + found[("dynahit_payouts", "approved")] == 2
    assert found[("dynahit_payouts", "failed")] == 0
    assert (found[("dynahit_assignments", "approved")], found[("dynahit_assignments", "submitted")]) == (2, 1)
    assert found[("dynahit_examples", "valid_and_model_wrong")] == 2
    assert (found[("dynahit_spent_dollars",)], found[("dynahit_owed_dollars",)]) == (0.6, 0.6)
    assert found[("dynahit_reconcile_findings", "http://m")] == 1
    assert found[("dynahit_reconcile_timestamp_seconds", "http://m")] == clock.now().timestamp()
    assert found[("dynahit_model_ready", "ready")] == 1


def test_without_a_token_only_this_machine_may_read() -> None:
    here = settings()

    assert may_read(here, **LOOPBACK)
    assert not may_read(here, **{**LOOPBACK, "address": "10.0.0.7"})
    assert not may_read(here, **{**LOOPBACK, "forwarded": True})


@pytest.mark.parametrize("sent", [None, "", "secret", "Bearer", "Bearer wrong", "Bearer ü", "bearer secret"])
def test_with_a_token_nobody_may_read_without_it(sent: str | None) -> None:
    here = settings(metrics_token=SecretStr("secret"))

    assert not may_read(here, **{**LOOPBACK, "authorization": sent})
    assert may_read(here, authorization="Bearer secret", address="10.0.0.7", forwarded=True)


def test_the_page_answers_this_machine_and_hides_itself_from_others(
    app: Flask, client: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    here = client.get("/metrics")
    proxied = client.get("/metrics", headers={"X-Forwarded-For": "10.0.0.7"})
    elsewhere = client.get("/metrics", environ_base={"REMOTE_ADDR": "10.0.0.7"})

    assert here.status_code == 200
    assert here.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert read(here.data)[("dynahit_owed_dollars",)] == 0
    assert (proxied.status_code, elsewhere.status_code) == (404, 404)
