"""The finance pages in a real browser: a month is closed, a payout approved, every page fits and passes axe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.orm import sessionmaker

from app.extensions import db
from app.factory import create_app
from app.models import ReconcileRun, StaffUser
from app.operations.settle import settle
from app.settings import Settings
from hits.clock import FixedClock, SystemClock
from hits.db import Base, engine_for
from hits.models import Worker
from payments.ledger import record_reward
from payments.planning import plan_bonuses
from tests import factories
from tests.app.conftest import RuleEngine
from tests.browser.framed import served, violations
from tests.launched import ROOT
from tests.payments.builders import assignment_of, verified_example
from tests.payments.senders import BonusDesk
from tests.payments.year import WORKERS, make_year

pytestmark = pytest.mark.browser

ARTIFACTS = ROOT / "artifacts" / "screenshots"
PASSWORD = "a long enough password"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """The service on a year of books, with one payout that waits for approval and a finding of reconcile."""
    url = f"sqlite:///{tmp_path / 'books.db'}"
    database = engine_for(url)
    Base.metadata.create_all(database)
    clock = FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))
    with sessionmaker(database)() as session:
        make_year(session, events=90)
        for pseudonym in WORKERS:
            session.add(Worker(mturk_worker_id=f"A{pseudonym}", pseudonym=pseudonym, created_at=clock.now()))
        batch = factories.make_batch(session, bonus=Decimal("0.30"))
        for _ in range(3):
            record_reward(session, assignment_of(session, verified_example(session, batch=batch)), clock.now())
        plan_bonuses(session, clock.now())
        session.commit()
        settle(session, BonusDesk(clock), clock)
        verified_example(session, batch=factories.make_batch(session, bonus=Decimal("7.50")))
        plan_bonuses(session, clock.now())
        finding = {
            "kind": "different",
            "subject": "account",
            "what": "holds $25.00 more than the books say.",
            "todo": "If that was a deposit, book it: `dynahit payments deposit 25.00 --reference NAME`.",
        }
        run = ReconcileRun(
            at=clock.now() - timedelta(hours=1),
            endpoint="http://127.0.0.1:8000",
            clean=False,
            summary="1 finding: the books don't agree with the marketplace.",
            findings=[finding],
        )
        user = StaffUser(name="kim", roles=["finance"], created_at=clock.now())
        user.set_password(PASSWORD)
        session.add_all([run, user])
        session.commit()
    database.dispose()
    settings = Settings(
        database_url=url,
        secret_key=SecretStr("s"),
        pseudonym_key=SecretStr(factories.PSEUDONYM_KEY),
        aws_access_key_id=SecretStr("a"),
        aws_secret_access_key=SecretStr("b"),
        approval_limit=Decimal("5.00"),
    )
    app = create_app(settings, engine=RuleEngine(), clock=SystemClock())
    server, address = served(app, "localhost")
    yield address
    server.shutdown()
    server.server_close()
    with app.app_context():
        db.engine.dispose()


def look(page: Any, name: str) -> None:
    """Keep a picture of a page on a wide and on a narrow screen; it must fit both, and axe must find nothing."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    for width, height in ((1280, 700), (375, 700)):
        page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=str(ARTIFACTS / f"finance-{name}-{width}.png"), full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    page.set_viewport_size({"width": 1280, "height": 700})
    assert violations(page) == [], name


def test_finance_reads_approves_and_closes(service: str, page: Any) -> None:
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(f"{service}/finance")
    page.get_by_label("Name").fill("kim")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Finance").wait_for()
    page.wait_for_load_state("networkidle")
    widths = page.eval_on_selector_all("figure.plot img", "all => all.map(one => one.naturalWidth)")
    assert len(widths) == 3
    assert min(widths) > 300
    look(page, "overview")

    page.get_by_role("link", name="2026-01").click()
    look(page, "month")
    page.get_by_role("link", name="Close January 2026").click()
    look(page, "close")
    page.get_by_role("button", name="Close January 2026").click()
    page.get_by_text("January 2026 is closed. The SHA-256").wait_for()
    look(page, "closed")
    page.get_by_role("link", name=re.compile("^w-")).first.click()
    look(page, "worker")

    page.get_by_role("link", name="To approve").click()
    look(page, "approvals")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Approve what is ticked").click()
    page.get_by_text("Approved: 1.").wait_for()
    page.get_by_text("1 more person is needed, another than you").wait_for()
    for words, name in (("Reconcile", "reconcile"), ("Audit trail", "audit"), ("Payouts", "payouts")):
        page.get_by_role("navigation", name="Finance").get_by_role("link", name=words).click()
        look(page, name)
    page.context.clear_cookies()
    page.goto(f"{service}/staff/confirm?next=/finance")
    page.get_by_label("Name").fill("kim")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{service}/staff/confirm?next=/finance")
    look(page, "password")
    assert problems == []
