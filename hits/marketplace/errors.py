"""What can go wrong, in the words of the Requester API (MarketplaceError) and of the worker site (SiteError).

MarketplaceError                 an answer of the Requester API: type, message, TurkErrorCode, HTTP status
SiteError                        a refusal that a person reads
  NotSignedIn                    wrong user name or password
  InvitationUnknown / InvitationUsed
  UserNameTaken / UserNameUnfit / PasswordUnfit / PasswordWrong / AddressUnfit / AddressTaken / LinkUnfit
  MailsAskedTooOften
  WorkerUnknown / HitUnknown / HitNotAvailable / HitNotShown / ElementsMissing / HitGroupEmpty / NotQualified
  AlreadyWorkedOn
  AssignmentUnknown / AssignmentNotHeld / AssignmentReturned / TooLate / AlreadySubmitted
  PreviewCannotBeSubmitted / NothingSubmitted / AnswerTooLarge
  BlockedByRequester             the requester takes no work from this worker
  QualificationUnknown / QualificationNotRequestable / AlreadyQualified / AlreadyRequested / RetryTooSoon / NoRetry
  QualificationRequestUnknown / TestOver / FormIncomplete / FormExpected
  MessageUnfit / ReportUnfit / WroteTooOften / AlreadyReported
OperatorError                    a wrong call by the operator's own code: unknown requester, sub-cent top-up, ...
  NothingThere                   what a console asked for does not exist
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hits.marketplace.words import Words, counted, joined, words

if TYPE_CHECKING:
    from hits.marketplace.views import MissingQualification


@dataclass(frozen=True)
class TurkCode:
    """One TurkErrorCode with its text; `evidence` says where the wording comes from."""

    code: str
    text: str
    evidence: str


def _turk(name: str, text: str, evidence: str) -> TurkCode:
    return TurkCode(f"AWS.MechanicalTurk.{name}", text, evidence)


HIT_DOES_NOT_EXIST: Final = _turk("HITDoesNotExist", "Hit {id} does not exist.", "seen on the wire")
HIT_TYPE_DOES_NOT_EXIST: Final = _turk("HITTypeDoesNotExist", "HITType {id} does not exist.", "our wording")
ASSIGNMENT_DOES_NOT_EXIST: Final = _turk(
    "AssignmentDoesNotExist", "Assignment {id} does not exist.", "seen on the wire"
)
INVALID_ASSIGNMENT_STATE: Final = _turk(
    "InvalidAssignmentState", "This operation can be called with a status of: {allowed}", "seen on the wire"
)
INVALID_HIT_STATE: Final = _turk(
    "InvalidHITState",
    "This HIT is currently in the state '{state}'.  This operation can be called with a status of: {allowed}",
    "text seen on the wire, code from the published list",
)
HIT_ALREADY_EXISTS: Final = _turk("HitAlreadyExists", 'The HIT with ID "{id}" already exists.', "service model")
DUPLICATE_REQUEST: Final = _turk(
    "DuplicateRequest", 'The idempotency token "{token}" has already been processed.', "text seen for expirations"
)
INVALID_MAXIMUM_ASSIGNMENTS_INCREASE: Final = _turk(
    "InvalidMaximumAssignmentsIncrease",
    "A HIT created with fewer than 10 assignments ({maximum}) cannot be extended to 10 or more (by {added}).",
    "code from the service model, our wording",
)
INSUFFICIENT_FUNDS: Final = _turk(
    "InsufficientFunds",
    "This Requester has insufficient funds in their account to complete this transaction. "
    "Please visit https://requester.mturk.com/prepayments/new to purchase Prepaid HITs.",
    "seen on the wire",
)
QUALIFICATION_DOES_NOT_EXIST: Final = _turk(
    "QualificationDoesNotExist", "You requested a Qualification that does not exist.", "seen on the wire"
)
QUALIFICATION_TYPE_DOES_NOT_EXIST: Final = _turk(
    "QualificationTypeDoesNotExist", "QualificationType {id} does not exist.", "our wording"
)
QUALIFICATION_TYPE_ALREADY_EXISTS: Final = _turk(
    "QualificationTypeAlreadyExists",
    "You have already created a QualificationType with this name. "
    "A QualificationType's name must be unique among all of the QualificationTypes created by the same user.",
    "seen on the wire",
)
INVALID_QUALIFICATION_TYPE_STATE: Final = _turk(
    "InvalidQualificationTypeState",
    "QualificationType {id} is in the state '{state}'. This operation can be called with a status of: Active",
    "our wording",
)
INVALID_QUALIFICATION_STATE: Final = _turk(
    "InvalidQualificationState",
    "This Qualification is currently in the state '{state}'. This operation can be called with a status of: Granted",
    "end of the text seen on the wire",
)
QUALIFICATION_REQUEST_DOES_NOT_EXIST: Final = _turk(
    "QualificationRequestDoesNotExist", "QualificationRequest {id} does not exist.", "our wording"
)
INVALID_QUALIFICATION_REQUEST_STATE: Final = _turk(
    "InvalidQualificationRequestState",
    "This QualificationRequest is currently in the state '{state}'. "
    "This operation can be called with a status of: Pending",
    "code from the published list, our wording",
)
HIT_ALREADY_TAKEN: Final = _turk(
    "InvalidHITState",
    "Workers have accepted assignments of HIT {id}. Its HITType can be changed only before the first one does.",
    "code from the published list, our wording",
)
HIT_TAKEN_DOWN: Final = _turk(
    "InvalidHITState",
    "The operator of this marketplace took down HIT {id}. Its lifetime cannot be prolonged.",
    "our own",
)
INVALID_PARAMETER_VALUE: Final = _turk("InvalidParameterValue", "{reason}", "code from the published list")
FILE_UPLOAD_NOT_SUPPORTED: Final = _turk(
    "OperationNotSupported",
    "Assignment {id} has no file. FileUploadAnswer is not supported since 12 December 2017; "
    "let an ExternalQuestion or HTMLQuestion upload files to a store of your own.",
    "our own",
)
INVALID_TRANSPORT_ENDPOINT: Final = _turk(
    "InvalidTransportEndpoint",
    "The destination {destination} does not fit the transport {transport}: {rule}",
    "code from the published list, our wording",
)
PARAMETER_OUT_OF_RANGE: Final = TurkCode("AWS.ParameterOutOfRange", "{reason}", "code from the published list")
MISSING_PARAMETERS: Final = TurkCode("AWS.MissingParameters", "{reason}", "code from the published list")

REQUEST_ERROR: Final = "RequestError"
SERVICE_FAULT: Final = "ServiceFault"
PARAMETER_VALIDATION_ERROR: Final = "ParameterValidationError"
VALIDATION_EXCEPTION: Final = "ValidationException"
SERIALIZATION_EXCEPTION: Final = "SerializationException"
UNKNOWN_OPERATION: Final = "UnknownOperationException"


class MarketplaceError(Exception):
    """An error answer of the Requester API."""

    def __init__(self, type: str, message: str, turk_code: str | None = None, http_status: int = 400) -> None:
        """Keep the four parts of the answer."""
        super().__init__(message)
        self.type = type
        self.message = message
        self.turk_code = turk_code
        self.http_status = http_status

    def stamped(self, now: datetime) -> MarketplaceError:
        """Return the error with the epoch milliseconds that MTurk appends to its own messages, once."""
        if self.type not in {REQUEST_ERROR, SERVICE_FAULT, PARAMETER_VALIDATION_ERROR}:
            return self
        milliseconds = round(now.timestamp() * 1000)
        return MarketplaceError(self.type, f"{self.message} ({milliseconds})", self.turk_code, self.http_status)


def request_error(code: TurkCode, **values: object) -> MarketplaceError:
    """Build the RequestError of one line of the table above."""
    return MarketplaceError(REQUEST_ERROR, code.text.format(**values), code.code)


def invalid_parameter(name: str, value: object) -> MarketplaceError:
    """Build the answer to a value that is well formed and means nothing here."""
    return MarketplaceError(
        PARAMETER_VALIDATION_ERROR,
        f'The value "{value}" is not valid for the parameter {name}.',
        INVALID_PARAMETER_VALUE.code,
    )


def unfit_parameter(reason: str) -> MarketplaceError:
    """Build the answer to a parameter whose meaning is wrong, with the reason in words."""
    return MarketplaceError(PARAMETER_VALIDATION_ERROR, reason, INVALID_PARAMETER_VALUE.code)


class OperatorError(Exception):
    """A call by the operator's own code that cannot be carried out."""


