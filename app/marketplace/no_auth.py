"""`--insecure-no-auth`: on a throw-away test server every API request acts for one requester, key or no key."""

from __future__ import annotations

import ipaddress
from decimal import Decimal

from flask import Flask, current_app, request

from app.marketplace.settings import Settings
from hits.marketplace.errors import OperatorError

PLAY_MONEY = Decimal("10000.00")
_FROM_ELSEWHERE = (
    "Origin",
    "Forwarded",
    "Via",
    "X-Real-IP",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
)


class NoAuthRefused(Exception):
    """A marketplace that others could reach was to be opened to everybody."""


def init_no_auth(app: Flask, settings: Settings, *, insecure_no_auth: bool) -> None:
    """Keep whom unsigned requests act for; only a caller in this process can ask for it, never the environment.

    Raises NoAuthRefused unless the site is on loopback, without proxies, and for a database that workers are paid from.
    """
    app.config["MARKETPLACE_NO_AUTH"] = None
    if not insecure_no_auth:
        return
    if not settings.on_loopback or settings.proxies:
        raise NoAuthRefused(
            "--insecure-no-auth is for a server that nobody else reaches: MARKETPLACE_SITE_URL must be plain http on"
            f" loopback (it is {settings.site_url}) and MARKETPLACE_PROXIES 0 (it is {settings.proxies})."
        )
    try:
        requester = app.extensions["marketplace"].default_requester(PLAY_MONEY)
    except OperatorError as error:
        raise NoAuthRefused(str(error)) from error
    app.config["MARKETPLACE_NO_AUTH"] = requester.requester_id


def requester_id() -> str | None:
    """Return whom this API request acts for without a signature, None if it needs one.

    Both ends of the connection must be loopback: a server that listens on more than that asks everybody for a
    signature. So does one whose request comes out of a web page, or through a proxy that says so.
    """
    found: str | None = current_app.config.get("MARKETPLACE_NO_AUTH")
    ends = (request.environ.get("REMOTE_ADDR", ""), request.environ.get("SERVER_NAME", ""))
    if found is None or any(name in request.headers for name in _FROM_ELSEWHERE) or not all(map(_is_loopback, ends)):
        return None
    return found


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text.strip("[]")).is_loopback
    except ValueError:
        return text == "localhost"
