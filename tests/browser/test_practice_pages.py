"""A novice is graded by keyboard, reads the words on the next page, and meets the limit in plain words; axe clean."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from pydantic import SecretStr
from sqlalchemy import select
from sqlalchemy.orm import sessionmaker

from app.extensions import db
from app.factory import create_app
from app.models import StaffUser
from app.settings import Settings
from hits.clock import SystemClock
from hits.db import Base, engine_for
from hits.models import Assignment, Hit
from hits.states import AssignmentState, PracticeState
from qualification.limits_models import EVERY_ROUND, LimitPer, PracticeGrade, Work, WorkLimit
from tests import factories
from tests.app.conftest import RuleEngine
from tests.browser.framed import opened, served, violations, worker_site

pytestmark = pytest.mark.browser

PASSWORD = "a long enough password"
WORDS = "Clear and short. Try one that names no feeling."


def test_a_novice_is_graded_by_keyboard_and_reads_it_on_the_next_page(
    tmp_path: Path, page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    monkeypatch.setattr(factories, "NOON", now)
    url = f"sqlite:///{tmp_path / 'practice.db'}"
    database = engine_for(url)
    Base.metadata.create_all(database)
    sessions = sessionmaker(database, expire_on_commit=False)
    with sessions() as session:
        writer = factories.make_worker(session, mturk_worker_id="ANOVICE")
        batch = factories.make_batch(session, practice=1)
        first = factories.make_hit(session, batch=batch)
        assignment = factories.make_assignment(session, hit=first, worker=writer, state=AssignmentState.SUBMITTED)
        attempt = factories.make_attempt(session, assignment=assignment)
        factories.make_example(session, attempt=attempt, practice_state=PracticeState.WAITING)
        hits = [factories.make_hit(session, batch=batch) for _ in range(2)]
        session.add(
            WorkLimit(
                task_code="sentiment",
                round_number=EVERY_ROUND,
                work=Work.WRITING,
                per=LimitPer.ROUND,
                most=2,
                set_at=now,
                set_by="robin",
            )
        )
        user = StaffUser(name="robin", roles=["requester"], created_at=now)
        user.set_password(PASSWORD)
        session.add(user)
        session.commit()
        batch_id = batch.id
    site_server, site = served(worker_site([]), "127.0.0.1")
    settings = Settings(
        database_url=url,
        secret_key=SecretStr("s"),
        pseudonym_key=SecretStr(factories.PSEUDONYM_KEY),
        aws_access_key_id=SecretStr("a"),
        aws_secret_access_key=SecretStr("b"),
        worker_site_url=site,
    )
    app = create_app(settings, engine=RuleEngine(), clock=SystemClock())
    server, service = served(app, "localhost")

    def framed(hit: Hit, assignment_id: str) -> str:
        claim = {
            "assignmentId": assignment_id,
            "hitId": hit.mturk_hit_id or "",
            "workerId": "ANOVICE",
            "turkSubmitTo": site,
        }
        address = f"{service}/work/{hit.reference}?{urlencode(claim)}"
        return f"{site}/frame?src={quote(address)}&width=1240&height=620"

    try:
        page.set_viewport_size({"width": 1280, "height": 700})
        page.goto(f"{service}/rounds/practice")
        page.get_by_label("Name").fill("robin")
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Practice of new writers").wait_for()
        assert violations(page) == []
        box = page.get_by_label("Your words to the writer")
        for _ in range(30):
            page.keyboard.press("Tab")
            if box.evaluate("node => node === document.activeElement"):
                break
        page.keyboard.type(WORDS)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_role("status").get_by_text("It passed").wait_for()
        assert "Nobody waits for you" in page.content()
        page.goto(f"{service}/rounds/batches/{batch_id}")
        assert violations(page) == []
        page.set_viewport_size({"width": 375, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        page.set_viewport_size({"width": 1280, "height": 700})

        frame = opened(page, framed(hits[0], "NOVICEONE"))
        assert WORDS in frame.inner_text("main")
        assert frame.get_by_role("button", name="Ask the model").is_visible()
        assert violations(page) == []
        frame = opened(page, framed(hits[1], "NOVICETWO"))
        told = frame.inner_text("body")
        assert "This HIT is not open to you" in told
        assert "one person does at most 2" in told
        assert "No try was used" in told
        assert "Return this HIT" in told
        assert violations(page) == []
    finally:
        for one in (server, site_server):
            one.shutdown()
            one.server_close()
        with app.app_context():
            db.engine.dispose()

    with sessions() as session:
        [grade] = session.scalars(select(PracticeGrade))
        stored = {row.mturk_assignment_id for row in session.scalars(select(Assignment))}
    database.dispose()
    assert (grade.passed, grade.words, grade.graded_by) == (True, WORDS, "robin")
    assert "NOVICEONE" in stored
    assert "NOVICETWO" not in stored
