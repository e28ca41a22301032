"""The states that rows move through, and the groups that decisions are taken by."""

from __future__ import annotations

from enum import StrEnum


class RoundState(StrEnum):
    """draft -> (piloting ->) collecting -> validating -> frozen -> trained -> archived; hits.rounds has every move."""

    #: Nothing of it is on the marketplace yet.
    DRAFT = "draft"
    #: The first HITs of a launch are out; the rest waits for a person's word.
    PILOTING = "piloting"
    COLLECTING = "collecting"
    #: No new work is offered to writers; readers finish.
    VALIDATING = "validating"
    FROZEN = "frozen"
    #: A model has been trained on it.
    TRAINED = "trained"
    #: Put away: it is listed only on request.
    ARCHIVED = "archived"


class HitKind(StrEnum):
    """What a HIT asks for."""

    CREATION = "creation"
    VALIDATION = "validation"
    #: A paid quiz, by which people earn the right to write or to judge.
    QUALIFICATION = "qualification"
    #: Pays one worker whom no bonus can reach.
    COMPENSATION = "compensation"


class HitState(StrEnum):
    """planned -> creating (the call to the marketplace may have happened) -> created -> closed.

    One that is closed without an id of the marketplace was withdrawn before it was made.
    """

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


class PracticeState(StrEnum):
    """Whether a reviewer has looked at a new writer's example: validators get it only once it has passed."""

    WAITING = "waiting"
    PASSED = "passed"
    FAILED = "failed"


class Moderation(StrEnum):
    """What the requester decided about an example's flags."""

    OPEN = "open"
    DISMISSED = "dismissed"
    UPHELD = "upheld"


class BadFaith(StrEnum):
    """The only grounds on which work is rejected."""

    NO_WORK = "no_work"
    NONSENSE = "nonsense"
    COPIED = "copied"
    AUTOMATED = "automated"
    OUT_OF_BOUNDS = "out_of_bounds"


class RejectionState(StrEnum):
    """sending (the call to the marketplace may have happened) -> rejected -> undone (approved after all)."""

    SENDING = "sending"
    REJECTED = "rejected"
    UNDONE = "undone"


class Split(StrEnum):
    """Where an example of a frozen round is used; withheld are those of no use, and those that would tie two splits."""

    TRAIN = "train"
    DEV = "dev"
    TEST = "test"
    WITHHELD = "withheld"
