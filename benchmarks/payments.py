"""Times the books at growing numbers of transactions: ``python benchmarks/payments.py [--transactions N]``.

The ledger is filled as the commands would fill it: a third of the transactions are rewards, a third promises, a third
paid bonuses. On top of that come 1,000 more assignments: their rewards are booked, their bonuses planned and settled.
Then everything is read: reconciling, the month's report, closing the month, the ledger as CSV, XLSX, Parquet and for
beancount. Reconciling must find nothing, so that what was filled in is what the commands write.

Each step runs in a process of its own on the same database, first with a quarter of the transactions, then half, then
all of them. Printed are seconds by the clock and on the processor (PostgreSQL's own not counted), the latter for 1,000
of what the step deals with, and the most memory that the process had. Booking, planning and settling are linear if the
time for the same 1,000 does not grow with the ledger; a step that reads all is linear if its time for 1,000 does not
grow, and flat if its memory does not. The marketplace is a file beside the database, so that what it remembers is not
counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sqlalchemy import func, insert, select, text  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

import app.models  # noqa: E402, F401 - registers every table
from app.operations.month_close import close_month  # noqa: E402
from app.operations.plan_payouts import plan_payouts  # noqa: E402
from app.operations.reconcile import reconcile  # noqa: E402
from app.operations.settle import settle  # noqa: E402
from hits.clock import FixedClock  # noqa: E402
from hits.db import Base, engine_for  # noqa: E402
from hits.models import Assignment, Attempt, Context, Example, Hit, HitBatch, Round, Worker  # noqa: E402
from hits.money import usd  # noqa: E402
from hits.mturk.errors import DuplicateRequest  # noqa: E402
from hits.states import AssignmentState, AttemptState, HitKind, HitState, Verdict  # noqa: E402
from payments.beancount_export import beancount_lines  # noqa: E402
from payments.journal import journal_table  # noqa: E402
from payments.ledger import record_deposit, record_reservation, record_reward  # noqa: E402
from payments.models import (  # noqa: E402
    LedgerTransaction,
    Payout,
    PayoutState,
    Posting,
    Reservation,
    TransactionKind,
)
from payments.month import Month  # noqa: E402
from payments.report import month_report  # noqa: E402
from payments.tables import write_csv, write_parquet, write_xlsx  # noqa: E402

ENDPOINT = "http://marketplace.example"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
NOVEMBER = Month(2026, 11)
WORKERS = 200
AT_ONCE = 1_000
#: So many assignments are booked, planned and settled on top of what is there.
LIVE = 1_000
REWARD = BONUS = 30
FEE = 6


@dataclass(frozen=True)
class Paid:
    """A bonus as the marketplace shows it."""

    worker_id: str
    assignment_id: str
    amount: Decimal
    reason: str
    granted_at: datetime


@dataclass(frozen=True)
class Shown:
    """An assignment as the marketplace shows it."""

    assignment_id: str
    status: str


@dataclass(frozen=True)
class Funds:
    """The account's money."""

    available: Decimal
    on_hold: Decimal | None


class Marketplace:
    """Pays bonuses and lists them, out of a file. An assignment's id holds its HIT's number."""

    endpoint = ENDPOINT

    def __init__(self, path: Path) -> None:
        self.file = sqlite3.connect(path, isolation_level=None)
        self.file.execute("PRAGMA journal_mode=WAL")
        self.file.execute(
            "CREATE TABLE IF NOT EXISTS paid"
            " (token TEXT PRIMARY KEY, worker TEXT, assignment TEXT, cents INT, reason TEXT)"
        )
        self.file.execute("CREATE INDEX IF NOT EXISTS by_assignment ON paid (assignment)")

    def fill(self, count: int) -> None:
        self.file.execute("BEGIN")
        self.file.executemany(
            "INSERT INTO paid VALUES (?, ?, ?, ?, ?)",
            (
                (f"token-{n}", f"W{n % WORKERS + 1:06d}", f"A{n:07d}", BONUS, f"For a statement. {reference(n)}")
                for n in range(1, count + 1)
            ),
        )
        self.file.execute("COMMIT")

    def balance(self) -> Decimal:
        return Decimal("1000000.00")

    def funds(self) -> Funds:
        return Funds(Decimal(0), None)

    def send_bonus(
        self, *, worker_id: str, assignment_id: str, amount: Decimal, reason: str, request_token: str
    ) -> None:
        try:
            row = (request_token, worker_id, assignment_id, int(amount * 100), reason)
            self.file.execute("INSERT INTO paid VALUES (?, ?, ?, ?, ?)", row)
        except sqlite3.IntegrityError as error:
            raise DuplicateRequest("SendBonus", "DuplicateRequest", "already processed") from error

    def bonus_payments(self, *, assignment_id: str | None = None, hit_id: str | None = None) -> Iterator[Paid]:
        wanted = assignment_id or f"A{(hit_id or '')[1:]}"
        rows = self.file.execute("SELECT worker, assignment, cents, reason FROM paid WHERE assignment = ?", (wanted,))
        for worker, assignment, cents, reason in rows.fetchall():
            yield Paid(worker, assignment, Decimal(cents).scaleb(-2), reason, NOW)

    def assignments(self, hit_id: str) -> Iterator[Shown]:
        yield Shown(f"A{hit_id[1:]}", "Approved")


