"""What a request reaches besides the database: settings, clock, model, marketplace, tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast

from flask import current_app

from app.care.texts import DEFAULT_TEXT
from app.settings import Settings
from app.tokens import Tokens
from hits.clock import Clock
from hits.predictions import Explainer, Predictor

if TYPE_CHECKING:
    from app.side_models import SideModels
    from hits.mturk.client import MTurk


class Engine(Predictor, Explainer, Protocol):
    """A target model that answers and explains."""


@dataclass
class Services:
    """One per application, under ``app.extensions["dynahit"]``."""

    settings: Settings
    clock: Clock
    engine: Engine
    #: What everybody is asked to agree to, without what a task adds.
    consent_text: str = DEFAULT_TEXT

    @cached_property
    def tokens(self) -> Tokens:
        """The maker and reader of HIT page tokens."""
        return Tokens(self.settings.secret_key.get_secret_value(), self.clock)

    @cached_property
    def mturk(self) -> MTurk:
        """The marketplace, as its requester."""
        from hits.mturk.client import MTurk

        return MTurk(
            self.settings.marketplace_endpoint,
            self.settings.aws_access_key_id.get_secret_value(),
            self.settings.aws_secret_access_key.get_secret_value(),
        )

    @cached_property
    def side_models(self) -> SideModels:
        """Models beside those in service, for comparing."""
        from app.side_models import side_models

        return side_models(self.settings)

    def start_engine(self) -> None:
        """Let the model load in the background of this process; without effect when it does or has."""
        start = getattr(self.engine, "start", None)
        if start is not None:
            start()

    def started_engine(self) -> Engine:
        """Return the model, which loads in the background of this process if it has not."""
        self.start_engine()
        return self.engine

    def model_state(self) -> str:
        """Return ``ready``, ``loading``, ``failed`` or ``stopped``; an engine that does not say is ready."""
        state = getattr(self.engine, "state", None)
        return "ready" if state is None else str(state().name)


def services() -> Services:
    """Return the services of the current application."""
    return cast(Services, current_app.extensions["dynahit"])
