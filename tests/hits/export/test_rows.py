"""The published example: which label counts, whence it comes, and what stays at home."""

from __future__ import annotations

from typing import Any

import pytest

from hits.export.rows import ExportedExample, Pseudonyms, columns, text_columns
from hits.export.stored import StoredVote
from hits.states import Verdict
from hits.tasks import TASKS, task
from tests.hits.export.published import NAMES, published


@pytest.mark.parametrize(
    ("changes", "label", "label_from", "verified"),
    [
        ({}, "negative", "readers", True),
        ({"overridden": True}, "negative", "requester", True),
        ({"verdict": Verdict.VALID_AND_MODEL_RIGHT, "final_label": "neutral"}, "neutral", "readers", True),
        ({"verdict": Verdict.NOT_VALIDATED, "final_label": None}, "negative", "writer", False),
        ({"verdict": Verdict.NOT_VALIDATED, "origin": "r2-1", "final_label": "neutral"}, "neutral", "publisher", True),
        ({"verdict": Verdict.INVALID, "final_label": "neutral"}, None, None, False),
        ({"verdict": Verdict.UNRESOLVED, "final_label": None}, None, None, False),
    ],
)
def test_the_label_that_counts_says_who_settled_it(
    changes: dict[str, Any], label: str | None, label_from: str | None, verified: bool
) -> None:
    found = published(**changes)

    assert (found.label, found.label_from, found.verified) == (label, label_from, verified)


def test_people_stand_under_names_of_the_export_and_reasons_of_flags_stay_at_home() -> None:
    found = published()

    assert found.writer == NAMES.of("w-1") != "w-1"
    assert [vote["validator"] for vote in found.votes] == [NAMES.of("w-2"), NAMES.of("w-3")]
    assert [(vote["label"], vote["flagged"]) for vote in found.votes] == [("negative", False), (None, True)]
    assert (found.flags, found.label_distribution) == (1, {"negative": 1, "positive": 0, "neutral": 0})
    assert "neighbour" not in str(found)


def test_the_names_of_another_export_are_others_and_nobody_has_none() -> None:
    assert Pseudonyms("a secret", "an export").of("w-1") == NAMES.of("w-1")
    assert Pseudonyms("a secret", "another").of("w-1") != NAMES.of("w-1")
    assert Pseudonyms("another secret", "an export").of("w-1") != NAMES.of("w-1")
    assert NAMES.of(None) is None


def test_what_was_said_besides_is_of_those_who_agree_with_the_label() -> None:
    votes = (
        StoredVote("w-2", "hateful", None, {"hate_target": "religion", "hate_type": "threat"}, None, None),
        StoredVote("w-3", "hateful", None, {"hate_target": "sex"}, None, None),
        StoredVote("w-4", "not_hateful", None, {"hate_target": "age"}, None, None),
    )

    found = published(
        "hate",
        answer={"message": "Words."},
        goal_label="hateful",
        final_label="hateful",
        model=None,
        fooled=None,
        votes=votes,
    )

    assert found.details == {"hate_target": ["religion", "sex"], "hate_type": ["threat"]}
    assert (found.model_label, found.fooled, found.model_probabilities) == (None, None, None)


def test_a_marked_answer_keeps_its_place_as_a_number() -> None:
    answer = {"question": "Who?", "answer": "She", "answer_start": "12"}

    found = published("qa", context={"passage": "Words."}, answer=answer, goal_label="right", final_label="right")

    assert found.texts == {"passage": "Words.", "question": "Who?", "answer": "She", "answer_start": 12}


@pytest.mark.parametrize("code", sorted(TASKS))
@pytest.mark.parametrize("with_attributions", [False, True])
def test_every_column_has_a_value_and_every_value_a_column(code: str, with_attributions: bool) -> None:
    described = columns(task(code), with_attributions=with_attributions)
    fields = [name for name in ExportedExample.__dataclass_fields__ if name != "texts"]

    assert next(iter(text_columns(task(code)))) in described
    assert set(described) <= {*fields, *text_columns(task(code))}
    assert ("attribution" in described) is with_attributions
