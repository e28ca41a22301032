"""From a reference to a model that is ready for its task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hits.errors import InvalidInput
from hits.tasks import task
from inference.classify import Classifier
from inference.ensembles import Ensemble, Majority, MeanProbability, RandomMember, WrongMembers
from inference.errors import LabelsUnknown, ModelNotLoaded, ModelUnusable
from inference.loading import load_model, policy_of
from inference.read_span import SpanReader
from inference.references import EnsembleReference, parse_reference
from tests.inference.published import save_model

pytest.importorskip("torch")

NLI = task("nli")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    save_model(root / "one", "bert", ("contradiction", "entailment", "neutral"), seed=1)
    save_model(root / "two", "roberta", ("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), seed=2)
    save_model(root / "unnamed", "bert", ("LABEL_0", "LABEL_1", "LABEL_2"), seed=3)
    save_model(root / "reader", "distilbert", None, seed=4)
    return root


def test_a_folder_becomes_a_classifier_of_the_tasks_labels_and_fields(models: Path) -> None:
    model = load_model(NLI, f"dir:{models / 'one'}")

    assert isinstance(model, Classifier)
    assert (model.labels, model.fields) == (NLI.label_codes, ("premise", "hypothesis"))
    assert model.model_id == "dir:one"
    assert model.revision == str(model.card.weights_sha256)[:16]


def test_a_span_task_gets_a_reader_of_passages(models: Path) -> None:
    model = load_model(task("qa"), f"dir:{models / 'reader'}")

    assert isinstance(model, SpanReader)
    assert model.fields == ("passage", "question")
    assert model.predict_all([("The food was cold.", "what was cold?")])[0].span is not None


def test_a_model_of_another_task_is_refused_with_both_lists(models: Path) -> None:
    with pytest.raises(LabelsUnknown, match=r"contradiction.*negative"):
        load_model(task("sentiment"), f"dir:{models / 'one'}")
    with pytest.raises(ModelUnusable, match="would guess"):
        load_model(task("qa"), f"dir:{models / 'one'}")


def test_stated_labels_are_part_of_the_reference(models: Path) -> None:
    with pytest.raises(LabelsUnknown):
        load_model(NLI, f"dir:{models / 'unnamed'}")

    model = load_model(NLI, f"dir:{models / 'unnamed'}?labels=neutral,contradiction,entailment")

    assert model.card.label_map == {"LABEL_0": "neutral", "LABEL_1": "contradiction", "LABEL_2": "entailment"}


def test_an_ensemble_is_loaded_member_by_member_whatever_their_tokenizers(models: Path) -> None:
    model = load_model(NLI, f"ensemble:mean(dir:{models / 'one'}, dir:{models / 'two'})")
    item = ("the food was good 👍", "it was not good")

    assert isinstance(model, Ensemble)
    together, alone = model.predict_all([item])[0], [member.predict_all([item])[0] for member in model.members]
    for label in NLI.label_codes:
        expected = sum(one.probabilities[label] for one in alone) / 2
        assert together.probabilities[label] == pytest.approx(expected, abs=1e-6)
    words = model.explain(item, "neutral").words
    for field, text in zip(("premise", "hypothesis"), item, strict=True):
        assert [text[word.start : word.end] for word in words if word.field == field] == text.split()


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("ensemble:random:9(dir:/x, dir:/y)", RandomMember(9)),
        ("ensemble:mean(dir:/x, dir:/y)", MeanProbability()),
        ("ensemble:majority(dir:/x, dir:/y)", Majority()),
        ("ensemble:wrong>=2(dir:/x, dir:/y)", WrongMembers(2)),
    ],
)
def test_each_policy_has_its_name(text: str, policy: object) -> None:
    reference = parse_reference(text)

    assert isinstance(reference, EnsembleReference)
    assert policy_of(reference) == policy


def test_what_names_no_model_or_serves_no_such_task_is_refused() -> None:
    with pytest.raises(InvalidInput, match="names no model"):
        load_model(NLI, "nonsense")
    with pytest.raises(ModelNotLoaded, match="more than these models can"):
        load_model(replace(NLI, model_fields=("premise", "hypothesis", "premise")), "dir:/x")
    with pytest.raises(ModelUnusable, match=r"config\.json"):
        load_model(NLI, "dir:/nowhere/at/all")
