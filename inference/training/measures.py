"""How good a model is on labelled rows: accuracy, macro F1 and confusion, or exact match and F1 of spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from hits.measures.scores import macro_f1
from hits.predictions import Prediction
from hits.tasks import RIGHT_FROM_F1, exact_match, token_f1
from inference.answers import answers
from inference.target import TargetModel
from inference.training.corpora import Asked, Row

#: In a confusion: the answer to a text of which the model sees no word.
UNREAD: Final = ""


def measure(
    model: TargetModel, rows: Sequence[Row | Asked], *, advance: Callable[[int], None] = lambda rows: None
) -> dict[str, Any]:
    """Return what the model reaches on the rows, as JSON. ``advance`` is told how many more rows are done.

    Of classifiers: accuracy, macro_f1 and confusion (right label -> answered label -> rows). Of readers: exact_match,
    f1 (each the best over a question's answers, as SQuAD does) and right, the part of answers that don't count as
    fooled. All but the confusion are from 0 to 1. A row of which the model sees no word is wrong; ``unread`` counts
    such rows if there are any. Raises ValueError when there are no rows.
    """
    if not rows:
        raise ValueError("there are no rows to measure on")
    asked = [row for row in rows if isinstance(row, Asked)]
    if asked:
        said = answers(model, [(row.passage, row.question) for row in asked], advance=advance)
        return _spans(asked, said) | _unread(said)
    texts = [row for row in rows if isinstance(row, Row)]
    said = answers(model, [row.texts for row in texts], advance=advance)
    return _labels(texts, said, model.card.labels) | _unread(said)


def _unread(said: Sequence[Prediction | None]) -> dict[str, int]:
    unread = said.count(None)
    return {"unread": unread} if unread else {}


def _labels(rows: Sequence[Row], said: Sequence[Prediction | None], labels: Sequence[str]) -> dict[str, Any]:
    confusion = {right: dict.fromkeys(labels, 0) for right in labels}
    for row, prediction in zip(rows, said, strict=True):
        if prediction is None:
            confusion[row.label][UNREAD] = confusion[row.label].get(UNREAD, 0) + 1
        else:
            confusion[row.label][prediction.label] += 1
    right = sum(confusion[label][label] for label in labels)
    return {
        "rows": len(rows),
        "accuracy": round(right / len(rows), 4),
        "macro_f1": round(macro_f1(confusion), 4),
        "confusion": confusion,
    }


def _spans(rows: Sequence[Asked], said: Sequence[Prediction | None]) -> dict[str, Any]:
    exact = right = 0
    total = 0.0
    for row, prediction in zip(rows, said, strict=True):
        given = "" if prediction is None or prediction.span is None else prediction.span.text
        best = max(token_f1(given, answer.text) for answer in row.answers)
        exact += any(exact_match(given, answer.text) for answer in row.answers)
        right += best >= RIGHT_FROM_F1
        total += best
    return {
        "rows": len(rows),
        "exact_match": round(exact / len(rows), 4),
        "f1": round(total / len(rows), 4),
        "right": round(right / len(rows), 4),
    }
