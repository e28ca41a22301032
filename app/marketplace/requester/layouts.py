"""HIT layouts: pages with placeholders that HITs are made from."""

from __future__ import annotations

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.headers import SANDBOX, allow_frame
from app.marketplace.languages import gettext
from app.marketplace.requester.console import me, requester
from hits.marketplace.errors import NothingThere, OperatorError
from hits.marketplace.words import words

DEFAULT_HEIGHT = "450"


@requester.get("/layouts")
@sessions.for_requesters
def layouts() -> ResponseReturnValue:
    """List the layouts."""
    return render_template("marketplace/requester/layouts.html", layouts=marketplace().layouts(me()))


@requester.route("/layouts/new", methods=["GET", "POST"])
@sessions.for_requesters
def new_layout() -> ResponseReturnValue:
    """Register a layout."""
    name, height, error = console.typed("name"), console.typed("height"), ""
    # The page itself is taken as it was written.
    html = request.form.get("html", "").replace("\r\n", "\n")
    if request.method == "POST":
        try:
            if not (height.isascii() and height.isdigit() and len(height) < 6):
                raise OperatorError(words("The frame's height is a whole number of pixels, such as 450."))
            made = marketplace().create_layout(me(), name, html, frame_height=int(height))
        except OperatorError as refusal:
            error = console.said(refusal)
        else:
            flash(gettext("The layout is registered."), "success")
            return redirect(url_for("requester.layout", layout_id=made.layout_id), 303)
    return render_template(
        "marketplace/requester/new_layout.html",
        name=name,
        height=height or DEFAULT_HEIGHT,
        html=html,
        error=error,
    ), (422 if error else 200)


@requester.get("/layouts/<entity:layout_id>")
@sessions.for_requesters
def layout(layout_id: str) -> ResponseReturnValue:
    """Show one layout as workers would see it, its placeholders unfilled, and its source."""
    found = next((one for one in marketplace().layouts(me()) if one.layout_id == layout_id), None)
    if found is None:
        raise NothingThere(words("There is no layout “%(id)s”.", id=layout_id))
    frame_url = marketplace().layout_preview_url(me(), layout_id)
    if frame_url is not None:
        allow_frame(frame_url)
    return render_template("marketplace/requester/layout.html", layout=found, frame_url=frame_url, sandbox=SANDBOX)
