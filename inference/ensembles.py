"""Several models behind one answer; a policy decides who is asked and what is shown."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hits.predictions import Attribution, Prediction, WordAttribution
from hits.tasks import RIGHT_FROM_F1, token_f1
from inference.errors import ModelNotLoaded
from inference.target import ModelCard, ModelInput, TargetModel
from inference.words import gather


class Policy(Protocol):
    """Who is asked about an attempt, and what is made of their answers."""

    @property
    def name(self) -> str: ...

    def chosen(self, key: str, members: int) -> Sequence[int]:
        """Return the places of the members to ask."""

    def shown(self, predictions: Sequence[Prediction], ensemble: ModelCard) -> Prediction:
        """Return the one answer that is shown, made of those of the members asked, in their order."""


@dataclass(frozen=True)
class RandomMember:
    """One member is drawn for each attempt; the same seed and attempt always draw the same one."""

    seed: int = 0

    @property
    def name(self) -> str:
        return f"random:{self.seed}"

    def chosen(self, key: str, members: int) -> Sequence[int]:
        digest = hashlib.sha256(f"{self.seed}:{key}".encode()).digest()
        return (int.from_bytes(digest, "big") % members,)

    def shown(self, predictions: Sequence[Prediction], ensemble: ModelCard) -> Prediction:
        return predictions[0]


@dataclass(frozen=True)
class WrongMembers:
    """All are asked, and the model counts as fooled when at least ``needed`` are wrong.

    Which of them that is depends on what the writer aimed at; until that is known the most confident one is shown.
    """

    needed: int

    @property
    def name(self) -> str:
        return f"wrong>={self.needed}"

    def chosen(self, key: str, members: int) -> Sequence[int]:
        return range(members)

    def shown(self, predictions: Sequence[Prediction], ensemble: ModelCard) -> Prediction:
        return replace(max(predictions, key=_confidence), wrong_members_needed=self.needed)


@dataclass(frozen=True)
class Majority:
    """All are asked; what most of them say is shown, in the words of the most confident one of these.

    With as many votes on both sides the greater sum of confidences decides. Spans agree when their words overlap as
    much as a right answer's must.
    """

    name: str = "majority"

    def chosen(self, key: str, members: int) -> Sequence[int]:
        return range(members)

    def shown(self, predictions: Sequence[Prediction], ensemble: ModelCard) -> Prediction:
        parties = [[other for other in predictions if _agree(one, other)] for one in predictions]
        largest = max(parties, key=lambda party: (len(party), sum(map(_confidence, party))))
        return max(largest, key=_confidence)


@dataclass(frozen=True)
class MeanProbability:
    """All are asked; the label with the highest mean probability is shown, with the means.

    Of spans, the confidences of those that agree are added up, and the most confident one of the best party is shown.
    """

    name: str = "mean"

    def chosen(self, key: str, members: int) -> Sequence[int]:
        return range(members)

    def shown(self, predictions: Sequence[Prediction], ensemble: ModelCard) -> Prediction:
        first = predictions[0]
        if first.span is not None:
            parties = [[other for other in predictions if _agree(one, other)] for one in predictions]
            return max(max(parties, key=lambda party: sum(map(_confidence, party))), key=_confidence)
        means = {
            label: sum(one.probabilities[label] for one in predictions) / len(predictions)
            for label in first.probabilities
        }
        label = max(means, key=means.__getitem__)
        # Where members see different parts of a long text, the page tells of the one that saw least.
        least = min(predictions, key=lambda one: sum(one.characters_read.values()) if one.characters_read else math.inf)
        return replace(
            least,
            model_id=ensemble.model_id,
            revision=ensemble.revision,
            label=label,
            probabilities=means,
            confidence=means[label],
        )


class Ensemble:
    """A TargetModel over others. Its revision changes with any member's, and with the policy."""

    def __init__(self, members: Sequence[TargetModel], policy: Policy) -> None:
        if len(members) < 2:
            raise ModelNotLoaded(f"An ensemble needs two models or more, and has {len(members)}.")
        if len({(member.model_id, member.revision) for member in members}) != len(members):
            raise ModelNotLoaded("An ensemble's members must differ; the same model is named twice.")
        self.members = tuple(members)
        self.policy = policy
        parts = [policy.name, *(f"{member.model_id}@{member.revision}" for member in members)]
        self.model_id = f"ensemble:{policy.name}({len(members)})"
        self.revision = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        cards = [member.card for member in members]
        counts = [card.parameters for card in cards]
        known = [count for count in counts if count is not None]
        labels = cards[0].labels if all(sorted(card.labels) == sorted(cards[0].labels) for card in cards) else ()
        self.card = ModelCard(
            model_id=self.model_id,
            revision=self.revision,
            labels=labels,
            label_map={label: label for label in labels},
            licence="; ".join(dict.fromkeys(card.licence for card in cards if card.licence)) or None,
            parameters=sum(known) if len(known) == len(counts) else None,
            seed=policy.seed if isinstance(policy, RandomMember) else None,
        )

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        """Return the answers to several inputs; where a member is drawn, by the texts themselves."""
        return self.predict_for(inputs, ["\n".join(item) for item in inputs])

    def predict_for(self, inputs: Sequence[ModelInput], keys: Sequence[str]) -> list[Prediction]:
        """Return the answers to several inputs, each for the attempt that its key names."""
        chosen = [tuple(self.policy.chosen(key, len(self.members))) for key in keys]
        said: list[dict[int, Prediction]] = [{} for _ in inputs]
        for number, member in enumerate(self.members):
            places = [place for place, some in enumerate(chosen) if number in some]
            if places:
                found = member.predict_all([inputs[place] for place in places])
                for place, prediction in zip(places, found, strict=True):
                    said[place][number] = prediction
        return [self._shown([answers[number] for number in sorted(answers)]) for answers in said]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        """Return the mean of the members' word scores, in the coarsest words of any of them."""
        found = [member.explain(item, target, method) for member in self.members]
        deltas = [one.convergence_delta for one in found if one.convergence_delta is not None]
        return replace(
            found[0],
            model_id=self.model_id,
            revision=self.revision,
            steps=max(one.steps for one in found),
            words=mean_of_words([one.words for one in found], item),
            convergence_delta=sum(deltas) / len(deltas) if deltas else None,
            converged=all(one.converged for one in found),
            seconds=sum(one.seconds for one in found),
        )

    def named(self, named: tuple[str, str] | None) -> TargetModel:
        """Return the member (model id, revision), or the ensemble itself. Raises ModelNotLoaded for another one."""
        if named is None:
            return self
        for model in (self, *self.members):
            if (model.model_id, model.revision) == named:
                return model
        raise ModelNotLoaded(f"{named[0]} at {named[1]} is no member of {self.model_id}, which answers now.")

    def _shown(self, predictions: Sequence[Prediction]) -> Prediction:
        return replace(
            self.policy.shown(predictions, self.card),
            latency_ms=sum(one.latency_ms for one in predictions),
            members=tuple(one.as_member() for one in predictions),
            policy=self.policy.name,
        )


