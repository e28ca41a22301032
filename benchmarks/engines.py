"""Times the engines behind the same route: ``python benchmarks/engines.py [--environments DIR] [ENGINE ...]``.

Every engine serves the embedded sentiment model to the whole service: token check, task check, stored attempt, model,
stored answer, page. Clients post statements of about 64 tokens over HTTP, one client and then eight. Then eight threads
ask the engine itself as the route does, with no service around it ("alone"). The servers are run one after the other on
the same machine, each with one torch thread per worker. A server that is not to be had is left out by name. ``raw`` is
the bare forward pass of the same texts in this process, which nothing can beat.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import requests  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

import app.schema  # noqa: E402
from app.factory import default_engine  # noqa: E402
from app.settings import load_settings  # noqa: E402
from app.tokens import Claim, Tokens  # noqa: E402
from hits.clock import SystemClock  # noqa: E402
from hits.db import engine_for  # noqa: E402
from hits.models import Assignment, Context, Hit, HitBatch, Round, Worker  # noqa: E402
from hits.states import HitKind, HitState  # noqa: E402
from hits.tasks import digest_of, task  # noqa: E402
from inference.remote import archived  # noqa: E402
from tests.factories import make_consent_text  # noqa: E402
from tests.foreign.model_servers import environment_with, free_ports, running, torchserve  # noqa: E402

SPEC = task("sentiment")
SECRET = "a secret key of the benchmark, long enough"
SENTENCE = "I would have loved this place, number {}, if I enjoyed waiting an hour for cold soup and warm beer. "
ALONE, TOGETHER, CLIENTS = 60, 40, 8
PACKAGES = {
    "torchserve": "torchserve==0.12.0",
    "ray": "ray[serve]==2.60.0",
    "mlserver": "mlserver==1.7.1",
    "litserve": "litserve==0.2.19",
}
LITSERVE = """
import sys
import litserve
from hits.tasks import task
from inference.loading import load_model
from inference.remote.service import ModelService

class Api(litserve.LitAPI):
    def setup(self, device):
        self.service = ModelService(load_model(task("sentiment"), "embedded:sentiment"), 1)
    def decode_request(self, request):
        return request
    def batch(self, inputs):
        return inputs
    def predict(self, inputs):
        return self.service.answer(inputs)
    def unbatch(self, output):
        return output
    def encode_response(self, output):
        return output

