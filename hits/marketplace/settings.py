"""What an operator decides about one marketplace."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.fernet import Fernet

from hits.marketplace.errors import OperatorError


@dataclass(frozen=True)
class MarketplaceSettings:
    """The configuration of a marketplace.

    `secret_key` is a Fernet key: access keys' secrets are stored encrypted under it. `site_url` is the worker
    site's origin (turkSubmitTo); `content_url` is the origin that serves the HTML of HTMLQuestions, which must not be
    the site's own, or it could act in a worker's name; without it no HTMLQuestion HIT can be accepted. With
    `frame_secret`, frames of accepted assignments carry a signature. `allow_http_loopback` lets ExternalURLs be plain
    http on loopback hosts. `repeated_expiration_is_an_error` repeats MTurk's refusal of the same (HIT, ExpireAt) pair
    within 24 hours. `movable_clock` is for test servers: their clock can be moved forward, for all processes on the
    database. With `sends_mail` letters to people are queued; the process that delivers needs a server for them.
    """

    secret_key: str = field(repr=False)
    site_url: str = "http://127.0.0.1:8000"
    content_url: str | None = None
    frame_secret: str | None = field(default=None, repr=False)
    allow_http_loopback: bool = False
    repeated_expiration_is_an_error: bool = True
    movable_clock: bool = False
    site_name: str = "Marketplace"
    sends_mail: bool = False
    scrypt_n: int = 2**15

    def __post_init__(self) -> None:
        """Refuse a key that Fernet cannot use, and a site address with a path.

        Raises OperatorError.
        """
        try:
            Fernet(self.secret_key)
        except ValueError as error:
            raise OperatorError(
                "secret_key must be 32 bytes in URL-safe base64; MarketplaceSettings.new_secret_key() makes one."
            ) from error
        for name, url in (("site_url", self.site_url), ("content_url", self.content_url)):
            if url is not None and url.rstrip("/").count("/") != 2:
                raise OperatorError(f"{name} must be an origin such as https://work.example.org, got {url!r}.")

    @property
    def turk_submit_to(self) -> str:
        """The origin that frames post to, without a trailing slash."""
        return self.site_url.rstrip("/")

    @property
    def content_origin(self) -> str | None:
        """The origin of the HTML of HTMLQuestions, without a trailing slash."""
        return self.content_url.rstrip("/") if self.content_url is not None else None

    @staticmethod
    def new_secret_key() -> str:
        """Return a fresh key for `secret_key`."""
        return Fernet.generate_key().decode("ascii")

    @classmethod
    def for_tests(
        cls,
        *,
        frame_secret: str | None = None,
        site_url: str = "http://127.0.0.1:8000",
        content_url: str | None = "http://localhost:8000",
        sends_mail: bool = False,
    ) -> MarketplaceSettings:
        """Return settings for a throw-away marketplace: plain http on loopback, quick password hashing."""
        return cls(
            secret_key=cls.new_secret_key(),
            site_url=site_url,
            content_url=content_url,
            frame_secret=frame_secret,
            allow_http_loopback=True,
            sends_mail=sends_mail,
            scrypt_n=2**4,
        )