class NothingThere(OperatorError):
    """A console asked for something that does not exist, or is another requester's."""


class SiteError(Exception):
    """A refusal on the worker site; the message is for people."""

    def __init__(self, message: str) -> None:
        """Keep the sentence that the person reads."""
        super().__init__(message)
        self.message = message


def _minute(at: datetime) -> str:
    """Return a time of UTC as every language reads it."""
    return f"{at.astimezone(UTC):%Y-%m-%d, %H:%M}"


class NotSignedIn(SiteError):
    """User name and password do not belong together."""

    def __init__(self) -> None:
        """Say neither which of the two is wrong."""
        super().__init__(words("This user name and password do not belong together. Check both and try again."))


class InvitationUnknown(SiteError):
    """No such invitation."""

    def __init__(self) -> None:
        """Ask for a check of the code."""
        super().__init__(words("This invitation code is not known here. Check that you copied all of it."))


class InvitationUsed(SiteError):
    """Somebody registered with it before."""

    def __init__(self) -> None:
        """Point to sign-in."""
        super().__init__(words("This invitation has been used already. If it was you, sign in with your user name."))


class UserNameTaken(SiteError):
    """Another account has this user name."""

    def __init__(self, user_name: str) -> None:
        """Name the user name."""
        super().__init__(words("The user name “%(name)s” is taken. Choose another one.", name=user_name))


