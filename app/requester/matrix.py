"""What models reach on rounds and base sets, the leaderboard, and what the data of a round give away."""

from __future__ import annotations

import json
from dataclasses import dataclass

from flask import abort, make_response, render_template, request
from flask.typing import ResponseReturnValue

from app.extensions import db
from app.operations.compare_models import (
    Comparison,
    compare,
    matrix_csv,
    metrics_of,
    read_leaderboard,
    read_matrix,
    read_parts,
    usual_sets,
)
from app.operations.measure_bias import stored_bias
from app.requester.matrix_size import inches_high
from app.requester.views import bp
from hits.errors import NotFound
from hits.export import find_round
from hits.frozen import is_frozen
from hits.measures.intervals import Estimate
from hits.measures.matrix import Matrix, in_words
from hits.measures.scores import HIGHER_IS_BETTER
from hits.measures.stored import Stored
from hits.rates import Rate
from hits.tasks import task

#: Shades of a cell, from the best figure to the worst; the figure stands in it as well.
SHADES = 6
#: Parts of a set that a table shows, those with the most errors first.
MOST_PARTS = 40


@dataclass(frozen=True)
class Part:
    """Errors on one part of a set: a functionality, a group."""

    name: str
    rate: Rate


@dataclass(frozen=True)
class Parts:
    """A model's errors on a set by one kind of part; ``more`` were left out."""

    model: str
    set: str
    kind: str
    parts: tuple[Part, ...]
    more: int


@bp.get("/<task_code>/matrix")
def matrix_page(task_code: str) -> ResponseReturnValue:
    """Show every measured model on every set, and what the later of two models does better and worse."""
    spec = task(task_code)
    found = _matrix(task_code)
    return render_template(
        "requester/matrix.html",
        spec=spec,
        matrix=found,
        metrics=[(name, in_words(name)) for name in metrics_of(spec)],
        metric_words=in_words(found.metric, begins=True),
        shade=lambda estimate: shade(found.metric, estimate),
        handles=[(one.handle, one.name) for one in found.models],
        comparison=_comparison(found),
        parts=[part for one in read_parts(db.session(), task_code) for part in parts_of(one)],
        height=int(96 * inches_high(found)),
    )


@bp.get("/<task_code>/matrix.<form>")
def matrix_file(task_code: str, form: str) -> ResponseReturnValue:
    """Give the matrix as picture, CSV or JSON."""
    if form not in ("svg", "csv", "json"):
        abort(404)
    found = _matrix(task_code)
    if form == "svg":
        # matplotlib takes longer to import than the rest of the service together.
        from app.requester.matrix_plot import drawn

        return _file(drawn(found), "image/svg+xml")
    name = f"{task_code}-{found.metric}.{form}"
    if form == "csv":
        return _file(matrix_csv(found), "text/csv", name)
    return _file(json.dumps(found.as_rows(), indent=2), "application/json", name)


@bp.get("/<task_code>/leaderboard")
def leaderboard_page(task_code: str) -> ResponseReturnValue:
    """Show the measured models of a task, the best first, over the sets that are chosen."""
    spec = task(task_code)
    matrix = _matrix(task_code)
    known = [one.name for one in matrix.sets]
    chosen = [name for name in request.args.getlist("set") if name in known]
    board = read_leaderboard(db.session(), task_code, chosen, matrix.metric)
    return render_template(
        "requester/leaderboard.html",
        spec=spec,
        board=board,
        names=known,
        chosen=chosen or [one.name for one in usual_sets(matrix)],
        metrics=[(name, in_words(name)) for name in metrics_of(spec)],
        metric=matrix.metric,
        metric_words=in_words(matrix.metric),
    )


@bp.get("/<task_code>/<int(max=10000):number>/bias")
def bias_page(task_code: str, number: int) -> ResponseReturnValue:
    """Show what was found about the data of a frozen round."""
    round_ = find_round(db.session(), task_code, number)
    report = stored_bias(db.session(), task_code, number, seed=None)
    later = [
        part for one in read_parts(db.session(), task_code) if one.set.round_number == number for part in parts_of(one)
    ]
    return render_template(
        "requester/bias.html",
        round=find_round(db.session(), task_code, number),
        spec=task(round_.task_code),
        report=report,
        frozen=is_frozen(round_),
        later=later,
    )


@bp.get("/<task_code>/<int(max=10000):number>/bias.json")
def bias_file(task_code: str, number: int) -> ResponseReturnValue:
    """Give the stored report as JSON."""
    report = stored_bias(db.session(), task_code, number, seed=None)
    if report is None:
        raise NotFound(f"Nothing was found out yet. `dynahit measure bias {task_code} {number}` looks at the data.")
    body = json.dumps(report, indent=2, ensure_ascii=False)
    return _file(body, "application/json", f"{task_code}-{number}-bias.json")


def shade(metric: str, estimate: Estimate) -> int:
    """Return a cell's shade, 0 for the best figure that there could be."""
    worse = 1 - estimate.value if metric in HIGHER_IS_BETTER else estimate.value
    return min(int(worse * SHADES), SHADES - 1)


def parts_of(one: Stored) -> list[Parts]:
    """Return a model's errors on a set by each kind of part, those with the most errors first."""
    found = []
    for kind, parts in (one.parts or {}).items():
        rates = [Part(name, Rate(part["wrong"], part["rows"])) for name, part in parts.items()]
        rates.sort(key=lambda part: (-part.rate.hits / part.rate.of, part.name))
        left_out = max(len(rates) - MOST_PARTS, 0)
        found.append(Parts(one.model.name, one.set.name, kind, tuple(rates[:MOST_PARTS]), left_out))
    return found


def _matrix(task_code: str) -> Matrix:
    wanted = request.args.get("metric", "")
    chosen = wanted if wanted in metrics_of(task(task_code)) else None
    return read_matrix(db.session(), task_code, chosen)


def _comparison(matrix: Matrix) -> Comparison | None:
    """Return the two models that are asked for side by side, or the newest and the one before it."""
    handles = [one.handle for one in matrix.models]
    if len(handles) < 2:
        return None
    usual = [one.handle for one in matrix.models if not one.transfer]
    first, second = (usual if len(usual) > 1 else handles)[-2:]
    before, after = request.args.get("before", ""), request.args.get("after", "")
    chosen = (before, after) if before in handles and after in handles and before != after else (first, second)
    return compare(db.session(), matrix.task_code, *chosen, matrix.metric)


def _file(body: str, kind: str, name: str = "") -> ResponseReturnValue:
    response = make_response(body)
    response.headers["Content-Type"] = f"{kind}; charset=utf-8"
    response.headers["Cache-Control"] = "private, no-store"
    if name:
        response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
