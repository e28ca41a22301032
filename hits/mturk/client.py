"""The Requester API as one class: our words in, frozen values out, every list over all its pages, errors translated."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from hits.money import usd, wire
from hits.mturk.errors import (
    AssignmentMissing,
    DuplicateRequest,
    HitAlreadyExists,
    HitMissing,
    InsufficientFunds,
    InvalidAssignmentState,
    InvalidHitState,
    MTurkError,
    MTurkRefused,
    MTurkUnavailable,
    QualificationTypeExists,
)

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

#: Errors that say "not now" rather than "no". boto3 has retried them already when they come out here.
_LATER = frozenset(
    {
        "ServiceFault",
        "ThrottlingException",
        "Throttling",
        "RequestThrottled",
        "TooManyRequestsException",
        "ServiceUnavailable",
        "InternalFailure",
        "InternalServerError",
    }
)
#: Every message of the marketplace ends with the time in milliseconds, which tells people nothing.
_STAMP = re.compile(r"\s*\(\d{10,}(?: s)?\)\s*$")
_QUOTED_ID = re.compile(r'"([A-Z0-9]+)"')
_STATUS = re.compile(r"status of: ([A-Za-z]+)")
_LONG_PAST = datetime(2015, 1, 1, tzinfo=UTC)
_YEAR_SECONDS = 365 * 24 * 3600
_PAGE: Any = {"PageSize": 100}

_COMPARED: Mapping[str, str] = {
    "Exists": "held",
    "DoesNotExist": "not held",
    "LessThan": "<",
    "LessThanOrEqualTo": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqualTo": ">=",
    "EqualTo": "=",
    "NotEqualTo": "!=",
    "In": "in",
    "NotIn": "not in",
}

_REFUSALS: Mapping[str, type[MTurkRefused]] = {
    "InsufficientFunds": InsufficientFunds,
    "InvalidHITState": InvalidHitState,
    "AssignmentDoesNotExist": AssignmentMissing,
    "HITDoesNotExist": HitMissing,
    "DuplicateRequest": DuplicateRequest,
    "QualificationTypeAlreadyExists": QualificationTypeExists,
}


@dataclass(frozen=True)
class Requirement:
    """Who may see and take a HIT: holders of a qualification, with at least ``minimum`` if that is given.

    A ``comparator`` of the Requester API with its whole numbers in ``values``, or its places in ``locales`` ("US",
    "US-NY"), asks for something else. qualification.requirements says what fits together.
    """

    qualification_type_id: str
    minimum: int | None = None
    actions_guarded: str = "DiscoverPreviewAndAccept"
    comparator: str = ""
    values: tuple[int, ...] = ()
    locales: tuple[str, ...] = ()
    #: Of the qualification type, where it is known; for people, the marketplace has the id.
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        comparator, values = self.compared
        return _told(self.qualification_type_id, comparator, values, self.locales, self.actions_guarded)

    @property
    def compared(self) -> tuple[str, tuple[int, ...]]:
        """The comparator and the whole numbers that the marketplace is told."""
        if self.comparator:
            return self.comparator, self.values
        return ("Exists", ()) if self.minimum is None else ("GreaterThanOrEqualTo", (self.minimum,))


@dataclass(frozen=True)
class HitSeen:
    """A HIT as the marketplace shows it."""

    hit_id: str
    hit_type_id: str
    status: str
    annotation: str
    max_assignments: int
    available: int
    pending: int
    completed: int
    expires_at: datetime
    requirements: frozenset[str]


@dataclass(frozen=True)
class AssignmentSeen:
    """A submitted assignment as the marketplace shows it; the worker id stays out of its repr."""

    assignment_id: str
    worker_id: str
    hit_id: str
    status: str
    accept_time: datetime | None
    submit_time: datetime | None
    auto_approval_time: datetime | None
    approval_time: datetime | None
    rejection_time: datetime | None

    def __repr__(self) -> str:
        return f"<AssignmentSeen {self.assignment_id} {self.status}>"


@dataclass(frozen=True)
class BonusSeen:
    """A bonus that was paid, as the marketplace shows it; the worker id stays out of its repr."""

    worker_id: str
    assignment_id: str
    amount: Decimal
    reason: str
    granted_at: datetime

    def __repr__(self) -> str:
        return f"<BonusSeen {self.assignment_id} {self.amount}>"


@dataclass(frozen=True)
class Grant:
    """A qualification that a worker holds; the worker id stays out of its repr."""

    worker_id: str
    value: int
    granted_at: datetime

    def __repr__(self) -> str:
        return f"<Grant {self.value}>"


@dataclass(frozen=True)
class Funds:
    """The account's money. ``on_hold`` is None on a marketplace that does not tell it, as the original does not."""

    available: Decimal
    on_hold: Decimal | None


