"""Times the marketplace against moto's server, and at growing numbers of HITs: ``python benchmarks/marketplace.py``.

Part one: CreateHIT over HTTP, the same clients for moto's server (everything in memory), for the marketplace on SQLite
(WAL, synchronous=FULL) and, where PostgreSQL is reachable, on that, each with one process and with two. The servers
take turns. A client is boto3, or sends one request that was signed ahead over open connections, and takes less of the
machine. Beside the calls per second stands the processor time that the server (with its database) takes for a call,
which other work on the machine moves less.
Part two: paging, a worker's list and accepting with 100 and 10,000 HITs, with ``--large`` 100,000; through the engine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sqlalchemy import create_engine, event, func, insert, make_url, select, text, update  # noqa: E402
from sqlalchemy.exc import SQLAlchemyError  # noqa: E402

from app.marketplace.settings import Settings  # noqa: E402
from hits.marketplace import database  # noqa: E402
from hits.marketplace.engine import Marketplace  # noqa: E402
from hits.marketplace.identifiers import new_entity_id  # noqa: E402
from hits.marketplace.tables import HitGroupRow, HitRow  # noqa: E402

POSTGRES = os.environ.get("DYNAHIT_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
SECRET_KEY = "a secret key of the benchmark, long enough"
PASSWORD = "correct horse battery staple"
MOTO = """
import sys
sys.path.insert(0, sys.argv[2])
import hits.marketplace.moto
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False)
server.start()
sys.stdin.read()
"""
QUESTION = (
    '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/'
    'ExternalQuestion.xsd"><ExternalURL>https://example.org/hit?round=1</ExternalURL><FrameHeight>0</FrameHeight>'
    "</ExternalQuestion>"
)
HIT = {
    "Title": "Write a statement that fools a model",
    "Description": "Write up to five short statements.",
    "Keywords": "writing, sentiment",
    "Reward": "0.30",
    "AssignmentDurationInSeconds": 3600,
    "LifetimeInSeconds": 864_000,
    "MaxAssignments": 1,
    "Question": QUESTION,
}
TYPES = 20
TIMES = 15
BOTO3 = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
import boto3
from botocore.config import Config

url, key, secret, count, threads, hit = json.loads(sys.argv[1])
client = boto3.client(
    "mturk", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret,
    config=Config(max_pool_connections=threads, retries={"total_max_attempts": 1}),
)
client.get_account_balance()
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(threads) as pool:
    list(pool.map(lambda _: client.create_hit(**hit), range(count)))
print("done", flush=True)
"""
# The signature of a request holds for 15 minutes, and nothing forbids to send it again.
SIGNED_AHEAD = """
import http.client, json, sys, threading
from urllib.parse import urlsplit

import botocore.auth, botocore.awsrequest, botocore.credentials

url, key, secret, count, threads, hit = json.loads(sys.argv[1])
target = "MTurkRequesterServiceV20170117.CreateHIT"
headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target, "Host": urlsplit(url).netloc}
request = botocore.awsrequest.AWSRequest("POST", url + "/", headers, json.dumps(hit))
who = botocore.credentials.Credentials(key, secret)
botocore.auth.SigV4Auth(who, "mturk-requester", "us-east-1").add_auth(request)
headers, body, failures = dict(request.headers), request.data.encode(), []

def call(times):
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    for _ in range(times):
        connection.request("POST", "/", body, headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            failures.append(said)
            return

call(1)
callers = [threading.Thread(target=call, args=(count // threads,)) for _ in range(threads)]
print("ready", flush=True)
sys.stdin.readline()
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
print(failures or "done", flush=True)
"""


@dataclass(frozen=True)
class Server:
    """One endpoint with the keys of a rich requester."""

    name: str
    url: str
    key: str
    secret: str
    pid: int
    database: str = ""

    def processor_seconds(self) -> float:
        """Return the processor time so far of the server, its workers, and its database's processes on this machine."""
        ticks = 0
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            is_database = bool(self.database) and command.startswith("postgres:") and self.database in command
            if is_database or self.pid in {int(folder.name), int(fields[1])}:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Callers:
    """So many client processes with so many threads, each a caller."""

    name: str
    script: str
    processes: int
    threads: int


