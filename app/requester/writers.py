"""A round's writers and texts: near duplicates, copies, and what browsers said about how texts were written."""

from __future__ import annotations

from flask import render_template
from flask.typing import ResponseReturnValue

from app.extensions import db
from app.requester.views import bp
from hits.duplicates import COPIED_RUN, COPIED_SHARE, NEAR
from hits.export import find_round
from hits.likeness import likeness_of
from hits.tasks import task


@bp.get("/<task_code>/<int(max=10000):number>/writers")
def writers_page(task_code: str, number: int) -> ResponseReturnValue:
    """Show how often a round's texts repeat others or their contexts, by writer."""
    round_ = find_round(db.session(), task_code, number)
    return render_template(
        "requester/writers.html",
        round=round_,
        spec=task(round_.task_code),
        found=likeness_of(db.session(), round_.id),
        near_percent=round(100 * NEAR),
        copied_percent=round(100 * COPIED_SHARE),
        copied_words=COPIED_RUN,
    )