class UserNameUnfit(SiteError):
    """A user name that cannot be used."""

    def __init__(self) -> None:
        """Say the rule."""
        super().__init__(words("A user name has 3 to 64 characters: letters, digits, and . _ - @ + between them."))


class PasswordUnfit(SiteError):
    """A password that cannot be used."""

    def __init__(self, least: int, most: int) -> None:
        """Say the rule."""
        super().__init__(words("A password has %(least)d to %(most)d characters.", least=least, most=most))


class PasswordWrong(SiteError):
    """The present password, asked for before a change, is another one."""

    def __init__(self) -> None:
        """Say that nothing was changed."""
        super().__init__(words("This is not your present password. Nothing was changed."))


class AddressUnfit(SiteError):
    """An e-mail address that no mail can be sent to."""

    def __init__(self, most: int) -> None:
        """Say the form."""
        super().__init__(
            words("Write an e-mail address such as name@example.org, with at most %(most)d characters.", most=most)
        )


class AddressTaken(SiteError):
    """Another account has this e-mail address; only whoever reads its mail is told."""

    def __init__(self) -> None:
        """Point to the other account."""
        super().__init__(words("This e-mail address belongs to another account by now. Sign in with that one."))


class LinkUnfit(SiteError):
    """A link out of a mail that was used, is too old, or was never made here."""

    def __init__(self) -> None:
        """Say how to get another one."""
        super().__init__(
            words("This link does not work any more: it was used before, or its time is over. Ask for a new one.")
        )


class WorkerUnknown(SiteError):
    """No such worker account."""

    def __init__(self) -> None:
        """Ask to sign in again."""
        super().__init__(words("This worker account does not exist (any more). Sign in again."))


class HitUnknown(SiteError):
    """No such HIT."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(words("This HIT does not exist."))


class HitNotAvailable(SiteError):
    """The HIT is full, expired, or gone."""

    def __init__(self) -> None:
        """Point to the list."""
        super().__init__(words("This HIT is no longer available: others took all its places, or its time is over."))


class HitNotShown(SiteError):
    """A HIT of a kind that this site has no safe place for."""

    def __init__(self) -> None:
        """Say so, and that it is not the worker's fault."""
        super().__init__(
            words(
                "This site cannot show HITs of this kind (HTML of the requester's): its operator has set up no "
                "separate address for them. It cannot be accepted here. Choose another one."
            )
        )


class ElementsMissing(SiteError):
    """A page of HTML that needs elements of Amazon's which are not there."""

    def __init__(self, names: Sequence[str]) -> None:
        """Name them, and say that it is not the worker's fault."""
        super().__init__(
            words(
                "This HIT's page needs %(names)s, which this site cannot show, so it could not be answered. "
                "It cannot be accepted here. Choose another one.",
                names=", ".join(names),
            )
        )
        self.names = tuple(names)


