"""The whole loop for two HITs in a process of its own, which may kill itself at any commit of dynahit's database.

People behave as they would: whoever sees a dead page opens the HIT from the marketplace again and goes on.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import event, select
from sqlalchemy.orm import Session

from app.extensions import db
from app.factory import create_app
from app.operations.jobs_pass import jobs_pass
from app.operations.launch import LaunchTerms, launch_batch
from app.operations.settle import settle
from hits.clock import FixedClock
from hits.db import Base
from hits.export import export_round
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import SiteError
from hits.marketplace.settings import MarketplaceSettings
from hits.models import Assignment, Attempt, Example, Hit, Vote
from payments.models import LedgerTransaction, Payout, Posting
from qualification.validators import MINIMUM, validator_type
from tests.app.conftest import RuleEngine, gone_on, token_in
from tests.market import Market, settings

TERMS = LaunchTerms(
    task_code="sentiment", round_number=1, hits=2, reward=Decimal("0.30"), bonus=Decimal("0.30"), tries=5
)
CONTEXTS = [{"prompt": "A train was late."}, {"prompt": "A soup was served."}]
#: By goal: what the model gets right, then what it takes for something else (see RuleEngine).
TEXTS = {
    "negative": ("It was bad.", "As good as a toothache."),
    "positive": ("It was good.", "I adored the soup."),
    "neutral": ("The soup has four parts.", "It opens at nine."),
}


class Loop:
    """One life of the service, and the people around it."""

    def __init__(self, folder: Path) -> None:
        clock = FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))
        self.market = Market(clock)
        self.market.engine.close()
        self.market.engine = Marketplace(
            f"sqlite:///{folder / 'marketplace.db'}", settings=MarketplaceSettings.for_tests(), clock=clock
        )
        self.market.engine.create_schema()
        self.folder = folder
        self.clock = clock
        self.settings = settings(database_url=f"sqlite:///{folder / 'dynahit.db'}", validation_wait_seconds=0)
        self.app = create_app(self.settings, engine=RuleEngine(), clock=clock)
        self.app.extensions["dynahit"].__dict__["mturk"] = self.market.mturk

    def prepare(self) -> None:
        """Make the databases, the requester and the people: what was there before anything is launched."""
        with self.app.app_context():
            Base.metadata.create_all(db.engine)
        engine = self.market.engine
        self.market.requester_id = engine.create_requester("The dynahit tests").requester_id
        engine.top_up(self.market.requester_id, Decimal("100.00"), "for tests")
        type_id = validator_type(self.market.mturk, self.settings.validator_qualification)
        people = {"requester": self.market.requester_id, "writer": self.market.person("writer")}
        for name in ("reader-1", "reader-2"):
            people[name] = self.market.person(name, grants={type_id: MINIMUM})
        (self.folder / "people.json").write_text(json.dumps(people))

    def live(self) -> None:
        """Play the loop from wherever it stands to its end."""
        people = json.loads((self.folder / "people.json").read_text())
        self.market.requester_id = people["requester"]
        with self.app.app_context():
            launch_batch(db.session(), self.market.mturk, self.settings, self.clock, TERMS, CONTEXTS)
        for hit_id in self._hits("work"):
            self._work(people["writer"], hit_id, self._write)
        self._jobs()
        for reader in ("reader-1", "reader-2"):
            for hit_id in self._hits("validate"):
                self._work(people[reader], hit_id, self._judge)
        self._jobs()
        with self.app.app_context():
            settle(db.session(), self.market.mturk, self.clock)
        # A HIT is closed by the pass after the one that approved its work.
        self._jobs()
        self._jobs()

    def _jobs(self) -> None:
        with self.app.app_context():
            report = jobs_pass(db.session(), self.market.mturk, self.settings, self.clock)
        if report.findings:
            raise AssertionError(report.findings)

    def _hits(self, path: str) -> list[str]:
        found = [hit for hit in self.market.hits() if f"/{path}/" in hit["Question"]]
        return sorted(hit["HITId"] for hit in found)

    def _work(self, worker_id: str, hit_id: str, do: Any) -> None:
        try:
            view = self.market.engine.accept(worker_id, hit_id)
        except SiteError:
            return  # Handed in before the service died.
        query = {"assignmentId": view.assignment_id, "hitId": hit_id, "workerId": worker_id}
        path = view.frame_url.split("?")[0].removeprefix(self.settings.service_url)
        client = self.app.test_client()
        page = gone_on(client, client.get(path, query_string=query))
        if page.status_code != 200:
            raise AssertionError(page.text)
        if "externalSubmit" not in page.text or 'name="token"' in page.text:
            do(client, token_in(page), page.text)
        self.market.engine.external_submit(view.assignment_id, {"dynahit": ["receipt"]})

    def _write(self, client: FlaskClient, token: str, page: str) -> None:
        goal = next(code for code in TEXTS if f"a {code.upper()} statement" in page)
        for text in TEXTS[goal]:
            answer = client.post("/work/attempts", data={"token": token, "statement": text})
            # Asked after a crash, the first text may come when the second has fooled the model already.
            if answer.status_code not in (200, 409):
                raise AssertionError(answer.text)
        saved = client.post("/work/submit", data={"token": token, "why": "irony"})
        if saved.status_code != 200:
            raise AssertionError(saved.text)

    def _judge(self, client: FlaskClient, token: str, page: str) -> None:
        with self.app.app_context():
            wanted = [
                (example.attempt.public_id, example.goal_label)
                for example in db.session.scalars(select(Example).where(Example.fooled).order_by(Example.id))
            ]
        for public_id, label in wanted:
            answer = client.post("/validate/votes", data={"token": token, "statement": public_id, "label": label})
            # A life that was cut short may have put the statements into two HITs; this one has only some.
            if answer.status_code not in (200, 409):
                raise AssertionError(answer.text)
        saved = client.post("/validate/submit", data={"token": token})
        if saved.status_code != 200:
            raise AssertionError(saved.text)

    def end_state(self) -> dict[str, Any]:
        """Return what all lives must agree on: no ids, no references, everything that was done and paid."""
        with self.app.app_context():
            session = db.session()
            rows = [
                {name: row[name] for name in ("context", "answer", "goal_label", "final_label", "verdict", "tries")}
                | {"votes": sorted(str(vote["label"]) for vote in row["votes"])}
                for row in export_round(session, "sentiment", 1)
            ]
            booked: Counter[str] = Counter()
            for posting in session.scalars(select(Posting)):
                booked[posting.account.split(":")[0]] += posting.cents
            paid = session.scalars(select(Payout)).all()
            state: dict[str, Any] = {
                "rows": sorted(rows, key=str),
                "hits": sorted(str(hit.state) for hit in session.scalars(select(Hit))),
                "assignments": sorted(f"{one.state} {one.why}" for one in session.scalars(select(Assignment))),
                "attempts": sorted(f"{one.state} {one.answer}" for one in session.scalars(select(Attempt))),
                "votes": sorted(f"{vote.label} {vote.counted_at}" for vote in session.scalars(select(Vote))),
                "payouts": sorted(f"{payout.state} {payout.amount}" for payout in paid),
                "transactions": sorted(str(one.kind) for one in session.scalars(select(LedgerTransaction))),
                "booked": dict(booked),
            }
        hits = self.market.hits()
        bonuses = [
            bonus
            for hit in hits
            for bonus in self.market.call("ListBonusPayments", HITId=hit["HITId"], MaxResults=100)["BonusPayments"]
        ]
        balance = self.market.engine.balance(self.market.requester_id)
        state["marketplace"] = {
            "hits": len(hits),
            "bonuses": sorted(str(bonus["BonusAmount"]) for bonus in bonuses),
            "balance": [str(balance.available), str(balance.on_hold)],
        }
        return state


def prepare(folder: str) -> None:
    """Make the world of a test in ``folder``."""
    Loop(Path(folder)).prepare()


def live(folder: str, moment: str, number: int) -> None:
    """Live to the end, or kill -9 at the ``number``-th commit of dynahit; write the end state, count the commits."""
    loop = Loop(Path(folder))
    commits = Counter[str]()

    def strike(session: Session) -> None:
        if session.in_nested_transaction() or "dynahit.db" not in str(session.get_bind().url):  # type: ignore[union-attr]
            return
        commits["seen"] += 1
        if commits["seen"] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Session, moment, strike)
    loop.live()
    event.remove(Session, moment, strike)
    (loop.folder / "end.json").write_text(
        json.dumps({"state": loop.end_state(), "commits": commits["seen"]}, default=str)
    )
