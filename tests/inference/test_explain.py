"""Word attributions: offsets, completeness, the reference library's numbers, and no harm to predictions beside them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hits.predictions import Attribution
from inference.bert import LoadedModel
from inference.classify import Classifier
from inference.errors import BadModelAnswer, CallerGone, MethodNotSupported, ModelNotLoaded, NothingToRead
from inference.explain import STEPS, LocalExplainer, integrated_gradients
from inference.methods import METHODS
from inference.read_span import SpanReader
from inference.right_of_way import stopping_at
from inference.score import Score
from inference.tiny import LABELS, WORDS, tiny_model, tiny_reader

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
PAIR = ("the food was good", "the staff was cold, but it was not loud")
PASSAGE = "The room was loud. The food was cold and the staff was not good, but it was very good bad food. " * 2
QUESTION = "was the staff good?"


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(tiny_model(), LABELS)


@pytest.fixture(scope="module")
def pairs() -> Classifier:
    return Classifier(tiny_model(seed=2), LABELS, ("premise", "hypothesis"))


@pytest.fixture(scope="module")
def reader() -> SpanReader:
    return SpanReader(tiny_reader(max_length=40, stride=8))


@pytest.fixture(params=[False, True], ids=["single", "half"])
def precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Explain as on a processor without bfloat16, and as on one with it."""
    monkeypatch.setattr("inference.twin.half_is_fast", lambda: request.param)


@pytest.fixture
def in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.twin.half_is_fast", lambda: False)


def target_logit(loaded: LoadedModel, text: str, target: str, *, blank: bool) -> float:
    encoding = loaded.tokenizer.encode(text)
    length = min(len(encoding.ids), loaded.max_length)
    ids = [*encoding.ids[: length - 1], encoding.ids[-1]]
    special = [*encoding.special_tokens_mask[: length - 1], 1]
    read = [loaded.pad_token_id if blank and not own else token for token, own in zip(ids, special, strict=True)]
    with torch.no_grad():
        embedded = loaded.model.get_input_embeddings()(torch.tensor([read]))
        logits = loaded.model(inputs_embeds=embedded).logits[0]
    return float(logits[loaded.labels.index(target)])


@pytest.mark.usefixtures("precision")
@pytest.mark.parametrize("text", TEXTS)
def test_scores_add_up_to_what_the_words_changed(classifier: Classifier, text: str) -> None:
    for target in LABELS:
        attribution = classifier.explain((text,), target)

        change = target_logit(classifier.loaded, text, target, blank=False)
        change -= target_logit(classifier.loaded, text, target, blank=True)
        total = sum(word.score for word in attribution.words)
        assert total - change == pytest.approx(attribution.convergence_delta, abs=1e-4)
        assert attribution.converged == (abs(attribution.convergence_delta or 0) <= max(0.05, 0.05 * abs(change)))
        assert attribution.converged


@pytest.mark.parametrize("method", ["integrated-gradients", "leave-one-word-out"])
@pytest.mark.parametrize("text", TEXTS)
def test_words_are_slices_of_the_submitted_text_in_order(classifier: Classifier, text: str, method: str) -> None:
    words = classifier.explain((text,), "positive", method).words

    assert all(text[word.start : word.end] == word.text for word in words)
    assert all(word.field == "text" for word in words)
    assert all(left.end <= right.start for left, right in itertools.pairwise(words))
    covered = {index for word in words for index in range(word.start, word.end)}
    assert all(text[index].isspace() for index in set(range(len(text))) - covered)


def test_of_a_pair_both_texts_are_explained_in_their_own_characters(pairs: Classifier) -> None:
    attribution = pairs.explain(PAIR, "neutral")

    for field, text in zip(("premise", "hypothesis"), PAIR, strict=True):
        mine = [word for word in attribution.words if word.field == field]
        assert "".join(word.text for word in mine) == text.replace(" ", "")
        assert all(text[word.start : word.end] == word.text for word in mine)
        assert any(abs(word.score) > 0.01 for word in mine)


def test_of_a_long_passage_every_word_is_there_and_those_outside_the_window_have_no_part(reader: SpanReader) -> None:
    span = reader.predict(PASSAGE, QUESTION).span
    assert span is not None
    assert len(reader.windows((PASSAGE, QUESTION))) > 1

    attribution = reader.explain((PASSAGE, QUESTION), f"{span.start}-{span.end}")

    passage = [word for word in attribution.words if word.field == "passage"]
    assert "".join(word.text for word in passage) == PASSAGE.replace(" ", "")
    window = reader.score((PASSAGE, QUESTION), f"{span.start}-{span.end}").sequence
    pieces = [piece for piece in window.pieces if piece.field == 0]
    for word in passage:
        inside = any(piece.start < word.end and piece.end > word.start for piece in pieces)
        assert (word.score != 0) == inside
    assert [word.text for word in attribution.words if word.field == "question"] == ["was", "the", "staff", "good", "?"]
    assert attribution.target == f"{span.start}-{span.end}"


