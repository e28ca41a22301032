"""Tasks are found by themselves, and an unsound one stops the start with its reason."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from hits.errors import NotFound
from hits.tasks import TASKS, find_tasks, register, task
from hits.tasks.sentiment import TASK as SENTIMENT


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """An importable package of tasks with a name of its own, so that nothing is found in the cache of modules."""
    folder = tmp_path / f"tasks_of_{request.node.name.replace('[', '_').replace(']', '_')}"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def found_in(package: Path) -> dict[str, object]:
    try:
        return dict(find_tasks(package.name, [str(package)]))
    finally:
        for name in [name for name in sys.modules if name.startswith(package.name)]:
            del sys.modules[name]


ONE = "from dataclasses import replace\nfrom hits.tasks.sentiment import TASK as S\nTASK = replace(S, code='one'{})\n"


def test_every_module_without_an_underscore_is_a_task(package: Path) -> None:
    (package / "one.py").write_text(ONE.format(""))
    (package / "_shared.py").write_text("raise RuntimeError('not a task')\n")

    assert list(found_in(package)) == ["one"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n", "must define TASK"),
        (ONE.format(", labels=S.labels[:1]"), "labels must be two or more"),
        (ONE.format(", model_fields=('nothing',)"), "'nothing' is neither a context nor an answer field"),
    ],
)
def test_an_unsound_module_is_refused_with_its_reason(package: Path, source: str, message: str) -> None:
    (package / "one.py").write_text(source)

    with pytest.raises((TypeError, ValueError), match=message):
        found_in(package)


def test_a_code_is_taken_once(package: Path) -> None:
    (package / "one.py").write_text(ONE.format(""))
    (package / "two.py").write_text(ONE.format(""))

    with pytest.raises(ValueError, match="repeats the task code 'one'"):
        found_in(package)


def test_a_task_can_not_be_registered_under_a_taken_code_or_unsound() -> None:
    with pytest.raises(ValueError, match="'sentiment' is taken"):
        register(SENTIMENT)
    with pytest.raises(ValueError, match="not sound"):
        register(dataclasses.replace(SENTIMENT, code="other", labels=SENTIMENT.labels[:1]))
    assert "other" not in TASKS


def test_an_unknown_task_is_answered_with_those_there_are() -> None:
    with pytest.raises(NotFound, match=r"no task 'poetry'\. The tasks are .*sentiment"):
        task("poetry")
