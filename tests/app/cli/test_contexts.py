"""``dynahit contexts``: upload, list, retire, score."""

from __future__ import annotations

import json
from pathlib import Path

from tests.app.cli.test_hits import Shell, market, shell

__all__ = ["market", "shell"]

SAID = ("--round", "1", "--source", "Somebody", "--licence", "CC0-1.0")


def test_contexts_are_planned_uploaded_listed_and_retired(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "prompts.csv"
    path.write_text("prompt\nThe train was late.\nThe train was LATE!\nA quiet museum on Monday.\n", encoding="utf-8")

    planned = shell("contexts", "upload", "sentiment", str(path), *SAID, "--plan")
    assert planned.exit_code == 0, planned.output
    assert "3 contexts read, 2 of them new to round 1." in planned.stdout
    assert "line 3: line 2 (the same)" in planned.stdout
    assert "Nothing was stored" in planned.stdout
    stored = json.loads(shell("contexts", "upload", "sentiment", str(path), *SAID, "--json").stdout)
    assert (stored["added"], stored["upload"]) == (2, 1)
    assert "Nothing is new." in shell("contexts", "upload", "sentiment", str(path), *SAID).stdout

    listed = shell("contexts", "list", "sentiment", "--round", "1")
    assert "from Somebody, licence CC0-1.0" in listed.stdout
    found = json.loads(shell("contexts", "list", "sentiment", "--round", "1", "--json").stdout)
    name = found["contexts"][0]["context"]
    plan = shell("contexts", "retire", "sentiment", name, "--round", "1", "--reason", "a name", "--plan")
    assert "1 would be retired" in plan.stdout
    assert (
        "1 contexts retired" in shell("contexts", "retire", "sentiment", name, "--round", "1", "--reason", "x").stdout
    )
    refused = shell("contexts", "retire", "sentiment", name, "--round", "1")
    assert refused.exit_code == 1
    assert "The reason is ''" in refused.stderr
    scored = json.loads(shell("contexts", "score", "sentiment", "--round", "1", "--plan", "--json").stdout)
    assert (scored["contexts"], scored["scored"]) == (2, 0)


def test_every_broken_line_is_said(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b'{"prompt": ""}\n{"prompt": 3}\n\xff\n')

    refused = shell("contexts", "upload", "sentiment", str(path), *SAID)

    assert refused.exit_code == 1
    for words in ("line 1:", "line 2:", "line 3: not UTF-8", "nothing was done"):
        assert words in refused.stderr