def reference(number: int) -> str:
    return f"DH-FILLED{number:07d}"


def fill(session: Session, examples: int) -> None:
    """Store so many approved assignments of one HIT each, every one with a verified fooling example.

    All but the last ``LIVE`` are booked and paid.
    """
    round_ = Round(task_code="sentiment", number=1, task_version=1, created_at=NOW)
    session.add(round_)
    session.flush()
    batch = HitBatch(
        round_id=round_.id, kind=HitKind.CREATION, key="benchmark", endpoint=ENDPOINT, title="t", description="d",
        keywords="k", reward=usd("0.30"), bonus=usd("0.30"), tries=5, assignment_seconds=1800,
        auto_approval_seconds=3600, lifetime_seconds=3600, hit_type_id="T", created_at=NOW,
    )  # fmt: skip
    context = Context(round_id=round_.id, fields={"prompt": "A prompt."}, digest="d", created_at=NOW)
    session.add_all([batch, context])
    session.flush()
    session.execute(
        insert(Worker),
        [
            {"id": n, "mturk_worker_id": f"W{n:06d}", "pseudonym": f"w-{n:016x}", "created_at": NOW}
            for n in range(1, WORKERS + 1)
        ],
    )
    for start in range(1, examples + 1, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, examples + 1))
        session.execute(
            insert(Hit),
            [
                {
                    "id": n, "batch_id": batch.id, "position": n, "reference": f"r{n}", "request_token": f"t{n}",
                    "state": HitState.CREATED, "mturk_hit_id": f"H{n:07d}", "max_assignments": 1,
                    "context_id": context.id, "goal_label": "negative", "created_at": NOW,
                }
                for n in numbers
            ],
        )  # fmt: skip
        session.execute(
            insert(Assignment),
            [
                {
                    "id": n, "mturk_assignment_id": f"A{n:07d}", "hit_id": n, "worker_id": n % WORKERS + 1,
                    "state": AssignmentState.APPROVED, "opened_at": NOW, "saved_at": NOW, "submitted_at": NOW,
                    "approved_at": NOW, "auto_approval_at": NOW, "accepted_at": NOW, "deadline_at": NOW,
                }
                for n in numbers
            ],
        )  # fmt: skip
        session.execute(
            insert(Attempt),
            [
                {
                    "id": n, "public_id": f"p{n}", "assignment_id": n, "hit_id": n, "worker_id": n % WORKERS + 1,
                    "try_number": 1, "answer": {"statement": f"Statement {n}."}, "answer_digest": f"d{n}",
                    "goal_label": "negative", "state": AttemptState.ANSWERED, "asked_at": NOW, "seconds": 60,
                    "answered_at": NOW, "model_id": "m", "model_revision": "r", "predicted_label": "positive",
                    "probabilities": {"positive": 0.9}, "fooled": True, "latency_ms": 1.0, "truncated": False,
                }
                for n in numbers
            ],
        )  # fmt: skip
        session.execute(
            insert(Example),
            [
                {
                    "id": n, "attempt_id": n, "round_id": round_.id, "context_id": context.id,
                    "writer_id": n % WORKERS + 1, "goal_label": "negative", "model_label": "positive", "fooled": True,
                    "verdict": Verdict.VALID_AND_MODEL_WRONG, "final_label": "negative", "collected_at": NOW,
                }
                for n in numbers
            ],
        )  # fmt: skip
    record_deposit(session, ENDPOINT, usd("1000000.00"), reference="benchmark", now=NOW)
    session.flush()
    fill_books(session, batch, examples, examples - LIVE)
    session.commit()


