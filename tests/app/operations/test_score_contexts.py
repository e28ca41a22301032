"""How unsure the target model is about contexts: what it is asked, what counts, once for each of its versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.score_contexts import plan_scores, score_contexts, uncertainty_of
from hits.clock import FixedClock
from hits.errors import InvalidInput, Refused
from hits.models import ContextScore, ModelVersion
from hits.predictions import AnswerSpan, Prediction
from hits.states import AssignmentState
from hits.tasks import task
from tests.factories import make_assignment, make_attempt, make_batch, make_context, make_example, make_hit, make_round


@dataclass
class Model:
    """Unsure of short texts; by ``labels`` of its task."""

    labels: tuple[str, ...]
    revision: str = "one"
    asked: list[Mapping[str, str]] = field(default_factory=list)

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        self.asked.append(fields)
        top = 0.98 if len("".join(fields.values())) > 30 else 0.4
        rest = (1 - top) / (len(self.labels) - 1)
        probabilities = {code: top if code == self.labels[0] else rest for code in self.labels}
        return Prediction("rule", self.revision, self.labels[0], probabilities, 1.0)


def test_a_model_of_written_texts_is_asked_about_the_context_itself_once_per_version(
    session: Session, clock: FixedClock
) -> None:
    round_ = make_round(session)
    short = make_context(session, round=round_, fields={"prompt": "Late."})
    long = make_context(session, round=round_, fields={"prompt": "A ferry was early, and nobody had expected that."})
    session.commit()
    model = Model(task("sentiment").label_codes)
    plan = plan_scores(session, "sentiment", 1)
    assert (plan.contexts, plan.scored, plan.silent) == (2, 0, 0)

    done = score_contexts(session, model, clock, "sentiment", 1)
    again = score_contexts(session, model, clock, "sentiment", 1)
    model.revision = "two"
    other = score_contexts(session, model, clock, "sentiment", 1)

    assert (done.new, done.known, again.new, again.known, other.new) == (2, 0, 0, 2, 2)
    assert model.asked[0] == {"statement": "Late."}
    rows = session.scalars(select(ContextScore).where(ContextScore.model_revision == "one")).all()
    scores = {row.context_id: row.uncertainty for row in rows}
    assert 0.9 < scores[short.id] <= 1
    assert scores[long.id] < 0.2
    assert session.scalars(select(ModelVersion.revision).order_by(ModelVersion.id)).all() == ["one", "two"]


def test_a_model_of_pairs_is_asked_about_earlier_examples_on_the_context(session: Session, clock: FixedClock) -> None:
    spec = task("nli")
    round_ = make_round(session, task_code="nli", number=1)
    context = make_context(session, round=round_, fields={"premise": "It rained."})
    make_context(session, round=round_, fields={"premise": "Nobody wrote about it."})
    session.commit()
    model = Model(spec.label_codes)
    with pytest.raises(Refused, match="None of the 2 contexts"):
        score_contexts(session, model, clock, "nli", 1)
    hit = make_hit(session, batch=make_batch(session, round=round_), context_id=context.id, goal_label="neutral")
    for number in range(7):
        attempt = make_attempt(
            session,
            assignment=make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED),
            answer={"hypothesis": f"Wet {number}."},
            predicted_label="entailment",
            probabilities={},
        )
        make_example(session, attempt=attempt)
    session.commit()

    done = score_contexts(session, model, clock, "nli", 1)

    assert (done.new, done.silent) == (1, 1)
    assert model.asked[-1] == {"premise": "It rained.", "hypothesis": "Wet 6."}
    assert session.scalars(select(ContextScore.texts)).one() == 5


def test_a_context_that_another_process_scores_meanwhile_costs_the_others_nothing(
    session: Session, session_factory: sessionmaker[Session], clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = make_round(session)
    contexts = [make_context(session, round=round_, fields={"prompt": f"Late, {n} times."}) for n in range(3)]
    at_once = contexts[1].id
    session.commit()
    model = Model(task("sentiment").label_codes)
    ask = model.predict

    def beside(task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        if not model.asked:
            row = ContextScore(
                context_id=at_once, model_id="rule", model_revision="one", uncertainty=0.5, texts=1, at=clock.now()
            )
            with session_factory() as other, other.begin():
                other.add(row)
        return ask(task_code, fields, key=key)

    monkeypatch.setattr(model, "predict", beside)

    assert score_contexts(session, model, clock, "sentiment", 1).new == 2
    assert len(session.scalars(select(ContextScore)).all()) == 3


def test_unsure_is_entropy_or_what_a_span_lacks_to_certainty() -> None:
    even = Prediction("m", "r", "negative", {"negative": 1 / 3, "positive": 1 / 3, "neutral": 1 / 3}, 1.0)
    sure = Prediction("m", "r", "negative", {"negative": 1.0, "positive": 0.0, "neutral": 0.0}, 1.0)
    span = Prediction("m", "r", "", {}, 1.0, span=AnswerSpan(0, 1, "a"), confidence=0.75)

    assert uncertainty_of(task("sentiment"), even) == pytest.approx(1)
    assert uncertainty_of(task("sentiment"), sure) == 0
    assert uncertainty_of(task("qa"), span) == 0.25


def test_an_answer_that_is_none_stores_nothing(session: Session, clock: FixedClock) -> None:
    make_context(session, round=make_round(session))
    session.commit()

    with pytest.raises(InvalidInput, match="can't be used: its labels are not"):
        score_contexts(session, Model(("yes", "no")), clock, "sentiment", 1)
    assert session.scalars(select(ContextScore)).all() == []
