"""The states that rows move through, and the groups that decisions are taken by."""

from __future__ import annotations

from enum import StrEnum


class HitKind(StrEnum):
    """What a HIT asks for."""

    CREATION = "creation"
    VALIDATION = "validation"


class HitState(StrEnum):
    """planned -> creating (the call to the marketplace may have happened) -> created -> closed."""

    PLANNED = "planned"
    CREATING = "creating"
    CREATED = "created"
    CLOSED = "closed"


class AssignmentState(StrEnum):
    """opened (a claim of the frame) -> saved (here) -> submitted (ListAssignments shows it) -> approved | rejected."""

    OPENED = "opened"
    SAVED = "saved"
    SUBMITTED = "submitted"
    APPROVED = "approved"
    REJECTED = "rejected"


#: The marketplace itself has shown the assignment: what it holds counts.
COLLECTED = frozenset({AssignmentState.SUBMITTED, AssignmentState.APPROVED, AssignmentState.REJECTED})


class AttemptState(StrEnum):
    """asking (the model has the text) -> answered | unanswered (the model failed; no try is used)."""

    ASKING = "asking"
    ANSWERED = "answered"
    UNANSWERED = "unanswered"


class Verdict(StrEnum):
    """What the votes say about an example, named by meaning."""

    NOT_VALIDATED = "not_validated"
    PENDING = "pending"
    VALID_AND_MODEL_WRONG = "valid_and_model_wrong"
    VALID_AND_MODEL_RIGHT = "valid_and_model_right"
    INVALID = "invalid"
    UNRESOLVED = "unresolved"
    FLAGGED = "flagged"


class Moderation(StrEnum):
    """What the requester decided about an example's flags."""

    OPEN = "open"
    DISMISSED = "dismissed"
    UPHELD = "upheld"