class HitGroupEmpty(SiteError):
    """No HIT of the group is left for this worker."""

    def __init__(self) -> None:
        """Point to the list."""
        super().__init__(words("There are no more HITs of this kind for you at the moment."))


class NotQualified(SiteError):
    """The worker lacks a qualification; `missing` are those that can be asked for."""

    def __init__(self, reasons: Sequence[str], missing: Sequence[MissingQualification] = ()) -> None:
        """List what is missing."""
        super().__init__(words("You do not qualify for this HIT: %(reasons)s.", reasons=joined(reasons)))
        self.reasons = tuple(reasons)
        self.missing = tuple(missing)


class AlreadyWorkedOn(SiteError):
    """The worker submitted an assignment of this HIT before."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(words("You have already submitted this HIT. Each HIT can be done once per worker."))


class AssignmentUnknown(SiteError):
    """No such assignment (for this worker)."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(words("This assignment does not exist. Nothing was stored."))


_ENDED: Final = {
    "Submitted": words("submitted"),
    "Approved": words("approved"),
    "Rejected": words("rejected"),
    "Returned": words("returned"),
    "Abandoned": words("abandoned"),
}


class AssignmentNotHeld(SiteError):
    """The assignment is submitted, returned or abandoned, so it cannot be returned."""

    def __init__(self, state: str) -> None:
        """Name the state."""
        super().__init__(
            words("You do not hold this assignment any more: it was %(state)s.", state=_ENDED.get(state, state.lower()))
        )
        self.state = state


class AssignmentReturned(SiteError):
    """A submission of an assignment that was given back."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(
            words("You returned this assignment, so it cannot be submitted. You can accept the HIT again.")
        )


class TooLate(SiteError):
    """A submission after the deadline."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(words("The time for this assignment is over, so it cannot be submitted any more."))


class AlreadySubmitted(SiteError):
    """A second submission of one assignment."""

    def __init__(self) -> None:
        """Say that the first one counts."""
        super().__init__(
            words("This assignment was already submitted. Your first submission is stored; nothing was changed.")
        )


class PreviewCannotBeSubmitted(SiteError):
    """A submission from a preview."""

    def __init__(self) -> None:
        """Point to Accept."""
        super().__init__(words("This was a preview. Accept the HIT first, then work on it and submit."))


class NothingSubmitted(SiteError):
    """A submission without any answer."""

    def __init__(self) -> None:
        """Say what is missing."""
        super().__init__(words("The submission carried no answer besides the assignment id. Nothing was stored."))


class AnswerTooLarge(SiteError):
    """A submission over the limit."""

    def __init__(self, size: int, limit: int) -> None:
        """Name both sizes."""
        super().__init__(
            words(
                "The answer is too large (%(size)d bytes, at most %(limit)d). Nothing was stored.",
                size=size,
                limit=limit,
            )
        )


class BlockedByRequester(SiteError):
    """The requester takes no work from this worker."""

    def __init__(self) -> None:
        """Say so, and that others do."""
        super().__init__(words("This requester does not take work from you. Other requesters' HITs are open to you."))


class QualificationUnknown(SiteError):
    """No such qualification type."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(words("This qualification does not exist (any more)."))


class QualificationNotRequestable(SiteError):
    """The qualification is inactive, or the system computes it."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(words("This qualification cannot be requested at the moment."))


class AlreadyQualified(SiteError):
    """The worker holds the qualification and there is nothing to retake."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(words("You have this qualification already."))


class AlreadyRequested(SiteError):
    """A request waits for its requester."""

    def __init__(self) -> None:
        """Say who is to act."""
        super().__init__(words("You have requested this qualification already. The requester has yet to decide."))


class RetryTooSoon(SiteError):
    """The delay before another request is not over."""

    def __init__(self, retry_at: datetime) -> None:
        """Name the time."""
        super().__init__(
            words(
                "You can request this qualification again from %(moment)s UTC on.",
                moment=_minute(retry_at),
            )
        )
        self.retry_at = retry_at


class NoRetry(SiteError):
    """The qualification can be requested once only."""

    def __init__(self) -> None:
        """Say the rule."""
        super().__init__(words("You have requested this qualification before, and it can be requested only once."))


class QualificationRequestUnknown(SiteError):
    """No such request of this worker."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__(words("This qualification request does not exist. Nothing was stored."))


