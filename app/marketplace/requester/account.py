"""The requester's money and access keys."""

from __future__ import annotations

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext
from app.marketplace.requester.console import me, requester
from hits.marketplace.errors import NothingThere
from hits.marketplace.words import words

#: What the lines of an account are called, by their kind.
KINDS = {
    "deposit": words("Top-up"),
    "hold": words("Hold for a new HIT"),
    "hold_extended": words("Hold for more places"),
    "hold_prolonged": words("Hold for a HIT that lives again"),
    "hold_retyped": words("Hold changed with the HIT's type"),
    "release_expired": words("Hold released: places that expired"),
    "release_unused": words("Hold released: a place given back"),
    "release_rejected": words("Hold released: a rejection"),
    "reward": words("Reward and fee"),
    "bonus": words("Bonus and fee"),
}
NEWEST = 10


@requester.get("/")
@sessions.for_requesters
def overview() -> ResponseReturnValue:
    """Show the balance, what waits for a review, and the newest HITs."""
    engine = marketplace()
    return render_template(
        "marketplace/requester/overview.html",
        balance=engine.balance(me()),
        waiting=engine.waiting_assignments(me()),
        disputes=engine.disputes(requester_id=me()),
        inbox=engine.requester_messages(me(), unanswered_only=True, page_size=1),
        hits=engine.requester_hits(me()),
        newest=NEWEST,
    )


@requester.get("/account")
@sessions.for_requesters
def account() -> ResponseReturnValue:
    """Show the account's lines, newest first, all or of one kind."""
    kind = console.asked("kind")
    kind = kind if kind in KINDS else ""
    return render_template(
        "marketplace/requester/account.html",
        balance=marketplace().balance(me()),
        email=marketplace().requester(me()).email,
        lines=marketplace().account_lines(me(), kind=kind, page=console.page_number()),
        kind=kind,
        kinds=KINDS,
    )


@requester.get("/keys")
@sessions.for_requesters
def keys() -> ResponseReturnValue:
    """List the access keys."""
    return _keys_page()


@requester.post("/keys")
@sessions.for_requesters
def create_key() -> ResponseReturnValue:
    """Create an access key and show its secret, now and never again."""
    return _keys_page(marketplace().create_access_key(me())), 201


@requester.route("/keys/<entity:key_id>/revoke", methods=["GET", "POST"])
@sessions.for_requesters
def revoke_key(key_id: str) -> ResponseReturnValue:
    """Ask, then end a key."""
    found = next((one for one in marketplace().access_keys(me()) if one.access_key_id == key_id), None)
    if found is None:
        raise NothingThere(words("There is no access key “%(id)s”.", id=key_id))
    if request.method == "POST":
        marketplace().revoke_access_key(me(), key_id)
        flash(gettext("%(key)s is revoked. Requests signed with it are refused from now on.", key=key_id), "success")
        return redirect(url_for("requester.keys"), 303)
    return render_template("marketplace/requester/revoke_key.html", key=found)


def _keys_page(made: object = None) -> str:
    return render_template("marketplace/requester/keys.html", keys=marketplace().access_keys(me()), made=made)
