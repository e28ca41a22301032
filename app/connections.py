"""Tells whether a browser still waits for the answer to its request."""

from __future__ import annotations

import select
from collections.abc import Callable, Mapping
from typing import Any

_CLOSED = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


def hung_up(environ: Mapping[str, Any]) -> Callable[[], bool] | None:
    """Return a function that tells whether the other side closed the connection, None where that can't be told.

    The web server must hand over its socket (gunicorn does, and Flask's own server).
    """
    connection = environ.get("gunicorn.socket") or environ.get("werkzeug.socket")
    if connection is None:
        return None

    def is_closed() -> bool:
        poll = select.poll()
        try:
            poll.register(connection, _CLOSED)
            return any(event & (_CLOSED | select.POLLNVAL) for _, event in poll.poll(0))
        except (OSError, ValueError):
            # Closed on this side: nobody can be answered any more.
            return True

    return is_closed
