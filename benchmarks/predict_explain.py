"""Times loading, predicting and explaining with the embedded model: ``python benchmarks/predict_explain.py``."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

STARTED = time.perf_counter()
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hits.tasks import task  # noqa: E402
from inference.engine import EngineSettings, embedded_source, engine_for  # noqa: E402

SENTENCE = "I would have loved this place if I enjoyed waiting an hour for cold soup and warm beer. "
LENGTHS = {16: "The soup was cold, but the staff made up for it gladly.", 64: SENTENCE * 3, 256: SENTENCE * 13}


def timed(count: int, call: Callable[[], object]) -> str:
    """Return median and 95th percentile of so many calls, and the processor time of one (moved less by other work)."""
    durations = []
    processor = time.process_time()
    for _ in range(count):
        started = time.perf_counter()
        call()
        durations.append((time.perf_counter() - started) * 1000)
    processor = (time.process_time() - processor) / count * 1000
    durations.sort()
    late = durations[int(len(durations) * 0.95)]
    return f"p50 {statistics.median(durations):7.1f} ms  p95 {late:7.1f} ms  processor {processor:7.1f} ms"


def main() -> None:
    """Print every figure with the load of the machine, which moves them more than anything else."""
    engine = engine_for(
        {"sentiment": embedded_source(task("sentiment"))}, EngineSettings(warming_seconds=120, predict_queue=500)
    )
    engine.start()
    engine.predict("sentiment", {"statement": "good"})
    print(f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors")
    print(f"start of the program to the first prediction {time.perf_counter() - STARTED:.2f} s")
    print(f"of which loading with warm-up {engine.state().seconds:.2f} s, processor {time.process_time():.2f} s in all")
    for tokens, text in LENGTHS.items():
        answer = {"statement": text}
        predicting = timed(60, partial(engine.predict, "sentiment", answer))
        explaining = timed(6, partial(engine.explain, "sentiment", answer, "negative"))
        steps = engine.explain("sentiment", answer, "negative").steps
        print(f"about {tokens:3} tokens: predict {predicting}")
        print(f"    explain in {steps} steps: {explaining}")
    with ThreadPoolExecutor(8) as people:
        started = time.perf_counter()
        list(people.map(lambda _: engine.predict("sentiment", {"statement": LENGTHS[16]}), range(400)))
        print(f"8 people at once, 16 tokens: {400 / (time.perf_counter() - started):.0f} predictions per second")
    engine.stop()


if __name__ == "__main__":
    main()
