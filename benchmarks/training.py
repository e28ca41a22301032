"""Trains the embedded encoder on published rows, in several ways: ``python benchmarks/training.py --data DIR``.

Sentiment, DynaSent: round 1's dev rows and every other one of its test rows are learned; the other test rows and round
2's dev rows are measured on. Ways: a new head on the pretrained encoder, the same kept as a low-rank difference (as the
models that come with dynahit are), and the tuned model going on with half of round 2, measured on the other half.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from safetensors.torch import load_file  # noqa: E402

from hits.tasks import task  # noqa: E402
from inference.base_weights import locate_base_weights  # noqa: E402
from inference.bert import read_base_state  # noqa: E402
from inference.heads import model_of  # noqa: E402
from inference.loading import asked_as, load_model  # noqa: E402
from inference.low_rank import factor, merge  # noqa: E402
from inference.runtime import computing_with  # noqa: E402
from inference.training.base_files import BaseFile, read_base  # noqa: E402
from inference.training.measures import measure  # noqa: E402
from inference.training.mixture import Source  # noqa: E402
from inference.training.round_model import Settings, Wanted, prepare, reference_of, train_model  # noqa: E402
from inference.training.splits import sample  # noqa: E402
from inference.training.starts import start_from  # noqa: E402

SPEC = task("sentiment")
NAME = "sentiment_dynasent/dynasent-v1.1-"


def main() -> None:
    """Print rows, seconds of processor and clock, and accuracies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the published data sets")
    parser.add_argument("--rows", type=int, default=5400, help="of round 1 to learn")
    parser.add_argument("--tests", type=int, default=1000, help="rows of each set to measure on")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {given.threads} threads, {given.epochs} epochs")
    first, test, second = (
        rows(given.data, name)
        for name in ("round01-yelp-dev.jsonl.gz", "round01-yelp-test.jsonl.gz", "round02-dynabench-dev.jsonl")
    )
    first, test = [*first, *test[0::2]], test[1::2]
    tests = {"round 1 test, odd rows": sample(test, given.tests), "round 2, odd rows": second[1::2]}
    report("as it comes with dynahit", load_model(SPEC, SPEC.default_model), tests)
    with tempfile.TemporaryDirectory() as folder, computing_with(given.threads):
        settings = Settings(epochs=given.epochs, watched_rows=300)
        learned = trained(
            "pretrained", Source("round 1", sample(first, given.rows)), settings, Path(folder), given.threads
        )
        report("new head, all weights", load_model(SPEC, reference_of([learned])), tests)
        report("the same at rank 32", low_rank(learned.folder), tests)
        more = trained("tuned", Source("round 2", second[0::2]), settings, Path(folder), given.threads)
        report("tuned, on half of round 2", load_model(SPEC, reference_of([more])), tests)


def rows(data: Path, name: str) -> Any:
    return read_base(SPEC, BaseFile(data / f"{NAME}{name}")).train


def trained(kind: Any, source: Source, settings: Settings, out: Path, threads: int) -> Any:
    prepared = prepare(SPEC, [source], settings)
    started, clock = time.process_time(), time.monotonic()
    done = train_model(Wanted(SPEC, (), SPEC.default_model, kind, 1, settings), prepared, out, threads=threads, code={})
    print(
        f"  {kind}: {len(source.train):,} rows, {done.facts['training']['steps']} steps,"
        f" {time.process_time() - started:.0f} s of processor, {time.monotonic() - clock:.0f} s of clock"
    )
    return done


def low_rank(folder: Path) -> Any:
    """Return the model with the difference to the encoder kept at rank 32, as `dynahit model train` keeps it."""
    base = locate_base_weights()
    state = read_base_state(base)
    start = start_from(SPEC, SPEC.default_model, "pretrained", seed=1)
    merged = merge(state, factor(state, load_file(folder / "model.safetensors"), rank=32))
    start.model.load_state_dict(model_of(base, merged, start.labels).state_dict())
    return asked_as(SPEC, start.as_loaded())


def report(name: str, model: Any, tests: dict[str, Any]) -> None:
    for title, some in tests.items():
        found = measure(model, some)
        reached = f"accuracy {found['accuracy']:.1%}, macro F1 {found['macro_f1']:.1%}"
        print(f"{name}: {title}, {found['rows']:,} rows: {reached}")


if __name__ == "__main__":
    main()
