"""HITs and examples of each task, and a model for all of them that answers by rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from hits.models import Example, Hit, Round
from hits.predictions import AnswerSpan, Attribution, Prediction, WordAttribution
from hits.states import AssignmentState, HitKind
from hits.tasks import task, token_f1
from tests import factories

PASSAGE = (
    "The old bridge at Tarn was built of oak in 1742 and carried carts until a flood took it in 1811. Its successor,"
    " of stone, was paid for by a toll of two pence, which the town gave up when the railway came in 1868."
)
CONTEXTS: Mapping[str, Mapping[str, str]] = {
    "sentiment": {"prompt": "A train was late."},
    "hate": {"prompt": "A new family has moved into the street."},
    "nli": {"premise": PASSAGE},
    "qa": {"passage": PASSAGE},
}
ANSWERS: Mapping[str, Mapping[str, str]] = {
    "sentiment": {"statement": "The good old queue again."},
    "hate": {"message": "Another lot from Quillby, there goes our street."},
    "nli": {"hypothesis": "The first bridge stood for less than eighty years."},
    "qa": {
        "question": "What was the second bridge made of?",
        "answer": "stone",
        "answer_start": str(PASSAGE.index("stone")),
    },
}
GOALS = {"sentiment": "negative", "hate": "hateful", "nli": "entailment", "qa": "right"}
OTHER = {"sentiment": "positive", "hate": "not_hateful", "nli": "contradiction", "qa": "wrong"}


@dataclass
class FourTaskEngine:
    """Says what the text itself asks for: a label's name, or for qa the last word of the question where it stands."""

    asked: list[Mapping[str, str]] = field(default_factory=list)
    explained: list[tuple[str, str]] = field(default_factory=list)
    characters_read: Mapping[str, int] | None = None

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        self.asked.append(fields)
        cut: dict[str, Any] = {"truncated": self.characters_read is not None, "characters_read": self.characters_read}
        spec = task(task_code)
        if task_code == "qa":
            wanted = fields["question"].split()[-1].rstrip("?")
            at = max(fields["passage"].find(wanted), 0)
            end = at + len(wanted) if fields["passage"].startswith(wanted, at) else len(fields["passage"].split()[0])
            span = AnswerSpan(at, end, fields["passage"][at:end])
            return Prediction("rule:qa", "1", "", {}, 2.0, span=span, confidence=0.62, **cut)
        text = fields[spec.model_fields[-1]]
        label = next((code for code in spec.label_codes if code in text), spec.label_codes[0])
        rest = (1 - 0.82) / (len(spec.labels) - 1)
        chances = {code: 0.82 if code == label else rest for code in spec.label_codes}
        return Prediction(f"rule:{task_code}", "1", label, chances, 2.0, **cut)

    def explain(self, task_code: str, fields: Mapping[str, str], target: str, **_: object) -> Attribution:
        self.explained.append((task_code, target))
        words = []
        for name, text in fields.items():
            at = 0
            for number, word in enumerate(text.split()[:12]):
                start = text.index(word, at)
                at = start + len(word)
                words.append(WordAttribution(start, at, word, (1.0, -0.6, 0.4, 0.01)[number % 4], name))
        return Attribution(f"rule:{task_code}", "1", "rule", 12, target, tuple(words), 0.002, True, 0.02)


def task_round(session: Session, code: str) -> Round:
    return factories.make_round(session, task_code=code)


def creation_hit(session: Session, code: str, *, context: Mapping[str, str] | None = None, goal: str = "") -> Hit:
    """A creation HIT of a task, in a round of its own."""
    spec = task(code)
    round_ = task_round(session, code)
    batch = factories.make_batch(session, round=round_, title=spec.title)
    made = factories.make_context(session, round=round_, fields=dict(context or CONTEXTS[code]))
    return factories.make_hit(session, batch=batch, context_id=made.id, goal_label=goal or GOALS[code])


def fooling_example(session: Session, hit: Hit, **answer: str) -> Example:
    """An example of a submitted assignment of this HIT that fooled the model."""
    code = hit.batch.round.task_code
    assert hit.context is not None
    said: dict[str, Any] = {}
    given = {**ANSWERS[code], **answer}
    if code == "qa":
        span = AnswerSpan(4, 14, hit.context.fields["passage"][4:14])
        said = {
            "probabilities": {},
            "predicted_answer": {"start": span.start, "end": span.end, "text": span.text},
            "answer_f1": token_f1(span.text, given["answer"]),
            "confidence": 0.6,
        }
    else:
        others = [one for one in task(code).label_codes if one != OTHER[code]]
        said = {"probabilities": {OTHER[code]: 0.8, **dict.fromkeys(others, 0.2 / len(others))}}
    assignment = factories.make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
    attempt = factories.make_attempt(
        session,
        assignment=assignment,
        answer=given,
        goal_label=hit.goal_label,
        predicted_label=OTHER[code],
        model_id=f"rule:{code}",
        fooled=True,
        **said,
    )
    return factories.make_example(session, attempt=attempt)


def validation_hit(session: Session, examples: list[Example]) -> Hit:
    """A validation HIT about examples of one round."""
    round_ = examples[0].round
    batch = factories.make_batch(session, round=round_, kind=HitKind.VALIDATION, title="Judge what others wrote")
    return factories.make_validation_hit(session, examples=examples, batch=batch)
