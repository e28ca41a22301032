"""How often one person may ask: the limits, and whom a request is counted for."""

from __future__ import annotations

from flask import g, request

ASK = "30 per minute"
CARE = "60 per minute"
DRAFT = "120 per minute"
EXPLAIN = "30 per minute"
OPEN = "120 per minute"
SUBMIT = "20 per minute"
VOTE = "120 per minute"
SIGN_IN = "10 per minute"


def limit_key() -> str:
    """Return the assignment that a HIT page's request was proved for by the guard, else the caller's address."""
    assignment_id = g.get("limited_assignment")
    return f"assignment:{assignment_id}" if assignment_id else f"address:{request.remote_addr or 'unknown'}"


def limit_address() -> str:
    """Return the caller's address, for requests that nobody is signed in for."""
    return f"address:{request.remote_addr or 'unknown'}"
