"""One batch: what it pays by the hour, what it asks of workers, and the rules of its round."""

from __future__ import annotations

from flask import render_template
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from app.extensions import db
from app.operations.admission_rules import rules_in_force
from app.operations.create_hits import requirements_of
from app.operations.grant import name_of
from app.requester.views import bp
from app.services import services
from hits.errors import NotFound
from hits.models import HitBatch
from hits.states import HitKind
from qualification.limits_models import EVERY_ROUND
from qualification.models import QuizType
from qualification.requirements import words_of
from qualification.wages import LEFT_OPEN_FROM, LEFT_OPEN_TIMES, batch_wage


@bp.get("/batches/<int(max=2147483647):batch_id>")
def batch_page(batch_id: int) -> ResponseReturnValue:
    """Show one batch's wage and who may work on it."""
    batch = db.session.get(HitBatch, batch_id)
    if batch is None:
        raise NotFound(f"There is no batch {batch_id}.")
    round_ = batch.round
    settings = services().settings
    floor = settings.wage_floor
    wage = batch_wage(db.session(), batch)
    names: dict[str | None, str] = {
        one.qualification_type_id: name_of(settings, one.kind)
        for one in db.session.scalars(select(QuizType).where(QuizType.endpoint == batch.endpoint))
    }
    names[batch.qualification_type_id] = settings.validator_qualification
    asked = [words_of(one, names) for one in requirements_of(batch)]
    # Reading the rules ends the transaction, so that all else is read before.
    fields = {
        "batch": batch,
        "round": round_,
        "wage": wage,
        "floor": floor,
        "too_low": wage.is_below(floor) or (floor is not None and wage.stated < floor),
        "asked": asked,
        "is_writing": batch.kind is HitKind.CREATION,
        "left_open_from": LEFT_OPEN_FROM,
        "left_open_times": LEFT_OPEN_TIMES,
    }
    number, task_code = round_.number, round_.task_code
    rules = [one for one in rules_in_force(db.session(), task_code) if one.round_number in (EVERY_ROUND, number)]
    return render_template("requester/batch.html", **fields, rules=rules, every_round=EVERY_ROUND)
