"""What every door shares: the engine, the rate limiter, the guard against forged forms."""

from __future__ import annotations

from typing import cast

from flask import current_app
from flask.wrappers import Response
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from flask_wtf.csrf import CSRFProtect

from app.marketplace.settings import Settings
from hits.marketplace.engine import Marketplace

csrf = CSRFProtect()
limiter = Limiter(key_func=get_remote_address, default_limits=[], storage_uri="memory://")


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