def fill_books(session: Session, batch: HitBatch, examples: int, paid: int) -> None:
    """Book rewards, promises and bonuses of the first ``paid`` examples, out of one reservation for all of them."""
    cost, cents = REWARD + FEE, Decimal("0.01")
    held = examples * 2 * cost
    reservation = Reservation(
        batch_id=batch.id, round_id=batch.round_id, day=NOW.date(), held=held * cents, moved_in=usd(0),
        moved_out=usd(0), promised=usd(0), spent=paid * 2 * cost * cents, released=usd(0),
        bonuses=(examples - paid) * cost * cents, validation=usd(0), validation_each=usd(0), changes=1,
    )  # fmt: skip
    session.add(reservation)
    session.flush()
    record_reservation(session, reservation, held * cents, NOW)
    session.flush()
    first = (session.scalar(select(func.max(LedgerTransaction.id))) or 0) + 1
    code, out = "sentiment/1", f"marketplace:{ENDPOINT}"
    reserved, reservations = f"reserved:{code}:", f"reservations:{code}:"
    for start in range(1, paid + 1, AT_ONCE):
        payouts, transactions, postings = [], [], []
        for n in range(start, min(start + AT_ONCE, paid + 1)):
            worker, name = f"w-{n % WORKERS + 1:016x}", reference(n)
            payouts.append(
                {
                    "id": n, "reference": name, "rule": "verified_fooling_example", "subject": f"example:{n}",
                    "example_id": n, "round_id": batch.round_id, "worker_id": n % WORKERS + 1, "assignment_id": n,
                    "batch_id": batch.id, "endpoint": ENDPOINT, "amount": BONUS * cents, "kept": usd(0),
                    "reason": f"For a statement. {name}", "request_token": f"token-{n}", "token_sent_at": NOW,
                    "state": PayoutState.CONFIRMED, "tries": 1, "promise_number": 1, "approved_by": "nobody",
                    "approved_at": NOW, "planned_at": NOW, "promised_at": NOW, "claimed_at": NOW, "sent_at": NOW,
                    "confirmed_at": NOW,
                }
            )  # fmt: skip
            booked = (
                (TransactionKind.REWARD, f"reward:A{n:07d}", f"A{n:07d}", {
                    f"rewards:{code}:{worker}": REWARD, f"reward_fees:{code}:{worker}": FEE, out: -cost,
                    reserved: -cost, reservations: cost,
                }),
                (TransactionKind.PROMISE, f"promise:{name}:1", name, {
                    f"promised:{code}:{worker}": BONUS, f"promises:{code}:{worker}": -BONUS,
                }),
                (TransactionKind.BONUS, f"bonus:{name}", name, {
                    f"bonuses:{code}:{worker}": BONUS, f"bonus_fees:{code}:{worker}": FEE, out: -cost,
                    f"promised:{code}:{worker}": -BONUS, f"promises:{code}:{worker}": BONUS,
                    reserved: -cost, reservations: cost,
                }),
            )  # fmt: skip
            for place, (kind, key, named, lines) in enumerate(booked):
                row = first + (n - 1) * 3 + place
                transactions.append(
                    {"id": row, "key": key, "kind": kind, "reference": named, "round_id": batch.round_id, "at": NOW}
                )
                postings += [{"transaction_id": row, "account": account, "cents": c} for account, c in lines.items()]
        session.execute(insert(Payout), payouts)
        session.execute(insert(LedgerTransaction), transactions)
        session.execute(insert(Posting), postings)
    if session.get_bind().dialect.name == "postgresql":
        # What it does by itself in time, and what its plans depend on.
        session.execute(text("ANALYZE"))
        for table in ("ledger_transaction", "payout"):
            session.execute(text(f"SELECT setval('{table}_id_seq', (SELECT max(id) FROM {table}))"))


def rewards(session: Session, _market: Marketplace, _folder: Path) -> None:
    after = (session.scalar(select(func.max(Assignment.id))) or 0) - LIVE
    while rows := session.scalars(
        select(Assignment).where(Assignment.id > after).order_by(Assignment.id).limit(500)
    ).all():
        for row in rows:
            record_reward(session, row, NOW)
        after = rows[-1].id
        session.commit()
        session.expunge_all()


def plan(session: Session, _market: Marketplace, _folder: Path) -> None:
    plan_payouts(session, FixedClock(NOW), endpoint=ENDPOINT, approval_limit=None)


def pay(session: Session, market: Marketplace, _folder: Path) -> None:
    found = settle(session, market, FixedClock(NOW))
    if found.waiting or found.stopped:
        raise SystemExit(f"settle left {found.waiting} and said {found.stopped}")


