"""Builds the service: settings, extensions, blueprints with their guards, errors, headers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from babel.dates import format_date, format_datetime
from flask import Blueprint, Flask, abort, request
from flask.typing import ResponseReturnValue

from app import models  # noqa: F401 - migrations must see every table
from app.care.texts import read_text
from app.errors import init_errors
from app.extensions import csrf, db, limiter, login_manager, migrate
from app.frames import origin_of
from app.headers import init_headers
from app.services import Engine, Services
from app.settings import Settings, load_settings
from hits.clock import Clock, SystemClock
from hits.db import engine_options, prepare_engine
from hits.errors import InvalidInput
from hits.tasks import TASKS
from inference.engine import EngineSettings
from inference.engine import engine_for as model_engine_for
from inference.methods import METHODS
from inference.remote.served import RemoteEngine, remote_engine
from payments.fees import read_schedules, use_schedules

#: May return an answer of its own, for example the way to the sign-in page.
Guard = Callable[[], ResponseReturnValue | None]

EMBEDDED = "embedded:"


@dataclass(frozen=True)
class Audience:
    """Whom a blueprint serves: its guard stands before every endpoint.

    ``by_token`` pages carry a signed token instead of a cookie, so nothing rides on the browser and they need no
    CSRF token.
    """

    blueprint: Blueprint
    guard: Guard
    by_token: bool = False


def audiences() -> tuple[Audience, ...]:
    """Return every blueprint with its guard. An endpoint of any other blueprint is never answered."""
    from app.care.views import bp as care
    from app.finance import bp as finance
    from app.quiz.views import bp as quiz
    from app.requester.review import bp as review
    from app.requester.routes import bp as requester
    from app.site.views import bp as site
    from app.staff.access import open_to_all, role_guard
    from app.staff.views import bp as staff
    from app.validator.views import bp as validator
    from app.worker.guard import hit_page_guard
    from app.worker.views import bp as worker

    return (
        Audience(worker, hit_page_guard, by_token=True),
        Audience(validator, hit_page_guard, by_token=True),
        Audience(quiz, hit_page_guard, by_token=True),
        Audience(care, hit_page_guard, by_token=True),
        Audience(requester, role_guard("requester")),
        Audience(review, role_guard("requester")),
        Audience(finance, role_guard("finance")),
        Audience(staff, open_to_all),
        Audience(site, open_to_all),
    )


def create_app(settings: Settings | None = None, *, engine: Engine | None = None, clock: Clock | None = None) -> Flask:
    """Return the service. Without an engine the embedded model is used; it loads when the first request comes."""
    app = Flask("app", root_path=str(Path(__file__).parent), template_folder=str(_root() / "templates"))
    settings = settings or load_settings()
    use_schedules(read_schedules(settings.fees))
    init_services(app, settings, engine, clock or SystemClock())
    init_guards(app)
    init_extensions(app, settings)
    init_blueprints(app)
    init_errors(app)
    init_pages_before_work(app)
    init_headers(app, settings)
    return app


def init_services(app: Flask, settings: Settings, engine: Engine | None, clock: Clock) -> None:
    """Keep what requests need, and let the model load beside the first of them, never in a command."""
    known = Services(
        settings=settings,
        clock=clock,
        engine=engine or default_engine(settings),
        consent_text=read_text(settings.consent_file),
    )
    app.extensions["dynahit"] = known
    app.jinja_env.globals["site_origin"] = origin_of(settings.worker_site_url)
    app.jinja_env.globals["requester_name"] = settings.requester_name
    app.before_request(known.start_engine)


def init_guards(app: Flask) -> None:
    """Stand before every endpoint; what has no guard is not answered."""

    @app.before_request
    def stand_guard() -> ResponseReturnValue | None:
        if request.endpoint is None or request.endpoint == "static":
            return None
        guard = app.extensions["dynahit_guards"].get(request.blueprint)
        if guard is None:
            abort(404)
        answer: ResponseReturnValue | None = guard()
        return answer


def init_extensions(app: Flask, settings: Settings) -> None:
    """Configure and bind the extensions."""
    app.config.from_mapping(
        SECRET_KEY=settings.secret_key.get_secret_value(),
        SQLALCHEMY_DATABASE_URI=settings.database_url,
        SQLALCHEMY_ENGINE_OPTIONS=engine_options(settings.database_url),
        SESSION_COOKIE_NAME="dynahit_staff",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.service_url.startswith("https://"),
        SESSION_REFRESH_EACH_REQUEST=False,
        # No referrer is sent by our own policy, so it can't be compared.
        WTF_CSRF_SSL_STRICT=False,
        # A foreign name that was made to point here reads no page.
        TRUSTED_HOSTS=["localhost", "127.0.0.1", "[::1]", urlsplit(settings.service_url).hostname or "localhost"],
    )
    db.init_app(app)
    with app.app_context():
        prepare_engine(db.engine)
    # The macros that both apps share say their words through gettext; this app speaks the words as they stand.
    app.jinja_env.add_extension("jinja2.ext.i18n")
    app.jinja_env.filters.update(
        moment=partial(format_datetime, format="d MMM yyyy, HH:mm", locale="en"),
        calendar_day=partial(format_date, format="d MMM yyyy", locale="en"),
    )
    app.jinja_env.install_null_translations(newstyle=True)  # type: ignore[attr-defined]  # the extension adds it
    migrate.init_app(app, db)
    login_manager.init_app(app)
    csrf.init_app(app)
    limiter.init_app(app)


def init_pages_before_work(app: Flask) -> None:
    """Let what people agree to and are warned of stand in the place of pages that they are not to see before."""
    from app.care.views import init_care

    init_care(app)


def init_blueprints(app: Flask) -> None:
    """Register every audience's blueprint."""
    guards: dict[str, Guard] = {}
    for audience in audiences():
        app.register_blueprint(audience.blueprint)
        guards[audience.blueprint.name] = audience.guard
        if audience.by_token:
            csrf.exempt(audience.blueprint)
    app.extensions["dynahit_guards"] = guards