api = Api(max_batch_size=8, batch_timeout=0.005, api_path="/predictions/sentiment")
litserve.LitServer(api, accelerator="cpu").run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False)
"""


@dataclass(frozen=True)
class Figures:
    """Seconds of single requests, sorted, and requests per second of all clients together."""

    seconds: list[float]
    per_second: float

    def __str__(self) -> str:
        late = self.seconds[int(len(self.seconds) * 0.95)]
        return f"p50 {self.p50 * 1000:6.1f} ms  p95 {late * 1000:6.1f} ms  {self.per_second:6.1f} a second"

    @property
    def p50(self) -> float:
        """The median."""
        return statistics.median(self.seconds)


def main() -> None:
    """Print one line per engine and number of clients, and the ratios that the project aims at."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(layouts())}; all without one")
    parser.add_argument("--environments", type=Path, help="where the servers' environments are kept between runs")
    chosen = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors, {datetime.now(UTC):%F}")
    raw = raw_forward()
    print(f"{'raw':24} 1 client   p50 {raw * 1000:6.1f} ms")
    found: dict[str, tuple[Figures, Figures, Figures]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        environments = chosen.environments or Path(temporary, "environments")
        environments.mkdir(parents=True, exist_ok=True)
        for name in chosen.engines or layouts():
            folder = Path(temporary, name.replace(" ", "-"))
            folder.mkdir()
            try:
                with layouts()[name](folder, environments) as settings:
                    found[name] = (*measured(folder, settings), by_itself(folder, settings))
            except (AssertionError, OSError, requests.RequestException, BaseExceptionGroup) as error:
                print(f"{name:24} left out: {str(error)[-300:]}")
                continue
            for said, figures in zip(("1 client", f"{CLIENTS} clients", "alone"), found[name], strict=True):
                print(f"{name:24} {said:10} {figures}", flush=True)
    if "in-process" in found:
        one, *others = found.pop("in-process")
        print(f"whole route against the raw forward pass, one client: {one.p50 / raw:.2f} times (aim: at most 1.25)")
        for said, place in ((f"{CLIENTS} clients", 1), ("alone", 2)):
            if found:
                best = max(found, key=lambda name: found[name][place].per_second)
                ratio = others[place - 1].per_second / found[best][place].per_second
                print(f"{said} against the best other ({best}): {ratio:.2f} times (aim: at least 1.3)")


def raw_forward() -> float:
    """Return the median seconds of one forward pass over a text of the benchmark, tokenized, with nothing around it."""
    from inference.encoding import encode_text
    from inference.loading import load_model
    from inference.runtime import single_threaded_torch

    torch = single_threaded_torch()
    loaded = load_model(SPEC, "embedded:sentiment").loaded  # type: ignore[attr-defined]  # a Classifier
    times = []
    for number in range(ALONE):
        ids = torch.tensor([encode_text(loaded.tokenizer, statement(number), loaded.max_length).ids])
        started = time.perf_counter()
        with torch.inference_mode():
            loaded.model(input_ids=ids, attention_mask=torch.ones_like(ids))
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def statement(number: int) -> str:
    """Return a statement of about 64 tokens that no other request has."""
    return SENTENCE.format(number) * 2 + "It was fine."


def measured(folder: Path, settings: dict[str, str]) -> tuple[Figures, Figures]:
    """Run the service with these settings and return the figures of one client and of several."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    environment = {**instance(folder), "DYNAHIT_SERVICE_URL": url, **settings}
    tokens = written_hits(environment["DYNAHIT_DATABASE_URL"])
    command = [sys.executable, "-m", "app.cli", "serve", "--bind", f"127.0.0.1:{port}"]
    with running(command, folder=folder, environment={**environment, "PYTHONPATH": str(ROOT)}, ready=f"{url}/healthz"):
        warm_up(url, tokens)
        return asked(url, tokens, clients=1, each=ALONE), asked(url, tokens, clients=CLIENTS, each=TOGETHER)


def instance(folder: Path) -> dict[str, str]:
    """Return the settings of a service of its own."""
    return {
        "DYNAHIT_HOME": str(folder),
        "DYNAHIT_DATABASE_URL": f"sqlite:///{folder / 'dynahit.db'}",
        "DYNAHIT_SECRET_KEY": SECRET,
        "DYNAHIT_PSEUDONYM_KEY": SECRET,
        "DYNAHIT_AWS_ACCESS_KEY_ID": "none",
        "DYNAHIT_AWS_SECRET_ACCESS_KEY": "none",
    }


def by_itself(folder: Path, settings: dict[str, str]) -> Figures:
    """Return the figures of several threads that ask the engine which a service with these settings would have."""
    with mock.patch.dict(os.environ, {**instance(folder), **settings}):
        engine: Any = default_engine(load_settings())
        engine.start()
        if engine.wait_until_settled(240).name != "ready":
            raise AssertionError(engine.state().message)

        def client(place: int) -> list[float]:
            seconds = []
            for number in range(TOGETHER):
                started = time.perf_counter()
                engine.predict(SPEC.code, {"statement": statement(1000 * place + number)})
                seconds.append(time.perf_counter() - started)
            return seconds

        with ThreadPoolExecutor(CLIENTS) as people:
            list(people.map(client, range(CLIENTS)))
            started = time.perf_counter()
            seconds = [one for some in people.map(client, range(CLIENTS)) for one in some]
            whole = time.perf_counter() - started
        engine.stop()
    return Figures(sorted(seconds), len(seconds) / whole)


def written_hits(database_url: str) -> Iterator[str]:
    """Store a round with one open assignment for each request to come, and yield a token for each."""
    app.schema.upgrade(database_url)
    tokens = Tokens(SECRET, SystemClock())
    now = datetime.now(UTC)
    claims = []
    with Session(engine_for(database_url)) as session, session.begin():
        round_ = Round(task_code=SPEC.code, number=1, task_version=SPEC.version, created_at=now)
        session.add(round_)
        session.flush()
        fields = {"prompt": "Think of a meal."}
        context = Context(round_id=round_.id, fields=fields, digest=digest_of(fields), created_at=now)
        batch = HitBatch(
            round_id=round_.id,
            kind=HitKind.CREATION,
            key="benchmark",
            endpoint="http://127.0.0.1:8000",
            title="t",
            description="d",
            keywords="k",
            reward=Decimal("0.10"),
            bonus=Decimal("0.10"),
            assignment_seconds=3600,
            auto_approval_seconds=3600,
            lifetime_seconds=3600,
            created_at=now,
        )
        session.add_all([context, batch])
        session.flush()
        consent = make_consent_text(session)
        for number in range(ALONE + CLIENTS * TOGETHER + 100):
            hit = Hit(
                batch_id=batch.id,
                position=number,
                reference=f"r{number}",
                request_token=f"t{number}",
                state=HitState.CREATED,
                mturk_hit_id=f"h{number}",
                context_id=context.id,
                goal_label="negative",
            )
            worker = Worker(mturk_worker_id=f"A{number}", pseudonym=f"p{number}", created_at=now)
            session.add_all([hit, worker])
            session.flush()
            session.add(
                Assignment(
                    mturk_assignment_id=f"a{number}",
                    hit_id=hit.id,
                    worker_id=worker.id,
                    consent_text_id=consent.id,
                    opened_at=now,
                    deadline_at=now + timedelta(hours=1),
                )
            )
            claims.append(Claim(f"a{number}", f"A{number}", f"r{number}"))
    return iter([tokens.issue(claim, valid_until=now + timedelta(hours=1)) for claim in claims])


def warm_up(url: str, tokens: Iterator[str]) -> None:
    """Ask until the model answers, then some times more."""
    deadline = time.monotonic() + 240
    answered = 0
    token = next(tokens)
    while answered < 10:
        response = ask(requests.Session(), url, token, f"warm {answered}. " + statement(0))
        if response.status_code == 200:
            answered += 1
            token = next(tokens)
        elif time.monotonic() > deadline:
            raise AssertionError(f"the model does not answer: {response.status_code}: {response.text[-300:]}")
        else:
            time.sleep(2)


def asked(url: str, tokens: Iterator[str], *, clients: int, each: int) -> Figures:
    """Return the figures of so many clients that ask one after the other."""
    portions = [[next(tokens) for _ in range(each)] for _ in range(clients)]
    seconds: list[float] = []
    failures: list[str] = []

    def client(place: int) -> None:
        session = requests.Session()
        for number, token in enumerate(portions[place]):
            started = time.perf_counter()
            response = ask(session, url, token, statement(1000 * place + number))
            seconds.append(time.perf_counter() - started)
            if response.status_code != 200:
                failures.append(f"{response.status_code}: {response.text[-200:]}")

    threads = [threading.Thread(target=client, args=(place,)) for place in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = time.perf_counter() - started
    if failures:
        raise AssertionError(f"{len(failures)} of {clients * each} questions failed: {failures[0]}")
    return Figures(sorted(seconds), clients * each / whole)


def ask(session: requests.Session, url: str, token: str, text: str) -> requests.Response:
    """Post one statement as the page's script does."""
    return session.post(
        f"{url}/work/attempts",
        data={"token": token, "statement": text},
        headers={"X-Requested-With": "fetch"},
        timeout=60,
    )


Layout = Callable[[Path, Path], AbstractContextManager[dict[str, str]]]


def layouts() -> dict[str, Layout]:
    """Return the engines by name: each yields the settings by which the service reaches it."""
    return {
        "in-process": in_process,
        "torchserve 2 workers": lambda folder, kept: on_torchserve(folder, kept, workers=2, batch=1),
        "torchserve batch 8": lambda folder, kept: on_torchserve(folder, kept, workers=1, batch=8),
        "ray 1 copy": lambda folder, kept: on_ray(folder, kept, copies=1),
        "ray 2 copies": lambda folder, kept: on_ray(folder, kept, copies=2),
        "mlserver batch 8": on_mlserver,
        "litserve batch 8": on_litserve,
    }


@contextmanager
def in_process(_folder: Path, _kept: Path) -> Iterator[dict[str, str]]:
    """The model in the service."""
    yield {}


@contextmanager
def on_torchserve(folder: Path, kept: Path, *, workers: int, batch: int) -> Iterator[dict[str, str]]:
    """TorchServe with the archive that `dynahit model archive` makes."""
    binaries = environment(kept, "torchserve")
    files = archived.files_of(SPEC, "embedded:sentiment")
    archived.write_archive(SPEC, files, folder / "store", name="sentiment")
    models = {"sentiment": "sentiment.mar", "sentiment-explain": "sentiment.mar"}
    with torchserve(folder, binaries, folder / "store", models, batch=batch, workers=workers) as url:
        settings = served("torchserve", url)
        yield {**settings, "TORCHSERVE_KEY_FILE": str(folder / "key_file.json")}


@contextmanager
def on_ray(folder: Path, kept: Path, *, copies: int) -> Iterator[dict[str, str]]:
    """Ray Serve as `dynahit model serve --ray` lays it out."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    arguments = ["--port", str(port), "--model", "sentiment=embedded:sentiment", "--replicas", str(copies)]
    command = [environment(kept, "ray") / "python", "-m", "app.cli", "model", "serve", "--ray", *arguments]
    with running(command, folder=folder, environment={"RAY_AUTH_MODE": "disabled"}, ready=f"{url}/health"):
        yield served("ray", url)


@contextmanager
def on_mlserver(folder: Path, kept: Path) -> Iterator[dict[str, str]]:
    """MLServer with the runtime of the tests, which batches by itself."""
    http, grpc, metrics = free_ports(3)
    ports = {"http_port": http, "grpc_port": grpc, "metrics_port": metrics}
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", "parallel_workers": 0, **ports}))
    (folder / "model-settings.json").write_text(
        json.dumps(
            {
                "name": "sentiment",
                "implementation": "tests.foreign.mlserver_runtime.EmbeddedRuntime",
                "max_batch_size": 8,
                "max_batch_time": 0.005,
                "parameters": {"extra": {"task": "sentiment"}},
            }
        )
    )
    url = f"http://127.0.0.1:{http}"
    command = [environment(kept, "mlserver") / "mlserver", "start", folder]
    with running(command, folder=folder, environment=threads(), ready=f"{url}/v2/models/sentiment/ready"):
        yield served("oip", url)


@contextmanager
def on_litserve(folder: Path, kept: Path) -> Iterator[dict[str, str]]:
    """LitServe with an API of this package's protocol."""
    (port,) = free_ports(1)
    (folder / "serve.py").write_text(LITSERVE)
    url = f"http://127.0.0.1:{port}"
    command = [environment(kept, "litserve") / "python", "serve.py", str(port)]
    with running(command, folder=folder, environment=threads(), ready=f"{url}/health"):
        yield served("ray", url)


def served(engine: str, url: str) -> dict[str, str]:
    """Return the settings of a service that asks a server for the one task of the benchmark."""
    models = json.dumps({"sentiment": "served:sentiment"})
    return {"DYNAHIT_ENGINE": engine, "DYNAHIT_ENGINE_URL": url, "DYNAHIT_MODELS": models}


def threads() -> dict[str, str]:
    """Return the environment that gives each process one compute thread, as the service's own."""
    return {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "TOKENIZERS_PARALLELISM": "false"}


def environment(kept: Path, name: str) -> Path:
    """Return the bin folder of a server's environment, made when it is not there."""
    folder = kept / name
    if not (folder / "bin").exists():
        environment_with(folder, PACKAGES[name])
    return folder / "bin"


if __name__ == "__main__":
    main()
