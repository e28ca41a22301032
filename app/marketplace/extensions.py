"""What every door shares: the engine, the rate limiter, the guard against forged forms."""

from __future__ import annotations

import ipaddress
from typing import cast

from flask import current_app, request
from flask.wrappers import Response
from flask_limiter import Limiter
from flask_wtf.csrf import CSRFProtect

from app.marketplace.settings import Settings
from hits.marketplace.engine import Marketplace

csrf = CSRFProtect()


def client_network() -> str:
    """Return whom a limit per client address counts for: an IPv4 address, or the /64 network of an IPv6 one.

    Whoever has one IPv6 address has all of its /64.
    """
    text = request.remote_addr or ""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))


limiter = Limiter(key_func=client_network, default_limits=[], storage_uri="memory://")


def marketplace() -> Marketplace:
    """Return this app's marketplace."""
    return cast(Marketplace, current_app.extensions["marketplace"])


def settings() -> Settings:
    """Return this app's settings."""
    return cast(Settings, current_app.extensions["marketplace_settings"])


def failed(response: Response) -> bool:
    """Whether an answer counts as a failed attempt."""
    return response.status_code >= 400


def sign_in_limit() -> str:
    """Return the limit on failed attempts, as configured."""
    return settings().sign_in_limit
