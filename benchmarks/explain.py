"""Times explanations against plain Captum, and says how near they are: ``python benchmarks/explain.py``.

Captum's LayerIntegratedGradients runs with its defaults (50 steps) on a model of its own, one thread, in turns with the
fast way; both are compared with a reference of 300 steps by the cosine of their word scores. Beside each figure stands
how much of the processor's measured rate of matrix products it used.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hits.tasks import task
from inference.runtime import single_threaded_torch

torch = single_threaded_torch()

from captum.attr import IntegratedGradients, LayerIntegratedGradients  # noqa: E402

from inference.classify import Classifier  # noqa: E402
from inference.explain import STEPS, integrated_gradients  # noqa: E402
from inference.lean_bert import lean_bert_of  # noqa: E402
from inference.loading import load_model  # noqa: E402
from inference.twin import half_is_fast, twin_of  # noqa: E402

SENTENCE = "I would have loved this place if I enjoyed waiting an hour for cold soup and warm beer. "
LENGTHS = {16: "The soup was cold, but the staff made up for it gladly.", 64: SENTENCE * 3, 256: SENTENCE * 13}


def main() -> None:
    """Print a line for each length, with the load of the machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="explanations per figure")
    parser.add_argument("--tokens", type=int, nargs="*", default=sorted(LENGTHS), choices=sorted(LENGTHS))
    chosen = parser.parse_args()
    half = half_is_fast()
    aim = 8 if half else 4
    print(f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors, one thread")
    print(f"bfloat16 is {'fast here' if half else 'not fast here, so all is in single precision'}; aim: 1/{aim}")
    model = load_model(task("sentiment"), "embedded:sentiment")
    if not isinstance(model, Classifier):
        raise SystemExit("the embedded sentiment model is no classifier")
    way = lean_bert_of(model.loaded.model, half=half) or twin_of(model.loaded.model, half=half)
    own = copy.deepcopy(model.loaded.model)
    rate = products_per_second(torch.bfloat16 if half else torch.float32)
    print(f"matrix products of this size run at {rate / 1e9:.0f} GFLOP/s")
    for length in chosen.tokens:
        compare(model, way, own, length, chosen.rounds, rate)


def compare(model: Classifier, way: Any, own: Any, length: int, rounds: int, rate: float) -> None:
    """Print time, ratio, cosine and part of the limit for one text."""
    text = LENGTHS[length]
    label = model.predict(text).label
    score = model.score((text,), label)
    ids = torch.tensor([score.sequence.ids])
    blank = torch.where(torch.tensor([score.sequence.special]), ids, model.loaded.pad_token_id)
    layer = own.bert.embeddings.word_embeddings
    layer.weight.requires_grad_(True)
    plain = LayerIntegratedGradients(lambda given: own(input_ids=given).logits, layer)
    target = model.loaded.labels.index(label)

    def captum() -> Any:
        with torch.no_grad():
            own(input_ids=ids)
        return plain.attribute(ids, blank, target=target, return_convergence_delta=True)[0]

    def fast() -> Any:
        return integrated_gradients(score, way, 0.0)

    captum_times, fast_times = [], []
    for _ in range(rounds):
        captum_times.append(seconds_of(captum))
        fast_times.append(seconds_of(fast))
    reference = (
        IntegratedGradients(score.values)
        .attribute(score.inputs, score.baseline, n_steps=300, method="riemann_middle", internal_batch_size=8)
        .sum(-1)[0]
    )
    cosine = float(torch.cosine_similarity(torch.tensor(fast().by_position), reference.double(), dim=0))
    captum_cosine = float(torch.cosine_similarity(captum().sum(-1)[0].double(), reference.double(), dim=0))
    slow, quick = statistics.median(captum_times), statistics.median(fast_times)
    operations = forward_operations(model.loaded.model.config, len(score.sequence.ids))
    # Forward and backward to the inputs cost the same; two end points are forward only.
    part = operations * (2 * STEPS[0] + 2) / rate / quick
    print(
        f"{len(score.sequence.ids):4} tokens: Captum, 50 steps {slow * 1000:8.1f} ms (cosine {captum_cosine:.4f}); "
        f"{STEPS[0]} steps {quick * 1000:7.1f} ms (cosine {cosine:.4f}); {slow / quick:.1f} times as fast; "
        f"{part:.0%} of the limit"
    )


def forward_operations(config: Any, positions: int) -> float:
    """Return the floating point operations of one forward pass of a classifier that computes no more than it needs."""
    size, wide = config.hidden_size, config.intermediate_size
    whole = 2 * positions * (4 * size * size + 2 * size * wide) + 4 * positions * positions * size
    last = 2 * positions * 2 * size * size + 2 * (2 * size * size + 2 * size * wide) + 4 * positions * size
    return float((config.num_hidden_layers - 1) * whole + last + 2 * size * size)


def products_per_second(dtype: Any) -> float:
    """Return the measured rate of one thread's matrix products, of the size that explanations use."""
    left, right = torch.randn(1024, 384, dtype=dtype), torch.randn(384, 1536, dtype=dtype)
    torch.mm(left, right)
    fastest = min(seconds_of(lambda: torch.mm(left, right)) for _ in range(40))
    return 2 * 1024 * 384 * 1536 / fastest


def seconds_of(call: Callable[[], object]) -> float:
    """Return how long one call took."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
