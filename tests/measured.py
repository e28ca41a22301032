"""Models and sets for tests of measuring: a model that answers by rule, counts what it is asked, and may fail."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.operations.freeze import freeze_round
from app.operations.import_dataset import ImportTerms, import_dataset
from app.operations.measure_models import measure_model
from hits.clock import FixedClock
from hits.manifest import SplitTerms
from hits.measures.sets import LabelledRow, RowSet, rows_set
from hits.predictions import AnswerSpan, Attribution, ModelUnavailable, Prediction
from hits.tasks import task
from inference.errors import NothingToRead
from inference.target import ModelCard, ModelInput
from tests import factories as make
from tests.rounds import dynasent_file

LABELS = ("negative", "positive", "neutral")


@dataclass
class RuledModel:
    """Says what ``rule`` says of the texts; None is a text of which it sees no word. Fails after ``lasts`` inputs."""

    rule: Callable[[ModelInput], str | None]
    name: str = "ruled"
    labels: tuple[str, ...] = LABELS
    lasts: int | None = None
    asked: list[ModelInput] = field(default_factory=list)

    @property
    def model_id(self) -> str:
        return self.name

    @property
    def revision(self) -> str:
        return "one"

    @property
    def card(self) -> ModelCard:
        return ModelCard(self.name, "one", self.labels, weights_sha256=hashlib.sha256(self.name.encode()).hexdigest())

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        if self.lasts is not None and len(self.asked) + len(inputs) > self.lasts:
            raise ModelUnavailable("the server is gone")
        said = [self.rule(item) for item in inputs]
        if None in said:
            raise NothingToRead
        self.asked += inputs
        return [self._prediction(item, str(one)) for item, one in zip(inputs, said, strict=True)]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        raise ModelUnavailable("it explains nothing")

    def _prediction(self, item: ModelInput, said: str) -> Prediction:
        if self.labels:
            return Prediction(self.name, "one", said, {said: 1.0}, 1.0)
        start = item[0].index(said)
        return Prediction(self.name, "one", "", {}, 1.0, span=AnswerSpan(start, start + len(said), said))


def always(label: str, name: str = "") -> RuledModel:
    return RuledModel(lambda texts: label, name or f"always {label}")


def sentiment_rows(count: int, **parts: tuple[str, ...]) -> list[LabelledRow]:
    """Rows whose label stands in their text, in turn."""
    return [
        LabelledRow((f"It was {LABELS[number % 3]}, day {number}.",), (LABELS[number % 3],), parts)
        for number in range(count)
    ]


def told(texts: ModelInput) -> str:
    """The label that stands in a row of ``sentiment_rows``."""
    return next(label for label in LABELS if label in texts[0])


def sentiment_set(count: int = 30, name: str = "made up") -> RowSet:
    return rows_set(task("sentiment"), name, sentiment_rows(count))


def measured(session: Session, *models: RuledModel, sets: Sequence[RowSet] = (), **options: Any) -> None:
    """Measure models on sets, one after the other, a minute apart."""
    clock = FixedClock(make.NOON)
    for model in models:
        for one in sets or [sentiment_set()]:
            measure_model(session, clock, model, one, model_task="sentiment", resamples=200, **options)
        clock.advance(timedelta(minutes=1))


def frozen_round(session: Session, folder: Path, count: int = 120, number: int = 2) -> None:
    """An imported and frozen round of sentiment, half for training and half for tests."""
    clock = FixedClock(make.NOON)
    terms = ImportTerms("dynasent", (dynasent_file(folder, count),), number)
    import_dataset(session, clock, terms, key=make.PSEUDONYM_KEY, by="Ada")
    freeze_round(session, clock, "sentiment", number, SplitTerms(seed=1, shares=(0.5, 0.0, 0.5)), by="Ada")
