"""The signed token in a HIT page's form: it stands for one worker's hold on one HIT, in place of a cookie."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime

from itsdangerous import BadData, BadSignature, SignatureExpired, TimestampSigner, URLSafeTimedSerializer

from hits.clock import Clock
from hits.errors import Refused

#: Serves after the deadline too, so that a late worker reads that the time is over, not that a token is old.
GRACE_SECONDS = 3600
SECOND_QUESTION_SECONDS = 900


class TokenInvalid(Refused):
    """A token that this service did not make, or that was changed."""

    def __init__(self) -> None:
        super().__init__("This page's form is not one that this service made. Nothing was changed.")


class TokenExpired(Refused):
    """A token of a page that was left open for too long."""

    def __init__(self) -> None:
        super().__init__("This page was open for too long, so nothing was changed.")


@dataclass(frozen=True)
class Claim:
    """Whom a token speaks for: the marketplace's ids of assignment and worker, and our HIT's reference."""

    assignment_id: str
    worker_id: str
    hit_reference: str


class Tokens:
    """Makes and reads the tokens of one service."""

    def __init__(self, secret_key: str, clock: Clock) -> None:
        class ClockSigner(TimestampSigner):
            def get_timestamp(self) -> int:
                return int(clock.now().timestamp())

        self._secret_key = secret_key.encode()
        self._clock = clock
        self._serializer = URLSafeTimedSerializer(
            secret_key, salt="dynahit.hit-page", signer=ClockSigner, signer_kwargs={"digest_method": hashlib.sha256}
        )
        self._second = URLSafeTimedSerializer(
            secret_key,
            salt="dynahit.second-question",
            signer=ClockSigner,
            signer_kwargs={"digest_method": hashlib.sha256},
        )

    def issue(self, claim: Claim, *, valid_until: datetime) -> str:
        """Return a token that serves until an hour after ``valid_until``."""
        seconds = max(0, int((valid_until - self._clock.now()).total_seconds())) + GRACE_SECONDS
        return str(self._serializer.dumps([claim.assignment_id, claim.worker_id, claim.hit_reference, seconds]))

    def read(self, token: str) -> Claim:
        """Return whom the token speaks for. Raises TokenInvalid, TokenExpired."""
        try:
            payload, made_at = self._serializer.loads(token, return_timestamp=True)
            assignment_id, worker_id, hit_reference, seconds = payload
        except SignatureExpired as error:
            raise TokenExpired from error
        except (BadSignature, BadData, TypeError, ValueError) as error:
            raise TokenInvalid from error
        if (self._clock.now() - made_at).total_seconds() > seconds:
            raise TokenExpired
        return Claim(assignment_id, worker_id, hit_reference)

    def ask_again(self, *what: str) -> str:
        """Return a token for the second question about something grave; it serves for a quarter of an hour."""
        return str(self._second.dumps(list(what)))

    def asked_about(self, token: str) -> list[str]:
        """Return what a second question was about. Raises TokenInvalid, TokenExpired."""
        try:
            found = self._second.loads(token, max_age=SECOND_QUESTION_SECONDS)
        except SignatureExpired as error:
            raise TokenExpired from error
        except (BadSignature, BadData) as error:
            raise TokenInvalid from error
        return [str(part) for part in found]

    def receipt(self, assignment_id: str) -> str:
        """Return the receipt code of an assignment: always the same one, and not to be guessed."""
        digest = hmac.new(self._secret_key, f"receipt\n{assignment_id}".encode(), hashlib.sha256).hexdigest().upper()
        return f"DH-{digest[:4]}-{digest[4:8]}-{digest[8:12]}"
