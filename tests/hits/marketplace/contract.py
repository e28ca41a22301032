"""What each operation of the API documents: the codes of its errors, from the reference and our own choices."""

from __future__ import annotations

from typing import Final

#: The service model's own checks (patterns, lengths, enums), before anything else; every operation with parameters.
MODEL: Final = "ValidationException"
#: A JSON value of another type than the model's; no client sends one.
TYPES: Final = "SerializationException"
#: A parameter whose meaning is wrong: an unknown worker, unfit XML, a page's token that was made up.
MEANING: Final = "ParameterValidationError"
RANGE: Final = "AWS.ParameterOutOfRange"
MISSING: Final = "AWS.MissingParameters"

_PRICED: Final = {MEANING, RANGE, "InvalidParameterValue", "QualificationTypeDoesNotExist"}
_NEW_HIT: Final = {MEANING, MISSING, RANGE, "HitAlreadyExists", "InsufficientFunds", "InvalidParameterValue"}

#: TurkErrorCodes (without AWS.MechanicalTurk.) of RequestErrors, or the type of an error that carries none in boto3.
#: HITTooOldForExtension is left out: no HIT here is from before 22 July 2015.
DOCUMENTED: Final[dict[str, set[str]]] = {
    "AcceptQualificationRequest": {"QualificationRequestDoesNotExist", "InvalidQualificationRequestState"},
    "ApproveAssignment": {
        RANGE,
        "AssignmentDoesNotExist",
        "InvalidAssignmentState",
        "InsufficientFunds",
        "InvalidParameterValue",
    },
    "AssociateQualificationWithWorker": {MEANING, "QualificationTypeDoesNotExist"},
    "CreateAdditionalAssignmentsForHIT": {
        RANGE,
        "HITDoesNotExist",
        "InvalidHITState",
        "InvalidMaximumAssignmentsIncrease",
        "InsufficientFunds",
        "DuplicateRequest",
        "InvalidParameterValue",
    },
    "CreateHIT": _NEW_HIT | {"QualificationTypeDoesNotExist", "InvalidQualificationTypeState"},
    "CreateHITType": _PRICED | {"InvalidQualificationTypeState"},
    "CreateHITWithHITType": _NEW_HIT | {"HITTypeDoesNotExist", "InvalidQualificationTypeState"},
    "CreateQualificationType": {MEANING, RANGE, "QualificationTypeAlreadyExists", "InvalidParameterValue"},
    "CreateWorkerBlock": {MEANING, RANGE, "InvalidParameterValue"},
    "DeleteHIT": {"HITDoesNotExist", "InvalidHITState"},
    "DeleteQualificationType": {"QualificationTypeDoesNotExist"},
    "DeleteWorkerBlock": {MEANING, RANGE, "InvalidParameterValue"},
    "DisassociateQualificationFromWorker": {
        RANGE,
        "QualificationTypeDoesNotExist",
        "QualificationDoesNotExist",
        "InvalidParameterValue",
    },
    "GetAccountBalance": set(),
    "GetAssignment": {"AssignmentDoesNotExist", "InvalidAssignmentState"},
    "GetFileUploadURL": {"AssignmentDoesNotExist", "OperationNotSupported"},
    "GetHIT": {"HITDoesNotExist"},
    "GetQualificationScore": {
        "QualificationTypeDoesNotExist",
        "QualificationDoesNotExist",
        "InvalidQualificationState",
    },
    "GetQualificationType": {"QualificationTypeDoesNotExist"},
    "ListAssignmentsForHIT": {MEANING, "HITDoesNotExist", "InvalidHITState"},
    "ListBonusPayments": {MEANING, MISSING, "HITDoesNotExist", "AssignmentDoesNotExist"},
    "ListHITs": {MEANING},
    "ListHITsForQualificationType": {MEANING, "QualificationTypeDoesNotExist"},
    "ListQualificationRequests": {MEANING, "QualificationTypeDoesNotExist"},
    "ListQualificationTypes": {MEANING, RANGE, "InvalidParameterValue"},
    "ListReviewPolicyResultsForHIT": {MEANING, "HITDoesNotExist"},
    "ListReviewableHITs": {MEANING, "HITTypeDoesNotExist"},
    "ListWorkerBlocks": {MEANING},
    "ListWorkersWithQualificationType": {MEANING, "QualificationTypeDoesNotExist"},
    "NotifyWorkers": {RANGE, "InvalidParameterValue"},
    "RejectAssignment": {RANGE, "AssignmentDoesNotExist", "InvalidAssignmentState", "InvalidParameterValue"},
    "RejectQualificationRequest": {
        RANGE,
        "QualificationRequestDoesNotExist",
        "InvalidQualificationRequestState",
        "InvalidParameterValue",
    },
    "SendBonus": {
        MEANING,
        RANGE,
        "AssignmentDoesNotExist",
        "InsufficientFunds",
        "DuplicateRequest",
        "InvalidParameterValue",
    },
    "SendTestEventNotification": {MEANING, "InvalidTransportEndpoint"},
    "UpdateExpirationForHIT": {RANGE, "HITDoesNotExist", "InvalidHITState", "InsufficientFunds", "DuplicateRequest"},
    "UpdateHITReviewStatus": {"HITDoesNotExist", "InvalidHITState"},
    "UpdateHITTypeOfHIT": {"HITDoesNotExist", "HITTypeDoesNotExist", "InvalidHITState"},
    "UpdateNotificationSettings": {MEANING, MISSING, "HITTypeDoesNotExist", "InvalidTransportEndpoint"},
    "UpdateQualificationType": {MEANING, RANGE, "QualificationTypeDoesNotExist", "InvalidParameterValue"},
}


def label(error_type: str, turk_code: str | None) -> str:
    """Return an error as the table above names it."""
    if error_type != "RequestError":
        return error_type
    return str(turk_code).removeprefix("AWS.MechanicalTurk.")