CALLERS = (
    Callers("boto3, one caller", BOTO3, 1, 1),
    Callers("signed ahead, one caller", SIGNED_AHEAD, 1, 1),
    Callers("signed ahead, eight callers", SIGNED_AHEAD, 2, 4),
)


def main() -> None:
    """Print every figure with the date, the processor and the load, which moves them more than anything else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also with 100,000 HITs")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each server (default 7)")
    parser.add_argument("--creates", type=int, default=150, help="CreateHIT calls in a round (default 150)")
    parser.add_argument("--part", choices=["http", "sizes"], help="only one of the two parts")
    arguments = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {processor()}, {len(os.sched_getaffinity(0))} processors")
    print(
        f"load average {os.getloadavg()[0]:.1f}, Python {platform.python_version()}, files in {tempfile.gettempdir()}"
    )
    with postgres_database() as postgres:
        if arguments.part != "sizes":
            over_http(postgres, rounds=arguments.rounds, creates=arguments.creates)
        if arguments.part != "http":
            sizes = [100, 10_000, *([100_000] if arguments.large else [])]
            with tempfile.TemporaryDirectory() as folder:
                at_sizes("SQLite", [f"sqlite:///{folder}/{size}.db" for size in sizes], sizes)
            if postgres:
                at_sizes("PostgreSQL", [fresh_schema(postgres) for _ in sizes], sizes)
    print(f"load average at the end {os.getloadavg()[0]:.1f}")


def processor() -> str:
    """Return the processor's name."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.processor()


# Part one: over HTTP


def over_http(postgres: str | None, *, rounds: int, creates: int) -> None:
    """Let the servers take turns and print medians, and the medians of each round's ratios, by kind of caller."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        servers = [running.enter_context(moto_server())]
        for workers in (1, 2):
            name, url = f"SQLite, {workers} process{'es' * (workers > 1)}", f"sqlite:///{folder}/{workers}.db"
            servers.append(running.enter_context(served(name, url, workers=workers)))
        for workers in (1, 2) if postgres else ():
            name, url = f"PostgreSQL, {workers} process{'es' * (workers > 1)}", fresh_schema(str(postgres))
            servers.append(running.enter_context(served(name, url, workers=workers)))
        if not postgres:
            print("PostgreSQL is not reachable (DYNAHIT_TEST_POSTGRES), so its figures are missing")
        for callers in CALLERS:
            rates: dict[str, list[float]] = {server.name: [] for server in servers}
            times: dict[str, list[float]] = {server.name: [] for server in servers}
            for number in range(rounds):
                # Whoever comes first in a round is another one each time.
                for server in servers[number % len(servers) :] + servers[: number % len(servers)]:
                    before = server.processor_seconds()
                    rates[server.name].append(create_rate(server, creates, callers))
                    times[server.name].append((server.processor_seconds() - before) * 1000 / creates)
            load = os.getloadavg()[0]
            print(f"CreateHIT per second over HTTP, {callers.name}, {rounds} x {creates} calls, load {load:.1f}")
            base = rates[servers[0].name]
            for name, found in rates.items():
                spread = f"{min(found):.0f} to {max(found):.0f}"
                ratio = statistics.median(mine / motos for mine, motos in zip(found, base, strict=True))
                rate = f"{statistics.median(found):6.0f} ({spread:11})"
                print(f"  {name:24} {rate} {ratio:5.2f} of moto's  {statistics.median(times[name]):5.1f} ms each")


def create_rate(server: Server, creates: int, callers: Callers) -> float:
    """Return how many CreateHIT calls per second the callers got done together."""
    each = creates // callers.processes
    told = json.dumps([server.url, server.key, server.secret, each, callers.threads, HIT])
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", callers.script, told], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(callers.processes)
    ]
    for client in clients:
        expect(client, "ready")
    started = time.perf_counter()
    for client in clients:
        client.stdin.write("go\n")  # type: ignore[union-attr]
        client.stdin.flush()  # type: ignore[union-attr]
    for client in clients:
        expect(client, "done")
    seconds = time.perf_counter() - started
    for client in clients:
        client.communicate()
    return each // callers.threads * callers.threads * callers.processes / seconds


def expect(client: subprocess.Popen[str], word: str) -> None:
    """Wait for a client's word; end with its error if it says another."""
    said = client.stdout.readline().strip()  # type: ignore[union-attr]
    if said != word:
        sys.exit(f"a client did not say {word!r} but {said!r}; see its error above")


