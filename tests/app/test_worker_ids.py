"""Worker ids are personal data: after a whole loop none stands in a log, a page of staff, an export or a report."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy import select

from app.extensions import db
from app.models import StaffUser
from app.operations.reconcile import reconcile
from hits.export import export_round
from hits.models import Hit, Worker
from hits.states import AssignmentState
from tests.app.conftest import STAFF_PASSWORD, sign_in
from tests.app.killed_loop import Loop
from tests.factories import NOON, make_assignment

#: More pages than the consoles of a small instance have.
MOST_PAGES = 150


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    """A service whose HITs were written, judged and paid on databases of its own."""
    made = Loop(tmp_path)
    made.prepare()
    yield made
    with made.app.app_context():
        db.engine.dispose()
    made.market.engine.close()


def crawl(client: FlaskClient) -> dict[str, str]:
    """Every page of staff that links lead to, by address."""
    found: dict[str, str] = {}
    waiting = ["/rounds", "/review", "/finance"]
    while waiting and len(found) < MOST_PAGES:
        address = waiting.pop(0)
        if address in found:
            continue
        answer = client.get(address)
        found[address] = answer.get_data().decode("utf-8", "replace")
        answer.close()
        if answer.mimetype != "text/html":
            continue
        for link in BeautifulSoup(answer.text, "lxml").find_all("a", href=True):
            target = urlsplit(urljoin(address, str(link["href"])))
            if not target.netloc:
                waiting.append(target.path + (f"?{target.query}" if target.query else ""))
    return found


def test_no_log_page_export_or_report_holds_a_worker_id(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for package in ("app", "hits", "inference", "payments", "qualification"):
        caplog.set_level(logging.DEBUG, logger=package)
    loop.live()
    with loop.app.app_context():
        session = db.session()
        hit = session.scalars(select(Hit).order_by(Hit.id)).first()
        make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED, review_reason="Never done on our page.")
        session.commit()
        ids = [one.mturk_worker_id for one in session.scalars(select(Worker))]
        told = [json.dumps(row, default=str) for row in export_round(session, "sentiment", 1)]
        told.append(str(reconcile(session, loop.market.mturk)))
        user = StaffUser(name="robin", roles=["requester", "finance"], created_at=NOON)
        user.set_password(STAFF_PASSWORD)
        session.add(user)
        session.commit()
        db.session.remove()
    client = loop.app.test_client()
    for name in ids:
        # Refused, and noted in the log with its address.
        client.get(f"/review/{name}?workerId={name}")
        client.post(f"/rounds/assignments/{name}/accept", data={"workerId": name})
    sign_in(client)
    pages = crawl(client)

    assert len(ids) >= 4
    assert len(pages) >= 8
    assert "w-" in "".join(pages.values())
    assert caplog.records
    for name in ids:
        assert [address for address, text in pages.items() if name in text or name in address] == []
        assert not any(name in text for text in told)
        assert [record.name for record in caplog.records if name in record.getMessage()] == []
