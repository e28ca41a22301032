"""The arms of a round: what people did under each, and how far that tells anything."""

from __future__ import annotations

from flask import make_response, render_template
from flask.typing import ResponseReturnValue

from app.extensions import db
from app.operations.round_arms import round_arms
from app.requester.views import bp


@bp.get("/<task_code>/<int(max=10000):number>/arms")
def arms_page(task_code: str, number: int) -> ResponseReturnValue:
    """Show a round's arms with their figures and differences."""
    found = round_arms(db.session(), task_code, number)
    return render_template("requester/arms.html", found=found, round=found)


@bp.get("/<task_code>/<int(max=10000):number>/arms/rates.svg")
def arms_plot(task_code: str, number: int) -> ResponseReturnValue:
    """Draw the error rates of the arms."""
    # matplotlib takes longer to import than the rest of the service together.
    from app.requester.plots import arm_rates

    response = make_response(arm_rates(round_arms(db.session(), task_code, number)))
    response.headers["Content-Type"] = "image/svg+xml; charset=utf-8"
    response.headers["Cache-Control"] = "private, no-store"
    return response
