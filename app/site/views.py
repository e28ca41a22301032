"""The front door leads staff to their pages; the health checks tell a supervisor how the service does."""

from __future__ import annotations

import logging

from flask import Blueprint, Response, abort, jsonify, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.care.views import text_fields
from app.extensions import db
from app.services import services
from hits.consent import text_by_version

bp = Blueprint("site", __name__)
log = logging.getLogger(__name__)


@bp.get("/")
def index() -> ResponseReturnValue:
    """Lead staff to the pages of their role."""
    roles = current_user.roles if current_user.is_authenticated else ()
    return redirect(url_for("finance.index" if "finance" in roles and "requester" not in roles else "requester.rounds"))


@bp.get("/consent/<int(max=1000000000):version>")
def consent(version: int) -> ResponseReturnValue:
    """Show a version of what workers agree to, to read again and to print; old ones too."""
    text = text_by_version(db.session(), version)
    return render_template("care/consent_text.html", **text_fields(text), printed=True)


@bp.get("/metrics")
def metrics() -> ResponseReturnValue:
    """Give the figures of the instance to a Prometheus server that may read them."""
    from app.metrics import CONTENT_TYPE, may_read, metrics_text

    here = services()
    forwarded = any(name in request.headers for name in ("Forwarded", "X-Forwarded-For", "X-Real-Ip"))
    if not may_read(
        here.settings,
        authorization=request.headers.get("Authorization"),
        address=request.remote_addr,
        forwarded=forwarded,
    ):
        log.warning("The metrics were asked for without the right to read them.")
        abort(404)
    return Response(metrics_text(db.session(), here.model_state()), content_type=CONTENT_TYPE)


@bp.get("/healthz")
def healthz() -> ResponseReturnValue:
    """Say that the process answers."""
    return jsonify(status="ok")


@bp.get("/readyz")
def readyz() -> ResponseReturnValue:
    """Say whether work can be done: 503 without a database. A missing model is told, but workers can still submit."""
    try:
        db.session.execute(text("SELECT 1"))
    except SQLAlchemyError:
        db.session.rollback()
        return jsonify(database="unreachable", model=services().model_state()), 503
    return jsonify(database="ok", model=services().model_state())
