"""Times a round's pages with very many examples: ``python benchmarks/dashboard.py --examples 1000000``.

The rows are made up, by statements that make them where they are stored: writers who write unequally much, four tries
in a HIT, two or three votes on each example that fooled the model, and the ledger of all their pay. SQLite is as an
instance has it (WAL, synchronous=FULL); with ``--database`` an empty PostgreSQL database is filled. Each page is asked
for through the service by a client that is signed in. What must hold: each answers within a second.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pydantic import SecretStr  # noqa: E402
from sqlalchemy import Engine, text  # noqa: E402
from sqlalchemy.orm import sessionmaker  # noqa: E402

from app import schema  # noqa: E402
from app.factory import create_app  # noqa: E402
from app.models import StaffUser  # noqa: E402
from app.settings import Settings  # noqa: E402
from hits.clock import FixedClock  # noqa: E402
from hits.db import engine_for  # noqa: E402
from hits.models import HitBatch, Round  # noqa: E402
from hits.predictions import Attribution, ModelUnavailable, Prediction  # noqa: E402
from hits.states import HitKind  # noqa: E402

BEGAN, DAYS = datetime(2026, 10, 1, tzinfo=UTC), 60
TRIES, ITEMS = 4, 10
PROBABILITIES = """'{"positive": 0.8, "negative": 0.1, "neutral": 0.1}'"""
NAME, PASSWORD = "bench", "a password of the benchmark"
WORDS = [
    "soup",
    "train",
    "cold",
    "late",
    "lovely",
    "table",
    "waiter",
    "window",
    "rain",
    "station",
    "coffee",
    "music",
    "loud",
    "price",
    "small",
    "garden",
    "bread",
    "queue",
    "polite",
    "broken",
    "lamp",
    "street",
    "letter",
    "kitchen",
    "morning",
    "holiday",
    "ticket",
    "phone",
    "silent",
    "river",
    "market",
    "bottle",
    "paper",
]
PAGES = {
    "dashboard": "/rounds/sentiment/1/dashboard",
    "its picture of days": "/rounds/sentiment/1/dashboard/days.svg",
    "its picture of writers": "/rounds/sentiment/1/dashboard/writers.svg",
    "the round": "/rounds/sentiment/1",
    "all rounds": "/rounds",
    "examples, newest": "/rounds/sentiment/1/statements",
    "examples, flagged": "/rounds/sentiment/1/statements?verdict=flagged",
    "examples, verified": "/rounds/sentiment/1/statements?verdict=valid_and_model_wrong&label=positive",
    "examples, fooled and pending": "/rounds/sentiment/1/statements?fooled=1&verdict=pending",
    "examples, a word that is common": "/rounds/sentiment/1/statements?text=waiter",
    "examples, a word that there is not": "/rounds/sentiment/1/statements?text=zebra",
    "one example": "/rounds/statements/a1",
}


def main() -> None:
    """Fill the database, unless it is full, and print how long each page takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=100_000, help="how many to write")
    parser.add_argument("--folder", type=Path, help="keeps the database there; a temporary folder if it is left out")
    parser.add_argument("--database", help="address of an empty database, or of one that this filled before")
    parser.add_argument("--times", type=int, default=7, help="how often each page is asked for")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        url = given.database or f"sqlite:///{(given.folder or Path(made)) / 'dashboard.db'}"
        fill(url, given.examples)
        time_pages(url, given.times)


def fill(url: str, examples: int) -> None:
    """Write the rows unless they are there."""
    schema.upgrade(url)
    engine = engine_for(url)
    with engine.connect() as connection:
        there = connection.execute(text("SELECT count(*) FROM example")).scalar_one()
    if not there:
        write(engine, examples)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE" if engine.dialect.name == "postgresql" else "ANALYZE"))
    engine.dispose()


def write(engine: Engine, examples: int) -> None:
    """Write one round with everything that belongs to it."""
    with sessionmaker(engine)() as session:
        round_ = Round(task_code="sentiment", number=1, task_version=1, created_at=BEGAN)
        staff = StaffUser(name=NAME, roles=["requester"], created_at=BEGAN)
        staff.set_password(PASSWORD)
        session.add_all([round_, staff])
        session.flush()
        for kind in (HitKind.CREATION, HitKind.VALIDATION):
            batch = HitBatch(round_id=round_.id, kind=kind, key=kind.value, endpoint="http://127.0.0.1:8000")
            batch.title, batch.description, batch.keywords = f"Made up: {kind.value}", "", ""
            batch.reward, batch.bonus = Decimal("0.30"), Decimal("0.30")
            batch.assignment_seconds = batch.auto_approval_seconds = batch.lifetime_seconds = 1800
            batch.created_at = BEGAN
            session.add(batch)
            session.flush()
        session.commit()
    for table, columns, count, select in statements(engine.dialect.name, examples):
        started = time.perf_counter()
        numbers = f"WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        with engine.begin() as connection:
            made = connection.exec_driver_sql(f"INSERT INTO {table} ({columns}) {numbers} SELECT {select}")
            if engine.dialect.name == "postgresql" and columns.startswith("id,"):
                name = f"pg_get_serial_sequence('{table}', 'id')"
                connection.exec_driver_sql(f"SELECT setval({name}, max(id)) FROM {table}")
        print(f"  {made.rowcount:>9,} {table} in {time.perf_counter() - started:.0f} s", flush=True)


