"""How torch is imported: one thread, no spinning, and the operator's own settings kept."""

from __future__ import annotations

import subprocess
import sys

import pytest

from inference.runtime import finite


def test_threads_are_set_before_torch_is_imported() -> None:
    program = (
        "import os\n"
        "os.environ.pop('OMP_NUM_THREADS', None); os.environ.pop('OMP_WAIT_POLICY', None)\n"
        "from inference.runtime import single_threaded_torch\n"
        "torch = single_threaded_torch()\n"
        "print(os.environ['OMP_NUM_THREADS'], os.environ['OMP_WAIT_POLICY'], torch.get_num_threads())\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)

    assert done.stdout.split() == ["1", "PASSIVE", "1"], done.stderr


def test_what_the_operator_set_stays() -> None:
    program = (
        "import os\n"
        "os.environ['OMP_NUM_THREADS'] = '2'; os.environ['OMP_WAIT_POLICY'] = 'ACTIVE'\n"
        "from inference.runtime import single_threaded_torch\n"
        "print(single_threaded_torch().get_num_threads(), os.environ['OMP_WAIT_POLICY'])\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)

    assert done.stdout.split() == ["2", "ACTIVE"], done.stderr


@pytest.mark.parametrize(("number", "expected"), [(1.0, True), (float("nan"), False), (float("-inf"), False)])
def test_one_number_that_is_not_finite_spoils_a_tensor(number: float, expected: bool) -> None:
    torch = pytest.importorskip("torch")

    assert finite(torch.tensor([[0.0, number]])) is expected
