"""The base test sets of a task: the published rows that its embedded model was held back from (docs/models.md)."""

from __future__ import annotations

from pathlib import Path

from hits.errors import InvalidInput
from hits.measures.sets import LabelledRow, RowSet, rows_set
from hits.tasks import task


def base_sets(task_code: str, folder: Path) -> list[RowSet]:
    """Return the base test sets whose published files lie in the folder.

    Raises InvalidInput with the files that are absent, and for a task without published base sets.
    """
    from inference.training.corpora import Asked
    from inference.training.recipes import RECIPES

    spec = task(task_code)
    if spec.code not in RECIPES:
        raise InvalidInput(
            f"The {spec.code} task has no published base sets (those have: {', '.join(sorted(RECIPES))}). Name a file"
            " of yours with --file NAME=FILE."
        )
    found = []
    for name, part in RECIPES[spec.code].tests.items():
        absent = [file for file in part.files if not (folder / file.path).is_file()]
        if absent:
            raise InvalidInput(
                f"{folder / absent[0].path} is not there, which the base set {name!r} is read from"
                f" ({absent[0].source}; {absent[0].licence}). Fetch it from there, or name another folder with --data."
            )
        rows = [
            LabelledRow((row.passage, row.question), tuple(dict.fromkeys(answer.text for answer in row.answers)))
            if isinstance(row, Asked)
            else LabelledRow(row.texts, (row.label,))
            for row in part.rows(folder)
        ]
        found.append(rows_set(spec, name, rows))
    return found
