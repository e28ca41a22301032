"""Labels by name: the orders of published models, refusals, and nothing by position."""

from __future__ import annotations

import itertools

import pytest

from hits.tasks import task
from inference.errors import LabelsUnknown
from inference.labels import by_name, by_order

NLI, SENTIMENT, HATE = (task(code).label_codes for code in ("nli", "sentiment", "hate"))

#: As the cards of published models give them, in the order of their outputs.
PUBLISHED = {
    "cross-encoder/nli-*": (
        NLI,
        ("contradiction", "entailment", "neutral"),
        ("contradiction", "entailment", "neutral"),
    ),
    "MoritzLaurer/*-mnli*": (
        NLI,
        ("entailment", "neutral", "contradiction"),
        ("entailment", "neutral", "contradiction"),
    ),
    "microsoft/deberta-*-mnli": (
        NLI,
        ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"),
        ("contradiction", "neutral", "entailment"),
    ),
    "facebook/roberta-hate-speech-dynabench-*": (HATE, ("nothate", "hate"), ("not_hateful", "hateful")),
    "cardiffnlp/twitter-roberta-base-sentiment-latest": (
        SENTIMENT,
        ("negative", "neutral", "positive"),
        ("negative", "neutral", "positive"),
    ),
}


@pytest.mark.parametrize("model", sorted(PUBLISHED))
def test_the_labels_of_published_models_are_found_by_name(model: str) -> None:
    labels, own, expected = PUBLISHED[model]

    assert by_name(own, labels, source=model) == expected


@pytest.mark.parametrize("order", [*itertools.permutations(("Entailment", "NEUTRAL", "contra-diction"))])
def test_any_order_and_spelling_of_case_is_found(order: tuple[str, ...]) -> None:
    assert by_name(order, NLI, source="m") == tuple(name.lower().replace("-", "") for name in order)


@pytest.mark.parametrize(
    ("own", "labels"),
    [
        (("LABEL_0", "LABEL_1", "LABEL_2"), NLI),
        (("0", "1", "2"), NLI),
        (("NEGATIVE", "POSITIVE"), SENTIMENT),
        (("entailment", "neutral", "contradiction", "other"), NLI),
        (("entailment", "entails", "contradiction"), NLI),
        (("entailment", "neutral", "neutral"), NLI),
        (("negative", "neutral", "positive"), NLI),
        ((), NLI),
    ],
)
def test_labels_that_are_not_the_tasks_are_refused_with_both_lists(
    own: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    with pytest.raises(LabelsUnknown) as caught:
        by_name(own, labels, source="hub:a/b@v1")

    said = str(caught.value)
    assert all(name in said for name in (*own, *labels))
    assert f"hub:a/b@v1?labels={','.join(labels)}" in said


def test_what_somebody_states_is_taken_for_names_that_say_nothing() -> None:
    stated = ("contradiction", "entailment", "neutral")

    assert by_order(stated, ("LABEL_0", "LABEL_1", "LABEL_2"), NLI, source="m") == stated
    assert by_order(stated, stated, NLI, source="m") == stated


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (("entailment", "neutral"), ("LABEL_0", "LABEL_1")),
        (("entailment", "neutral", "contradiction"), ("LABEL_0", "LABEL_1")),
        (("entailment", "neutral", "angry"), ("LABEL_0", "LABEL_1", "LABEL_2")),
        (("entailment", "neutral", "contradiction"), ("contradiction", "neutral", "entailment")),
    ],
)
def test_what_somebody_states_must_fit_the_task_and_the_models_own_names(
    given: tuple[str, ...], own: tuple[str, ...]
) -> None:
    with pytest.raises(LabelsUnknown, match="does not fit both"):
        by_order(given, own, NLI, source="m?labels=x")
