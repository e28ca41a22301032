"""The examples of docs/testing-with-moto.md, run as the files that they name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import skip_unless_ci

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n# (?P<name>\w+\.py)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def run_examples(folder: Path, python: Path | str, **changes: str) -> None:
    """Write the page's files into the folder and run them with pytest."""
    page = (ROOT / "docs/testing-with-moto.md").read_text(encoding="utf-8")
    blocks = {found["name"]: found["code"] for found in BLOCK.finditer(page)}
    assert len(blocks) == page.count("```python")
    for name, code in blocks.items():
        (folder / name).write_text(code, encoding="utf-8")

    run = subprocess.run(
        [python, "-W", "error", "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "."],
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **changes},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^3 passed in", run.stdout, re.MULTILINE), run.stdout


def test_the_examples_pass_as_they_stand_on_the_page(tmp_path: Path) -> None:
    run_examples(tmp_path, sys.executable, PYTHONPATH=str(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("moto", ["moto[server]>=5.2,<5.3", "moto[server]>=5.1,<5.2"])
def test_the_examples_pass_where_it_was_installed_as_the_page_says(tmp_path: Path, moto: str) -> None:
    source, examples, venv = tmp_path / "source", tmp_path / "examples", tmp_path / "venv"
    examples.mkdir()
    # Not from the checkout itself, where pip would leave a build folder behind.
    for name in ("app", "hits", "inference", "payments", "qualification"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    extra = "[moto]" if "5.3" in moto else ""
    pip = [venv / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    installed = subprocess.run(
        [*pip, f"dynahit{extra} @ {source.as_uri()}", moto, "pytest"], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        skip_unless_ci(f"dynahit and {moto} can't be installed here: {installed.stderr.strip()[-300:]}")

    run_examples(examples, venv / "bin/python", PYTHONPATH="")
