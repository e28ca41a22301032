"""Run by a launcher in each of several processes: trains a tiny model together and writes the hash of what came of it.

Arguments: the folder of the encoder to start from, the folder to write to, and after how many steps to die (0: never).
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

from hits.tasks import task
from inference.runtime import computing_with
from inference.training import round_model
from inference.training.fine_tune import Tuned
from inference.training.mixture import Source
from inference.training.round_model import Settings, Wanted, prepare, train_model
from tests.inference.training.test_round_model import rows


def main(encoder: Path, out: Path, dies_at: int) -> None:
    settings = Settings(epochs=3, batch_size=8, length=16, body_rate=3e-3, head_rate=3e-3, dropout=0.0)
    wanted = Wanted(task("sentiment"), (1,), f"dir:{encoder}", "pretrained", 1, settings)
    prepared = prepare(task("sentiment"), [Source("round 1", rows(8), rows(2, "the food"), facts={})], settings)
    plain, rank, steps = round_model.fine_tune, os.environ.get("RANK", "0"), 0

    def hashed(*arguments: object, **more: object) -> Tuned:
        tuned = plain(*arguments, **more)  # type: ignore[arg-type]
        digest = hashlib.sha256()
        for name in sorted(tuned.state):
            digest.update(tuned.state[name].numpy().tobytes())
        said = {"sha256": digest.hexdigest(), "workers": tuned.workers, "looks": tuned.looks, "steps": steps}
        (out / f"worker-{rank}.json").write_text(json.dumps(said))
        return tuned

    def advance(loss: float) -> None:
        nonlocal steps
        steps += 1
        if dies_at and steps == dies_at and rank == "0":
            os.kill(os.getpid(), signal.SIGKILL)

    round_model.fine_tune = hashed
    round_model.CHECKPOINT_STEPS = 2  # type: ignore[misc]
    with computing_with(1) as threads:
        train_model(wanted, prepared, out / "models", threads=threads, code={}, advance=advance)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
