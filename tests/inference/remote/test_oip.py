"""The Open Inference Protocol's client against a server that says exactly what a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hits.predictions import AnswerSpan, ModelUnavailable
from inference.errors import BadModelAnswer, EngineRefused
from inference.remote.oip import OipModel
from tests.inference.remote.answering import LABELS, Answering, answering

TEXT = {"name": "text", "datatype": "BYTES", "shape": [-1]}
THREE = {"name": "probabilities", "datatype": "FP32", "shape": [1, 3], "data": [0.1, 0.7, 0.2]}
NAMES = {"name": "labels", "datatype": "BYTES", "shape": [3], "data": ["neutral", "negative", "positive"]}


@contextmanager
def served(
    *outputs: dict[str, Any], inputs: list[dict[str, Any]] | None = None, explains: list[dict[str, Any]] | None = None
) -> Iterator[Answering]:
    def answer(_method: str, path: str, _body: Any, _headers: dict[str, str]) -> tuple[int, Any]:
        if path == "/v2/models/m":
            return 200, {"name": "m", "versions": ["1", "7"], "inputs": [TEXT] if inputs is None else inputs}
        if path == "/v2/models/m-explain/ready":
            return (200, b"") if explains is not None else (404, {"error": "unknown model"})
        if path == "/v2/models/m-explain/infer":
            return 200, {"outputs": explains}
        return 200, {"model_name": "m", "outputs": list(outputs)}

    with answering(answer) as server:
        yield server


def classifier(server: Answering, **changes: Any) -> OipModel:
    return OipModel(server.url, "m", **{"fields": ("statement",), "labels": LABELS, "answers_span": False} | changes)


def reader(server: Answering) -> OipModel:
    return OipModel(server.url, "m", fields=("passage", "question"), labels=(), answers_span=True)


def test_labels_count_by_name_and_never_by_place() -> None:
    with served(THREE, NAMES) as server:
        (found,) = classifier(server).predict_all([("Good.",)])

        assert found.label == "negative"
        assert dict(found.probabilities) == {"negative": 0.7, "positive": 0.2, "neutral": 0.1}
        assert (found.model_id, found.revision) == ("oip:m", "7")
        assert server.asked[-1][2] == {
            "inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["Good."]}]
        }


def test_labels_that_the_operator_names_are_taken_in_the_models_order() -> None:
    with served(THREE) as server:
        (found,) = classifier(server, model_labels=("positive", "neutral", "negative")).predict_all([("x",)])

        assert found.label == "neutral"


def test_labels_may_be_named_for_each_text_as_a_server_that_batches_has_to() -> None:
    rows = THREE | {"shape": [2, 3], "data": [0.1, 0.7, 0.2, 0.5, 0.2, 0.3]}
    with served(rows, NAMES | {"shape": [2, 3], "data": NAMES["data"] * 2}) as server:
        assert [item.label for item in classifier(server).predict_all([("a",), ("b",)])] == ["negative", "neutral"]
    with (
        served(THREE, NAMES | {"shape": [1], "data": ["neutral"]}) as server,
        pytest.raises(BadModelAnswer, match="once for each text"),
    ):
        classifier(server).predict_all([("a",)])


def test_without_names_nothing_is_guessed() -> None:
    with served(THREE) as server, pytest.raises(EngineRefused, match=r"\?labels=a,b,c"):
        classifier(server).predict_all([("x",)])


def test_nested_and_flat_data_are_the_same() -> None:
    nested = THREE | {"shape": [2, 3], "data": [[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]]}
    flat = THREE | {"shape": [2, 3], "data": [0.1, 0.7, 0.2, 0.5, 0.2, 0.3]}
    for output in (nested, flat):
        with served(output, NAMES) as server:
            assert [item.label for item in classifier(server).predict_all([("a",), ("b",)])] == ["negative", "neutral"]


@pytest.mark.parametrize(
    "outputs",
    [
        (),
        (NAMES,),
        (THREE | {"data": [0.1, 0.7]}, NAMES),
        (THREE | {"data": []}, NAMES),
        (THREE | {"data": ["x", "y", "z"]}, NAMES),
        (THREE | {"data": [float("nan"), 0.5, 0.5]}, NAMES),
        (THREE | {"datatype": "BYTES"}, NAMES),
        (THREE, NAMES | {"data": ["neutral", "negative"]}),
        (THREE, NAMES | {"data": ["a", "b", "c"]}),
    ],
)
def test_an_answer_that_is_none_becomes_no_label(outputs: tuple[dict[str, Any], ...]) -> None:
    with served(*outputs) as server, pytest.raises(BadModelAnswer):
        classifier(server).predict_all([("x",)])


def test_inputs_are_matched_by_name_else_by_order() -> None:
    by_name = [{"name": "hypothesis", "datatype": "BYTES"}, {"name": "premise", "datatype": "BYTES"}]
    by_order = [{"name": "a", "datatype": "BYTES"}, {"name": "b", "datatype": "BYTES"}]
    for inputs, names in (
        (by_name, ["premise", "hypothesis"]),
        (by_order, ["a", "b"]),
        ([], ["premise", "hypothesis"]),
    ):
        with served(THREE, NAMES, inputs=inputs) as server:
            classifier(server, fields=("premise", "hypothesis")).predict_all([("P", "H")])
            sent = server.asked[-1][2]["inputs"]
            assert [(item["name"], item["data"]) for item in sent] == list(zip(names, [["P"], ["H"]], strict=True))


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([{"name": "input_ids", "datatype": "INT64"}], "input_ids .INT64."),
        ([TEXT, TEXT | {"name": "b"}], "the task gives"),
    ],
)
def test_a_model_that_takes_something_else_is_refused(inputs: list[dict[str, Any]], words: str) -> None:
    with served(THREE, inputs=inputs) as server, pytest.raises(EngineRefused, match=words):
        classifier(server)


def test_given_labels_must_be_the_tasks() -> None:
    with served(THREE) as server, pytest.raises(EngineRefused, match="LABEL_0"):
        classifier(server, model_labels=("LABEL_0", "LABEL_1", "LABEL_2"))


def numbers(name: str, *data: float) -> dict[str, Any]:
    return {"name": name, "datatype": "FP64", "shape": [len(data)], "data": list(data)}


def test_a_span_is_cut_from_the_passage() -> None:
    with served(numbers("start", 2), numbers("end", 4), numbers("confidence", 0.5), inputs=[]) as server:
        (found,) = reader(server).predict_all([("ab😀é.", "Which?")])

        assert found.span == AnswerSpan(2, 4, "😀é")
        assert (found.confidence, found.label) == (0.5, "")


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 2), (3, 1), (0, 99)])
def test_a_span_outside_of_the_passage_is_no_answer(start: int, end: int) -> None:
    with (
        served(numbers("start", start), numbers("end", end), numbers("confidence", 1), inputs=[]) as server,
        pytest.raises(BadModelAnswer, match="of a passage of 4"),
    ):
        reader(server).predict_all([("abcd", "?")])


def test_a_second_model_explains() -> None:
    explained = [
        {"name": "field", "datatype": "BYTES", "shape": [2], "data": ["statement", "statement"]},
        numbers("start", 0, 5),
        numbers("end", 4, 9),
        numbers("score", 1.5, -0.5),
    ]
    with served(THREE, NAMES, explains=explained) as server:
        found = classifier(server).explain(("very good",), "positive")

        assert [(word.text, word.score, word.field) for word in found.words] == [
            ("very", 1.5, "statement"),
            ("good", -0.5, "statement"),
        ]
        assert server.asked[-1][2]["inputs"][-1] == {
            "name": "target",
            "shape": [1],
            "datatype": "BYTES",
            "data": ["positive"],
        }


@pytest.mark.parametrize("changes", [{"start": -1.0}, {"end": 99.0}, {"field": "goal"}])
def test_a_word_that_is_not_in_the_text_is_no_explanation(changes: dict[str, Any]) -> None:
    values = {"field": "statement", "start": 0.0, "end": 4.0} | changes
    explained = [
        {"name": "field", "datatype": "BYTES", "shape": [1], "data": [values["field"]]},
        numbers("start", values["start"]),
        numbers("end", values["end"]),
        numbers("score", 1),
    ]
    with served(THREE, NAMES, explains=explained) as server, pytest.raises(BadModelAnswer, match="it explained"):
        classifier(server).explain(("very good",), "positive")


def test_a_version_that_only_the_answer_tells_is_taken() -> None:
    def answer(_method: str, path: str, _body: Any, _headers: dict[str, str]) -> tuple[int, Any]:
        if path.endswith("infer"):
            return 200, {"model_version": "5", "outputs": [THREE, NAMES]}
        return (404, {}) if path.endswith("ready") else (200, {"name": "m"})

    with answering(answer) as server:
        model = classifier(server)
        assert model.card.revision == "unversioned"
        assert model.predict_all([("x",)])[0].revision == "5"
        assert (model.revision, model.card.revision) == ("5", "5")


def test_a_dead_server_is_not_a_model() -> None:
    with pytest.raises(ModelUnavailable):
        OipModel("http://127.0.0.1:9", "m", fields=("a",), labels=LABELS, answers_span=False)
