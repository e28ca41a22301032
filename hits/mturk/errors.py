"""What the marketplace answers when it does not do what was asked.

MTurkError
├── MTurkUnavailable             can't be reached, throttled, or broken on its side: the same call may work later
├── RequirementsMismatch         a created HIT does not carry the qualification requirements that were asked for
│   └── HitTypeMismatch          nor does the HIT type, so that no HIT was created
└── MTurkRefused                 understood and refused; carries the TurkErrorCode
    ├── HitAlreadyExists         the request token was used before; carries the HIT's id
    ├── DuplicateRequest         the request token of a bonus or extension was used before
    ├── InsufficientFunds
    ├── InvalidAssignmentState
    ├── InvalidHitState
    ├── AssignmentMissing
    ├── HitMissing
    └── QualificationTypeExists
"""

from __future__ import annotations

from hits.errors import HitsError


class MTurkError(HitsError):
    """The marketplace did not do what was asked."""


class MTurkUnavailable(MTurkError):
    """The marketplace can't be reached or is broken on its side; ``operation`` may be asked again later."""

    def __init__(self, operation: str, endpoint: str, cause: str) -> None:
        super().__init__(
            f"The marketplace at {endpoint} did not answer {operation}: {cause}."
            " Is it running? Nothing is lost; the same command can be run again."
        )
        self.operation = operation


class RequirementsMismatch(MTurkError):
    """A created HIT does not carry the requirements of its type, so that the wrong people could accept it."""

    def __init__(self, hit_id: str, wanted: str, found: str) -> None:
        super().__init__(
            f"HIT {hit_id} was created without its qualification requirements (wanted {wanted}, found {found})."
            " It was expired at once and no more are created. Check the marketplace before you go on."
        )
        self.hit_id = hit_id


class HitTypeMismatch(RequirementsMismatch):
    """The marketplace left the requirements of a HIT type out; found before any HIT was created."""

    def __init__(self, hit_type_id: str, wanted: str) -> None:
        MTurkError.__init__(
            self,
            f"The marketplace made HIT type {hit_type_id} without its qualification requirements (wanted {wanted})."
            " No HIT was created. Check the marketplace before you go on.",
        )
        self.hit_type_id = hit_type_id


class MTurkRefused(MTurkError):
    """The marketplace understood and refused; ``code`` is its TurkErrorCode or, without one, the error's type."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        super().__init__(f"The marketplace refused {operation}: {message} [{code}]")
        self.operation = operation
        self.code = code
        self.message = message


class HitAlreadyExists(MTurkRefused):
    """The request token was used before, for the HIT ``hit_id``."""

    def __init__(self, operation: str, code: str, message: str, hit_id: str) -> None:
        super().__init__(operation, code, message)
        self.hit_id = hit_id


class DuplicateRequest(MTurkRefused):
    """The request token was used before: what was asked for has been done already."""


class InsufficientFunds(MTurkRefused):
    """The requester's balance does not cover it."""


class InvalidAssignmentState(MTurkRefused):
    """The assignment is not in a state that allows this; ``status`` is the state that would allow it, as told."""

    def __init__(self, operation: str, code: str, message: str, status: str) -> None:
        super().__init__(operation, code, message)
        self.status = status


class InvalidHitState(MTurkRefused):
    """The HIT is not in a state that allows this."""


class AssignmentMissing(MTurkRefused):
    """The marketplace has no such assignment, or it has not been submitted yet."""


class HitMissing(MTurkRefused):
    """The marketplace has no such HIT."""


class QualificationTypeExists(MTurkRefused):
    """The requester has a qualification type of that name already."""
