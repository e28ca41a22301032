"""Keeps a training's state on disk, so that one that was killed goes on where it was."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hits.errors import InvalidInput

if TYPE_CHECKING:
    from torch import Tensor

PROGRESS: Final = "progress.json"
UNFINISHED: Final = "unfinished"


@dataclass
class Progress:
    """How far a training is: steps done, (steps, score) of each look, the best of them, looks since that were worse.

    ``ended`` says why it ended before its last step.
    """

    step: int = 0
    looks: list[tuple[int, float]] = field(default_factory=list)
    best: tuple[int, float] | None = None
    worse: int = 0
    ended: str = ""


class Checkpoints:
    """A folder with the last state of one training and its best weights; a state appears in it whole or not at all.

    A state is written every ``every`` steps. Several processes must see the same folder.
    """

    def __init__(self, folder: Path, *, every: int) -> None:
        self.folder = folder
        self.every = every

    def due(self, step: int) -> bool:
        """Tell whether a state is to be written after so many steps."""
        return step % self.every == 0

    def steps_done(self) -> int:
        """Return after how many steps the last state was written, 0 when there is none."""
        states = self._states()
        return int(states[-1].name.removeprefix("step-")) if states else 0

    def resume(self, accelerator: Any) -> Progress:
        """Load the last state into all that the accelerator has prepared, and return how far it was.

        Raises InvalidInput when another number of processes wrote it: each has random numbers of its own.
        """
        states = self._states()
        if not states:
            return Progress()
        said = json.loads((states[-1] / PROGRESS).read_text(encoding="utf-8"))
        if (before := said.pop("processes")) != accelerator.num_processes:
            raise InvalidInput(
                f"The training in {self.folder} was begun by {before} processes, and now there are"
                f" {accelerator.num_processes}. Start {before}, or remove the folder to begin anew."
            )
        accelerator.load_state(str(states[-1]))
        said["looks"] = [(step, score) for step, score in said["looks"]]
        said["best"] = None if said["best"] is None else tuple(said["best"])
        return Progress(**said)

    def save(self, accelerator: Any, progress: Progress) -> None:
        """Write the state; all processes call it after the same step."""
        part = self.folder / UNFINISHED
        if accelerator.is_main_process:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
        accelerator.wait_for_everyone()
        accelerator.save_state(str(part))
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            said = asdict(progress) | {"processes": accelerator.num_processes}
            (part / PROGRESS).write_text(json.dumps(said), encoding="utf-8")
            earlier = self._states()
            part.replace(self.folder / f"step-{progress.step:08}")
            for one in earlier:
                shutil.rmtree(one, ignore_errors=True)
            for one in self.folder.glob("best-*.safetensors"):
                if progress.best is None or one != self._best(progress.best[0]):
                    one.unlink()
        accelerator.wait_for_everyone()

    def keep_best(self, accelerator: Any, model: Any, progress: Progress) -> None:
        """Keep the weights as the best ones so far; those of the last state stay until the next one is written."""
        from safetensors.torch import save_file

        if not accelerator.is_main_process or progress.best is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / "best.part"
        save_file({name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}, part)
        part.replace(self._best(progress.best[0]))

    def best_state(self, progress: Progress) -> dict[str, Tensor]:
        """Return the best weights. Raises ValueError when none were kept."""
        from safetensors.torch import load_file

        if progress.best is None:
            raise ValueError("no weights were kept as the best")
        return load_file(self._best(progress.best[0]))

    def _states(self) -> list[Path]:
        """Return the states that are whole, the last one last."""
        return sorted(path for path in self.folder.glob("step-*") if (path / PROGRESS).is_file())

    def _best(self, step: int) -> Path:
        return self.folder / f"best-{step:08}.safetensors"
