"""Several models on one text, side by side. Nothing is stored: what is typed here is no attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flask import render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from app import limits
from app.extensions import db, limiter
from app.operations.ask_models import Asked, Said, ask_models
from app.requester.browse import bars_of
from app.requester.dashboard import round_of
from app.requester.views import bp
from app.services import services
from app.side_models import comparable
from app.validator.views import for_readers
from app.worker.answers import Bar, Explanation, explained, field_labels, percent
from app.worker.views import FieldError
from hits.db import only_reads
from hits.errors import InvalidAnswer, InvalidInput
from hits.models import ModelVersion
from hits.tasks import TaskSpec, checked_text, task

#: Together with the one in service as many as stay loaded.
MOST_MODELS = 3


@dataclass(frozen=True)
class Column:
    """What one model said, made ready to be read."""

    name: str
    said: str
    percent: str
    bars: tuple[Bar, ...]
    milliseconds: str
    read: tuple[str, ...]
    failure: str
    explanation: Explanation | None
    unexplained: str


@bp.route("/<task_code>/<int(max=10000):number>/compare", methods=["GET", "POST"])
@limiter.limit(limits.ASK, methods=["POST"])
def compare(task_code: str, number: int) -> ResponseReturnValue:
    """Ask the chosen models about what was typed, and show their answers and explanations side by side."""
    only_reads(db.session())
    round_ = round_of(task_code, number)
    spec = task(round_.task_code)
    choices = _choices(spec)
    typed = {name: request.form.get(name, "") for name in spec.model_fields}
    chosen = [one for one in request.form.getlist("model") if one in choices] or choices[:MOST_MODELS]
    label = request.form.get("label", "")
    most_characters = {item.name: item.max_characters for item in spec.context_fields} | {
        item.name: item.max_characters for item in spec.text_inputs
    }
    names = {name: for_readers(words) for name, words in field_labels(spec).items()}
    shown = {
        "round": round_,
        "spec": spec,
        "names": names,
        "choices": choices,
        "chosen": chosen,
        "typed": typed,
        "label": label,
        "most": MOST_MODELS,
        "most_characters": most_characters,
    }
    if request.method == "GET":
        return render_template("requester/compare.html", **shown)
    # No transaction stays open while models read.
    fields = {**shown, "round": {"task_code": round_.task_code, "number": round_.number}}
    db.session.commit()
    try:
        texts = {name: checked_text(name, names[name], text, most_characters[name]) for name, text in typed.items()}
        if not 1 <= len(chosen) <= MOST_MODELS:
            raise InvalidAnswer("model", f"Choose 1 to {MOST_MODELS} models; {len(chosen)} are ticked.")
        said = ask_models(
            spec,
            texts,
            [(reference, _engine(spec, reference, choices[0])) for reference in chosen],
            label=label if label in spec.label_codes and spec.span_input is None else None,
            method=services().settings.explain_method,
        )
    except InvalidInput as error:
        field = error.field if isinstance(error, InvalidAnswer) and error.field else next(iter(typed))
        return render_template("requester/compare.html", **fields, error=FieldError(field, str(error))), 422
    columns = [_column(spec, texts, one) for one in said]
    return render_template("requester/compare.html", **fields, columns=columns)


def _choices(spec: TaskSpec) -> list[str]:
    known = services()
    versions = db.session.scalars(
        select(ModelVersion).where(ModelVersion.task_code == spec.code).order_by(ModelVersion.id)
    ).all()
    return comparable(
        spec, known.settings.models.get(spec.code), known.settings.compare.get(spec.code, []), versions
    )  # fmt: skip


def _engine(spec: TaskSpec, reference: str, in_service: str) -> Callable[[], Asked]:
    known = services()
    if reference == in_service:
        return lambda: known.engine
    return partial(known.side_models.engine, spec.code, reference)


def _column(spec: TaskSpec, texts: dict[str, str], said: Said) -> Column:
    answer, labels = said.answer, field_labels(spec)
    name = f"{said.model_id} at {said.revision[:12]}" if said.model_id else said.reference
    if answer is None:
        return Column(name, "", "", (), "", (), said.failure, None, "")
    confidence = answer.confidence if answer.confidence is not None else answer.probabilities.get(answer.label)
    span = answer.span
    return Column(
        name=name,
        said=spec.label(answer.label).name if span is None else f"“{span.text}”",
        percent=percent(confidence) if confidence is not None else "",
        bars=bars_of(spec, answer.probabilities, answer.label),
        milliseconds=f"{said.latency_ms:.0f} ms" if said.latency_ms is not None else "",
        read=tuple(
            f"Of “{labels[field]}” it read {read:,} of {len(texts[field]):,} characters."
            for field, read in (answer.characters_read or {}).items()
            if read < len(texts[field])
        ),
        failure="",
        explanation=explained(spec, texts, said.attribution) if said.attribution is not None else None,
        unexplained=said.unexplained,
    )
