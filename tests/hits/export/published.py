"""A published example for the tests of what is made of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hits.export.rows import ExportedExample, Pseudonyms, exported
from hits.export.stored import StoredVote
from hits.tasks import task
from tests.hits.test_manifest import EXAMPLE

NAMES = Pseudonyms("a secret", "an export")
TWO_VOTES = (
    StoredVote("w-2", "negative", None, None, None, 3.5),
    StoredVote("w-3", None, "It names my neighbour.", None, None, None),
)


def published(task_code: str = "sentiment", **changes: Any) -> ExportedExample:
    """The example of the manifest's tests as it is exported, with what a test changes of it."""
    return exported(task(task_code), 1, replace(EXAMPLE, **{"votes": TWO_VOTES} | changes), NAMES)
