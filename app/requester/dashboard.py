"""A round's dashboard: how it comes along, refreshed by itself, with every figure counted by the database."""

from __future__ import annotations

from flask import abort, make_response, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from app.errors import asked_by_script
from app.extensions import db
from app.operations.round_progress import round_progress
from app.requester.views import VERDICT_WORDS, bp
from app.services import services
from hits.errors import NotFound
from hits.models import Round
from hits.tasks import task

#: The names of app.requester.progress_plots.PLOTS, which is slow to import.
PLOT_NAMES = ("days", "labels", "writers")
MOST_WANTED = 10_000_000


@bp.get("/<task_code>/<int(max=10000):number>/dashboard")
def dashboard(task_code: str, number: int) -> ResponseReturnValue:
    """Show how a round comes along; a script that asks again gets the figures without the page around them."""
    round_ = round_of(task_code, number)
    wanted = request.args.get("target", type=int)
    target = wanted if wanted is not None and 1 <= wanted <= MOST_WANTED else None
    spec = task(round_.task_code)
    found = round_progress(db.session(), round_, services().clock.now(), target=target)
    page = "requester/_progress.html" if asked_by_script() else "requester/dashboard.html"
    return render_template(
        page,
        round=round_,
        spec=spec,
        progress=found,
        asked_target=target,
        most_wanted=MOST_WANTED,
        verdict_words=VERDICT_WORDS,
        label_names={label.code: label.name for label in spec.labels},
    )


@bp.get("/<task_code>/<int(max=10000):number>/dashboard/<name>.svg")
def dashboard_plot(task_code: str, number: int, name: str) -> ResponseReturnValue:
    """Draw one of the figures."""
    if name not in PLOT_NAMES:
        abort(404)
    round_ = round_of(task_code, number)
    # matplotlib takes longer to import than the rest of the service together.
    from app.requester.progress_plots import PLOTS

    response = make_response(PLOTS[name](db.session(), round_, services().clock.now()))
    response.headers["Content-Type"] = "image/svg+xml; charset=utf-8"
    return response


def round_of(task_code: str, number: int) -> Round:
    """Return the round. Raises NotFound."""
    found = db.session.scalar(select(Round).where(Round.task_code == task_code, Round.number == number))
    if found is None:
        raise NotFound(f"There is no round {number} of {task_code!r}.")
    return found
