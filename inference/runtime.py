"""Imports torch once, with one thread per lane and without spinning; everything in this package gets it from here."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

THREAD_SETTINGS = {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Waiting OpenMP threads spin by default, which makes a forward pass tens of times slower beside a busy neighbour."""


def single_threaded_torch() -> ModuleType:
    """Return torch, with one compute thread per calling thread.

    The environment is set before the first import, since OpenMP reads it only then; values that the operator set stay.
    """
    if "torch" not in sys.modules:
        for name, value in THREAD_SETTINGS.items():
            os.environ.setdefault(name, value)
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    return torch


def give_back_memory() -> None:
    """Let the system have the memory that loading has left behind; without effect where the C library can't."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def finite(values: torch.Tensor) -> bool:
    """Tell whether every number of the tensor is neither NaN nor infinite."""
    return bool(values.isfinite().all().item())
