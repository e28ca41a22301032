"""What every engine is asked, and what the models in this process answer to it."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from hits.predictions import Attribution, ModelUnavailable, Prediction
from inference.engine import InProcessEngine, engine_for

ASKED: Mapping[str, tuple[Mapping[str, str], ...]] = {
    "sentiment": (
        {"statement": "I would have loved this place if I enjoyed waiting."},
        {"statement": "Not bad 😀 at all, I'll be back."},
        {"statement": "The shop opens at nine."},
    ),
    "nli": (
        {"premise": "A man plays a guitar on a stage.", "hypothesis": "Nobody makes music here."},
        {"premise": "Two dogs run over a meadow.", "hypothesis": "The animals are tired."},
    ),
    "qa": (
        {
            "passage": "The old bridge was opened in 1932. It was closed for repairs ten years ago. " * 12,
            "question": "When was the bridge opened?",
        },
    ),
    "hate": ({"statement": "People from Lower Wobble can't be trusted."},),
}


def here(codes: tuple[str, ...]) -> InProcessEngine:
    """Return the engine of this process with the embedded models of these tasks, ready."""
    return started(engine_for({code: f"embedded:{code}" for code in codes}))


def started(engine: InProcessEngine, seconds: float = 120) -> InProcessEngine:
    """Start an engine and wait for its models; a server may still be loading, so it is asked again."""
    deadline = time.monotonic() + seconds
    while True:
        engine.start()
        state = engine.wait_until_settled(seconds)
        if state.name == "ready":
            return engine
        assert time.monotonic() < deadline, state.message
        time.sleep(1)


def answer_alike(one: InProcessEngine, other: InProcessEngine, code: str) -> None:
    """Assert that two engines answer and explain the same, as close as numbers in single precision can be."""
    for asked in ASKED[code]:
        a, b = one.predict(code, asked, seconds=30), other.predict(code, asked, seconds=30)
        assert (a.model_id, a.revision, a.label, a.span) == (b.model_id, b.revision, b.label, b.span)
        assert dict(b.probabilities) == pytest.approx(dict(a.probabilities), abs=1e-4)
        assert b.confidence == pytest.approx(a.confidence, abs=1e-4)
        target = target_of(a)
        assert_same_words(
            one.explain(code, asked, target, seconds=120), other.explain(code, asked, target, seconds=120)
        )


def assert_same_words(a: Attribution, b: Attribution) -> None:
    assert [(w.field, w.start, w.end, w.text) for w in a.words] == [(w.field, w.start, w.end, w.text) for w in b.words]
    assert [w.score for w in b.words] == pytest.approx([w.score for w in a.words], abs=0.05)


def target_of(prediction: Prediction) -> str:
    """Return what to explain about a prediction: its label, or the characters of its span."""
    if prediction.span is None:
        return prediction.label
    return f"{prediction.span.start}-{prediction.span.end}"


def predicts_again(engine: InProcessEngine, code: str, seconds: float = 60) -> None:
    """Assert that an engine comes back by itself, and says only our own errors until then."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            engine.predict(code, ASKED[code][0])
        except ModelUnavailable:
            assert time.monotonic() < deadline, "the engine did not come back"
            engine.start()
            time.sleep(0.5)
        else:
            return
