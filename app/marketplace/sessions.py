"""Who is signed in: workers and requesters in two cookies that know nothing of each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from flask import Flask, g, redirect, request, session, url_for
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionInterface, SessionMixin
from flask.typing import ResponseReturnValue

if TYPE_CHECKING:
    from flask.wrappers import Request, Response

    from hits.marketplace.views import Requester, Worker

P = ParamSpec("P")
CONSOLE_PATH = "/requester"


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
    """Gives the requester console a cookie of its own, sent to the console's addresses only."""

    def __init__(self) -> None:
        """Name both cookies; other services on the same host name use other names."""
        self.worker = _Cookie("marketplace_session", "/")
        self.requester = _Cookie("marketplace_requester", CONSOLE_PATH)

    def _of(self, path: str) -> _Cookie:
        return self.requester if (path + "/").startswith(CONSOLE_PATH + "/") else self.worker

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
    session.clear()
    session.permanent = True
    session["worker_id"] = worker.worker_id
    session["user_name"] = worker.user_name


def sign_in_requester(requester: Requester) -> None:
    """Begin a requester's session in the console's cookie."""
    session.clear()
    session.permanent = True
    session["requester_id"] = requester.requester_id
    session["name"] = requester.name


def sign_out() -> None:
    """End the session of this audience."""
    session.clear()


def worker_id() -> str | None:
    """Return the signed-in worker's id."""
    return session.get("worker_id")


def requester_id() -> str | None:
    """Return the signed-in requester's id."""
    return session.get("requester_id")


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


def safe_next(default: str) -> str:
    """Return the address of this site in the query's `next`, or `default` if it leads elsewhere."""
    wanted = request.args.get("next", "")
    # "//host" and "/\host" are other sites to a browser.
    if wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and not any(c in wanted for c in "\r\n\t\\"):
        return wanted
    return default