def default_engine(settings: Settings) -> Engine:
    """Return the in-process engine with each task's model, not yet started. Raises InvalidInput, NotFound."""
    if settings.explain_method not in (None, *METHODS):
        raise InvalidInput(
            f"DYNAHIT_EXPLAIN_METHOD is {settings.explain_method!r}. The methods are {', '.join(METHODS)}."
        )
    return model_engine_for(
        model_references(settings),
        EngineSettings(predict_seconds=settings.predict_seconds, explain_seconds=settings.explain_seconds),
        base=settings.base_weights,
        local_files_only=settings.local_files_only,
        remote=remote_of(settings),
    )


def remote_of(settings: Settings) -> RemoteEngine | None:
    """Return the model server that is configured, None for models in process. Raises InvalidInput, EngineRefused."""
    if settings.engine == "in-process":
        return None
    return remote_engine(
        settings.engine,
        settings.engine_url,
        predict_seconds=settings.predict_seconds,
        explain_seconds=settings.explain_seconds,
    )


def model_references(settings: Settings) -> dict[str, str]:
    """Return the model of each task: what is set, else the one that comes with dynahit.

    A task without either has none. Raises InvalidInput for a task that there is not.
    """
    if unknown := sorted(set(settings.models) - set(TASKS)):
        raise InvalidInput(f"DYNAHIT_MODELS names the task {unknown[0]!r}. The tasks are {', '.join(sorted(TASKS))}.")
    if settings.engine != "in-process":
        # A server has what its operator put there; what is named is asked for, and nothing else then.
        return settings.models or {code: f"served:{code}" for code in TASKS}
    embedded = {code: spec.default_model for code, spec in TASKS.items() if spec.default_model.startswith(EMBEDDED)}
    return {**{code: one for code, one in embedded.items() if _is_here(one)}, **settings.models}


def _is_here(reference: str) -> bool:
    return (_root() / "inference" / "embedded" / reference.removeprefix(EMBEDDED) / "card.json").exists()


def _root() -> Path:
    return Path(__file__).resolve().parent.parent
