"""Stores a fine-tuning as a small difference to its base: low-rank factors per matrix, everything else whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from inference.runtime import finite, single_threaded_torch

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = "dynahit-low-rank-1"
LEFT, RIGHT, WHOLE = "left:", "right:", "whole:"


def factor(base: Mapping[str, Tensor], tuned: Mapping[str, Tensor], *, rank: int) -> dict[str, Tensor]:
    """Return the difference tuned - base: half-precision factors for large matrices, whole tensors for the rest.

    Tensors that didn't change are left out; tensors that the base lacks (the head) are kept whole.
    """
    torch = single_threaded_torch()
    delta: dict[str, Tensor] = {}
    for name, weight in tuned.items():
        origin = base.get(name)
        if origin is not None and torch.equal(origin, weight):
            continue
        if origin is None or weight.dim() != 2 or min(weight.shape) <= 2 * rank:
            delta[WHOLE + name] = weight.detach().float().contiguous().clone()
            continue
        left, scale, right = torch.linalg.svd((weight - origin).double(), full_matrices=False)
        root = scale[:rank].sqrt()
        delta[LEFT + name] = (left[:, :rank] * root).half().contiguous()
        delta[RIGHT + name] = (root[:, None] * right[:rank]).half().contiguous()
    return delta


def merge(base: Mapping[str, Tensor], delta: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return base + delta in single precision; tensors without a difference are the base's own.

    Raises ValueError that names the tensor when the delta doesn't fit the base or isn't finite.
    """
    merged = dict(base)
    for key, value in delta.items():
        if not finite(value):
            raise ValueError(f"{key} holds a number that is not finite")
        if key.startswith(WHOLE):
            merged[key.removeprefix(WHOLE)] = value.float()
        elif key.startswith(LEFT):
            name = key.removeprefix(LEFT)
            right = delta.get(RIGHT + name)
            origin = base.get(name)
            if right is None or origin is None:
                raise ValueError(f"{key} has no {'right factor' if right is None else 'tensor in the base'}")
            change = value.float() @ right.float()
            if change.shape != origin.shape:
                raise ValueError(f"{key} gives {tuple(change.shape)}, the base has {tuple(origin.shape)}")
            merged[name] = origin.float() + change
        elif not key.startswith(RIGHT) or LEFT + key.removeprefix(RIGHT) not in delta:
            raise ValueError(f"{key} is not a part of a difference")
    return merged


def save_delta(path: Path, delta: Mapping[str, Tensor]) -> None:
    """Write the difference as safetensors."""
    from safetensors.torch import save_file

    save_file(dict(delta), path, metadata={"format": FORMAT})


def read_delta(path: Path) -> dict[str, Tensor]:
    """Read a difference written by save_delta. Raises ValueError when the file is something else."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            found = (file.metadata() or {}).get("format")
            if found != FORMAT:
                raise ValueError(f"{path.name} has format {found!r}, {FORMAT!r} is needed")
            return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118, the file is no mapping
    except SafetensorError as error:
        raise ValueError(f"{path.name} is no safetensors file: {error}") from error