def statements(dialect: str, examples: int) -> Iterator[tuple[str, str, int, str]]:
    """Yield, for each insert, its table, its columns, how far ``n.i`` counts, and what is selected."""
    is_sqlite = dialect == "sqlite"
    hits, judged = -(-examples // TRIES), -(-examples // ITEMS)
    writers, readers = max(20, examples // 500), max(10, examples // 2000)
    began, step = int(BEGAN.timestamp()), DAYS * 86_400 / examples

    def at(example: str, later: int = 0) -> str:
        seconds = f"{began + later} + ({example}) * {step:.9f}"
        if is_sqlite:
            return f"strftime('%Y-%m-%d %H:%M:%S', CAST({seconds} AS INTEGER), 'unixepoch') || '.000000'"
        return f"to_timestamp({seconds})"

    def json(made: str) -> str:
        return made if is_sqlite else f"CAST({made} AS json)"

    def label(number: str) -> str:
        return f"CASE ({number}) % 3 WHEN 0 THEN 'negative' WHEN 1 THEN 'positive' ELSE 'neutral' END"

    def word(number: str) -> str:
        listed = "".join(f"{one:<8}" for one in WORDS)
        return f"trim(substr('{listed}', CAST((({number}) % {len(WORDS)}) * 8 + 1 AS INTEGER), 8))"

    def writer(hit: str) -> str:
        return f"(1 + ({writers} * (({hit}) * 48271 % 65537) / 65537) * (({hit}) * 48271 % 65537) / 65537)"

    def reader(number: str) -> str:
        return f"({writers} + 1 + ({number}) % {readers})"

    hit, chance = f"((i - 1) / {TRIES} + 1)", "(i * 7919 % 1000)"
    said = f"CASE WHEN {chance} < 400 THEN {label(f'{hit} + 1')} ELSE {label(hit)} END"
    verdict = (
        f"CASE WHEN {chance} < 280 THEN 'valid_and_model_wrong' WHEN {chance} < 352 THEN 'invalid'"
        f" WHEN {chance} < 384 THEN 'unresolved' WHEN {chance} < 399 THEN 'pending'"
        f" WHEN {chance} < 400 THEN 'flagged' ELSE 'not_validated' END"
    )
    yield (
        "worker",
        "id, mturk_worker_id, pseudonym, created_at",
        writers + readers,
        f"i, 'A' || (10000000 + i), 'w-' || (1000000000000000 + i * 7919), {at('0')} FROM n",
    )
    prompt = "'{\"prompt\": \"Story ' || i || ' of ' || " + word("i") + " || '.\"}'"
    yield (
        "context",
        "id, round_id, fields, digest, created_at",
        hits,
        f"i, 1, {json(prompt)}, 'd' || i, {at('0')} FROM n",
    )
    columns = "id, batch_id, position, reference, request_token, state, mturk_hit_id, max_assignments, created_at"
    for batch, first, count, most in ((1, 0, hits, 1), (2, hits, judged, 3)):
        row = f"{first} + i"
        more = f", i, {label('i')} FROM n" if batch == 1 else ", NULL, NULL FROM n"
        yield (
            "hit",
            f"{columns}, context_id, goal_label",
            count,
            f"{row}, {batch}, i, 'r' || ({row}), 't' || ({row}), 'closed', 'H' || ({row}), {most}, {at('0')}{more}",
        )
    columns = "id, mturk_assignment_id, hit_id, worker_id, state, why, opened_at, accepted_at, saved_at, submitted_at"
    for place, first, count, size in ((0, 0, hits, TRIES), *((k, hits, judged, ITEMS) for k in (1, 2, 3))):
        row = f"{first + max(place - 1, 0) * judged} + i"
        who = writer("i") if place == 0 else reader(f"i + {place}")
        times = f"{at(f'i * {size}', -300)}, {at(f'i * {size}', -300)}, {at(f'i * {size}')}, {at(f'i * {size}')}"
        yield "assignment", columns, count, f"{row}, 'S' || ({row}), {first} + i, {who}, 'approved', '', {times} FROM n"
    words = " || ' ' || ".join(
        word(f"i * {factor} / {divisor}") for factor, divisor in ((1, 1), (7, 3), (5, 2), (11, 7))
    )
    answer = '\'{"statement": "The \' || ' + words + " || ', and so it went on until day ' || i || '.\"}'"
    yield (
        "attempt",
        "id, public_id, assignment_id, hit_id, worker_id, try_number, answer, answer_digest, goal_label, state,"
        " asked_at, answered_at, seconds, model_id, model_revision, predicted_label, probabilities, fooled, latency_ms,"
        " truncated, confidence",
        examples,
        f"i, 'a' || i, {hit}, {hit}, {writer(hit)}, (i - 1) % {TRIES} + 1,"
        f" {json(answer)},"
        f" 'd' || i, {label(hit)}, 'answered', {at('i', -60)}, {at('i', -59)}, 40 * ((i - 1) % {TRIES} + 1), 'made-up',"
        f" '1', {said}, {json(PROBABILITIES)}, {chance} < 400, 12.5,"
        " 1 = 0, 0.8 FROM n",
    )
    yield (
        "example",
        "id, attempt_id, round_id, context_id, writer_id, goal_label, model_label, fooled, verdict, final_label,"
        " collected_at, decided_at",
        examples,
        f"i, i, 1, {hit}, {writer(hit)}, {label(hit)}, {said}, {chance} < 400, {verdict},"
        f" CASE WHEN {chance} < 280 THEN {label(hit)} END, {at('i')},"
        f" CASE WHEN {chance} < 384 THEN {at('i', 7200)} END FROM n",
    )
    for place in (1, 2, 3):
        other = label(f"{hit} + 1")
        judge = f"((i - 1) / {ITEMS} + 1)"
        given = label(hit) if place != 2 else f"CASE WHEN {chance} < 280 THEN {label(hit)} ELSE {other} END"
        some = {1: f"{chance} < 400", 2: f"{chance} < 384", 3: f"{chance} BETWEEN 280 AND 383"}[place]
        yield (
            "vote",
            "example_id, validator_id, assignment_id, label, seconds, created_at, counted_at",
            examples,
            f"i, {reader(f'{judge} + {place}')}, {hits + (place - 1) * judged} + {judge}, {given}, 5.0 + i % 17,"
            f" {at('i', 3600)}, {at('i', 3600)} FROM n WHERE {some}",
        )
    paid = hits + 3 * judged
    money = (
        ("reward", 0, paid, "", f"CASE WHEN i <= {hits} THEN {writer('i')} ELSE {reader('i')} END"),
        ("bonus", paid, examples, f" WHERE {chance} < 280", writer(hit)),
    )
    for kind, first, count, some, who in money:
        key = f"'{kind}:' || i"
        row = f"{first} + i"
        yield (
            "ledger_transaction",
            "id, key, kind, reference, round_id, at",
            count,
            f"{row}, {key}, '{kind}', {key}, 1, {at('0')} FROM n{some}",
        )
        lines = {"'marketplace:http://127.0.0.1:8000'": -36, f"'{kind}s:sentiment/1:w-' || {who}": 30}
        for account, cents in {**lines, f"'{kind}_fees:sentiment/1:w-' || {who}": 6}.items():
            yield "posting", "transaction_id, account, cents", count, f"{row}, {account}, {cents} FROM n{some}"


def time_pages(url: str, times: int) -> None:
    """Ask for each page, and print the first time, for which nothing may be in memory, the median and the longest."""
    settings = Settings(
        database_url=url,
        secret_key=SecretStr("benchmark"),
        pseudonym_key=SecretStr("benchmark"),
        aws_access_key_id=SecretStr("none"),
        aws_secret_access_key=SecretStr("none"),
    )
    app = create_app(settings, engine=NoModel(), clock=FixedClock(BEGAN + timedelta(days=DAYS)))
    client = app.test_client()
    token = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/staff/sign-in").text)
    if token is None:
        raise SystemExit("the sign-in page has no form")
    client.post("/staff/sign-in", data={"csrf_token": token[1], "name": NAME, "password": PASSWORD})
    print(f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors")
    print(f"{'page':<36}{'first':>9}{'median':>9}{'longest':>9}{'CPU':>9}{'kB':>6}   ms")
    for name, address in PAGES.items():
        walls, cpus, size = [], [], 0
        for _ in range(times):
            wall, cpu = time.perf_counter(), time.process_time()
            answer = client.get(address)
            walls.append(1000 * (time.perf_counter() - wall))
            cpus.append(1000 * (time.process_time() - cpu))
            size = len(answer.data)
            if answer.status_code != 200:
                raise SystemExit(f"{address} answered {answer.status}")
        middle, most = statistics.median(walls), max(walls[1:], default=walls[0])
        print(
            f"{name:<36}{walls[0]:>9.0f}{middle:>9.0f}{most:>9.0f}{statistics.median(cpus):>9.0f}{size / 1000:>6.0f}",
            flush=True,
        )


class NoModel:
    """No page that is timed asks the model."""

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        raise ModelUnavailable("The benchmark has no model.")

    def explain(self, task_code: str, fields: Mapping[str, str], target: str, **_: object) -> Attribution:
        raise ModelUnavailable("The benchmark has no model.")


if __name__ == "__main__":
    main()
