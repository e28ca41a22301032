"""The simulated crowd has enough to say, and the embedded model falls for what it should."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from app.cli.crowd import FOOLING_HITS, OPINIONS, PLAIN, TRICKY, Supply, opinion_of
from app.cli.demo import HITS, TRIES
from hits.predictions import Prediction
from hits.tasks import task

SENTIMENT = task("sentiment")


def test_every_statement_passes_the_tasks_checks_and_is_said_once() -> None:
    texts = [text for pool in (PLAIN, TRICKY) for texts in pool.values() for text in texts]

    assert set(PLAIN) == set(TRICKY) == set(FOOLING_HITS) == set(SENTIMENT.label_codes)
    assert len(set(texts)) == len(texts)
    assert [SENTIMENT.check_answer({"statement": text})["statement"] for text in texts] == texts


def test_balanced_hits_are_supplied_without_saying_anything_twice() -> None:
    supply = Supply()
    said: list[str] = []
    fooling = 0

    for number in range(HITS):
        goal = SENTIMENT.label_codes[number % 3]
        for text in itertools.islice(supply.for_hit(goal), TRIES):
            said.append(text)
            if text in TRICKY[goal]:
                fooling += 1
                break

    assert len(said) == len(set(said))
    assert len(said) >= 40
    assert fooling == sum(FOOLING_HITS.values()) == 10


def test_more_hits_of_one_label_than_ideas_are_still_served() -> None:
    supply = Supply()

    for _ in range(HITS):
        texts = list(itertools.islice(supply.for_hit("neutral"), TRIES))
        assert len(set(texts)) == TRIES


def test_the_crowd_has_an_opinion_on_what_it_wrote_and_on_nothing_else() -> None:
    assert opinion_of("Something that a real person wrote.") is None
    assert opinion_of(PLAIN["neutral"][0]).of(1) == "neutral"  # type: ignore[union-attr]
    for text in OPINIONS:
        assert any(text in texts for texts in TRICKY.values()), text


def test_the_validators_agree_disagree_overrule_and_flag() -> None:
    queue = opinion_of("The queue was long for a reason.")
    ghost = opinion_of("The ghost train scared me to death from start to end.")
    spoon = opinion_of("Happy spoon the of laughing seven table yes yes.")
    assert queue is not None
    assert ghost is not None
    assert spoon is not None

    assert [queue.of(number) for number in (1, 2, 3)] == ["positive", "neutral", "positive"]
    assert len({ghost.of(number) for number in (1, 2, 3)}) == 3
    assert spoon.flag


@pytest.mark.model
def test_the_embedded_model_knows_the_plain_statements_and_falls_for_the_tricky_ones() -> None:
    from inference.engine import embedded_source

    model = embedded_source(SENTIMENT).load()

    def answers(texts: Sequence[str]) -> list[Prediction]:
        return model.predict_all([(text,) for text in texts])

    for label, texts in PLAIN.items():
        assert [text for text, said in zip(texts, answers(texts), strict=True) if said.label != label] == []
    for label, texts in TRICKY.items():
        assert [text for text, said in zip(texts, answers(texts), strict=True) if said.label == label] == []
