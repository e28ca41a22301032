"""Times import, freezing, export and measuring by size: ``python benchmarks/datasets.py --sizes 20000,1000000``.

A made-up set of DynaSent's form: a writer for every fifty rows, two rows on each prompt, three readers for each row.
Each step runs in a process of its own, so that its memory is its own, on SQLite as an instance has it (WAL,
synchronous=FULL) or, with ``--database``, on an empty database. What must hold: the time for a row does not
grow with the number of rows, and memory grows by little more than the splits need (some hundred bytes a row).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sqlalchemy.orm import Session, sessionmaker  # noqa: E402

from app import schema  # noqa: E402
from app.operations.export_dataset import DEFAULT_LICENCE, export_dataset  # noqa: E402
from app.operations.freeze import freeze_round  # noqa: E402
from app.operations.import_dataset import ImportTerms, import_dataset  # noqa: E402
from hits.clock import SystemClock  # noqa: E402
from hits.db import engine_for  # noqa: E402
from hits.manifest import SplitTerms  # noqa: E402
from hits.predictions import Attribution, ModelUnavailable, Prediction  # noqa: E402
from inference.target import ModelCard, ModelInput  # noqa: E402

LABELS = ("negative", "positive", "neutral")
KEY = "a key of the benchmark"


def main() -> None:
    """Print a line for each step and size, and at the end how much more a row costs at the largest size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2000,20000", help="numbers of rows, the smallest first")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder if it is left out")
    parser.add_argument("--database", help="address of an empty database; only with one size")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        measured(given.step, given.folder, given.database)
        return
    sizes = [int(size) for size in given.sizes.split(",")]
    if given.database and len(sizes) > 1:
        parser.error("--database needs one size: each wants an empty one")
    print(
        f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors,"
        f" {datetime.now(UTC):%Y-%m-%d}"
    )
    print(f"{'step':<8}{'rows':>10}{'seconds':>10}{'CPU s':>10}{'CPU µs/row':>12}{'peak MB':>9}")
    costs: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as base:
        for size in sizes:
            folder = Path(base) / str(size)
            folder.mkdir()
            write_rows(folder / "rows-train.jsonl", size)
            schema.upgrade(given.database or address(folder))
            for step in STEPS:
                found = in_a_process(step, folder, given.database)
                costs.setdefault(step, []).append(found["cpu"] / size)
                print(
                    f"{step:<8}{size:>10,}{found['seconds']:>10.1f}{found['cpu']:>10.1f}"
                    f"{1e6 * found['cpu'] / size:>12.0f}{found['megabytes']:>9.0f}",
                    flush=True,
                )
            shutil.rmtree(folder)
    if len(sizes) > 1:
        shown = ", ".join(f"{step} {cost[-1] / cost[0]:.2f}" for step, cost in costs.items())
        print(f"CPU time for a row at {sizes[-1]:,} rows against {sizes[0]:,}: {shown}")


def in_a_process(step: str, folder: Path, database: str | None) -> dict[str, float]:
    """Run a step alone and return its figures."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
    command += ["--database", database] if database else []
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"{step} failed:\n{run.stderr[-3000:]}")
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def measured(step: str, folder: Path, database: str | None) -> None:
    """Do a step and print what it took; what the libraries cost before it began is left out of the time."""
    engine = engine_for(database or address(folder))
    with sessionmaker(engine, expire_on_commit=False)() as session:
        started, cpu = time.perf_counter(), time.process_time()
        STEPS[step](session, folder)
        figures = {
            "seconds": time.perf_counter() - started,
            "cpu": time.process_time() - cpu,
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    engine.dispose()
    print(json.dumps(figures))


def imported(session: Session, folder: Path) -> None:
    terms = ImportTerms("dynasent", (folder / "rows-train.jsonl",), 1)
    import_dataset(session, SystemClock(), terms, key=KEY, by="benchmark")


def figures(session: Session, folder: Path) -> None:
    from app.operations.round_stats import round_stats

    round_stats(session, "sentiment", 1)


def frozen(session: Session, folder: Path) -> None:
    freeze_round(session, SystemClock(), "sentiment", 1, SplitTerms(seed=1), by="benchmark")


def exported(session: Session, folder: Path) -> None:
    export_dataset(
        session, "sentiment", [1], folder / "data", licence=DEFAULT_LICENCE, with_attributions=False, secret=KEY
    )


def looked_at(session: Session, folder: Path) -> None:
    from app.operations.measure_bias import measure_bias

    measure_bias(session, SystemClock(), "sentiment", 1)


def answered(session: Session, folder: Path) -> None:
    """Measure on the training split, the largest one; a model that thinks would only add its own time."""
    from app.operations.measure_models import measure_model
    from hits.measures.sets import split_set
    from hits.states import Split

    split = split_set(session, "sentiment", 1, Split.TRAIN)
    measure_model(session, SystemClock(), AlwaysPositive(), split, model_task="sentiment")


class AlwaysPositive:
    """A target model that does not read."""

    model_id, revision, card = "always", "one", ModelCard("always", "one", LABELS)

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        return [Prediction("always", "one", "positive", {"positive": 1.0}, 0.0) for _ in inputs]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        raise ModelUnavailable("it explains nothing")


STEPS: dict[str, Callable[[Session, Path], None]] = {
    "import": imported,
    "stats": figures,
    "freeze": frozen,
    "export": exported,
    "bias": looked_at,
    "measure": answered,
}


def address(folder: Path) -> str:
    """Return the address of the SQLite file of a run."""
    return f"sqlite:///{folder / 'dynahit.db'}"


def write_rows(path: Path, size: int) -> None:
    """Write the made-up set."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(size):
            label, other = LABELS[number % 3], LABELS[(number + 1) % 3]
            row = {
                "text_id": f"row-{number:08d}",
                "sentence": f"The soup of day {number} came cold, and nobody at table {number % 977} complained.",
                "sentence_author": f"w{number // 50}",
                "has_prompt": True,
                "prompt_data": {
                    "prompt_sentence": f"We had lunch there on day {number // 2}, and it was like every day."
                },
                "model_1_label": other if number % 2 else label,
                "model_1_probs": {"negative": 0.25, "positive": 0.5, "neutral": 0.25},
                "label_distribution": {label: [f"v{(number * 7 + k * 331) % 5000}" for k in range(3)]},
                "gold_label": label,
            }
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