def mean_of_words(several: Sequence[Sequence[WordAttribution]], texts: Sequence[str]) -> tuple[WordAttribution, ...]:
    """Return mean scores by word; words of one explanation that another has as one become one."""
    words: list[WordAttribution] = []
    for number, field in enumerate(dict.fromkeys(word.field for word in several[0])):
        mine = [[word for word in one if word.field == field] for one in several]
        spans = [(word.start, word.end) for word in mine[0]]
        for one in mine[1:]:
            spans, _ = gather(spans, [(word.start, word.end) for word in one])
        totals = [0.0] * len(spans)
        for one in mine:
            _, owners = gather(spans, [(word.start, word.end) for word in one])
            for owner, word in zip(owners, one, strict=True):
                if owner is not None:
                    totals[owner] += word.score / len(several)
        words += [
            WordAttribution(start, end, texts[number][start:end], total, field)
            for (start, end), total in zip(spans, totals, strict=True)
        ]
    return tuple(words)


def _agree(one: Prediction, other: Prediction) -> bool:
    if one.span is not None and other.span is not None:
        return token_f1(other.span.text, one.span.text) >= RIGHT_FROM_F1
    return one.label == other.label


def _confidence(prediction: Prediction) -> float:
    if prediction.label in prediction.probabilities:
        return prediction.probabilities[prediction.label]
    return prediction.confidence or 0.0
