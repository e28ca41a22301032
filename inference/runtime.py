"""Imports torch once, with one thread per lane and without spinning; everything in this package gets it from here."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


@contextmanager
def computing_with(threads: int | None) -> Iterator[int]:
    """Let torch compute with so many threads meanwhile (None: as it is set), and yield how many those are."""
    torch = single_threaded_torch()
    before = os.environ.get("OMP_NUM_THREADS")
    if threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        torch.set_num_threads(threads)
    try:
        yield int(torch.get_num_threads())
    finally:
        if before is None:
            os.environ.pop("OMP_NUM_THREADS", None)
        else:
            os.environ["OMP_NUM_THREADS"] = before
        single_threaded_torch()


def is_first_process() -> bool:
    """Tell whether this is the only process of a launcher, or the first of several; the others write nothing."""
    return int(os.environ.get("RANK", "0")) == 0


def give_back_memory() -> None:
    """Let the system have the memory that loading has left behind; without effect where the C library can't."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def finite(values: torch.Tensor) -> bool:
    """Tell whether every number of the tensor is neither NaN nor infinite."""
    return bool(values.isfinite().all().item())
