"""What is known of a marked answer without the passage, and without the question."""

from __future__ import annotations

from hits.measures.baselines import HashedTexts
from hits.measures.span_baselines import WithoutPassage, WithoutQuestion, marked, overlaps


def test_the_question_alone_gives_the_answer_that_such_questions_had() -> None:
    known = WithoutPassage()
    for number in range(30):
        known.add(f"Who wrote letter {number}?", "the queen")
        known.add(f"When was letter {number} sent?", "in 1903")
    classifier, common = known.learned(seed=0)
    asked = HashedTexts(classifier.weights.shape[0])
    for question in ("Who sang?", "When was it?"):
        asked.add((question,))

    assert [common[one] for one in classifier.classify(asked)] == ["the queen", "in 1903"]


def test_the_passage_alone_has_what_looks_like_an_answer_marked() -> None:
    seen = WithoutQuestion()
    for number in range(60):
        passage = f"The long letter went to town {1800 + number} years ago and nobody there had read it yet."
        seen.add(passage, passage.index(str(1800 + number)), f"{1800 + number} years")
    classifier, length = seen.learned(seed=0)

    assert length == 2
    assert marked(classifier, length, "The other letter stayed here until 1950 days had gone by.") == "1950 days"
    assert marked(classifier, length, "") == ""


def test_overlaps_are_those_of_the_task() -> None:
    assert overlaps(["the queen", "x"], ["queen", "y"]) == [1.0, 0.0]