@pytest.mark.usefixtures("precision")
def test_the_score_of_a_span_is_its_start_and_end_logit(reader: SpanReader) -> None:
    at = PASSAGE.index("staff was not good")
    target = f"{at}-{at + len('staff was not good')}"
    score = reader.score((PASSAGE, QUESTION), target)
    starts, ends = reader.scores([score.sequence])
    first = next(i for i, piece in enumerate(score.sequence.pieces) if piece.field == 0 and piece.start >= at)
    last = first + 3

    assert score.sequence.pieces[last].end == at + len("staff was not good")
    with torch.no_grad():
        value = float(score.values(score.inputs)[0])
    assert value == pytest.approx(float(starts[0, first] + ends[0, last]), abs=1e-5)
    change = value - float(score.values(score.baseline)[0])
    attribution = reader.explain((PASSAGE, QUESTION), target)
    total = sum(word.score for word in attribution.words)
    assert total - change == pytest.approx(attribution.convergence_delta, abs=1e-4)


@pytest.mark.parametrize("target", ["positive", "5", "9-4", "0-100000", "-1-4", "a-b", ""])
def test_what_is_no_stretch_of_the_passage_is_refused(reader: SpanReader, target: str) -> None:
    with pytest.raises(ModelNotLoaded):
        reader.explain((PASSAGE, QUESTION), target)


def test_a_span_of_which_no_window_holds_half_is_refused_with_the_reason(reader: SpanReader) -> None:
    with pytest.raises(ModelNotLoaded, match="too long"):
        reader.explain((PASSAGE * 3, QUESTION), f"0-{len(PASSAGE) * 3 - 1}")


def of_captum(score: Score, steps: int, rule: str) -> list[float]:
    from captum.attr import IntegratedGradients

    found = IntegratedGradients(score.values).attribute(score.inputs, score.baseline, n_steps=steps, method=rule)
    by_position: list[float] = found.sum(-1)[0].tolist()
    return by_position


SCORES: dict[str, Callable[[Classifier, Classifier, SpanReader], Score]] = {
    "text": lambda classifier, pairs, reader: classifier.score(("the food was not good but very cold",), "positive"),
    "pair": lambda classifier, pairs, reader: pairs.score(PAIR, "negative"),
    "span": lambda classifier, pairs, reader: reader.score((PASSAGE, QUESTION), "9-17"),
}


@pytest.mark.parametrize("kind", sorted(SCORES))
def test_the_fast_way_gives_captums_numbers_at_the_same_steps(
    kind: str, classifier: Classifier, pairs: Classifier, reader: SpanReader
) -> None:
    from inference.lean_bert import lean_bert_of
    from inference.twin import twin_of

    score = SCORES[kind](classifier, pairs, reader)
    expected = of_captum(score, 12, "riemann_middle")

    for way in (lean_bert_of(score.loaded.model, half=False), twin_of(score.loaded.model, half=False)):
        assert way is not None
        few = integrated_gradients(score, way, patience_seconds=0)
        assert few.steps == STEPS[0] == 12
        assert list(few.by_position) == pytest.approx(expected, abs=1e-4)


def test_the_steps_of_the_second_try_are_captums_too() -> None:
    from inference.twin import twin_of

    score = Classifier(tiny_model(spread=0.5, seed=3), LABELS).score(("the food was not good",), "positive")

    found = integrated_gradients(score, twin_of(score.loaded.model, half=False), patience_seconds=60)

    assert found.steps == STEPS[1] == 36
    assert list(found.by_position) == pytest.approx(of_captum(score, 36, "riemann_middle"), abs=1e-4)


def test_captums_own_method_is_captums_default(classifier: Classifier) -> None:
    text = "the food was not good but very cold"
    expected = of_captum(classifier.score((text,), "positive"), 50, "gausslegendre")

    attribution = classifier.explain((text,), "positive", "captum-integrated-gradients")

    assert attribution.steps == 50
    assert [word.score for word in attribution.words] == pytest.approx(expected[1:-1], abs=1e-5)


