"""Settings of the dynahit service, read from DYNAHIT_* variables and the instance's settings file."""

from __future__ import annotations

import os
import re
from decimal import Decimal
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from payments.errors import InvalidFees
from payments.fees import read_schedules

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def instance_folder() -> Path:
    """Return where this instance keeps its databases, settings and logs: DYNAHIT_HOME, else ``.dynahit`` here."""
    return Path(os.environ.get("DYNAHIT_HOME", ".dynahit")).absolute()


class Settings(BaseSettings):
    """Every setting of the service. Secrets have no default: a missing one stops the start with its name."""

    model_config = SettingsConfigDict(env_prefix="DYNAHIT_", extra="ignore")

    database_url: str = Field(
        description="SQLAlchemy address of dynahit's own database. Beside a SQLite file lies its lock, `<file>-turn`."
    )
    secret_key: SecretStr = Field(description="Signs worker tokens and staff sessions.")
    pseudonym_key: SecretStr = Field(description="Keys the pseudonyms of workers; changing it changes every pseudonym.")
    frame_secret: SecretStr | None = Field(
        default=None, description="Shared with the marketplace; verifies the signature of a frame's address."
    )
    service_url: str = Field(default="http://localhost:8001", description="Public address of this service.")
    marketplace_endpoint: str = Field(default="http://127.0.0.1:8000", description="Address of the Requester API.")
    worker_site_url: str = Field(
        default="http://127.0.0.1:8000",
        description="Origin of the worker site: may frame HIT pages, and is where assignments are submitted.",
    )
    aws_access_key_id: SecretStr = Field(description="Access key of the requester account on the marketplace.")
    aws_secret_access_key: SecretStr = Field(description="Its secret.")
    requester_name: str = Field(default="dynahit", description="Who asks, as shown to workers.")
    contact: str = Field(default="the person who invited you", description="Whom workers can reach.")
    consent_file: Path | None = Field(
        default=None,
        description="Text file with what people agree to before they take part; unset, the text that comes with"
        " dynahit. A changed text is a new version, and everybody is asked again.",
    )
    support_line: str = Field(
        default="",
        max_length=300,
        description="Where people who are shown disturbing texts find help, such as a telephone number; shown to them.",
    )
    exposure_cap: int = Field(
        default=100, ge=1, le=10_000, description="Most disturbing texts that one person is shown in a day (UTC)."
    )
    break_after: int = Field(
        default=20, ge=1, description="After so many disturbing texts of a day people are reminded to take a break."
    )
    rejection_cap: Decimal = Field(
        default=Decimal("0.05"),
        ge=0,
        le=1,
        decimal_places=3,
        description="Largest share of a batch's work, and of a worker's, that may be rejected; a single one always may,"
        " unless this is 0.",
    )
    models: dict[str, str] = Field(
        default={},
        description='JSON object from task to target model, such as {"nli": "hub:OWNER/NAME@REVISION"};'
        " a task that is left out is served by the model that comes with dynahit.",
    )
    compare: dict[str, list[str]] = Field(
        default={},
        description="JSON object from task to further models that its requester may compare on one text, such as"
        ' {"nli": ["dir:/models/nli-2"]}; they are loaded when asked for.',
    )
    model: str | None = Field(
        default=None, description="Replaced by DYNAHIT_MODELS; embedded:sentiment is still accepted and means nothing."
    )
    engine: Literal["in-process", "torchserve", "ray", "oip"] = Field(
        default="in-process", description="Where the models run; all but in-process need DYNAHIT_ENGINE_URL."
    )
    engine_url: str | None = Field(default=None, description="Address of the model server, such as http://host:8080.")
    local_files_only: bool = Field(default=False, description="Never download a model; use what is on this machine.")
    explain_method: str | None = Field(
        default=None, description="How words are explained; unset, the engine's fast integrated gradients."
    )
    base_weights: Path | None = Field(default=None, description="Folder of all-MiniLM-L6-v2; found by itself if unset.")
    predict_seconds: float = Field(
        default=5.0, gt=0, le=25, description="A model that takes longer counts as not available; at most 25."
    )
    explain_seconds: float = Field(default=20.0, gt=0, description="The same for an explanation.")
    fees: list[dict[str, Any]] = Field(
        default=[],
        description='JSON list of what the marketplace charges, such as [{"valid_from": "2026-01-01", "base": "0.10"}];'
        " what is left out is as with MTurk.",
    )
    approval_limit: Decimal | None = Field(
        default=None,
        ge=0,
        decimal_places=2,
        description="A payment above this many dollars waits until two people stand behind it; unset, nobody is asked.",
    )
    validation_reward: Decimal = Field(
        default=Decimal("0.25"),
        ge=Decimal("0.01"),
        le=10_000,
        decimal_places=2,
        description="Pay for one validation HIT.",
    )
    validation_bonus: Decimal = Field(
        default=Decimal("0.00"),
        ge=0,
        le=10_000,
        decimal_places=2,
        description="Paid to a validator besides, for each validation HIT in which every item was judged.",
    )
    gold_bonus: Decimal = Field(
        default=Decimal("0.00"),
        ge=0,
        le=10_000,
        decimal_places=2,
        description="Paid to a validator once for a batch of validation HITs, for items whose answer is known.",
    )
    gold_bonus_percent: int = Field(
        default=90, ge=1, le=100, description="Of those items, the share that must be right for the bonus."
    )
    validation_items: int = Field(default=10, ge=1, le=50, description="Most statements in one validation HIT.")
    validation_wait_seconds: int = Field(
        default=60, ge=0, description="A smaller validation HIT is opened when a statement has waited this long."
    )
    validator_qualification: str = Field(
        default="dynahit validator", description="Name of the qualification that validators hold."
    )
    qualification_prefix: str = Field(
        default="dynahit",
        min_length=1,
        max_length=80,
        description="Begins the names of the qualifications by which the marketplace knows our lists of workers.",
    )
    validators_by_quiz: bool = Field(
        default=False,
        description="Validation HITs ask for the task's validators' quiz, not for DYNAHIT_VALIDATOR_QUALIFICATION.",
    )
    gold_expert_items: int = Field(
        default=20, ge=1, le=10_000, description="Gold items that somebody must have judged to become an expert."
    )
    gold_expert_percent: int = Field(
        default=90, ge=1, le=100, description="How many of them must be right, in percent."
    )
    qualification_months: int = Field(
        default=12, ge=0, le=120, description="How long a qualification that a quiz earned is held; 0 means for ever."
    )
    quiz_retry_hours: int = Field(
        default=24, ge=0, le=720, description="How long somebody who failed a quiz waits for the next try."
    )
    wage_floor: Decimal | None = Field(
        default=None,
        gt=0,
        le=10_000,
        decimal_places=2,
        description="Least pay by the hour in dollars; a launch below it needs a reason. Unset, there is no floor.",
    )
    jobs_interval_seconds: float = Field(default=5.0, gt=0, description="Pause between two passes of `jobs run`.")
    reconcile_hours: int = Field(
        default=24, ge=0, le=168, description="How often `jobs run` reconciles the books; 0 leaves it to you."
    )
    fresh_sign_in_minutes: int = Field(
        default=10,
        ge=1,
        le=120,
        description="Before money moves or a month is closed, a password older than this is asked for again.",
    )
    metrics_token: SecretStr | None = Field(
        default=None, description="What reads /metrics sends it as bearer token; unset, only this machine may read it."
    )
    alert_mail: str | None = Field(
        default=None, description="Who gets a mail when the books don't agree; several addresses with commas."
    )
    mail_from: str | None = Field(default=None, description="Sender of those mails.")
    smtp_host: str | None = Field(default=None, description="The SMTP server that takes them.")
    smtp_port: int = Field(default=25, ge=1, le=65535, description="Its port.")
    smtp_security: Literal["none", "starttls", "tls"] = Field(
        default="none", description="How the connection to it is protected; none is for a server on this machine."
    )
    smtp_user: str | None = Field(default=None, description="Name to sign in with there, if it asks for one.")
    smtp_password: SecretStr | None = Field(default=None, description="Password to sign in with there.")

    @field_validator("model")
    @classmethod
    def _is_the_old_default(cls, model: str | None) -> str | None:
        if model not in (None, "", "embedded:sentiment"):
            raise ValueError(
                f"DYNAHIT_MODEL is {model!r}, but models are set by task now."
                f' Write DYNAHIT_MODELS={{"TASK": "{model}"}} instead.'
            )
        return None

    @field_validator("fees")
    @classmethod
    def _are_schedules(cls, fees: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            read_schedules(fees)
        except InvalidFees as error:
            raise ValueError(str(error)) from error
        return fees

    @field_validator("models")
    @classmethod
    def _are_references(cls, models: dict[str, str]) -> dict[str, str]:
        empty = sorted(code for code, reference in models.items() if not reference.strip())
        if empty:
            raise ValueError(f"no model is named for {', '.join(empty)}; name one, such as embedded:{empty[0]}")
        return models

    @field_validator("alert_mail", "mail_from", "smtp_host", "smtp_user", "smtp_password", "metrics_token")
    @classmethod
    def _is_set(cls, value: str | SecretStr | None) -> str | SecretStr | None:
        """A variable that is there and empty counts as not set."""
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        return value if text else None

    @field_validator("alert_mail", "mail_from")
    @classmethod
    def _are_addresses(cls, text: str | None) -> str | None:
        for one in (text or "").split(",") if text else ():
            if parseaddr(one)[1] != one.strip() or not re.fullmatch(r"[^@\s]+@[^@\s]+", one.strip()):
                raise ValueError(f"{one.strip()!r} is no e-mail address such as finance@example.org")
        return text

    @model_validator(mode="after")
    def _alerts_can_leave(self) -> Settings:
        parts = {"ALERT_MAIL": self.alert_mail, "MAIL_FROM": self.mail_from, "SMTP_HOST": self.smtp_host}
        if len({value is None for value in parts.values()}) > 1:
            missing = ", ".join(f"DYNAHIT_{name}" for name, value in parts.items() if value is None)
            raise ValueError(
                f"DYNAHIT_ALERT_MAIL, DYNAHIT_MAIL_FROM and DYNAHIT_SMTP_HOST go together; set {missing} too, or none"
            )
        if (self.smtp_user is None) != (self.smtp_password is None):
            raise ValueError("DYNAHIT_SMTP_USER and DYNAHIT_SMTP_PASSWORD go together: set both, or none")
        if self.smtp_password is not None and self.smtp_security == "none" and self.smtp_host not in _LOOPBACK:
            raise ValueError(
                f"DYNAHIT_SMTP_PASSWORD would cross the network to {self.smtp_host} for all to read;"
                " set DYNAHIT_SMTP_SECURITY to starttls or tls"
            )
        return self

    @field_validator("service_url", "marketplace_endpoint", "worker_site_url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(f"{url!r} is no web address such as https://hits.example.org")
        return url


def load_settings() -> Settings:
    """Return the settings of this instance; the environment wins over ``settings.env`` in the instance folder."""
    return Settings(_env_file=instance_folder() / "settings.env")  # type: ignore[call-arg]  # secrets come from outside
