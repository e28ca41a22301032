"""The forms of published sets: a row of each, as its authors published it, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hits.errors import InvalidAnswer
from hits.imports.forms import FORMS, Source
from hits.imports.rows import LeftOut, PublishedModel, PublishedRow, PublishedVote, check_row
from hits.tasks import task

ANLI = {
    "uid": "bf62",
    "context": "Linguistics is the study of language.",
    "statement": "It is about language.",
    "reason": "It says so.",
    "adversary_pred": "n",
    "gold_label": "e",
}
#: As the authors' own release has it.
ANLI_RELEASED = {
    "uid": "bf62",
    "context": "Linguistics is the study of language.",
    "hypothesis": "It is about language.",
    "reason": "It says so.",
    "model_label": "n",
    "label": "e",
}
DYNASENT = {
    "text_id": "r2-1",
    "sentence": "The soup was cold.",
    "sentence_author": "w1",
    "has_prompt": True,
    "prompt_data": {"prompt_sentence": "A soup."},
    "model_1_label": "positive",
    "model_1_probs": {"negative": 0.2, "positive": 0.7, "neutral": 0.1},
    "label_distribution": {"positive": [], "negative": ["w2", "w3", "w4"], "neutral": ["w5"], "mixed": ["w6"]},
    "gold_label": "negative",
}
QUESTION = {
    "context": " It fits any lipstick, it is not big. ",
    "question": "What is it not?",
    "id": "5dd4",
    "answers": [{"text": "big", "answer_start": 33}],
}
HATEMOJI = {
    "entry_id": "3",
    "text": "I like them",
    "type": "none",
    "target": "['none']",
    "round.base": "5",
    "round.set": "5b",
    "set": "perturbation",
    "split": "train",
    "label_gold": "0",
    "matched_text": "I hate them",
    "matched_id": "2",
}
DGHS = {
    "acl.id": "acl7",
    "text": "Quillby folk are worth less",
    "label": "hate",
    "type": "animosity",
    "target": "bla.wom, mus",
    "level": "original",
    "round": "2a",
    "split": "dev",
    "annotator": "GrF4",
    "acl.id.matched": "acl8",
}


def read(form: str, row: dict[str, Any], *, file: str = "made-up.csv", votes: tuple[str, ...] = ()) -> PublishedRow:
    source = Source(Path(file), {str(row.get("uid")): votes})
    found = FORMS[form].read(source, row)
    assert isinstance(found, PublishedRow)
    return check_row(task(FORMS[form].task_code), found)


@pytest.mark.parametrize("row", [ANLI, ANLI_RELEASED])
def test_anli(row: dict[str, Any]) -> None:
    found = read("anli", row, file="anli_r1_dev_annotated.csv", votes=("e", "c", "e"))

    assert found.context == {"premise": "Linguistics is the study of language."}
    assert found.answer == {"hypothesis": "It is about language."}
    assert (found.label, found.model) == ("entailment", PublishedModel("anli:target", "neutral"))
    assert [vote.label for vote in found.votes] == ["entailment", "contradiction", "entailment"]
    assert {vote.validator for vote in found.votes} == {None}
    assert (found.why, found.split, found.writer) == ("It says so.", "dev", None)


def test_dynasent() -> None:
    found = read("dynasent", DYNASENT, file="dynasent-v1.1-round02-dynabench-test.jsonl.gz")

    assert (found.context, found.answer) == ({"prompt": "A soup."}, {"statement": "The soup was cold."})
    assert (found.writer, found.label, found.split) == ("w1", "negative", "test")
    assert found.model == PublishedModel("dynasent:model_1", "positive", DYNASENT["model_1_probs"])
    assert PublishedVote("w6", "mixed") in found.votes
    assert len(found.votes) == 5


@pytest.mark.parametrize("gold", [None, "mixed"])
def test_a_sentence_without_a_label_of_the_task_is_left_out(gold: str | None) -> None:
    found = FORMS["dynasent"].read(Source(Path("a.jsonl"), {}), DYNASENT | {"gold_label": gold})

    assert isinstance(found, LeftOut)


def test_adversarial_qa_keeps_the_place_of_the_answer() -> None:
    found = read("adversarialqa", QUESTION)

    start = int(found.answer["answer_start"])
    assert found.context["passage"][start : start + 3] == found.answer["answer"] == "big"
    assert found.context["passage"].startswith("It")
    assert (found.label, found.model) == ("right", None)


def test_adversarial_qa_of_the_hub_is_the_same() -> None:
    hub = QUESTION | {"answers": {"text": ["big"], "answer_start": [33]}, "metadata": {"split": "train"}}

    found = read("adversarialqa", hub)

    assert found.answer == read("adversarialqa", QUESTION).answer
    assert found.split == "train"


def test_hatemoji_keeps_a_pair_together() -> None:
    original = read("hatemoji", HATEMOJI | {"entry_id": "2", "set": "original", "matched_id": "3", "label_gold": "1"})
    perturbed = read("hatemoji", HATEMOJI)

    assert original.family == perturbed.family == "2"
    assert (original.label, perturbed.label) == ("hateful", "not_hateful")
    assert FORMS["hatemoji"].round_of is not None
    assert FORMS["hatemoji"].round_of(HATEMOJI) == 5


def test_dynamically_generated_hate_speech() -> None:
    found = read("dghs", DGHS)

    assert (found.label, found.writer, found.family, found.split) == ("hateful", "GrF4", "acl7", "dev")
    assert found.details == {"hate_type": ["animosity"], "hate_target": ["origin", "religion", "sex"]}
    assert FORMS["dghs"].round_of is not None
    assert FORMS["dghs"].round_of(DGHS) == 2
    assert read("dghs", DGHS | {"level": "perturbation", "acl.id": "acl9", "acl.id.matched": "acl7"}).family == "acl7"


@pytest.mark.parametrize(
    ("form", "row", "said"),
    [
        ("anli", ANLI | {"gold_label": "x"}, "gold_label 'x' is none of e, n, c"),
        ("anli", ANLI | {"uid": ""}, "name '' is empty"),
        ("anli", {k: v for k, v in ANLI.items() if k != "statement"}, "'statement' or 'hypothesis' is missing"),
        ("anli", ANLI | {"statement": "a\x00b"}, r"U\+0000"),
        ("dynasent", DYNASENT | {"label_distribution": []}, "does not list readers"),
        ("dynasent", DYNASENT | {"sentence_author": "w2"}, "the writer 'w2' is among the readers"),
        ("dynasent", DYNASENT | {"label_distribution": {"negative": ["w2"], "neutral": ["w2"]}}, "voted twice"),
        ("adversarialqa", QUESTION | {"answers": [{"text": "small", "answer_start": 3}]}, "does not stand at 3"),
        ("adversarialqa", QUESTION | {"answers": [{"text": 3, "answer_start": 3}]}, "not an answer with its place"),
        ("hatemoji", HATEMOJI | {"target": "[none"}, "is not a list"),
        ("hatemoji", HATEMOJI | {"label_gold": "2"}, "label_gold '2' is none of"),
        ("dghs", DGHS | {"text": "   "}, "is empty"),
    ],
)
def test_what_is_wrong_is_said_with_the_value(form: str, row: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidAnswer, match=said):
        read(form, row)
