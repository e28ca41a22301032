"""Policies over several models: who is asked, what is shown, what is kept, and what an explanation of them is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hits.predictions import AnswerSpan, Attribution, Prediction, WordAttribution
from hits.tasks import task
from inference.ensembles import Ensemble, Majority, MeanProbability, Policy, RandomMember, WrongMembers, mean_of_words
from inference.errors import ModelNotLoaded
from inference.target import ModelCard, ModelInput

LABELS = ("negative", "positive", "neutral")


class Says:
    """A member that always says the same."""

    revision = "1"

    def __init__(
        self,
        model_id: str,
        *numbers: float,
        span: tuple[str, float] | None = None,
        words: Sequence[WordAttribution] = (),
        delta: float | None = 0.01,
    ) -> None:
        self.model_id = model_id
        self.card = ModelCard(model_id, "1", LABELS if numbers else (), parameters=10, licence=f"licence {model_id}")
        self.asked: list[ModelInput] = []
        self._words, self._delta = tuple(words), delta
        probabilities = dict(zip(LABELS, numbers, strict=False))
        label = max(probabilities, key=probabilities.__getitem__) if probabilities else ""
        self._says = Prediction(model_id, "1", label, probabilities, 2.0, confidence=probabilities.get(label))
        if span is not None:
            answer = AnswerSpan(0, len(span[0]), span[0])
            self._says = replace(self._says, span=answer, confidence=span[1])

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        self.asked += inputs
        return [self._says for _ in inputs]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        return Attribution(
            self.model_id, "1", method or "x", 12, target, self._words, self._delta, self._delta is not None, 0.5
        )


A, B, C = Says("a", 0.7, 0.2, 0.1), Says("b", 0.1, 0.5, 0.4), Says("c", 0.1, 0.6, 0.3)


def ask(policy: Policy, *members: Says, key: str = "k") -> Prediction:
    return Ensemble(members, policy).predict_for([("text",)], [key])[0]


def test_a_random_member_is_the_same_for_the_same_attempt_and_seed_and_each_is_drawn_as_often() -> None:
    ensemble = Ensemble([A, B, C], RandomMember(seed=3))
    keys = [f"attempt-{number}" for number in range(3000)]

    drawn = [one.model_id for one in ensemble.predict_for([("text",)] * 3000, keys)]

    assert drawn == [one.model_id for one in ensemble.predict_for([("text",)] * 3000, keys)]
    assert drawn != [
        one.model_id for one in Ensemble([A, B, C], RandomMember(seed=4)).predict_for([("t",)] * 3000, keys)
    ]
    # Each of three has 1,000 in the mean with a deviation of 26.
    assert all(870 < count < 1130 for count in Counter(drawn).values())


def test_only_the_drawn_member_is_asked_and_only_it_is_kept() -> None:
    members = [Says("a", 0.7, 0.2, 0.1), Says("b", 0.1, 0.5, 0.4)]
    prediction = ask(RandomMember(), *members)

    assert [member.model_id for member in members if member.asked] == [prediction.model_id]
    assert [member.model_id for member in prediction.members] == [prediction.model_id]
    assert prediction.policy == "random:0"


def test_the_mean_of_probabilities_decides_and_is_shown_under_the_ensembles_name() -> None:
    prediction = ask(MeanProbability(), A, B, C)

    assert dict(prediction.probabilities) == pytest.approx({"negative": 0.3, "positive": 1.3 / 3, "neutral": 0.8 / 3})
    assert prediction.label == "positive"
    assert prediction.confidence == pytest.approx(1.3 / 3)
    assert prediction.model_id == "ensemble:mean(3)"
    assert [(member.model_id, member.label) for member in prediction.members] == [
        ("a", "negative"),
        ("b", "positive"),
        ("c", "positive"),
    ]
    assert prediction.latency_ms == 6.0


def test_a_mean_tells_of_the_member_that_saw_least_of_a_long_text() -> None:
    short, shorter = Says("a", 0.7, 0.2, 0.1), Says("b", 0.7, 0.2, 0.1)
    short._says = replace(short._says, truncated=True, characters_read={"text": 90})
    shorter._says = replace(shorter._says, truncated=True, characters_read={"text": 50})

    prediction = ask(MeanProbability(), short, shorter, C)

    assert (prediction.truncated, prediction.characters_read) == (True, {"text": 50})


def test_every_member_tells_how_much_of_a_long_text_it_saw() -> None:
    short, whole = Says("a", 0.7, 0.2, 0.1), Says("b", 0.1, 0.8, 0.1)
    short._says = replace(short._says, truncated=True, characters_read={"text": 90})

    prediction = ask(WrongMembers(1), short, whole)

    assert [(one.model_id, one.truncated, one.characters_read) for one in prediction.members] == [
        ("a", True, {"text": 90}),
        ("b", False, None),
    ]
    for goal, shown, read in (("positive", "a", {"text": 90}), ("negative", "b", None)):
        said = task("sentiment").judge(goal, {"statement": "s"}, prediction).shown
        assert (said.model_id, said.truncated, said.characters_read) == (shown, read is not None, read)


def test_the_majority_is_shown_in_the_words_of_its_most_confident_member() -> None:
    prediction = ask(Majority(), A, B, C)

    assert (prediction.label, prediction.model_id, prediction.confidence) == ("positive", "c", 0.6)
    assert len(prediction.members) == 3


def test_with_as_many_votes_on_both_sides_the_surer_side_wins() -> None:
    assert ask(Majority(), A, B).label == "negative"
    assert ask(Majority(), B, A).label == "negative"


def test_wrong_members_are_counted_by_the_task_and_all_answers_are_there_to_count() -> None:
    prediction = ask(WrongMembers(2), A, B, C)

    assert (prediction.wrong_members_needed, prediction.policy) == (2, "wrong>=2")
    spec = task("sentiment")
    assert spec.judge("negative", {}, prediction).fooled
    assert spec.judge("negative", {}, prediction).shown.model_id == "c"
    assert not spec.judge("positive", {}, prediction).fooled
    assert spec.judge("positive", {}, prediction).shown.model_id == "c"
    assert spec.judge("neutral", {}, prediction).shown.model_id == "a"


SPANS = (
    Says("a", span=("the cold food", 0.4)),
    Says("b", span=("cold food", 0.3)),
    Says("c", span=("loud staff", 0.6)),
)


@pytest.mark.parametrize(("policy", "shown"), [(Majority(), "a"), (MeanProbability(), "a"), (WrongMembers(1), "c")])
def test_spans_agree_when_their_words_overlap(policy: Policy, shown: str) -> None:
    prediction = ask(policy, *SPANS)

    assert prediction.model_id == shown
    assert prediction.span is not None
    assert [member.span.text for member in prediction.members if member.span] == [
        "the cold food",
        "cold food",
        "loud staff",
    ]


def test_the_revision_follows_members_and_policy() -> None:
    revisions = {
        Ensemble(members, policy).revision
        for members, policy in (
            ([A, B], Majority()),
            ([A, C], Majority()),
            ([A, B], MeanProbability()),
            ([A, B], WrongMembers(1)),
            ([A, B], WrongMembers(2)),
            ([A, B], RandomMember(1)),
        )
    }

    assert len(revisions) == 6
    assert Ensemble([A, B], Majority()).revision == Ensemble([A, B], Majority()).revision


def test_its_card_adds_up_parameters_and_names_every_licence() -> None:
    card = Ensemble([A, B], RandomMember(seed=5)).card

    assert (card.parameters, card.licence, card.seed) == (20, "licence a; licence b", 5)
    assert card.labels == LABELS


@pytest.mark.parametrize("members", [[], [A], [A, Says("a", 0.1, 0.2, 0.7)]])
def test_an_ensemble_of_one_is_refused(members: list[Says]) -> None:
    with pytest.raises(ModelNotLoaded):
        Ensemble(members, Majority())


def test_a_member_is_found_by_name_and_revision() -> None:
    ensemble = Ensemble([A, B], Majority())

    assert ensemble.named(("b", "1")) is B
    assert ensemble.named(None) is ensemble
    assert ensemble.named((ensemble.model_id, ensemble.revision)) is ensemble
    with pytest.raises(ModelNotLoaded, match="no member"):
        ensemble.named(("b", "2"))


def word(start: int, end: int, score: float, field: str = "text") -> WordAttribution:
    return WordAttribution(start, end, "don't stop"[start:end], score, field)


def test_an_explanation_of_all_is_the_mean_by_word_in_the_coarsest_words() -> None:
    fine = [word(0, 3, 1.0), word(3, 4, 2.0), word(4, 5, 3.0), word(6, 10, 4.0)]
    coarse = [word(0, 5, 2.0), word(6, 10, 0.0)]

    mean = mean_of_words([fine, coarse], ("don't stop",))

    assert mean == (word(0, 5, 4.0), word(6, 10, 2.0))
    assert mean_of_words([coarse, fine], ("don't stop",)) == mean


def test_an_explanation_of_all_says_whose_it_is_and_whether_all_converged() -> None:
    one, other = Says("a", 0.7, 0.2, 0.1, words=[word(0, 5, 1.0)]), Says("b", 0.7, 0.2, 0.1, words=[word(0, 5, 3.0)])
    rough = Says("c", 0.7, 0.2, 0.1, words=[word(0, 5, 3.0)], delta=None)

    attribution = Ensemble([one, other], MeanProbability()).explain(("don't",), "negative")

    assert (attribution.model_id, attribution.convergence_delta, attribution.converged) == (
        "ensemble:mean(2)",
        0.01,
        True,
    )
    assert attribution.words == (word(0, 5, 2.0),)
    assert attribution.seconds == 1.0
    assert not Ensemble([one, rough], MeanProbability()).explain(("don't",), "negative").converged


def test_a_confidence_beside_the_probabilities_decides_nothing() -> None:
    boaster = Says("boaster", 0.1, 0.5, 0.4)
    boaster._says = replace(boaster._says, confidence=1.0)

    assert ask(WrongMembers(1), boaster, C).model_id == "c"
    assert ask(Majority(), boaster, C).model_id == "c"
