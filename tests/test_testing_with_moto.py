"""The examples of docs/testing-with-moto.md, run as the files that they name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n# (?P<name>\w+\.py)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_pass_as_they_stand_on_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs/testing-with-moto.md").read_text(encoding="utf-8")
    blocks = {found["name"]: found["code"] for found in BLOCK.finditer(page)}
    assert len(blocks) == page.count("```python")
    for name, code in blocks.items():
        (tmp_path / name).write_text(code, encoding="utf-8")

    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^3 passed in", run.stdout, re.MULTILINE), run.stdout