@pytest.mark.usefixtures("in_single_precision")
def test_the_numbers_are_those_of_captums_layer_method_on_a_model_of_its_own(classifier: Classifier) -> None:
    from captum.attr import LayerIntegratedGradients

    text = "the food was not good but very cold"
    loaded = classifier.loaded
    encoding = loaded.tokenizer.encode(text)
    ids = torch.tensor([encoding.ids])
    blank = torch.where(torch.tensor([encoding.special_tokens_mask]).bool(), ids, loaded.pad_token_id)
    own = tiny_model().model.requires_grad_(True)
    reference = LayerIntegratedGradients(lambda x: own(input_ids=x).logits, own.bert.embeddings.word_embeddings)
    expected = reference.attribute(ids, blank, target=1, n_steps=12, method="riemann_middle").sum(-1)[0][1:-1]

    attribution = classifier.explain((text,), LABELS[1])

    assert attribution.steps == 12
    assert [word.score for word in attribution.words] == pytest.approx(expected.tolist(), abs=1e-4)


def test_input_x_gradient_is_captums(classifier: Classifier) -> None:
    from captum.attr import InputXGradient

    score = classifier.score(("the food was not good",), "positive")
    inputs = score.inputs.clone().requires_grad_()
    expected = InputXGradient(score.values).attribute(inputs).sum(-1)[0][1:-1]

    attribution = classifier.explain(("the food was not good",), "positive", "input-x-gradient")

    assert [word.score for word in attribution.words] == pytest.approx(expected.tolist(), abs=1e-5)
    assert (attribution.convergence_delta, attribution.converged) == (None, False)


def test_gradient_shap_is_near_the_integral_and_the_same_every_time(classifier: Classifier) -> None:
    text = ("the food was not good",)
    whole = classifier.explain(text, "positive", "captum-integrated-gradients").words

    one, other = (classifier.explain(text, "positive", "gradient-shap") for _ in range(2))

    assert one.words == other.words
    assert one.steps == 20
    # The points are drawn, so only the sizes can agree.
    assert [word.score for word in one.words] == pytest.approx([word.score for word in whole], abs=0.6)
    assert one.convergence_delta == pytest.approx(
        sum(word.score for word in one.words) - sum(word.score for word in whole), abs=0.01
    )


def test_an_unknown_method_is_refused_with_the_list(classifier: Classifier) -> None:
    with pytest.raises(MethodNotSupported, match=r"'lime'.*integrated-gradients.*leave-one-word-out"):
        classifier.explain(("good",), "positive", "lime")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_explains_pairs_and_spans_and_says_its_name(
    pairs: Classifier, reader: SpanReader, method: str
) -> None:
    of_pair = pairs.explain(PAIR, "neutral", method)
    of_span = reader.explain((PASSAGE, QUESTION), "9-17", method)

    for attribution, fields in ((of_pair, {"premise", "hypothesis"}), (of_span, {"passage", "question"})):
        assert attribution.method == method
        assert {word.field for word in attribution.words} == fields


