"""``kill -9`` of a whole running marketplace under load: what it had acknowledged is there after a restart."""

from __future__ import annotations

import itertools
import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest
import requests
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import SecretStr
from sqlalchemy import func, select

from app.marketplace.settings import Settings
from hits.marketplace.engine import Marketplace, open_marketplace
from hits.marketplace.tables import AssignmentRow, BonusRow, HitRow, RequesterRow
from tests.app.marketplace.conftest import hit_params, mturk_client
from tests.foreign.conftest import Served, SiteWorker
from tests.launched import ROOT, free_ports

CREATORS = 2
WORKERS = ("ada", "ben", "eve")
#: How it looks to a client that the server is gone; nobody gives the next one anything to do then.
LOST = (requests.RequestException, BotoCoreError, queue.Empty)


def serve(port: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the marketplace as an operator does, and return it when it answers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "marketplace", "serve", "--bind", f"127.0.0.1:{port}"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(600):
            assert process.poll() is None, "the marketplace did not start"
            try:
                requests.get(f"http://127.0.0.1:{port}/sign-in", timeout=5)
            except requests.RequestException:
                time.sleep(0.1)
            else:
                return process
        raise AssertionError("the marketplace did not answer")
    except BaseException:
        kill(process)
        raise


def kill(process: subprocess.Popen[bytes]) -> None:
    """End gunicorn's master and workers at once, with no chance to say goodbye."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Load:
    """A requester and workers who note what was acknowledged to them, until the server is gone."""

    def __init__(self, served: Served, workers: list[SiteWorker], name: str) -> None:
        self.workers = workers
        self.name = name
        self.mturk = mturk_client(served.url, served.access_key_id, served.secret)
        self.hits: dict[str, str] = {}
        self.submissions: dict[str, tuple[str, str]] = {}
        self.approved: list[str] = []
        self.bonuses: list[tuple[str, str]] = []
        self.numbers = itertools.count(1)
        self.to_work_on: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.to_review: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self.failures: list[BaseException] = []

    def run(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        """Put everybody to work and kill the server after a while, once each kind of thing was done."""
        turns = [*[self._create] * CREATORS, self._review, *(lambda w=w: self._work(w) for w in self.workers)]
        threads = [threading.Thread(target=self._go_on, args=(turn,)) for turn in turns]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        while time.monotonic() < began + (seconds if self.bonuses else 60):
            time.sleep(0.05)
        assert process.poll() is None, "the marketplace ended by itself"
        kill(process)
        for thread in threads:
            thread.join(60)
        assert not self.failures, self.failures
        assert self.hits
        assert self.submissions
        assert self.bonuses

    def _go_on(self, turn: Callable[[], None]) -> None:
        try:
            while True:
                turn()
        except LOST:
            pass
        except BaseException as error:
            self.failures.append(error)

    def _create(self) -> None:
        token = f"{self.name}-{next(self.numbers)}"
        answer = self.mturk.create_hit(**hit_params(Reward="0.01", UniqueRequestToken=token))
        if "HIT" not in answer:
            # boto3 takes an answer whose connection broke between head and body for an empty one: nothing was
            # acknowledged.
            raise requests.ConnectionError
        hit_id = answer["HIT"]["HITId"]
        self.hits[token] = hit_id
        self.to_work_on.put(hit_id)

    def _work(self, worker: SiteWorker) -> None:
        answer = secrets.token_hex(8)
        assignment_id = worker.work_on(self.to_work_on.get(timeout=10), answer=answer)
        self.submissions[assignment_id] = (worker.worker_id, answer)
        self.to_review.put((assignment_id, worker.worker_id))

    def _review(self) -> None:
        assignment_id, worker_id = self.to_review.get(timeout=10)
        self.mturk.approve_assignment(AssignmentId=assignment_id)
        self.approved.append(assignment_id)
        reason = f"bonus {self.name} {next(self.numbers)}"
        self.mturk.send_bonus(
            WorkerId=worker_id,
            AssignmentId=assignment_id,
            BonusAmount="0.02",
            Reason=reason,
            UniqueRequestToken=reason,
        )
        self.bonuses.append((assignment_id, reason))

    def check(self) -> None:
        """Look through the API of the restarted server for everything that was acknowledged."""
        for token, hit_id in self.hits.items():
            with pytest.raises(ClientError) as repeated:
                self.mturk.create_hit(**hit_params(Reward="0.01", UniqueRequestToken=token))
            assert f'The HIT with ID "{hit_id}" already exists.' in str(repeated.value)
        for assignment_id, (worker_id, answer) in self.submissions.items():
            found = self.mturk.get_assignment(AssignmentId=assignment_id)["Assignment"]
            assert found["WorkerId"] == worker_id
            assert f"<FreeText>{answer}</FreeText>" in found["Answer"]
            if assignment_id in self.approved:
                assert found["AssignmentStatus"] == "Approved"
        for assignment_id, reason in self.bonuses:
            paid = self.mturk.list_bonus_payments(AssignmentId=assignment_id)["BonusPayments"]
            assert [bonus["Reason"] for bonus in paid] == [reason]


def check_the_books(engine: Marketplace, requester_id: str) -> int:
    """Recount the account from the HITs, assignments and bonuses that are stored, and return how many HITs."""
    with engine.store.session(writes=False) as session:
        account = session.get_one(RequesterRow, requester_id)
        approved = session.scalar(
            select(func.sum(HitRow.reward_cents + HitRow.fee_cents))
            .join(AssignmentRow, AssignmentRow.hit_id == HitRow.hit_id)
            .where(AssignmentRow.state == "Approved")
        )
        bonuses = session.scalar(select(func.sum(BonusRow.amount_cents + BonusRow.fee_cents)))
        assert account.spent_cents == (approved or 0) + (bonuses or 0)
        hits = list(session.scalars(select(HitRow)))
        assert account.held_cents == sum(
            (hit.max_assignments - hit.completed) * (hit.reward_cents + hit.fee_cents) for hit in hits
        )
        assert len({(row.hit_id, row.worker_id) for row in session.scalars(select(AssignmentRow))}) == session.scalar(
            select(func.count()).select_from(AssignmentRow)
        )
    balance, entries = engine.balance(requester_id), engine.account_entries(requester_id)
    assert balance.deposited == balance.available + balance.on_hold + balance.spent
    assert balance.on_hold == sum(entry.on_hold for entry in entries)
    assert balance.spent == sum(entry.spent for entry in entries)
    return len(hits)


def play(database_url: str, kills: int, seconds: float) -> None:
    """Kill a server under load so many times; look for what was acknowledged after each restart, and once more."""
    (port,) = free_ports(1)
    settings = Settings(
        database_url=database_url, secret_key=SecretStr(secrets.token_hex(32)), site_url=f"http://127.0.0.1:{port}"
    )
    environment = {
        "MARKETPLACE_DATABASE_URL": database_url,
        "MARKETPLACE_SECRET_KEY": settings.secret_key.get_secret_value(),
        "MARKETPLACE_SITE_URL": settings.site_url,
    }
    engine = open_marketplace(database_url, settings=settings.engine_settings())
    requester = engine.create_requester("Lab")
    engine.top_up(requester.requester_id, Decimal(10_000), "seed")
    key = engine.create_access_key(requester.requester_id)
    served = Served(settings.site_url, engine, requester.requester_id, key.access_key_id, key.secret)
    process = serve(port, environment)
    loads: list[Load] = []
    try:
        workers = [SiteWorker(served, name) for name in WORKERS]
        for number in range(kills):
            load = Load(served, workers, f"round {number}")
            load.run(process, seconds)
            loads.append(load)
            stored = check_the_books(engine, requester.requester_id)
            acknowledged = sum(len(one.hits) for one in loads)
            # Of what was on its way, some may be stored: at most one HIT of each creating thread at each kill.
            assert acknowledged <= stored <= acknowledged + CREATORS * len(loads)
            process = serve(port, environment)
            load.check()
        for load in loads[:-1]:
            load.check()
    finally:
        kill(process)
        engine.close()


def test_what_was_acknowledged_before_a_kill_under_load_is_there_after_a_restart(database_url: str) -> None:
    play(database_url, kills=1, seconds=2)


@pytest.mark.slow
def test_twenty_kills_lose_nothing(database_url: str) -> None:
    play(database_url, kills=20, seconds=2)
