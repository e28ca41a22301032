"""Who is signed in: workers, requesters and operators in three cookies that know nothing of each other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Final, ParamSpec

from flask import Flask, current_app, flash, g, redirect, request, session, url_for
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionInterface, SessionMixin
from flask.typing import ResponseReturnValue
from flask_babel import gettext

from app.marketplace.extensions import marketplace
from hits.marketplace import ended_sessions

if TYPE_CHECKING:
    from datetime import datetime

    from flask.wrappers import Request, Response

    from hits.marketplace.console_views import Operator
    from hits.marketplace.views import Requester, Worker

P = ParamSpec("P")
CONSOLE_PATH = "/requester"
OPERATOR_PATH = "/operator"
#: How much longer an ended session is remembered than its cookie is accepted: machines differ in their time.
_MARGIN: Final = timedelta(days=1)


class _Cookie(SecureCookieSessionInterface):
    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.salt = f"{name} v1"

    def get_cookie_name(self, app: Flask) -> str:
        return self.name

    def get_cookie_path(self, app: Flask) -> str:
        return self.path


class SessionsByAudience(SessionInterface):
    """Gives each console a cookie of its own, sent to the console's addresses only."""

    def __init__(self) -> None:
        """Name the cookies; other services on the same host name use other names."""
        self.worker = _Cookie("marketplace_session", "/")
        self.consoles = (
            _Cookie("marketplace_requester", CONSOLE_PATH),
            _Cookie("marketplace_operator", OPERATOR_PATH),
        )

    def _of(self, path: str) -> _Cookie:
        return next((one for one in self.consoles if (path + "/").startswith(one.path + "/")), self.worker)

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Read the session of the audience that the address belongs to."""
        return self._of(request.path).open_session(app, request)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Write that session back; the second origin gets no cookie."""
        if g.get("content_page"):
            return
        self._of(request.path).save_session(app, session, response)


def sign_in_worker(worker: Worker) -> None:
    """Begin a worker's session; an older one, and its CSRF token, end."""
    _begin()
    session.permanent = True
    session["worker_id"] = worker.worker_id
    session["user_name"] = worker.user_name
    session["number"] = worker.session_number


def sign_in_requester(requester: Requester) -> None:
    """Begin a requester's session in the console's cookie; an older one ends."""
    _begin()
    session.permanent = True
    session["requester_id"] = requester.requester_id
    session["name"] = requester.name
    session["number"] = requester.session_number


def sign_in_operator(operator: Operator, now: datetime) -> None:
    """Begin an operator's session in that console's cookie, also after the password was given again."""
    _begin()
    session["operator_id"] = operator.operator_id
    session["name"] = operator.name
    session["signed_in_at"] = now.timestamp()
    session["password_set_at"] = operator.password_set_at.isoformat()


def _begin() -> None:
    sign_out()
    session["key"] = ended_sessions.new_key()


def init_sessions(app: Flask) -> None:
    """End sessions of workers and requesters whose account ended them, was closed, or is gone."""

    @app.before_request
    def check_session() -> None:
        if request.endpoint == "static" or g.get("content_page"):
            return
        number, key = session.get("number", 0), session.get("key", "")
        if "worker_id" in session:
            worker = marketplace().worker_in_session(session["worker_id"], number, key)
            g.language = worker.language if worker is not None else None
            is_good = worker is not None
        elif "requester_id" in session:
            is_good = marketplace().requester_in_session(session["requester_id"], number, key) is not None
        else:
            return
        if not is_good:
            session.clear()
            flash(
                gettext(
                    "You are signed out: this session was ended, the password was changed, or the account was closed "
                    "or does not exist (any more). Sign in again."
                ),
                "warning",
            )


def sign_out() -> None:
    """End the session of this audience, here and wherever its cookie was copied to."""
    key = session.get("key")
    if key:
        marketplace().end_session(key, life=current_app.permanent_session_lifetime + _MARGIN)
    session.clear()


def worker_id() -> str | None:
    """Return the signed-in worker's id."""
    return session.get("worker_id")


def requester_id() -> str | None:
    """Return the signed-in requester's id."""
    return session.get("requester_id")


def operator_id() -> str | None:
    """Return the signed-in operator's id."""
    return session.get("operator_id")


def account_key() -> str:
    """Return whose password an attempt is about, for the limit on failed ones, wherever they come from."""
    return f"password of {worker_id() or requester_id() or operator_id()}"


def _only_for(key: str, sign_in: str) -> Callable[[Callable[P, ResponseReturnValue]], Callable[P, ResponseReturnValue]]:
    def decorate(view: Callable[P, ResponseReturnValue]) -> Callable[P, ResponseReturnValue]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> ResponseReturnValue:
            if session.get(key):
                return view(*args, **kwargs)
            wanted = request.full_path.rstrip("?") if request.method == "GET" else None
            return redirect(url_for(sign_in, next=wanted), 303)

        return guarded

    return decorate


for_workers = _only_for("worker_id", "worker.sign_in")
for_requesters = _only_for("requester_id", "requester.sign_in")
for_operators = _only_for("operator_id", "operator.sign_in")


def safe_next(default: str) -> str:
    """Return the address of this site in the query's `next`, or `default` if it leads elsewhere."""
    wanted = request.args.get("next", "")
    # "//host" and "/\host" are other sites to a browser.
    if wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and not any(c in wanted for c in "\r\n\t\\"):
        return wanted
    return default