class TestOver(SiteError):
    """A test that is handed in after its time, or twice."""

    __test__ = False

    def __init__(self, state: str) -> None:
        """Say which of the two."""
        super().__init__(
            words("The time for this test is over, so it cannot be handed in any more.")
            if state == "Lapsed"
            else words("This test was already handed in. Your first answers are stored; nothing was changed.")
        )
        self.state = state


class FormIncomplete(SiteError):
    """A form with answers that do not fit; `problems` has a sentence for each field."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        """Count what is to be put right."""
        super().__init__(
            counted(
                "One answer needs your attention. Nothing was handed in yet.",
                "%(count)d answers need your attention. Nothing was handed in yet.",
                len(problems),
            )
        )
        self.problems = dict(problems)


class FormExpected(SiteError):
    """A submission by externalSubmit of a HIT that is answered on the site itself."""

    def __init__(self) -> None:
        """Point to the page."""
        super().__init__(words("This HIT is answered on its page on this site. Nothing was stored."))


class MessageUnfit(SiteError):
    """A message without words, or with too many."""

    def __init__(self, length: int, most: int) -> None:
        """Say the rule."""
        super().__init__(
            words(
                "A message has at most %(most)d characters, and this one has %(length)d. It was not sent.",
                most=most,
                length=length,
            )
            if length
            else words("Write what you want to say. Nothing was sent.")
        )


class ReportUnfit(SiteError):
    """A report without a reason of the list, or without the words that the reason needs."""


class WroteTooOften(SiteError):
    """More messages or reports in a day than one person may send."""

    def __init__(self, sent: Words, again_at: datetime) -> None:
        """Name the limit and the time."""
        super().__init__(
            words(
                "%(sent)s That is as many as can be sent within 24 hours. Nothing was sent now. "
                "You can send another one from %(moment)s UTC on.",
                sent=sent,
                moment=_minute(again_at),
            )
        )
        self.again_at = again_at


class MailsAskedTooOften(SiteError):
    """More mails with a link in a day than one account may ask for, or one address gets."""

    def __init__(self, most: int, again_at: datetime) -> None:
        """Name the limit and the time."""
        super().__init__(
            words(
                "%(most)d mails with a link were asked for within 24 hours, and no more are sent. Look among the "
                "unwanted mail too. Another one can be asked for from %(moment)s UTC on.",
                most=most,
                moment=_minute(again_at),
            )
        )
        self.again_at = again_at


class AlreadyReported(SiteError):
    """A second report of a HIT while the first one is open."""

    def __init__(self) -> None:
        """Say who is to act."""
        super().__init__(words("You have reported this HIT already. The operator of this site has yet to look at it."))


class AccountDisabled(SiteError):
    """An account that the operator has closed to its owner."""

    def __init__(self) -> None:
        """Say who did it."""
        super().__init__(
            words(
                "This account has been disabled by the operator of this marketplace. Write to them if you think that "
                "it is a mistake. What you have earned is not lost."
            )
        )


class DisputeNotPossible(SiteError):
    """Work that is not rejected, or was too long ago."""


class AlreadyDisputed(SiteError):
    """A second dispute of one assignment."""

    def __init__(self) -> None:
        """Say that the first one counts."""
        super().__init__(words("You have disputed this rejection already. Nothing was changed."))


class DisputeUnfit(SiteError):
    """A dispute without words, or with too many."""

    def __init__(self, most: int) -> None:
        """Say the rule."""
        super().__init__(
            words("Say what is wrong with the rejection, in 1 to %(most)d characters. Nothing was sent yet.", most=most)
        )


class PayoutDetailsUnfit(SiteError):
    """Words on how to be paid that are too long."""

    def __init__(self, most: int) -> None:
        """Say the rule."""
        super().__init__(
            words("Say how you are to be paid in at most %(most)d characters. Nothing was stored.", most=most)
        )