def test_in_half_precision_an_explanation_points_the_same_way(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ("the food was not good but very cold",)
    monkeypatch.setattr("inference.twin.half_is_fast", lambda: False)
    single = [word.score for word in classifier.explain(text, "positive").words]
    monkeypatch.setattr("inference.twin.half_is_fast", lambda: True)
    half = Classifier(classifier.loaded, LABELS).explain(text, "positive")

    one, other = torch.tensor(single), torch.tensor([word.score for word in half.words])
    assert float(torch.cosine_similarity(one, other, dim=0)) > 0.99
    assert not torch.equal(one, other)
    assert half.converged


def test_pieces_of_one_word_are_added_up(classifier: Classifier) -> None:
    attribution = classifier.explain(("good stuff",), "positive")

    assert [word.text for word in attribution.words] == ["good", "stuff"]
    assert len(classifier.loaded.tokenizer.encode("stuff").ids) > 3


def test_a_hard_path_is_walked_again_with_more_steps() -> None:
    wild = Classifier(tiny_model(spread=0.5, seed=3), LABELS)
    attributions = [wild.explain((" ".join(WORDS[at : at + 6]),), label) for at in range(9) for label in LABELS]

    assert {attribution.steps for attribution in attributions} == {12, 36}
    assert all(attribution.converged for attribution in attributions if attribution.steps == 12)
    assert not all(attribution.converged for attribution in attributions)


def test_without_time_for_more_steps_the_first_result_stands_and_says_that_it_did_not_converge() -> None:
    wild = Classifier(tiny_model(spread=1.0, seed=3), LABELS)

    def explain(seconds: float) -> Attribution:
        text = ("the food was not good",)
        return LocalExplainer().attribution(wild, text, "negative", None, patience_seconds=seconds)

    patient, hurried = explain(60), explain(0)

    assert (patient.steps, hurried.steps) == (36, 12)
    assert not hurried.converged


def test_the_same_question_gets_the_same_numbers(classifier: Classifier) -> None:
    one, other = (classifier.explain(("the food was cold",), "negative") for _ in range(2))

    assert one.words == other.words
    assert one.convergence_delta == other.convergence_delta


def test_a_cut_text_is_scored_as_far_as_it_was_read(classifier: Classifier) -> None:
    text = "good bad " * 5000
    started = time.perf_counter()

    words = classifier.explain((text,), "positive").words

    assert len(words) == classifier.loaded.max_length - 2
    assert text[words[-1].start : words[-1].end] in ("good", "bad")
    assert time.perf_counter() - started < 5


def test_a_hundred_kilobytes_in_one_word_are_quick(classifier: Classifier) -> None:
    started = time.perf_counter()

    words = classifier.explain(("a" * 100_000,), "positive").words

    assert [(word.start, word.end) for word in words] == [(0, 100_000)]
    assert time.perf_counter() - started < 5


def test_an_unknown_label_is_refused(classifier: Classifier) -> None:
    for method in METHODS:
        with pytest.raises(ModelNotLoaded, match="'angry'"):
            classifier.explain(("good",), "angry", method)


@pytest.mark.parametrize("text", ["", " \r\n", "\u200b"])
def test_a_text_without_a_readable_word_is_refused(classifier: Classifier, text: str) -> None:
    with pytest.raises(NothingToRead):
        classifier.explain((text,), "positive")


@pytest.mark.parametrize("method", METHODS[:-1])
def test_gradients_that_are_not_finite_are_a_typed_error(method: str) -> None:
    loaded = tiny_model()
    with torch.no_grad():
        loaded.model.bert.pooler.dense.weight[0, 0] = float("nan")

    with pytest.raises(BadModelAnswer):
        Classifier(loaded, LABELS).explain(("good",), "positive", method)


@pytest.mark.parametrize("method", METHODS)
def test_explaining_leaves_the_parameters_frozen_and_without_gradients(classifier: Classifier, method: str) -> None:
    classifier.explain(("good",), "positive", method)

    model = classifier.loaded.model
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(type(module).__name__ != "_PassingLinear" for module in model.modules())


def test_an_explanation_ends_at_a_checkpoint_on_the_way_there_and_on_the_way_back(classifier: Classifier) -> None:
    def passed(at_most: int) -> int:
        count = 0

        def checkpoint() -> None:
            nonlocal count
            count += 1
            if count > at_most:
                raise CallerGone

        with stopping_at(checkpoint):
            classifier.explain(("the food was good",), "positive")
        return count

    everything = passed(1_000_000)
    # Two forward passes without gradients, one with them and one back: checkpoints stand in all of them.
    assert everything > 20
    for at_most in (0, everything // 2, everything - 1):
        with pytest.raises(CallerGone):
            passed(at_most)


def predict_beside_explanations(
    ask: Callable[[int], Any], explain: Callable[[int], Any], requests: int
) -> tuple[list[Any], list[Any]]:
    """Return the answers to so many requests from four threads, and all explanations two others made meanwhile."""
    stop = threading.Event()

    def keep_explaining(offset: int) -> list[Any]:
        found: list[Any] = []
        while not stop.is_set() or not found:
            found.append(explain(len(found) + offset))
        return found

    with ThreadPoolExecutor(2) as explainers, ThreadPoolExecutor(4) as predictors:
        explaining = [explainers.submit(keep_explaining, offset) for offset in (0, 3)]
        answers = list(predictors.map(ask, range(requests)))
        stop.set()
        return answers, [one for future in explaining for one in future.result()]


@pytest.mark.parametrize("requests", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_predictions_are_the_same_while_others_explain(classifier: Classifier, requests: int) -> None:
    alone = {text: classifier.predict(text) for text in TEXTS}
    expected = {
        (text, method): classifier.explain((text,), "positive", method).words
        for text in TEXTS[:6]
        for method in METHODS
    }

    def explain(number: int) -> bool:
        text, method = TEXTS[number % 6], METHODS[number % len(METHODS)]
        words = classifier.explain((text,), "positive", method).words
        return all(abs(a.score - b.score) < 1e-4 for a, b in zip(words, expected[text, method], strict=True))

    def predict(number: int) -> tuple[float, bool]:
        text = TEXTS[number % len(TEXTS)]
        prediction = classifier.predict(text)
        apart = max(abs(prediction.probabilities[label] - alone[text].probabilities[label]) for label in LABELS)
        return apart, prediction.label != alone[text].label

    answers, explained = predict_beside_explanations(predict, explain, requests)

    assert max(apart for apart, _ in answers) < 1e-5
    assert not any(flipped for _, flipped in answers)
    assert all(explained)
