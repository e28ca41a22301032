"""Checkpoints: whole or not there, the best kept as long as it is the best, and no mixing of processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hits.errors import InvalidInput
from inference.training.checkpoints import PROGRESS, Checkpoints, Progress

torch = pytest.importorskip("torch")


class Alone:
    """What accelerate is to a single process, with a state of one number."""

    is_main_process = True
    num_processes = 1

    def __init__(self) -> None:
        self.number = 0

    def wait_for_everyone(self) -> None: ...

    def save_state(self, folder: str) -> None:
        (Path(folder) / "number").write_text(str(self.number))

    def load_state(self, folder: str) -> None:
        self.number = int((Path(folder) / "number").read_text())


def test_the_last_whole_state_is_gone_on_with(tmp_path: Path) -> None:
    kept, before = Checkpoints(tmp_path, every=5), Alone()
    for before.number, step in ((1, 5), (2, 10)):
        kept.save(before, Progress(step, [(5, 0.25)], (5, 0.25), 1))
    # A state that a kill has left without its last file, and one that was never given its name.
    (tmp_path / "step-00000015").mkdir()
    (tmp_path / "unfinished").mkdir()
    after = Alone()

    progress = kept.resume(after)

    assert (progress.step, progress.looks, progress.best, progress.worse) == (10, [(5, 0.25)], (5, 0.25), 1)
    assert after.number == 2
    assert kept.steps_done() == 10
    assert not (tmp_path / "step-00000005").exists()
    assert [kept.due(step) for step in (4, 5, 6)] == [False, True, False]


def test_without_a_state_it_begins(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "none", every=1)

    assert kept.resume(Alone()) == Progress()
    assert kept.steps_done() == 0


def test_another_number_of_processes_is_refused(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, every=1)
    kept.save(Alone(), Progress(1))
    path = tmp_path / "step-00000001" / PROGRESS
    path.write_text(json.dumps(json.loads(path.read_text()) | {"processes": 2}))

    with pytest.raises(InvalidInput, match="begun by 2 processes, and now there are 1"):
        kept.resume(Alone())


def test_the_best_weights_stay_until_a_state_with_better_ones_is_written(tmp_path: Path) -> None:
    kept, alone = Checkpoints(tmp_path, every=1), Alone()
    model: Any = torch.nn.Linear(1, 1)
    first, second = Progress(1, best=(1, 0.5)), Progress(2, best=(2, 0.75))
    kept.keep_best(alone, model, first)
    kept.save(alone, first)
    with torch.no_grad():
        model.weight.fill_(7)
    kept.keep_best(alone, model, second)

    assert float(kept.best_state(first)["weight"]) != 7
    kept.save(alone, second)
    assert float(kept.best_state(second)["weight"]) == 7
    assert [path.name for path in tmp_path.glob("best-*")] == ["best-00000002.safetensors"]
    with pytest.raises(ValueError, match="no weights were kept"):
        kept.best_state(Progress())
