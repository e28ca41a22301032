"""Whole rounds for tests: collected ones that wait for nothing, and files of published sets with a few made-up rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from hits import validations
from hits.models import Example, Round, Worker
from hits.states import AssignmentState, HitState, Verdict
from tests import factories as make


def collected(
    session: Session, count: int, *, writers: int = 4, fooled: bool = True, round: Round | None = None, **fields: Any
) -> list[Example]:
    """Examples that two readers have confirmed, or that did not fool the model, in HITs that are closed."""
    round_ = round or make.make_round(session)
    people = [make.make_worker(session) for _ in range(writers)]
    readers = [make.make_worker(session) for _ in range(2)]
    return [
        finished(session, round=round_, writer=people[number % writers], readers=readers, fooled=fooled, **fields)
        for number in range(count)
    ]


def finished(
    session: Session,
    *,
    round: Round,
    writer: Worker,
    readers: list[Worker],
    fooled: bool = True,
    labels: tuple[str, ...] = ("negative", "negative"),
    state: AssignmentState = AssignmentState.APPROVED,
    why: str = "",
    **fields: Any,
) -> Example:
    """One example, with the readers' votes if it fooled the model."""
    batch = make.make_batch(session, round=round)
    hit = make.make_hit(session, batch=batch, state=HitState.CLOSED)
    assignment = make.make_assignment(session, hit=hit, worker=writer, state=state, why=why)
    said = {"predicted_label": "positive" if fooled else "negative"}
    example = make.make_example(session, attempt=make.make_attempt(session, assignment=assignment, **(said | fields)))
    if example.verdict is Verdict.PENDING:
        reading = make.make_validation_hit(session, examples=[example], state=HitState.CLOSED, max_assignments=9)
        for reader, label in zip(readers, labels, strict=False):
            judged = make.make_assignment(session, hit=reading, worker=reader, state=AssignmentState.APPROVED)
            make.make_vote(session, example=example, assignment=judged, label=label)
        validations.decide(session, example, make.NOON)
    return example


def dynasent_file(folder: Path, count: int, *, name: str = "made-up-dev.jsonl", **changes: Any) -> Path:
    """A file of DynaSent's form: five writers, five readers each, every third sentence one that the model got right."""
    path = folder / name
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            label = ("negative", "positive", "neutral")[number % 3]
            said = label if number % 3 == 0 else "neutral" if label != "neutral" else "positive"
            row = {
                "text_id": f"r2-{number:05d}",
                "sentence": f"The soup of day {number} was cold.",
                "sentence_author": f"w{number % 5}",
                "has_prompt": True,
                "prompt_data": {"prompt_sentence": f"Soups, day {number // 2}."},
                "model_1_label": said,
                "model_1_probs": {"negative": 0.25, "positive": 0.5, "neutral": 0.25},
                "label_distribution": {label: [f"w{number % 7 + 10 + k}" for k in range(4)], "mixed": ["w90"]},
                "gold_label": label,
            }
            file.write(json.dumps(row | changes) + "\n")
    return path
