"""Builds the marketplace's Flask app: `gunicorn "app.marketplace.factory:create_app()"`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from flask import Flask, request
from flask.wrappers import Response
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.routing import BaseConverter
from werkzeug.sansio.utils import host_is_trusted

from app.marketplace import extensions, forms
from app.marketplace.access import access
from app.marketplace.api import init_api
from app.marketplace.contact import contact
from app.marketplace.content import init_content
from app.marketplace.dashboard import dashboard
from app.marketplace.disputes import disputes
from app.marketplace.errors import init_errors
from app.marketplace.headers import init_headers
from app.marketplace.languages import init_languages
from app.marketplace.messages import messages
from app.marketplace.no_auth import init_no_auth
from app.marketplace.operator.routes import operator
from app.marketplace.payouts import payouts
from app.marketplace.qualifications import qualifications
from app.marketplace.requester.routes import requester
from app.marketplace.sessions import SessionsByAudience, init_sessions
from app.marketplace.settings import Settings, settings_from_environment
from app.marketplace.submit import submit
from app.marketplace.worker import worker
from hits.marketplace.clock import Clock
from hits.marketplace.engine import Marketplace

ROOT = Path(__file__).resolve().parents[2]
LARGEST_REQUEST = 1024 * 1024 + 4096


class EntityId(BaseConverter):
    """An id of the marketplace in an address; anything else is an address that does not exist."""

    regex = "[A-Z0-9]{1,64}"


def create_app(
    settings: Settings | None = None,
    *,
    marketplace: Marketplace | None = None,
    clock: Clock | None = None,
    insecure_no_auth: bool = False,
) -> Flask:
    """Return the app on one marketplace, opened from the settings unless it is given.

    The order matters: the host check comes before the API, the API before the second origin, both before the
    check of forms. With `insecure_no_auth` API requests need no signature. Raises SettingsMissing, NoAuthRefused.
    """
    settings = settings or settings_from_environment()
    app = Flask("app", template_folder=str(ROOT / "templates"), static_folder=str(ROOT / "app" / "static"))
    app.config.update(
        SECRET_KEY=settings.derived_key("sessions"),
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.site.scheme == "https",
        PERMANENT_SESSION_LIFETIME=timedelta(days=7),
        MAX_CONTENT_LENGTH=LARGEST_REQUEST,
        MAX_FORM_MEMORY_SIZE=LARGEST_REQUEST,
        # A form lives as long as its session: workers leave pages open. The referrer is never sent.
        WTF_CSRF_TIME_LIMIT=None,
        WTF_CSRF_SSL_STRICT=False,
    )
    app.extensions["marketplace_settings"] = settings
    app.extensions["marketplace"] = marketplace or Marketplace(
        settings.database_url, settings=settings.engine_settings(), clock=clock
    )
    app.session_interface = SessionsByAudience()
    if settings.proxies:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=settings.proxies, x_proto=settings.proxies, x_host=settings.proxies
        )
    app.url_map.converters["entity"] = EntityId
    init_hosts(app, settings)
    init_no_auth(app, settings, insecure_no_auth=insecure_no_auth)
    init_api(app)
    init_content(app)
    extensions.csrf.init_app(app)
    extensions.limiter.init_app(app)
    init_languages(app)
    init_sessions(app)
    init_headers(app)
    init_errors(app)
    app.register_blueprint(worker)
    app.register_blueprint(dashboard)
    app.register_blueprint(contact)
    app.register_blueprint(access)
    app.register_blueprint(qualifications)
    app.register_blueprint(messages)
    app.register_blueprint(submit)
    app.register_blueprint(requester)
    app.register_blueprint(operator)
    app.register_blueprint(disputes)
    app.register_blueprint(payouts)
    init_health(app)
    app.context_processor(
        lambda: {
            "site_name": settings.site_name,
            "site_contact": settings.contact,
            "open_sign_up": settings.sign_up == "open",
            "site_languages": app.config["MARKETPLACE_LANGUAGES"],
        }
    )
    app.jinja_env.globals.update(
        media_allowed=forms.safe_origin, form_rows=forms.rows, checked_markup=forms.checked_markup
    )
    return app


def init_hosts(app: Flask, settings: Settings) -> None:
    """Refuse requests for host names that are not this site's, so that rebound names reach nothing."""
    hosts = list(settings.hosts)

    @app.before_request
    def check_host() -> Response | None:
        host = request.environ.get("HTTP_HOST", "")
        if host_is_trusted(host, hosts):
            return None
        return Response(
            f"This marketplace does not answer for the host name {host[:100]!r}. "
            "Its operator can add it to MARKETPLACE_ALLOWED_HOSTS.\n",
            400,
            mimetype="text/plain",
        )


def init_health(app: Flask) -> None:
    """Answer /healthz once the store answers."""

    @app.get("/healthz")
    def healthz() -> Response:
        extensions.marketplace().settle()
        return Response("ok\n", mimetype="text/plain")
