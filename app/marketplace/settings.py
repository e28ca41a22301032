"""What the marketplace's process reads from its environment (MARKETPLACE_*)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from limits import parse_many
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.transports import DeliverySettings, SmtpSecurity

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
DEFAULT_PORTS = {"http": 80, "https": 443}


class SettingsMissing(Exception):
    """The environment lacks a setting or holds an unfit one; the message names each and the next step."""


class Settings(BaseSettings):
    """One marketplace's configuration; secrets have no default, so a process without them does not start."""

    model_config = SettingsConfigDict(env_prefix="MARKETPLACE_", hide_input_in_errors=True)

    database_url: str
    secret_key: SecretStr
    frame_secret: SecretStr | None = None
    site_url: str = "http://127.0.0.1:8000"
    content_url: str | None = None
    site_name: str = "Marketplace"
    contact: str = ""
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    allow_http_loopback: bool | None = None
    sign_in_limit: str = "10 per minute; 60 per hour"
    sign_up: Literal["invitation", "open"] = "invitation"
    sign_up_limit: str = "20 per hour"
    sign_up_total_limit: str = "200 per hour"
    mail_limit: str = "3 per hour"
    proxies: int = 0
    movable_clock: bool = False
    smtp_host: str | None = None
    smtp_port: int = Field(default=25, ge=1, le=65535)
    smtp_security: SmtpSecurity = "none"
    smtp_user: str | None = None
    smtp_password: SecretStr | None = None
    mail_from: str | None = None
    aws_region: str | None = None
    aws_endpoint_url: str | None = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: SecretStr | None = None
    webhooks: bool = True
    allow_private_webhooks: bool = False
    webhook_seconds: float = Field(default=10.0, gt=0, le=60)
    webhook_ca_file: Path | None = None
    delivery_seconds: float = Field(default=1.0, gt=0, le=3600)

    @field_validator("secret_key", "frame_secret")
    @classmethod
    def _long_enough(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and len(secret.get_secret_value()) < 32:
            raise ValueError("a secret has at least 32 characters; `openssl rand -hex 32` prints one")
        return secret

    @field_validator(
        "content_url",
        "smtp_host",
        "smtp_user",
        "smtp_password",
        "mail_from",
        "aws_region",
        "aws_endpoint_url",
        "aws_access_key_id",
        "aws_secret_access_key",
        "webhook_ca_file",
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("sign_in_limit", "sign_up_limit", "sign_up_total_limit", "mail_limit")
    @classmethod
    def _a_rate(cls, text: str) -> str:
        try:
            parse_many(text)
        except ValueError as error:
            raise ValueError(f"limits such as '5 per minute; 60 per hour', not {text!r}") from error
        return text

    @field_validator("mail_from")
    @classmethod
    def _an_address(cls, text: str | None) -> str | None:
        if text is not None and "@" not in parseaddr(text)[1]:
            raise ValueError(f"a sender such as Marketplace <no-reply@example.org>, not {text!r}")
        return text

    @field_validator("webhook_ca_file")
    @classmethod
    def _authorities(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        try:
            ssl.create_default_context(cafile=path)
        except OSError as error:
            raise ValueError(f"a file of certificates in PEM form, which {path} is not: {error}") from error
        return path

    @field_validator("site_url", "content_url")
    @classmethod
    def _an_origin(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ValueError(f"an origin such as https://work.example.org, not {url!r}")
        return url.rstrip("/")

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _comma_separated(cls, hosts: object) -> object:
        if isinstance(hosts, str):
            return tuple(host.strip() for host in hosts.split(",") if host.strip())
        return hosts

    @model_validator(mode="after")
    def _http_loopback_only_on_loopback(self) -> Settings:
        if self.allow_http_loopback and not self.on_loopback:
            raise ValueError(
                f"MARKETPLACE_ALLOW_HTTP_LOOPBACK needs a site on loopback; MARKETPLACE_SITE_URL is {self.site_url}"
            )
        return self

    @model_validator(mode="after")
    def _movable_clock_only_on_loopback(self) -> Settings:
        if self.movable_clock and not self.on_loopback:
            raise ValueError(
                f"MARKETPLACE_MOVABLE_CLOCK is for test servers on loopback; MARKETPLACE_SITE_URL is {self.site_url}"
            )
        return self

    @model_validator(mode="after")
    def _key_is_whole(self) -> Settings:
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            raise ValueError(
                "MARKETPLACE_AWS_ACCESS_KEY_ID and MARKETPLACE_AWS_SECRET_ACCESS_KEY go together: set both, or none"
            )
        return self

    @model_validator(mode="after")
    def _mail_is_whole(self) -> Settings:
        if (self.smtp_host is None) != (self.mail_from is None):
            raise ValueError("MARKETPLACE_SMTP_HOST and MARKETPLACE_MAIL_FROM go together: set both, or none")
        if (self.smtp_user is None) != (self.smtp_password is None):
            raise ValueError("MARKETPLACE_SMTP_USER and MARKETPLACE_SMTP_PASSWORD go together: set both, or none")
        if self.smtp_password is not None and self.smtp_security == "none" and self.smtp_host not in LOOPBACK_HOSTS:
            raise ValueError(
                f"MARKETPLACE_SMTP_PASSWORD would cross the network to {self.smtp_host} for all to read; set "
                "MARKETPLACE_SMTP_SECURITY to starttls or tls"
            )
        return self

    @model_validator(mode="after")
    def _content_on_another_host(self) -> Settings:
        if self.content_url is not None and urlsplit(self.content_url).hostname == self.site.hostname:
            raise ValueError(
                "MARKETPLACE_CONTENT_URL must have a host name of its own, or requesters' pages would get this site's "
                f"cookies; {self.content_url} is the site's own"
            )
        return self

    @property
    def site(self) -> SplitResult:
        """The worker site's address, split."""
        return urlsplit(self.site_url)

    @property
    def on_loopback(self) -> bool:
        """Whether the site's own address is plain http on this machine."""
        return self.site.scheme == "http" and self.site.hostname in LOOPBACK_HOSTS

    @property
    def http_loopback_allowed(self) -> bool:
        """Whether ExternalURLs may be plain http on loopback: as set, else only if the site itself is so."""
        return self.on_loopback if self.allow_http_loopback is None else self.allow_http_loopback

    @property
    def content_origin(self) -> str | None:
        """The second origin, where HTMLQuestions are served: as set; else, on loopback, its other name; else none."""
        if self.content_url is not None:
            return origin_text(self.content_url)
        if not self.on_loopback:
            return None
        other = "127.0.0.1" if self.site.hostname == "localhost" else "localhost"
        return origin_text(self.site._replace(netloc=f"{other}:{self.site.port or 80}").geturl())

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names that requests may carry: the configured ones, the site's own, the second origin's."""
        second = (str(urlsplit(self.content_origin).hostname),) if self.content_origin else ()
        return tuple(dict.fromkeys((*self.allowed_hosts, str(self.site.hostname), *second)))

    def derived_key(self, purpose: str) -> bytes:
        """Return 32 bytes for one purpose, so that the session key and the store's key are not the same key."""
        secret = self.secret_key.get_secret_value().encode()
        return hmac.digest(secret, f"marketplace {purpose} v1".encode(), hashlib.sha256)

    @property
    def sends_mail(self) -> bool:
        """Whether there is a server for mail."""
        return self.smtp_host is not None

    def delivery_settings(self) -> DeliverySettings:
        """Return what the process that delivers events and mail needs to know."""
        return DeliverySettings(
            aws_region=self.aws_region,
            aws_endpoint_url=self.aws_endpoint_url,
            aws_access_key_id=self.aws_access_key_id,
            aws_secret_access_key=_revealed(self.aws_secret_access_key),
            webhooks=self.webhooks,
            allow_private_webhooks=self.allow_private_webhooks,
            webhook_seconds=self.webhook_seconds,
            webhook_ca_file=self.webhook_ca_file,
            smtp_host=self.smtp_host,
            smtp_port=self.smtp_port,
            smtp_security=self.smtp_security,
            smtp_user=self.smtp_user,
            smtp_password=_revealed(self.smtp_password),
            mail_from=self.mail_from,
        )

    def engine_settings(self) -> MarketplaceSettings:
        """Return what the engine needs to know."""
        return MarketplaceSettings(
            secret_key=base64.urlsafe_b64encode(self.derived_key("access-key secrets")).decode("ascii"),
            site_url=self.site_url,
            content_url=self.content_origin,
            frame_secret=_revealed(self.frame_secret),
            allow_http_loopback=self.http_loopback_allowed,
            movable_clock=self.movable_clock,
            site_name=self.site_name,
            sends_mail=self.sends_mail,
        )


def settings_from_environment() -> Settings:
    """Read the environment.

    Raises SettingsMissing with one line per variable that is missing or unfit.
    """
    try:
        return Settings()  # type: ignore[call-arg]  # the required fields come from the environment
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            name = "MARKETPLACE_" + "_".join(str(part) for part in problem["loc"]).upper() if problem["loc"] else ""
            what = "is not set" if problem["type"] == "missing" else problem["msg"].removeprefix("Value error, ")
            lines.append(f"  {name} {what}".rstrip())
        raise SettingsMissing(
            "The marketplace cannot start with this environment:\n"
            + "\n".join(lines)
            + "\n`dynahit up` writes a complete settings.env; docs/configuration.md lists every variable."
        ) from error


def _revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address, with the scheme's default port filled in."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme)


def origin_text(url: str) -> str:
    """Return an address's origin as browsers write it (no default port)."""
    scheme, host, port = origin(url)
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}" if port == DEFAULT_PORTS.get(scheme) else f"{scheme}://{host}:{port}"
