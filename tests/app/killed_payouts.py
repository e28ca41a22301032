"""A marketplace that fails at random, books with hundreds of bonuses, and processes that pay them until they die."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from app.operations.settle import settle
from hits.clock import FixedClock
from hits.db import engine_for
from hits.marketplace import wire
from hits.models import Assignment, Worker
from hits.money import usd
from hits.mturk.client import MTurk
from hits.states import AssignmentState
from payments.models import Payout, PayoutState, Posting
from payments.payouts import waiting
from tests import factories
from tests.market import Market
from tests.payments.builders import verified_example

WORKERS = 10
LOCKED_OUT = 3
QUESTION = (
    '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/'
    'ExternalQuestion.xsd"><ExternalURL>https://example.com/</ExternalURL><FrameHeight>0</FrameHeight>'
    "</ExternalQuestion>"
)
#: Of a hundred calls of SendBonus and ListBonusPayments.
ERROR_BEFORE, ERROR_AFTER, THROTTLED, CUT_BEFORE, CUT_AFTER = 6, 8, 5, 3, 5


@contextmanager
def failing_market(market: Market, seed: int, calls: Counter[str]) -> Iterator[str]:
    """Serve the market's Requester API on loopback; with a seed of 0 nothing fails. Yield its address."""
    chance = random.Random(seed)
    lock = threading.Lock()

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            with lock:
                fate = chance.randrange(100) if seed else 99
            kinds = ("error before", "error after", "throttled", "cut before", "cut after")
            limits = (ERROR_BEFORE, ERROR_AFTER, THROTTLED, CUT_BEFORE, CUT_AFTER)
            kind = next((name for at, name in enumerate(kinds) if fate < sum(limits[: at + 1])), "")
            calls[f"{operation} {kind}".strip()] += 1
            if kind == "cut before":
                self.close_connection = True
                return
            if kind in ("error before", "throttled"):
                self._fail(kind)
                return
            status, headers, content = wire.handle(
                market.engine, "POST", dict(self.headers), body, authenticate=lambda: market.requester_id
            )
            if kind == "cut after":
                self.close_connection = True
                return
            if kind == "error after":
                self._fail(kind)
                return
            self._answer(status, headers, content)

        def _fail(self, kind: str) -> None:
            name, status = ("ThrottlingException", 400) if kind == "throttled" else ("ServiceFault", 500)
            content = f'{{"__type":"{name}","Message":"{kind}"}}'.encode()
            self._answer(status, {"Content-Type": "application/x-amz-json-1.1"}, content)

        def _answer(self, status: int, headers: Any, content: bytes) -> None:
            try:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                # The process that asked is dead.
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def submitted(market: Market, count: int) -> list[tuple[str, str, str]]:
    """Let people hand in ``count`` assignments; return HIT, assignment and worker id of each."""
    workers = [market.person(f"worker-{number}") for number in range(WORKERS)]
    found = []
    for number in range(0, count, WORKERS):
        hit = market.call(
            "CreateHIT",
            Title="t",
            Description="d",
            Reward="0.01",
            AssignmentDurationInSeconds=3600,
            LifetimeInSeconds=86400,
            MaxAssignments=WORKERS,
            Question=QUESTION,
            UniqueRequestToken=f"hit {number}",
        )["HIT"]["HITId"]
        for worker_id in workers:
            assignment_id = market.accept(worker_id, hit)
            market.submit(assignment_id)
            found.append((hit, assignment_id, worker_id))
    return found


def owe_for(sessions: sessionmaker[Session], endpoint: str, work: list[tuple[str, str, str]]) -> None:
    """Store an example that earns a bonus for each piece of work; the first of three earns another amount."""
    with sessions() as session:
        round_ = factories.make_round(session)
        batches = [
            factories.make_batch(session, round=round_, endpoint=endpoint, bonus=usd(bonus))
            for bonus in ("0.30", "0.05", "1.00")
        ]
        workers: dict[str, Worker] = {}
        for number, (_, assignment_id, worker_id) in enumerate(work):
            example = verified_example(session, batch=batches[number % 3], state=AssignmentState.SUBMITTED)
            if worker_id not in workers:
                pseudonym = f"w-{len(workers):016x}"
                workers[worker_id] = factories.make_worker(session, mturk_worker_id=worker_id, pseudonym=pseudonym)
            row = session.get_one(Assignment, example.attempt.assignment_id)
            row.mturk_assignment_id = assignment_id
            row.worker_id = example.writer_id = example.attempt.worker_id = workers[worker_id].id
        session.commit()


def pay(database_url: str, endpoint: str) -> None:
    """Settle until nothing waits and everything is confirmed; the life of a process that may be killed anywhere.

    One that waits too long for the lock of a busy SQLite dies of it, with LOCKED_OUT as its exit code.
    """
    try:
        _pay(database_url, endpoint)
    except OperationalError as error:
        if "database is locked" not in str(error):
            raise
        sys.exit(LOCKED_OUT)


def _pay(database_url: str, endpoint: str) -> None:
    engine = engine_for(database_url)
    mturk = MTurk(endpoint, "AKIDTESTS", "a secret of the tests", attempts=1)
    clock = FixedClock(factories.NOON)
    with sessionmaker(engine, expire_on_commit=False)() as session:
        while True:
            settle(session, mturk, clock)
            sent = session.scalar(select(func.count()).select_from(Payout).where(Payout.state == PayoutState.SENT))
            left = waiting(session, endpoint)
            session.commit()
            if not sent and not left:
                return


def end_state(sessions: sessionmaker[Session], market: Market) -> dict[str, Any]:
    """Return what every way of paying must agree on: no references, no order, every cent."""
    with sessions() as session:
        rows = session.execute(select(Payout.state, Payout.amount, Payout.worker_id)).all()
        postings = session.execute(select(Posting.account, func.sum(Posting.cents)).group_by(Posting.account)).all()
    paid = [
        (bonus["WorkerId"], bonus["AssignmentId"], bonus["BonusAmount"])
        for hit in market.hits()
        for bonus in market.call("ListBonusPayments", HITId=hit["HITId"], MaxResults=100)["BonusPayments"]
    ]
    balance = market.engine.balance(market.requester_id)
    return {
        "payouts": Counter((str(row.state), str(row.amount), row.worker_id) for row in rows),
        "booked": {account: int(cents) for account, cents in postings if not account.startswith("marketplace:")},
        "marketplace": sum(int(cents) for account, cents in postings if account.startswith("marketplace:")),
        "paid": Counter(amount for _, _, amount in paid),
        "paid to": len({(worker, assignment) for worker, assignment, _ in paid}),
        "balance": (balance.available, balance.on_hold),
    }