class MTurk:
    """One requester account on one marketplace. Safe to share between threads."""

    def __init__(
        self, endpoint: str, access_key_id: str, secret: str, *, region: str = "us-east-1", attempts: int = 4
    ) -> None:
        self.endpoint = endpoint
        session = boto3.session.Session()
        self._client: MTurkClient = session.client(
            "mturk",
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id=access_key_id,
            aws_secret_access_key=secret,
            config=Config(
                connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": attempts}
            ),
        )
        self._client.meta.events.register("before-parse.mturk", self._require_object)

    def balance(self) -> Decimal:
        """Return what the account can still spend."""
        return self.funds().available

    def funds(self) -> Funds:
        """Return the account's money, with what is held for open HITs if the marketplace tells it."""
        with self._translated("GetAccountBalance"):
            answer = self._client.get_account_balance()
            held = answer.get("OnHoldBalance")
            return Funds(usd(answer["AvailableBalance"]), None if held is None else usd(held))

    def create_hit_type(
        self,
        *,
        title: str,
        description: str,
        keywords: str,
        reward: Decimal,
        assignment_seconds: int,
        auto_approval_seconds: int,
        requirements: Sequence[Requirement] = (),
    ) -> str:
        """Return the id of the HIT type with these properties; equal properties give the same type again."""
        with self._translated("CreateHITType"):
            return self._client.create_hit_type(
                Title=title,
                Description=description,
                Keywords=keywords,
                Reward=wire(reward),
                AssignmentDurationInSeconds=assignment_seconds,
                AutoApprovalDelayInSeconds=auto_approval_seconds,
                QualificationRequirements=[_requirement(item) for item in requirements],
            )["HITTypeId"]

    def create_hit(
        self,
        hit_type_id: str,
        *,
        question_xml: str,
        max_assignments: int,
        lifetime_seconds: int,
        annotation: str,
        request_token: str,
    ) -> HitSeen:
        """Create a HIT. Raises HitAlreadyExists with its id when the token was used in the last 24 hours."""
        with self._translated("CreateHITWithHITType"):
            created = self._client.create_hit_with_hit_type(
                HITTypeId=hit_type_id,
                MaxAssignments=max_assignments,
                LifetimeInSeconds=lifetime_seconds,
                Question=question_xml,
                RequesterAnnotation=annotation,
                UniqueRequestToken=request_token,
            )
            return _hit(created["HIT"])

    def hit(self, hit_id: str) -> HitSeen:
        """Return one HIT. Raises HitMissing."""
        with self._translated("GetHIT"):
            return _hit(self._client.get_hit(HITId=hit_id)["HIT"])

    def hits(self) -> Iterator[HitSeen]:
        """Yield every HIT of the account that is not disposed of, over all pages."""
        pages = self._client.get_paginator("list_hits").paginate(PaginationConfig=_PAGE)
        with self._translated("ListHITs"):
            for page in pages:
                yield from (_hit(item) for item in page["HITs"])

    def find_hits_by_annotation(self, prefix: str) -> dict[str, HitSeen]:
        """Return the account's HITs whose RequesterAnnotation begins with ``prefix``, by annotation."""
        return {seen.annotation: seen for seen in self.hits() if seen.annotation.startswith(prefix)}

    def assignments(self, hit_id: str) -> Iterator[AssignmentSeen]:
        """Yield the HIT's submitted, approved and rejected assignments over all pages. Raises HitMissing."""
        pages = self._client.get_paginator("list_assignments_for_hit").paginate(HITId=hit_id, PaginationConfig=_PAGE)
        with self._translated("ListAssignmentsForHIT"):
            for page in pages:
                yield from (_assignment(item) for item in page["Assignments"])

    def assignment(self, assignment_id: str) -> AssignmentSeen:
        """Return one submitted assignment. Raises AssignmentMissing or InvalidAssignmentState before submission."""
        with self._translated("GetAssignment"):
            return _assignment(self._client.get_assignment(AssignmentId=assignment_id)["Assignment"])

    def approve(self, assignment_id: str, feedback: str = "", *, override: bool = False) -> None:
        """Approve and pay. Raises InvalidAssignmentState when it is not waiting for review.

        With ``override`` a rejected one as well, within 30 days of its submission.
        """
        extra: dict[str, Any] = {"RequesterFeedback": feedback} if feedback else {}
        if override:
            extra["OverrideRejection"] = True
        with self._translated("ApproveAssignment"):
            self._client.approve_assignment(AssignmentId=assignment_id, **extra)

    def reject(self, assignment_id: str, feedback: str) -> None:
        """Reject without pay; ``feedback`` is shown to the worker. Raises InvalidAssignmentState."""
        with self._translated("RejectAssignment"):
            self._client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback=feedback)

    def expire(self, hit_id: str) -> None:
        """Take the HIT off the site now; expiring it twice is the same as once. Raises HitMissing.

        The marketplace refuses the same moment for the same HIT within 24 hours, also when the HIT was extended in
        between, so that every call names another moment long past.
        """
        long_past = _LONG_PAST + timedelta(seconds=secrets.randbelow(_YEAR_SECONDS))
        with self._translated("UpdateExpirationForHIT"):
            self._client.update_expiration_for_hit(HITId=hit_id, ExpireAt=long_past)

    def delete(self, hit_id: str) -> None:
        """Dispose of a HIT whose work is all reviewed. Raises InvalidHitState, HitMissing."""
        with self._translated("DeleteHIT"):
            self._client.delete_hit(HITId=hit_id)

    def send_bonus(
        self, *, worker_id: str, assignment_id: str, amount: Decimal, reason: str, request_token: str
    ) -> None:
        """Pay a bonus at once. Raises DuplicateRequest when the token was used in the last 24 hours."""
        with self._translated("SendBonus"):
            self._client.send_bonus(
                WorkerId=worker_id,
                BonusAmount=wire(amount),
                AssignmentId=assignment_id,
                Reason=reason,
                UniqueRequestToken=request_token,
            )

    def bonus_payments(self, *, assignment_id: str | None = None, hit_id: str | None = None) -> Iterator[BonusSeen]:
        """Yield the bonuses paid for an assignment, or for all of a HIT, over all pages."""
        if (assignment_id is None) == (hit_id is None):
            raise TypeError("bonus_payments needs either an assignment_id or a hit_id.")
        wanted: dict[str, Any] = {"AssignmentId": assignment_id} if assignment_id else {"HITId": hit_id}
        pages = self._client.get_paginator("list_bonus_payments").paginate(**wanted, PaginationConfig=_PAGE)
        with self._translated("ListBonusPayments"):
            for page in pages:
                for item in page["BonusPayments"]:
                    yield BonusSeen(
                        worker_id=item["WorkerId"],
                        assignment_id=item["AssignmentId"],
                        amount=usd(item["BonusAmount"]),
                        reason=item.get("Reason", ""),
                        granted_at=_utc(item["GrantTime"]),
                    )

    def find_or_create_qualification(self, name: str, description: str) -> str:
        """Return the id of the account's qualification type of exactly this name, created if there is none.

        A new one is active and without a test, so that workers get it by being granted it.
        """
        found = self._qualification_named(name)
        if found:
            return found
        try:
            with self._translated("CreateQualificationType"):
                return self._client.create_qualification_type(
                    Name=name, Description=description, QualificationTypeStatus="Active"
                )["QualificationType"]["QualificationTypeId"]
        except QualificationTypeExists:
            # Created by somebody else since we looked.
            found = self._qualification_named(name)
            if not found:
                raise
            return found

    def grant(self, qualification_type_id: str, worker_id: str, value: int = 1, *, notify: bool = False) -> None:
        """Give the worker the qualification with this value; a second grant overwrites the first."""
        with self._translated("AssociateQualificationWithWorker"):
            self._client.associate_qualification_with_worker(
                QualificationTypeId=qualification_type_id,
                WorkerId=worker_id,
                IntegerValue=value,
                SendNotification=notify,
            )

    def revoke(self, qualification_type_id: str, worker_id: str, reason: str = "") -> None:
        """Take the qualification away from the worker. Raises MTurkRefused when it is not held."""
        extra: dict[str, Any] = {"Reason": reason} if reason else {}
        with self._translated("DisassociateQualificationFromWorker"):
            self._client.disassociate_qualification_from_worker(
                QualificationTypeId=qualification_type_id, WorkerId=worker_id, **extra
            )

    def holders(self, qualification_type_id: str) -> Iterator[Grant]:
        """Yield those who hold the qualification, over all pages."""
        pages = self._client.get_paginator("list_workers_with_qualification_type").paginate(
            QualificationTypeId=qualification_type_id, Status="Granted", PaginationConfig=_PAGE
        )
        with self._translated("ListWorkersWithQualificationType"):
            for page in pages:
                for item in page["Qualifications"]:
                    yield Grant(item["WorkerId"], int(item.get("IntegerValue", 1)), _utc(item["GrantTime"]))

    def find_qualification(self, name: str) -> str | None:
        """Return the id of the account's qualification type of exactly this name, None when there is none."""
        return self._qualification_named(name)

    def qualification_is_active(self, qualification_type_id: str) -> bool:
        """Tell whether HITs can ask for this qualification type. Raises MTurkRefused when there is none."""
        with self._translated("GetQualificationType"):
            found = self._client.get_qualification_type(QualificationTypeId=qualification_type_id)
            return found["QualificationType"].get("QualificationTypeStatus") == "Active"

    def notify(self, worker_ids: Sequence[str], subject: str, message: str) -> list[str]:
        """Write to up to 100 workers and return the marketplace's code for each that it did not write to.

        SoftFailure may work later, HardFailure never will; its messages name workers, so that they are left out.
        """
        with self._translated("NotifyWorkers"):
            answer = self._client.notify_workers(Subject=subject, MessageText=message, WorkerIds=list(worker_ids))
            failures = answer.get("NotifyWorkersFailureStatuses", [])
            return [str(failure.get("NotifyWorkersFailureCode", "")) for failure in failures]

    def put_quiz(
        self, qualification_type_id: str, *, form_xml: str, key_xml: str, seconds: int, retry_seconds: int
    ) -> None:
        """Put the marketplace's own quiz on a qualification type: it shows the form, scores with the key, and grants.

        Workers may take it again ``retry_seconds`` after they asked for it. A quiz can be replaced, never removed.
        """
        with self._translated("UpdateQualificationType"):
            self._client.update_qualification_type(
                QualificationTypeId=qualification_type_id,
                Test=form_xml,
                AnswerKey=key_xml,
                TestDurationInSeconds=seconds,
                RetryDelayInSeconds=retry_seconds,
            )

    def quiz(self, qualification_type_id: str) -> tuple[str, str]:
        """Return form and key as the marketplace has them, empty where it has none."""
        with self._translated("GetQualificationType"):
            found = self._client.get_qualification_type(QualificationTypeId=qualification_type_id)["QualificationType"]
            return found.get("Test", ""), found.get("AnswerKey", "")

    def _qualification_named(self, name: str) -> str | None:
        pages = self._client.get_paginator("list_qualification_types").paginate(
            Query=name, MustBeRequestable=False, MustBeOwnedByCaller=True, PaginationConfig=_PAGE
        )
        with self._translated("ListQualificationTypes"):
            for page in pages:
                for item in page["QualificationTypes"]:
                    # Query finds substrings as well.
                    if item["Name"] == name:
                        return str(item["QualificationTypeId"])
        return None

    def _require_object(self, *, operation_model: Any, response_dict: Mapping[str, Any], **_: object) -> None:
        """Raise for an answer that something else gave, such as a network's sign-in page.

        botocore would take it for an empty success, and a bonus for paid.
        """
        body, status = response_dict["body"], response_dict["status_code"]
        try:
            content = json.loads(body.decode()) if body else {}
        except UnicodeDecodeError:
            content = None
        except ValueError:
            # A refusal may be in any form: the status tells.
            content = None if status < 300 else {}
        if not isinstance(content, dict):
            cause = f"what came with status {status} is no answer of the Requester API"
            raise MTurkUnavailable(operation_model.name, self.endpoint, cause)

    @contextmanager
    def _translated(self, operation: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise _translation(error, operation, self.endpoint) from error
        except BotoCoreError as error:
            raise MTurkUnavailable(operation, self.endpoint, str(error).rstrip(".")) from error
        except KeyError as error:
            raise MTurkUnavailable(operation, self.endpoint, f"what came is without {error}") from error


def _translation(error: ClientError, operation: str, endpoint: str) -> MTurkError:
    response: Mapping[str, Any] = error.response
    kind = str(response.get("Error", {}).get("Code", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    told = str(response.get("Message") or response.get("Error", {}).get("Message") or error)
    message = _STAMP.sub("", told)
    if kind in _LATER or status >= 500 or status == 429:
        return MTurkUnavailable(operation, endpoint, f"{kind} {message}".strip().rstrip("."))
    code = str(response.get("TurkErrorCode") or kind)
    name = code.removeprefix("AWS.MechanicalTurk.")
    if name == "HitAlreadyExists":
        found = _QUOTED_ID.search(message)
        if found:
            return HitAlreadyExists(operation, code, message, found.group(1))
    if name == "InvalidAssignmentState":
        state = _STATUS.search(message)
        return InvalidAssignmentState(operation, code, message, state.group(1) if state else "")
    if "idempotency token" in message and "already been processed" in message:
        return DuplicateRequest(operation, code, message)
    return _REFUSALS.get(name, MTurkRefused)(operation, code, message)


def _requirement(item: Requirement) -> Any:
    comparator, values = item.compared
    wanted: dict[str, Any] = {
        "QualificationTypeId": item.qualification_type_id,
        "Comparator": comparator,
        "ActionsGuarded": item.actions_guarded,
    }
    if values:
        wanted["IntegerValues"] = list(values)
    if item.locales:
        places = (locale.partition("-") for locale in item.locales)
        wanted["LocaleValues"] = [
            {"Country": country, "Subdivision": part} if part else {"Country": country} for country, _, part in places
        ]
    return wanted


def _requirement_seen(item: Mapping[str, Any]) -> str:
    places = [
        "-".join(filter(None, (place.get("Country"), place.get("Subdivision"))))
        for place in item.get("LocaleValues") or ()
    ]
    guarded = item.get("ActionsGuarded") or ("PreviewAndAccept" if item.get("RequiredToPreview") else "Accept")
    return _told(
        str(item.get("QualificationTypeId")),
        str(item.get("Comparator")),
        item.get("IntegerValues") or (),
        places,
        guarded,
    )


def _told(type_id: str, comparator: str, values: Iterable[int], locales: Iterable[str], guarded: str) -> str:
    """Return a requirement in the one form in which equal ones are equal, whatever the order of their values."""
    compared = ", ".join([*(str(value) for value in sorted(set(values))), *sorted(set(locales))])
    return f"{type_id} {_COMPARED.get(comparator, comparator)} {compared}".rstrip() + f", {guarded}"


def _hit(item: Mapping[str, Any]) -> HitSeen:
    return HitSeen(
        hit_id=item["HITId"],
        hit_type_id=item.get("HITTypeId", ""),
        status=item.get("HITStatus", ""),
        annotation=item.get("RequesterAnnotation", ""),
        max_assignments=int(item.get("MaxAssignments", 1)),
        available=int(item.get("NumberOfAssignmentsAvailable", 0)),
        pending=int(item.get("NumberOfAssignmentsPending", 0)),
        completed=int(item.get("NumberOfAssignmentsCompleted", 0)),
        expires_at=_utc(item["Expiration"]),
        requirements=frozenset(_requirement_seen(one) for one in item.get("QualificationRequirements", ())),
    )


def _assignment(item: Mapping[str, Any]) -> AssignmentSeen:
    return AssignmentSeen(
        assignment_id=item["AssignmentId"],
        worker_id=item["WorkerId"],
        hit_id=item["HITId"],
        status=item["AssignmentStatus"],
        accept_time=_moment(item, "AcceptTime"),
        submit_time=_moment(item, "SubmitTime"),
        auto_approval_time=_moment(item, "AutoApprovalTime"),
        approval_time=_moment(item, "ApprovalTime"),
        rejection_time=_moment(item, "RejectionTime"),
    )


def _moment(item: Mapping[str, Any], name: str) -> datetime | None:
    value = item.get(name)
    return None if value is None else _utc(value)


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC)
