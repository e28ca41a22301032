"""Times predictions through the whole route against the raw forward pass: ``python benchmarks/predict.py``.

One process serves the page's own route (token, task's checks, model, stored attempt, answer) on SQLite as an instance
does; the raw forward pass runs in the same process, on the same texts, in turns with it.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

STARTED = time.perf_counter()
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sqlalchemy.orm import Session, sessionmaker  # noqa: E402

from app import schema  # noqa: E402
from app.extensions import db, limiter  # noqa: E402
from app.factory import create_app  # noqa: E402
from app.settings import Settings  # noqa: E402
from hits.tasks import TASKS  # noqa: E402
from inference.engine import EngineSettings, InProcessEngine, engine_for  # noqa: E402
from tests.factories import PSEUDONYM_KEY, make_assignment, make_batch, make_hit, make_worker  # noqa: E402

SENTENCE = "I would have loved this place if I enjoyed waiting an hour for cold soup and warm beer. "
ABOUT_64_TOKENS = SENTENCE * 3
BY_SCRIPT = {"X-Requested-With": "fetch"}
"""As the page's own script asks: it gets the verdict's part of the page, not all of it."""
TASKS_MEASURED = ("sentiment", "nli", "hate", "qa")


def main() -> None:
    """Print every figure with the load of the machine, which moves them more than anything else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="predictions per figure")
    rounds = parser.parse_args().rounds
    print(f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors")
    start_times()
    with tempfile.TemporaryDirectory() as folder:
        engine = loaded(["sentiment"])
        route(engine, Path(folder), rounds)
        beside_explanations(engine, rounds)
        several_at_once(engine, rounds)
        engine.stop()


def loaded(codes: list[str]) -> InProcessEngine:
    """Return an engine that has loaded the embedded models of the tasks."""
    settings = EngineSettings(warming_seconds=300, predict_seconds=300, explain_seconds=300, predict_queue=500)
    engine = engine_for({code: f"embedded:{code}" for code in codes}, settings)
    engine.start()
    state = engine.wait_until_settled(300)
    if state.name != "ready":
        raise SystemExit(state.message)
    return engine


def start_times() -> None:
    """Print the time from the start of a process to a page, to the first prediction, and what four tasks add."""
    program = (
        "import os, resource, sys, time\n"
        f"sys.path.insert(0, {str(ROOT / 'benchmarks')!r})\n"
        "import predict\n"
        "predict.one_start()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    print(done.stdout, end="")


def one_start() -> None:
    """Print the figures of one start of a process; run in a process of its own."""
    known = [code for code in TASKS_MEASURED if code in TASKS and (ROOT / "inference/embedded" / code).is_dir()]
    settings = EngineSettings(warming_seconds=300, predict_seconds=300, explain_seconds=300)
    engine = engine_for({code: f"embedded:{code}" for code in known}, settings)
    app = create_app(service_settings("sqlite://"), engine=engine)
    page = app.test_client().get("/healthz")
    print(f"start of the process to the first page ({page.status_code}): {time.perf_counter() - STARTED:.2f} s")
    engine.start()
    engine.predict("sentiment", {"statement": "good"})
    print(f"start of the process to the first prediction: {time.perf_counter() - STARTED:.2f} s")
    engine.wait_until_settled(300)
    print(f"start of the process to all of {', '.join(known)}: {time.perf_counter() - STARTED:.2f} s")
    with_models = resident()
    engine.stop()
    bare = subprocess.run(
        [
            sys.executable,
            "-c",
            "import captum.attr, torch, transformers, predict\n"
            "from transformers import BertForQuestionAnswering, BertForSequenceClassification\n"
            "predict.create_app(predict.service_settings('sqlite://'))\n"
            "print(predict.resident())",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT / "benchmarks",
    )
    added = with_models - float(bare.stdout)
    print(f"resident memory {with_models:.0f} MB, of which the {len(known)} models and their use {added:.0f} MB")


def resident() -> float:
    """Return this process's resident memory in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def service_settings(database_url: str) -> Settings:
    """Return settings of a service of its own."""
    return Settings(
        database_url=database_url,
        secret_key="benchmark",
        pseudonym_key=PSEUDONYM_KEY,
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )  # type: ignore[call-arg]


def route(engine: InProcessEngine, folder: Path, rounds: int) -> None:
    """Compare the whole route with the raw forward pass of the same texts, taking turns."""
    app = create_app(service_settings(f"sqlite:///{folder / 'benchmark.db'}"), engine=engine)
    limiter.enabled = False
    model: Any = engine._models["sentiment"]
    schema.upgrade(app.config["SQLALCHEMY_DATABASE_URI"])
    with app.app_context(), sessionmaker(db.engine)() as session:
        tokens = list(one_assignment_each(session, app, rounds + 3))
    client = app.test_client()
    texts = [f"{ABOUT_64_TOKENS} {number}." for number in range(rounds + 3)]
    whole, raw = [], []
    for number, (token, text) in enumerate(zip(tokens, texts, strict=True)):
        sequence = model.encode((text,))
        raw_seconds = seconds_of(lambda sequence=sequence: model.loaded.forward([sequence]))  # type: ignore[misc]
        started = time.perf_counter()
        answer = client.post("/work/attempts", data={"token": token, "statement": text}, headers=BY_SCRIPT)
        seconds = time.perf_counter() - started
        if answer.status_code != 200:
            raise SystemExit(f"the route answered {answer.status_code}: {answer.text[:500]}")
        if number >= 3:
            whole.append(seconds)
            raw.append(raw_seconds)
    length = len(model.encode((texts[0],)).ids)
    print(f"{length} tokens, one client: whole route {spread(whole)}; raw forward {spread(raw)}")
    print(f"    ratio of the medians {statistics.median(whole) / statistics.median(raw):.2f} (aim: at most 1.25)")


def one_assignment_each(session: Session, app: Any, count: int) -> Iterator[str]:
    """Yield tokens of so many open assignments, each of a worker of its own."""
    from app.worker.guard import token_for

    deadline = datetime.now(UTC) + timedelta(hours=2)
    batch = make_batch(session, tries=2)
    for number in range(count):
        hit = make_hit(session, batch=batch)
        worker = make_worker(session, mturk_worker_id=f"ABENCH{number}")
        assignment = make_assignment(session, hit=hit, worker=worker, deadline_at=deadline)
        session.commit()
        with app.test_request_context():
            yield token_for(assignment)


def beside_explanations(engine: InProcessEngine, rounds: int) -> None:
    """Compare predictions alone with predictions while one client explains without a pause, in turns."""
    alone, beside, explained = [], [], 0
    for part in range(4):
        fields = {"statement": f"{ABOUT_64_TOKENS} {part}."}
        alone += [seconds_of(lambda fields=fields: engine.predict("sentiment", fields)) for _ in range(rounds // 4)]  # type: ignore[misc]
        with explaining(engine) as count:
            for _ in range(rounds // 4):
                beside.append(seconds_of(lambda fields=fields: engine.predict("sentiment", fields)))  # type: ignore[misc]
                time.sleep(0.05)
            explained += count()
    slower = statistics.median(beside) / statistics.median(alone)
    print(f"predict alone {spread(alone)}; beside explanations {spread(beside)}; {explained} explained meanwhile")
    print(f"    ratio of the medians {slower:.2f} (aim: at most 1.10)")


@contextmanager
def explaining(engine: InProcessEngine) -> Iterator[Callable[[], int]]:
    """Explain one text after the other in another thread, never the same."""
    stop, done = [], []

    def keep_on() -> None:
        number = 0
        while not stop:
            number += 1
            fields = {"statement": f"{ABOUT_64_TOKENS} {time.perf_counter()} {number}."}
            engine.explain("sentiment", fields, "negative")
            done.append(number)

    with ThreadPoolExecutor(1) as person:
        working = person.submit(keep_on)
        try:
            yield lambda: len(done)
        finally:
            stop.append(True)
        working.result()


def several_at_once(engine: InProcessEngine, rounds: int) -> None:
    """Print how many predictions a second eight clients get."""
    with ThreadPoolExecutor(8) as people:
        started = time.perf_counter()
        durations = list(
            people.map(
                lambda number: seconds_of(
                    lambda: engine.predict("sentiment", {"statement": f"The soup was cold, number {number}."})
                ),
                range(rounds * 4),
            )
        )
    rate = rounds * 4 / (time.perf_counter() - started)
    print(f"8 clients, short texts, engine only: {rate:.0f} predictions a second, {spread(durations)}")


def seconds_of(call: Callable[[], object]) -> float:
    """Return how long one call took."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def spread(seconds: list[float]) -> str:
    """Return median and 95th percentile in words."""
    ordered = sorted(one * 1000 for one in seconds)
    return f"p50 {statistics.median(ordered):.1f} ms, p95 {ordered[int(len(ordered) * 0.95)]:.1f} ms"


if __name__ == "__main__":
    main()
