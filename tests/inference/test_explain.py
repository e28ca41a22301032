"""Word attributions: offsets, completeness, the reference library's numbers, and no harm to predictions beside them."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference.bert import LoadedModel
from inference.classify import Classifier
from inference.errors import BadModelAnswer, ModelNotLoaded, NothingToRead
from inference.explain import explain
from inference.tiny import LABELS, WORDS, tiny_model

torch = pytest.importorskip("torch")

TEXTS = [
    "the food was good",
    "the food was not good",
    "i",
    "bad, bad; BAD!",
    "it was good but the room was very loud",
    "cafe\u0301 noe\u0308l was good",
    "good 👍🏽 day 👨‍👩‍👧!",
    "האוכל היה טעים",
    "مطعم رائع but loud",
    "line one\r\nline two\r\n\r\nline three",
    "  leading and trailing  ",
    "<b>bad</b> & <script>alert(1)</script>",
    "don't it's 'good'",
    "a\x00b \x07 c",
    "x" * 150 + " good",
    "好吃 very good",
    "no\u00a0break\u2003spaces",
    "[SEP] [PAD] [MASK] good",
    "\ufeffbom good",
    "e\u200bf zero width",
    "GOOD good GoOd",
    "1,000.50 $ 20%",
    "ﬁne ligature Ⅷ",
    "staff",
]


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model()


def target_logit(loaded: LoadedModel, text: str, target: str, *, blank: bool) -> float:
    encoding = loaded.tokenizer.encode(text)
    ids = [
        loaded.pad_token_id if blank and not special else token
        for token, special in zip(encoding.ids, encoding.special_tokens_mask, strict=True)
    ]
    with torch.no_grad():
        embedded = loaded.model.get_input_embeddings()(torch.tensor([ids]))
        logits = loaded.model(inputs_embeds=embedded).logits[0]
    return float(logits[loaded.labels.index(target)])


@pytest.mark.parametrize("text", TEXTS)
def test_scores_add_up_to_what_the_words_changed(loaded: LoadedModel, text: str) -> None:
    for target in LABELS:
        attribution = explain(loaded, text, target)

        change = target_logit(loaded, text, target, blank=False) - target_logit(loaded, text, target, blank=True)
        total = sum(word.score for word in attribution.words)
        assert total - change == pytest.approx(attribution.convergence_delta, abs=1e-4)
        assert attribution.converged == (abs(attribution.convergence_delta) <= max(0.05, 0.05 * abs(change)))
        assert attribution.converged


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_slices_of_the_submitted_text_in_order(loaded: LoadedModel, text: str) -> None:
    words = explain(loaded, text, "positive").words

    assert all(text[word.start : word.end] == word.text for word in words)
    assert all(left.end <= right.start for left, right in itertools.pairwise(words))
    covered = {index for word in words for index in range(word.start, word.end)}
    assert all(text[index].isspace() for index in set(range(len(text))) - covered)


def test_the_numbers_are_those_of_captums_own_layer_method(loaded: LoadedModel) -> None:
    from captum.attr import LayerIntegratedGradients

    text = "the food was not good but very cold"
    encoding = loaded.tokenizer.encode(text)
    ids = torch.tensor([encoding.ids])
    blank = torch.where(torch.tensor([encoding.special_tokens_mask]).bool(), ids, loaded.pad_token_id)
    twin = tiny_model().model.requires_grad_(True)
    reference = LayerIntegratedGradients(lambda x: twin(input_ids=x).logits, twin.bert.embeddings.word_embeddings)
    expected = reference.attribute(ids, blank, target=1, n_steps=20, method="gausslegendre").sum(-1)[0][1:-1]

    attribution = explain(loaded, text, loaded.labels[1])

    assert attribution.steps == 20
    assert [word.score for word in attribution.words] == pytest.approx(expected.tolist(), abs=1e-5)


def test_pieces_of_one_word_are_added_up(loaded: LoadedModel) -> None:
    attribution = explain(loaded, "good stuff", "positive")

    assert [word.text for word in attribution.words] == ["good", "stuff"]
    assert len(loaded.tokenizer.encode("stuff").ids) > 3


def test_a_hard_path_is_walked_again_with_more_steps() -> None:
    wild = tiny_model(spread=0.5, seed=3)
    attributions = [explain(wild, " ".join(WORDS[at : at + 6]), label) for at in range(9) for label in LABELS]

    assert {attribution.steps for attribution in attributions} == {20, 50}
    for attribution in attributions:
        change = sum(word.score for word in attribution.words) - attribution.convergence_delta
        if attribution.steps == 20:
            assert abs(attribution.convergence_delta) <= 0.05 * abs(change) + 1e-9
    assert not all(attribution.converged for attribution in attributions)


def test_without_time_for_more_steps_the_first_result_stands_and_says_that_it_did_not_converge() -> None:
    wild = tiny_model(spread=1.0, seed=3)

    patient = explain(wild, "the food was not good", "positive")
    hurried = explain(wild, "the food was not good", "positive", patience_seconds=0)

    assert (patient.steps, hurried.steps) == (50, 20)
    assert not hurried.converged


def test_the_same_question_gets_the_same_numbers(loaded: LoadedModel) -> None:
    one, other = (explain(loaded, "the food was cold", "negative") for _ in range(2))

    assert one.words == other.words
    assert one.convergence_delta == other.convergence_delta


def test_a_cut_text_is_scored_as_far_as_it_was_read(loaded: LoadedModel) -> None:
    text = "good bad " * 5000
    started = time.perf_counter()

    words = explain(loaded, text, "positive").words

    assert len(words) == loaded.max_length - 2
    assert text[words[-1].start : words[-1].end] in ("good", "bad")
    assert time.perf_counter() - started < 5


def test_a_hundred_kilobytes_in_one_word_are_quick(loaded: LoadedModel) -> None:
    started = time.perf_counter()

    words = explain(loaded, "a" * 100_000, "positive").words

    assert [(word.start, word.end) for word in words] == [(0, 100_000)]
    assert time.perf_counter() - started < 5


def test_an_unknown_label_is_refused(loaded: LoadedModel) -> None:
    with pytest.raises(ModelNotLoaded, match="'angry'"):
        explain(loaded, "good", "angry")


@pytest.mark.parametrize("text", ["", " \r\n", "\u200b"])
def test_a_text_without_a_readable_word_is_refused(loaded: LoadedModel, text: str) -> None:
    with pytest.raises(NothingToRead):
        explain(loaded, text, "positive")


def test_gradients_that_are_not_finite_are_a_typed_error() -> None:
    loaded = tiny_model()
    with torch.no_grad():
        loaded.model.bert.pooler.dense.weight[0, 0] = float("nan")

    with pytest.raises(BadModelAnswer):
        explain(loaded, "good", "positive")


def test_explaining_leaves_the_parameters_frozen_and_without_gradients(loaded: LoadedModel) -> None:
    explain(loaded, "good", "positive")

    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert all(parameter.grad is None for parameter in loaded.model.parameters())
    assert not any(module._forward_hooks for module in loaded.model.modules())


def test_predictions_are_the_same_while_others_explain(loaded: LoadedModel) -> None:
    classifier = Classifier(loaded, LABELS)
    alone = {text: classifier.predict(text) for text in TEXTS}
    expected = {text: explain(loaded, text, "positive").words for text in TEXTS[:6]}
    stop = threading.Event()

    def keep_explaining(offset: int) -> int:
        wrong = count = 0
        while not stop.is_set():
            text = TEXTS[(count + offset) % 6]
            words = explain(loaded, text, "positive").words
            close = [abs(a.score - b.score) < 1e-5 for a, b in zip(words, expected[text], strict=True)]
            wrong += not all(close)
            count += 1
        assert count > 0
        return wrong

    def predict(number: int) -> tuple[float, bool]:
        text = TEXTS[number % len(TEXTS)]
        prediction = classifier.predict(text)
        apart = max(abs(prediction.probabilities[label] - alone[text].probabilities[label]) for label in LABELS)
        return apart, prediction.label != alone[text].label

    with ThreadPoolExecutor(2) as explainers, ThreadPoolExecutor(4) as predictors:
        explaining = [explainers.submit(keep_explaining, offset) for offset in (0, 3)]
        results = list(predictors.map(predict, range(600)))
        stop.set()
        assert [future.result() for future in explaining] == [0, 0]

    assert max(apart for apart, _ in results) < 1e-5
    assert not any(flipped for _, flipped in results)