@contextmanager
def moto_server() -> Iterator[Server]:
    """Run moto's own threaded server with the engine in memory."""
    port = free_port()
    command = [sys.executable, "-c", MOTO, str(port), str(ROOT)]
    # Its log has a line for each request.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/moto-api/")
        yield Server("moto's server, memory", url, "AKIATESTS", "secret", process.pid)
        process.communicate()


@contextmanager
def served(name: str, database_url: str, *, workers: int) -> Iterator[Server]:
    """Run the marketplace as `dynahit marketplace serve` does, with so many processes."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = Settings(database_url=database_url, secret_key=SECRET_KEY, site_url=url)  # type: ignore[arg-type]
    database.upgrade(database_url)
    market = Marketplace(database_url, settings=settings.engine_settings())
    requester = market.create_requester("Benchmark")
    market.top_up(requester.requester_id, Decimal(1_000_000), "benchmark")
    key = market.create_access_key(requester.requester_id)
    market.close()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MARKETPLACE_")},
        "MARKETPLACE_DATABASE_URL": database_url,
        "MARKETPLACE_SECRET_KEY": SECRET_KEY,
        "MARKETPLACE_SITE_URL": url,
    }
    command = [sys.executable, "-m", "gunicorn", "--worker-class=gthread", f"--workers={workers}", "--threads=16"]
    command += ["--no-control-socket", "--log-level=warning", f"--bind=127.0.0.1:{port}"]
    with subprocess.Popen([*command, "app.marketplace.factory:create_app()"], cwd=ROOT, env=environment) as process:
        wait_for(f"{url}/healthz")
        is_postgres = database_url.startswith("postgresql")
        name_of_database = str(make_url(database_url).database) if is_postgres else ""
        yield Server(name, url, key.access_key_id, key.secret, process.pid, name_of_database)
        process.terminate()


def free_port() -> int:
    """Return a loopback port that nothing uses."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def wait_for(url: str) -> None:
    """Return when the address answers; end if it doesn't within a minute."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} did not answer within a minute")


# Part two: growing numbers of HITs


def at_sizes(name: str, urls: list[str], sizes: list[int]) -> None:
    """Print the medians of each deed at each size, which take turns, and how many SQL statements it takes."""
    with ExitStack() as opened:
        markets = []
        for url in urls:
            settings = Settings(database_url=url, secret_key=SECRET_KEY)  # type: ignore[arg-type]
            database.upgrade(url)
            markets.append(Marketplace(url, settings=settings.engine_settings()))
            opened.callback(markets[-1].close)
        prepared = [deeds(market, size) for market, size in zip(markets, sizes, strict=True)]
        heads = "  ".join(f"{size:>12,} HITs" for size in sizes)
        print(f"{name}: median of {TIMES}, SQL statements behind the slash; HITs of {TYPES} types, half of them of one")
        print(f"  {'':38} {heads}   last/first")
        for deed in prepared[0]:
            statements = [counted(market, ready[deed]) for market, ready in zip(markets, prepared, strict=True)]
            durations: list[list[float]] = [[] for _ in sizes]
            for _ in range(TIMES):
                for ready, found in zip(prepared, durations, strict=True):
                    started = time.perf_counter()
                    ready[deed]()
                    found.append((time.perf_counter() - started) * 1000)
            medians = [statistics.median(found) for found in durations]
            columns = (f"{median:8.1f} ms /{count:3}" for median, count in zip(medians, statements, strict=True))
            ratio = f"{medians[-1] / medians[0]:8.1f}"
            print(f"  {deed:38} {'  '.join(f'{column:>17}' for column in columns)}   {ratio}")


def deeds(market: Marketplace, size: int) -> dict[str, Callable[[], object]]:
    """Fill a market and return what is to be timed, by name."""
    requester_id = fill(market, size)
    worker_ids = [
        market.register_worker(market.create_invitation(), f"worker-{number}", PASSWORD).worker_id
        for number in range(4)
    ]
    groups = market.hit_groups(worker_ids[0]).groups
    hit_ids = iter(all_hits(market, requester_id, at_most=60))
    middle = token_after(market, requester_id, size // 2)
    page = {"MaxResults": 100, **({"NextToken": middle} if middle else {})}
    group = max(groups, key=lambda group: group.available).hit_group_id
    call = partial(market.call, requester_id)
    return {
        "CreateHIT": lambda: call("CreateHIT", HIT),
        "GetAccountBalance": lambda: call("GetAccountBalance", {}),
        "ListHITs, first page of 100": lambda: call("ListHITs", {"MaxResults": 100}),
        "ListHITs, page in the middle": lambda: call("ListHITs", page),
        "ListReviewableHITs, none there": lambda: call("ListReviewableHITs", {}),
        "worker's list of HITs": lambda: market.hit_groups(worker_ids[1], sort="reward"),
        "worker's list, searching": lambda: market.hit_groups(worker_ids[1], query="statement 7"),
        "accept a HIT": lambda: market.accept(worker_ids[2], next(hit_ids)),
        "accept the next of a group": lambda: market.accept_next(worker_ids[3], group),
    }


def fill(market: Marketplace, size: int) -> str:
    """Make the HITs: one of each type through the API, copies of them past it, since only reading is timed."""
    requester_id = market.create_requester("Benchmark").requester_id
    market.top_up(requester_id, Decimal(1_000_000), "benchmark")
    for number in range(TYPES):
        market.call(requester_id, "CreateHIT", {**HIT, "Title": f"{HIT['Title']} {number}"})
    with market.store.session(writes=True) as session:
        hits = [
            {column.name: getattr(hit, column.key) for column in HitRow.__table__.columns if column.name != "seq"}
            for hit in session.scalars(select(HitRow))
        ]
        copies = [
            {**hits[number % TYPES if number % 2 else 0], "hit_id": new_entity_id()} for number in range(size - TYPES)
        ]
        for start in range(0, len(copies), 1000):
            session.execute(insert(HitRow), copies[start : start + 1000])
        of_type = select(func.count()).where(HitRow.hit_type_id == HitGroupRow.hit_type_id).scalar_subquery()
        session.execute(update(HitGroupRow).values(open_hits=of_type))
    if market.store.engine.dialect.name == "postgresql":
        with market.store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))
    return requester_id


def all_hits(market: Marketplace, requester_id: str, *, at_most: int) -> list[str]:
    """Return the ids of the newest HITs."""
    page = market.call(requester_id, "ListHITs", {"MaxResults": at_most})
    return [hit["HITId"] for hit in page["HITs"]]


def token_after(market: Marketplace, requester_id: str, count: int) -> str | None:
    """Return the token of the page that begins after so many HITs."""
    token: str | None = None
    for _ in range(count // 100):
        page = market.call(requester_id, "ListHITs", {"MaxResults": 100, **({"NextToken": token} if token else {})})
        token = page["NextToken"]
    return token


def counted(market: Marketplace, deed: Callable[[], object]) -> int:
    """Do it once, which warms it, and return how many SQL statements that took."""
    statements = 0

    def count(*_: Any) -> None:
        nonlocal statements
        statements += 1

    event.listen(market.store.engine, "before_cursor_execute", count)
    deed()
    event.remove(market.store.engine, "before_cursor_execute", count)
    return statements


# PostgreSQL


@contextmanager
def postgres_database() -> Iterator[str | None]:
    """Make a database for this run and drop it; None without a server."""
    engine = create_engine(POSTGRES, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 3})
    name = f"dynahit_benchmark_{secrets.token_hex(4)}"
    try:
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
    except SQLAlchemyError:
        yield None
        return
    try:
        yield make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()


def fresh_schema(postgres: str) -> str:
    """Return the address of an empty schema in the run's database."""
    schema = f"s{secrets.token_hex(4)}"
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    options = {"options": f"-csearch_path={schema}"}
    return make_url(postgres).update_query_dict(options).render_as_string(hide_password=False)


if __name__ == "__main__":
    main()
