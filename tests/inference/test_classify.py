"""From text to probabilities by label name, on a tiny random model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from inference.bert import LoadedModel
from inference.classify import Classifier, grouped
from inference.errors import BadModelAnswer, ModelNotLoaded, NothingToRead
from inference.tiny import LABELS, tiny_model

TEXTS = [
    "good",
    "the food was not good",
    "i",
    "bad bad bad and loud " * 4,
    "שלום 👍",
    "the staff was cold but it was good",
]


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model()


def test_probabilities_are_by_name_in_the_tasks_order_and_add_up_to_one(loaded: LoadedModel) -> None:
    for text in TEXTS:
        prediction = Classifier(loaded, ("neutral", "negative", "positive")).predict(text)

        assert list(prediction.probabilities) == ["neutral", "negative", "positive"]
        assert math.isclose(sum(prediction.probabilities.values()), 1, abs_tol=1e-6)
        assert prediction.probabilities[prediction.label] == max(prediction.probabilities.values())


def test_the_order_of_the_tasks_labels_changes_no_probability(loaded: LoadedModel) -> None:
    one = Classifier(loaded, LABELS).predict("the food was good")
    other = Classifier(loaded, LABELS[::-1]).predict("the food was good")

    assert one.label == other.label
    assert dict(one.probabilities) == dict(other.probabilities)


def test_the_answer_is_the_softmax_of_the_models_own_logits(loaded: LoadedModel) -> None:
    torch = pytest.importorskip("torch")
    ids = torch.tensor([loaded.tokenizer.encode("the food was good").ids])
    expected = loaded.model(input_ids=ids).logits.softmax(-1)[0].tolist()

    prediction = Classifier(loaded, LABELS).predict("the food was good")

    assert [prediction.probabilities[label] for label in loaded.labels] == pytest.approx(expected, abs=1e-6)
    assert prediction.model_id == "dynahit/tiny"
    assert prediction.revision == "seed-0"


def test_labels_that_the_model_lacks_are_refused(loaded: LoadedModel) -> None:
    with pytest.raises(ModelNotLoaded, match="angry"):
        Classifier(loaded, ("negative", "positive", "angry"))


def test_the_same_text_gives_the_same_numbers_alone_and_in_any_batch(loaded: LoadedModel) -> None:
    classifier = Classifier(loaded, LABELS)
    alone = [classifier.predict(text) for text in TEXTS]

    assert [classifier.predict(text).probabilities for text in TEXTS] == [one.probabilities for one in alone]
    for prediction, one in zip(classifier.predict_all([(text,) for text in TEXTS]), alone, strict=True):
        assert prediction.label == one.label
        assert dict(prediction.probabilities) == pytest.approx(dict(one.probabilities), abs=1e-6)


def test_a_cut_text_is_flagged_and_a_short_one_is_not(loaded: LoadedModel) -> None:
    classifier = Classifier(loaded, LABELS)

    whole = classifier.predict("good " * 62)
    assert (whole.truncated, whole.characters_read) == (False, None)
    assert classifier.predict("good " * 63).characters_read == {"text": 309}
    assert classifier.predict("good " * 63).truncated is True
    assert classifier.predict("good " * 20000).probabilities == classifier.predict("good " * 62).probabilities


@pytest.mark.parametrize("text", ["", "  \r\n\t", "\u200b\u200d", "\x00"])
def test_a_text_without_a_readable_word_is_refused(loaded: LoadedModel, text: str) -> None:
    with pytest.raises(NothingToRead):
        Classifier(loaded, LABELS).predict(text)


PAIRS = [("the food was good", "it was cold"), ("good", "not good " * 40), ("the room " * 60, "loud"), ("i", "i")]


@pytest.fixture(scope="module")
def pairs() -> Classifier:
    return Classifier(tiny_model(("entailment", "neutral", "contradiction")), NLI, ("premise", "hypothesis"))


NLI = ("entailment", "neutral", "contradiction")


def test_a_pair_is_read_as_the_library_reads_it(pairs: Classifier) -> None:
    torch = pytest.importorskip("torch")
    encoding = pairs.loaded.tokenizer.encode("the food was good", "it was cold")
    expected = pairs.loaded.model(
        input_ids=torch.tensor([encoding.ids]), token_type_ids=torch.tensor([encoding.type_ids])
    ).logits.softmax(-1)[0]

    prediction = pairs.predict("the food was good", "it was cold")

    assert set(encoding.type_ids) == {0, 1}
    assert list(prediction.probabilities.values()) == pytest.approx(expected.tolist(), abs=1e-6)
    assert list(pairs.predict("it was cold", "the food was good").probabilities.values()) != pytest.approx(
        expected.tolist(), abs=1e-4
    )


def test_pairs_give_the_same_numbers_alone_and_in_any_batch(pairs: Classifier) -> None:
    for item, together in zip(PAIRS, pairs.predict_all(PAIRS), strict=True):
        assert dict(together.probabilities) == pytest.approx(dict(pairs.predict(*item).probabilities), abs=1e-6)


def test_of_a_long_pair_the_first_text_is_cut_and_both_lengths_are_told(pairs: Classifier) -> None:
    prediction = pairs.predict("the room " * 60, "loud")

    assert prediction.truncated
    assert prediction.characters_read is not None
    assert prediction.characters_read["hypothesis"] == 4
    assert 0 < prediction.characters_read["premise"] < 540


@pytest.mark.parametrize("pair", [("", "good"), ("good", " "), ("\u200b", "good")])
def test_a_pair_needs_a_readable_word_on_both_sides(pairs: Classifier, pair: tuple[str, str]) -> None:
    with pytest.raises(NothingToRead):
        pairs.predict(*pair)


def test_a_task_of_three_texts_and_a_reader_of_passages_are_refused(loaded: LoadedModel) -> None:
    with pytest.raises(ModelNotLoaded, match="one text or two"):
        Classifier(loaded, LABELS, ("a", "b", "c"))
    with pytest.raises(ModelNotLoaded):
        Classifier(replace(loaded, head="span", labels=()), ())


def test_typed_special_tokens_are_only_text(loaded: LoadedModel) -> None:
    ids = loaded.tokenizer.encode("good [SEP] [PAD] [CLS]").ids

    special = [loaded.tokenizer.token_to_id(token) for token in ("[SEP]", "[PAD]", "[CLS]")]
    assert not set(special) & set(ids[1:-1])


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_never_become_a_label(broken: float) -> None:
    torch = pytest.importorskip("torch")
    loaded = tiny_model()
    with torch.no_grad():
        loaded.model.classifier.bias[1] = broken

    if broken == float("-inf"):
        # One label ruled out for good leaves proper probabilities of the others.
        assert Classifier(loaded, LABELS).predict("good").probabilities["positive"] == 0
        return
    with pytest.raises(BadModelAnswer, match="nan"):
        Classifier(loaded, LABELS).predict("good")


def test_a_head_of_another_size_is_a_typed_error(loaded: LoadedModel) -> None:
    wrong = replace(tiny_model(("a", "b")), labels=LABELS)

    with pytest.raises(BadModelAnswer, match=r"\(1, 2\) instead of \(1, 3\)"):
        Classifier(wrong, LABELS).predict("good")


@pytest.mark.parametrize(
    ("lengths", "expected"), [([], []), ([5], [[0]]), ([5, 6, 5], [[0, 2, 1]]), ([4, 200, 4, 4], [[0, 2, 3], [1]])]
)
def test_short_texts_are_not_padded_to_a_long_one(lengths: Sequence[int], expected: list[list[int]]) -> None:
    assert list(grouped(lengths)) == expected
