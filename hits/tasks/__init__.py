"""The tasks: every module here whose name has no leading underscore defines one ``TASK``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from types import MappingProxyType

from hits.errors import NotFound
from hits.tasks._spans import character_offset, utf16_offset
from hits.tasks._spec import (
    AnswerKind,
    Choices,
    ContextField,
    Fit,
    Judgement,
    Label,
    QuizItem,
    SpanInput,
    TaskSpec,
    TextInput,
    WorkedExample,
    WriterItem,
    checked_text,
    digest_of,
    incomplete,
)
from hits.tasks._squad import RIGHT_FROM_F1, exact_match, token_f1

__all__ = [
    "RIGHT_FROM_F1",
    "TASKS",
    "AnswerKind",
    "Choices",
    "ContextField",
    "Fit",
    "Judgement",
    "Label",
    "QuizItem",
    "SpanInput",
    "TaskSpec",
    "TextInput",
    "WorkedExample",
    "WriterItem",
    "character_offset",
    "checked_text",
    "digest_of",
    "exact_match",
    "find_tasks",
    "register",
    "register_package",
    "task",
    "token_f1",
    "utf16_offset",
]


def find_tasks(package: str, paths: Iterable[str]) -> dict[str, TaskSpec]:
    """Return the tasks of a package by code. Raises TypeError or ValueError for a module without a sound TASK."""
    found: dict[str, TaskSpec] = {}
    for module in pkgutil.iter_modules(list(paths)):
        if module.name.startswith("_"):
            continue
        spec = getattr(importlib.import_module(f"{package}.{module.name}"), "TASK", None)
        if not isinstance(spec, TaskSpec):
            raise TypeError(f"{package}.{module.name} must define TASK = TaskSpec(...); it has {spec!r}.")
        if spec.code in found:
            raise ValueError(f"{package}.{module.name} repeats the task code {spec.code!r}; codes must differ.")
        if findings := incomplete(spec):
            raise ValueError(f"{package}.{module.name} is not sound: {'; '.join(findings)}.")
        found[spec.code] = spec
    return found


_registry = find_tasks(__name__, __path__)
#: The tasks by code, read-only.
TASKS = MappingProxyType(_registry)


def register(spec: TaskSpec) -> None:
    """Add a task that lives in another package. Raises ValueError for an unsound one or a code that is taken."""
    if findings := incomplete(spec):
        raise ValueError(f"The task {spec.code!r} is not sound: {'; '.join(findings)}.")
    if spec.code in _registry:
        raise ValueError(f"The task code {spec.code!r} is taken; give the new task another one.")
    _registry[spec.code] = spec


def register_package(package: str) -> None:
    """Add every task of another package, named as it is imported. Raises what find_tasks and register raise."""
    found = find_tasks(package, importlib.import_module(package).__path__)
    for spec in found.values():
        register(spec)


def task(code: str) -> TaskSpec:
    """Return the task. Raises NotFound with the list of those there are."""
    try:
        return TASKS[code]
    except KeyError:
        raise NotFound(f"There is no task {code!r}. The tasks are {', '.join(sorted(TASKS))}.") from None