def look(session: Session, market: Marketplace, _folder: Path) -> None:
    found = reconcile(session, market)
    if found.findings:
        raise SystemExit(f"{len(found.findings)} findings, such as {found.findings[0]}")


def report(session: Session, _market: Marketplace, _folder: Path) -> None:
    month_report(session, NOVEMBER)


def close(session: Session, _market: Marketplace, _folder: Path) -> None:
    close_month(session, FixedClock(NOW + timedelta(days=30)), NOVEMBER, by="benchmark")


def as_csv(session: Session, _market: Marketplace, folder: Path) -> None:
    write_csv(journal_table(session), folder / "ledger.csv")


def as_xlsx(session: Session, _market: Marketplace, folder: Path) -> None:
    write_xlsx(journal_table(session), folder / "ledger.xlsx")


def as_parquet(session: Session, _market: Marketplace, folder: Path) -> None:
    write_parquet(journal_table(session), folder / "ledger.parquet")


def as_beancount(session: Session, _market: Marketplace, folder: Path) -> None:
    with (folder / "ledger.beancount").open("w", encoding="utf-8") as file:
        file.writelines(beancount_lines(session))


STEPS: dict[str, Callable[[Session, Marketplace, Path], None]] = {
    "book rewards": rewards,
    "plan": plan,
    "settle": pay,
    "reconcile": look,
    "month report": report,
    "close month": close,
    "ledger as CSV": as_csv,
    "ledger as XLSX": as_xlsx,
    "ledger as Parquet": as_parquet,
    "ledger for beancount": as_beancount,
}

#: These deal with ``LIVE`` assignments, whatever is booked already; the others read everything.
ON_TOP = ("book rewards", "plan", "settle")


def run_step(url: str, folder: Path, step: str, examples: int) -> dict[str, float]:
    """Run one step in this process and return its seconds and the most megabytes that it had."""
    engine = engine_for(url)
    market = Marketplace(folder / "marketplace.db")
    with Session(engine) as session:
        if step == "fill":
            Base.metadata.create_all(engine)
            fill(session, examples)
            market.fill(examples - LIVE)
            return {}
        started, worked = time.perf_counter(), time.process_time()
        STEPS[step](session, market, folder)
        seconds, cpu = time.perf_counter() - started, time.process_time() - worked
        session.rollback()
        count = session.scalar(select(func.count()).select_from(LedgerTransaction)) or 0
    return {
        "seconds": seconds,
        "cpu": cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "transactions": count,
    }


def in_process(url: str, folder: Path, step: str, examples: int) -> dict[str, float]:
    command = [
        sys.executable,
        __file__,
        "--url",
        url,
        "--folder",
        str(folder),
        "--step",
        step,
        "--examples",
        str(examples),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{step}: {done.stdout}{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a line for each step and size, then how the largest compares to half of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transactions", type=int, default=100_000, help="in the largest ledger; at least 24,000")
    parser.add_argument("--postgres", help="address of a PostgreSQL database whose tables may be dropped")
    for name in ("--url", "--step"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--examples", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        print(json.dumps(run_step(chosen.url, chosen.folder, chosen.step, chosen.examples)))
        return
    print(f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors, {datetime.now(UTC):%F}")
    found: dict[str, list[dict[str, float]]] = {step: [] for step in STEPS}
    for part in (4, 2, 1):
        examples = max(chosen.transactions // part // 3, 1)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            url = chosen.postgres or f"sqlite:///{folder / 'books.db'}"
            if chosen.postgres:
                engine = engine_for(url)
                with engine.begin() as connection:
                    connection.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
                engine.dispose()
            in_process(url, folder, "fill", examples)
            for step in STEPS:
                one = in_process(url, folder, step, examples)
                found[step].append(one)
                thousand = one["cpu"] / (LIVE if step in ON_TOP else examples * 3) * 1000
                print(
                    f"{examples * 3:>8,} transactions  {step:22} {one['seconds']:8.2f} s, on the processor "
                    f"{one['cpu']:8.2f} s, {thousand:6.3f} s for 1,000  "
                    f"{one['megabytes']:6.0f} MB",
                    flush=True,
                )
    print("the largest against half of it; linear is 1.00 for what is done on top and 2.00 for the rest, flat is 1.00:")
    for step, (_, half, whole) in found.items():
        print(
            f"{step:22} processor {whole['cpu'] / half['cpu']:5.2f}   "
            f"time {whole['seconds'] / half['seconds']:5.2f}   memory {whole['megabytes'] / half['megabytes']:5.2f}"
        )


if __name__ == "__main__":
    main()
