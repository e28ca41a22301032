"""Every operation through boto3: it succeeds, it gives each error that it documents, its lists go over three pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from hits.marketplace import blocks, errors
from hits.marketplace.errors import TurkCode
from hits.marketplace.model_check import service_model
from hits.marketplace.operations import OPERATIONS
from tests.hits.marketplace.contract import DOCUMENTED, MEANING, MISSING, MODEL, RANGE, label
from tests.hits.marketplace.forms_for_tests import KEY, TEST
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question
from tests.hits.marketplace.test_review_policies import policy

HIT: dict[str, Any] = {**HIT_PROPERTIES, "LifetimeInSeconds": 3600, "Question": external_question()}
NONE = "3NOSUCHTHING"
NOBODY = "A0NOBODY"
LATER = datetime(2026, 12, 1, tzinfo=UTC)
SPEC = {
    "Destination": "lab@example.org",
    "Transport": "Email",
    "Version": "2014-08-15",
    "EventTypes": ["AssignmentSubmitted"],
}
NOWHERE = {**SPEC, "Destination": "nowhere"}
NO_EVENTS = {**SPEC, "EventTypes": []}
FORGED = {"NextToken": "made-up"}
CONTROL = "a\x01b"


class Scene:
    """A market with something in every state, made when it is asked for."""

    def __init__(self, market: Market) -> None:
        self.market = market
        self.client: Any = market.client

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        return dict(getattr(self.client, xform_name(operation))(**params))

    def hit(self, **params: Any) -> str:
        return self.market.create_hit(**params)

    def type_of(self, hit_id: str) -> str:
        return str(self.market.hit(hit_id)["HITTypeId"])

    def worker(self) -> str:
        return self.market.worker()

    def accepted(self) -> str:
        return self.market.accepted(self.hit())

    def submitted(self, **params: Any) -> str:
        return self.market.submitted(self.hit(**params))

    def approved(self) -> str:
        assignment_id = self.submitted()
        self.client.approve_assignment(AssignmentId=assignment_id)
        return assignment_id

    def rejected(self) -> str:
        assignment_id = self.submitted()
        self.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")
        return assignment_id

    def done(self, *, dispose: bool = False) -> str:
        """A HIT that is reviewable with all its work reviewed, or one that is disposed."""
        hit_id = self.client.get_assignment(AssignmentId=self.approved())["HIT"]["HITId"]
        if dispose:
            self.client.delete_hit(HITId=hit_id)
        return str(hit_id)

    def kind(self, name: str = "kind", **params: Any) -> str:
        asked = {"Name": name, "Description": "d", "QualificationTypeStatus": "Active", **params}
        return str(self.client.create_qualification_type(**asked)["QualificationType"]["QualificationTypeId"])

    def holder(self, kind: str, *, revoked: bool = False) -> str:
        worker_id = self.worker()
        self.client.associate_qualification_with_worker(QualificationTypeId=kind, WorkerId=worker_id)
        if revoked:
            self.client.disassociate_qualification_from_worker(QualificationTypeId=kind, WorkerId=worker_id)
        return worker_id

    def request(self, *, decided: bool = False) -> str:
        request_id = self.market.engine.request_qualification(self.worker(), self.kind(f"asked {decided}")).request_id
        if decided:
            self.client.accept_qualification_request(QualificationRequestId=request_id)
        return request_id

    def poor(self) -> None:
        """Spend what there is on a bonus, to the last cent that fees allow."""
        assignment_id = self.submitted(Reward="0.00")
        available = Decimal(self.client.get_account_balance()["AvailableBalance"])
        self.bonus(assignment_id, BonusAmount=f"{(available / Decimal('1.2')).quantize(Decimal('0.01')) - 1}")

    def bonus(self, assignment_id: str, **params: Any) -> None:
        given = {"WorkerId": self.market.worker_of(assignment_id), "BonusAmount": "0.10", "Reason": "r", **params}
        self.client.send_bonus(AssignmentId=assignment_id, **given)


Params = dict[str, Any]
Make = Callable[[Scene], Params]


def inactive(scene: Scene) -> list[Params]:
    kind = scene.kind()
    scene.client.update_qualification_type(QualificationTypeId=kind, QualificationTypeStatus="Inactive")
    return needs(kind)


def needs(kind: str = NONE, comparator: str = "Exists", **values: Any) -> list[Params]:
    return [{"QualificationTypeId": kind, "Comparator": comparator, **values}]


def unaffordable(scene: Scene, params: Params) -> Params:
    scene.poor()
    return params


def used(scene: Scene, operation: str, params: Params) -> Params:
    """Parameters with a token that was used before."""
    scene.call(operation, **params)
    return params


def of_type(scene: Scene, **params: Any) -> Params:
    return {
        "HITTypeId": scene.type_of(scene.hit()),
        "LifetimeInSeconds": 3600,
        "Question": external_question(),
        **params,
    }


def overridden_without_money(scene: Scene) -> Params:
    assignment_id = scene.submitted(Reward="20.00")
    scene.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")
    return unaffordable(scene, {"AssignmentId": assignment_id, "OverrideRejection": True})


def prolonged_without_money(scene: Scene) -> Params:
    hit_id = scene.hit(Reward="20.00")
    scene.client.update_expiration_for_hit(HITId=hit_id, ExpireAt=datetime(2020, 1, 1, tzinfo=UTC))
    return unaffordable(scene, {"HITId": hit_id, "ExpireAt": LATER})


def one_block_too_many(scene: Scene) -> Params:
    # The limit of 100,000 is the same code with another number.
    scene.market.monkeypatch.setattr(blocks, "MOST_BLOCKS", 0)  # type: ignore[attr-defined]
    return {"WorkerId": scene.worker(), "Reason": "r"}


def bonus(scene: Scene, **params: Any) -> Params:
    assignment_id = scene.submitted()
    return {
        "AssignmentId": assignment_id,
        "WorkerId": scene.market.worker_of(assignment_id),
        "BonusAmount": "0.10",
        "Reason": "r",
        **params,
    }


#: For each operation parameters with which it succeeds.
SUCCESS: dict[str, Make] = {
    "AcceptQualificationRequest": lambda s: {"QualificationRequestId": s.request(), "IntegerValue": 3},
    "ApproveAssignment": lambda s: {"AssignmentId": s.submitted(), "RequesterFeedback": "Good"},
    "AssociateQualificationWithWorker": lambda s: {"QualificationTypeId": s.kind(), "WorkerId": s.worker()},
    "CreateAdditionalAssignmentsForHIT": lambda s: {"HITId": s.hit(), "NumberOfAdditionalAssignments": 2},
    "CreateHIT": lambda s: HIT,
    "CreateHITType": lambda s: HIT_PROPERTIES,
    "CreateHITWithHITType": of_type,
    "CreateQualificationType": lambda s: {"Name": "n", "Description": "d", "QualificationTypeStatus": "Active"},
    "CreateWorkerBlock": lambda s: {"WorkerId": s.worker(), "Reason": "r"},
    "DeleteHIT": lambda s: {"HITId": s.done()},
    "DeleteQualificationType": lambda s: {"QualificationTypeId": s.kind()},
    "DeleteWorkerBlock": lambda s: {"WorkerId": s.worker()},
    "DisassociateQualificationFromWorker": lambda s: {
        "QualificationTypeId": (kind := s.kind()),
        "WorkerId": s.holder(kind),
    },
    "GetAccountBalance": lambda s: {},
    "GetAssignment": lambda s: {"AssignmentId": s.submitted()},
    "GetHIT": lambda s: {"HITId": s.hit()},
    "GetQualificationScore": lambda s: {"QualificationTypeId": (kind := s.kind()), "WorkerId": s.holder(kind)},
    "GetQualificationType": lambda s: {"QualificationTypeId": s.kind()},
    "ListAssignmentsForHIT": lambda s: {"HITId": s.hit(), "AssignmentStatuses": ["Submitted"]},
    "ListBonusPayments": lambda s: {"HITId": s.hit()},
    "ListHITs": lambda s: {},
    "ListHITsForQualificationType": lambda s: {"QualificationTypeId": s.kind()},
    "ListQualificationRequests": lambda s: {},
    "ListQualificationTypes": lambda s: {"MustBeRequestable": True, "Query": "kind"},
    "ListReviewPolicyResultsForHIT": lambda s: {"HITId": s.hit()},
    "ListReviewableHITs": lambda s: {"Status": "Reviewing"},
    "ListWorkerBlocks": lambda s: {},
    "ListWorkersWithQualificationType": lambda s: {"QualificationTypeId": s.kind(), "Status": "Revoked"},
    "NotifyWorkers": lambda s: {"Subject": "s", "MessageText": "m", "WorkerIds": [s.worker()]},
    "RejectAssignment": lambda s: {"AssignmentId": s.submitted(), "RequesterFeedback": "No"},
    "RejectQualificationRequest": lambda s: {"QualificationRequestId": s.request(), "Reason": "r"},
    "SendBonus": bonus,
    "SendTestEventNotification": lambda s: {"Notification": SPEC, "TestEventType": "Ping"},
    "UpdateExpirationForHIT": lambda s: {"HITId": s.hit(), "ExpireAt": LATER},
    "UpdateHITReviewStatus": lambda s: {"HITId": s.done()},
    "UpdateHITTypeOfHIT": lambda s: {"HITId": s.hit(), "HITTypeId": s.type_of(s.hit(Title="Another"))},
    "UpdateNotificationSettings": lambda s: {"HITTypeId": s.type_of(s.hit()), "Notification": SPEC},
    "UpdateQualificationType": lambda s: {"QualificationTypeId": s.kind(), "Description": "another"},
}

_NOT_PAGES: dict[str, Make] = {MEANING: lambda s: FORGED}
_NEW_HIT: dict[str, Make] = {
    MEANING: lambda s: {"Question": "<nonsense/>"},
    MISSING: lambda s: {"Question": None},
    RANGE: lambda s: {"LifetimeInSeconds": 29},
    "InvalidParameterValue": lambda s: {"RequesterAnnotation": CONTROL},
}
_REASON: dict[str, Make] = {
    RANGE: lambda s: {"Reason": "x" * 4097},
    "InvalidParameterValue": lambda s: {"Reason": CONTROL},
}
_FEEDBACK: dict[str, Make] = {
    RANGE: lambda s: {"RequesterFeedback": "x" * 1025},
    "InvalidParameterValue": lambda s: {"RequesterFeedback": CONTROL},
}
_NO_HIT: dict[str, Make] = {"HITDoesNotExist": lambda s: {"HITId": NONE}}
_NO_HIT_TYPE: dict[str, Make] = {"HITTypeDoesNotExist": lambda s: {"HITTypeId": NONE}}
_NO_KIND: dict[str, Make] = {"QualificationTypeDoesNotExist": lambda s: {"QualificationTypeId": NONE}}
_NO_ASSIGNMENT: dict[str, Make] = {"AssignmentDoesNotExist": lambda s: {"AssignmentId": NONE}}
_NO_REQUEST: dict[str, Make] = {
    "QualificationRequestDoesNotExist": lambda s: {"QualificationRequestId": NONE},
    "InvalidQualificationRequestState": lambda s: {"QualificationRequestId": s.request(decided=True)},
}
_REQUIRED: dict[str, Make] = {
    "QualificationTypeDoesNotExist": lambda s: {"QualificationRequirements": needs()},
    "InvalidQualificationTypeState": lambda s: {"QualificationRequirements": inactive(s)},
}

#: For each operation and each of its documented errors what makes a success into that error.
ERRORS: dict[str, dict[str, Make]] = {
    "AcceptQualificationRequest": _NO_REQUEST,
    "ApproveAssignment": {
        **_FEEDBACK,
        **_NO_ASSIGNMENT,
        "InvalidAssignmentState": lambda s: {"AssignmentId": s.approved()},
        "InsufficientFunds": overridden_without_money,
    },
    "AssociateQualificationWithWorker": {**_NO_KIND, MEANING: lambda s: {"WorkerId": NOBODY}},
    "CreateAdditionalAssignmentsForHIT": {
        **_NO_HIT,
        RANGE: lambda s: {"NumberOfAdditionalAssignments": 1_000_000_001},
        "InvalidHITState": lambda s: {"HITId": s.done(dispose=True)},
        "InvalidMaximumAssignmentsIncrease": lambda s: {"NumberOfAdditionalAssignments": 9},
        "InsufficientFunds": lambda s: unaffordable(s, {"HITId": s.hit(Reward="20.00")}),
        "DuplicateRequest": lambda s: used(
            s,
            "CreateAdditionalAssignmentsForHIT",
            {"HITId": s.hit(), "NumberOfAdditionalAssignments": 1, "UniqueRequestToken": "t"},
        ),
        "InvalidParameterValue": lambda s: {"UniqueRequestToken": CONTROL},
    },
    "CreateHIT": {
        **_NEW_HIT,
        **_REQUIRED,
        "HitAlreadyExists": lambda s: used(s, "CreateHIT", {**HIT, "UniqueRequestToken": "t"}),
        "InsufficientFunds": lambda s: {"Reward": "1000.00"},
    },
    "CreateHITType": {
        **_REQUIRED,
        MEANING: lambda s: {"QualificationRequirements": needs("00000000000000000071", "GreaterThan")},
        RANGE: lambda s: {"Title": "x" * 129},
        "InvalidParameterValue": lambda s: {"Title": " "},
    },
    "CreateHITWithHITType": {
        **_NEW_HIT,
        **_NO_HIT_TYPE,
        "HitAlreadyExists": lambda s: used(s, "CreateHITWithHITType", of_type(s, UniqueRequestToken="t")),
        "InsufficientFunds": lambda s: {"HITTypeId": s.type_of(s.hit(Reward="500.00")), "MaxAssignments": 9},
        "InvalidQualificationTypeState": lambda s: {"HITTypeId": type_that_needs_what_is_now_inactive(s)},
    },
    "CreateQualificationType": {
        MEANING: lambda s: {"AnswerKey": KEY},
        RANGE: lambda s: {"Description": "x" * 2001},
        "QualificationTypeAlreadyExists": lambda s: {"Name": "kind" if s.kind() else ""},
        "InvalidParameterValue": lambda s: {"Keywords": CONTROL},
    },
    "CreateWorkerBlock": {**_REASON, MEANING: lambda s: {"WorkerId": NOBODY}},
    "DeleteHIT": {**_NO_HIT, "InvalidHITState": lambda s: {"HITId": s.hit()}},
    "DeleteQualificationType": _NO_KIND,
    "DeleteWorkerBlock": {**_REASON, MEANING: lambda s: {"WorkerId": NOBODY}},
    "DisassociateQualificationFromWorker": {
        **_REASON,
        **_NO_KIND,
        "QualificationDoesNotExist": lambda s: {"WorkerId": s.worker()},
    },
    "GetAccountBalance": {},
    "GetAssignment": {**_NO_ASSIGNMENT, "InvalidAssignmentState": lambda s: {"AssignmentId": s.accepted()}},
    "GetFileUploadURL": {
        "AssignmentDoesNotExist": lambda s: {"AssignmentId": NONE, "QuestionIdentifier": "q"},
        "OperationNotSupported": lambda s: {"AssignmentId": s.submitted(), "QuestionIdentifier": "q"},
    },
    "GetHIT": _NO_HIT,
    "GetQualificationScore": {
        **_NO_KIND,
        "QualificationDoesNotExist": lambda s: {"WorkerId": s.worker()},
        "InvalidQualificationState": lambda s: {
            "QualificationTypeId": (kind := s.kind("another")),
            "WorkerId": s.holder(kind, revoked=True),
        },
    },
    "GetQualificationType": _NO_KIND,
    "ListAssignmentsForHIT": {
        **_NO_HIT,
        **_NOT_PAGES,
        "InvalidHITState": lambda s: {"HITId": s.done(dispose=True)},
    },
    "ListBonusPayments": {
        **_NO_HIT,
        **_NO_ASSIGNMENT,
        **_NOT_PAGES,
        MISSING: lambda s: {"HITId": None},
    },
    "ListHITs": _NOT_PAGES,
    "ListHITsForQualificationType": {**_NO_KIND, **_NOT_PAGES},
    "ListQualificationRequests": {**_NO_KIND, **_NOT_PAGES},
    "ListQualificationTypes": {
        **_NOT_PAGES,
        RANGE: lambda s: {"Query": "x" * 1001},
        "InvalidParameterValue": lambda s: {"Query": CONTROL},
    },
    "ListReviewPolicyResultsForHIT": {**_NO_HIT, **_NOT_PAGES},
    "ListReviewableHITs": {**_NO_HIT_TYPE, **_NOT_PAGES},
    "ListWorkerBlocks": _NOT_PAGES,
    "ListWorkersWithQualificationType": {**_NO_KIND, **_NOT_PAGES},
    "NotifyWorkers": {
        RANGE: lambda s: {"WorkerIds": [f"A{number:03}" for number in range(101)]},
        "InvalidParameterValue": lambda s: {"Subject": CONTROL},
    },
    "RejectAssignment": {
        **_FEEDBACK,
        **_NO_ASSIGNMENT,
        "InvalidAssignmentState": lambda s: {"AssignmentId": s.rejected()},
    },
    "RejectQualificationRequest": {**_REASON, **_NO_REQUEST},
    "SendBonus": {
        **_NO_ASSIGNMENT,
        **_REASON,
        MEANING: lambda s: {"WorkerId": s.worker()},
        "InsufficientFunds": lambda s: {"BonusAmount": "1000.00"},
        "DuplicateRequest": lambda s: used(s, "SendBonus", bonus(s, UniqueRequestToken="t")),
    },
    "SendTestEventNotification": {
        MEANING: lambda s: {"Notification": NO_EVENTS},
        "InvalidTransportEndpoint": lambda s: {"Notification": NOWHERE},
    },
    "UpdateExpirationForHIT": {
        **_NO_HIT,
        RANGE: lambda s: {"ExpireAt": datetime(2028, 1, 1, tzinfo=UTC)},
        "InvalidHITState": lambda s: {"HITId": s.done(dispose=True)},
        "InsufficientFunds": prolonged_without_money,
        "DuplicateRequest": lambda s: used(s, "UpdateExpirationForHIT", {"HITId": s.hit(), "ExpireAt": LATER}),
    },
    "UpdateHITReviewStatus": {**_NO_HIT, "InvalidHITState": lambda s: {"HITId": s.hit()}},
    "UpdateHITTypeOfHIT": {**_NO_HIT, **_NO_HIT_TYPE, "InvalidHITState": lambda s: {"HITId": s.done()}},
    "UpdateNotificationSettings": {
        **_NO_HIT_TYPE,
        MEANING: lambda s: {"Notification": NO_EVENTS},
        MISSING: lambda s: {"Notification": None},
        "InvalidTransportEndpoint": lambda s: {"Notification": NOWHERE},
    },
    "UpdateQualificationType": {
        **_NO_KIND,
        MEANING: lambda s: {"Test": TEST},
        RANGE: lambda s: {"Description": "x" * 2001},
        "InvalidParameterValue": lambda s: {"Description": CONTROL},
    },
}


def type_that_needs_what_is_now_inactive(scene: Scene) -> str:
    kind = scene.kind()
    hit_id = scene.hit(QualificationRequirements=needs(kind))
    scene.client.update_qualification_type(QualificationTypeId=kind, QualificationTypeStatus="Inactive")
    return scene.type_of(hit_id)


@pytest.fixture
def scene(market: Market, monkeypatch: pytest.MonkeyPatch) -> Scene:
    market.monkeypatch = monkeypatch  # type: ignore[attr-defined]
    return Scene(market)


def test_the_tables_leave_no_operation_and_no_documented_error_out() -> None:
    assert set(DOCUMENTED) == set(OPERATIONS)
    assert set(SUCCESS) == set(OPERATIONS) - {"GetFileUploadURL"}
    assert {operation: set(found) for operation, found in ERRORS.items()} == DOCUMENTED


def test_every_code_that_the_marketplace_knows_is_documented_for_some_operation() -> None:
    known = {value.code for value in vars(errors).values() if isinstance(value, TurkCode)}

    documented = {code for found in DOCUMENTED.values() for code in found}

    assert {code.removeprefix("AWS.MechanicalTurk.") for code in known} <= documented


@pytest.mark.parametrize("operation", SUCCESS)
def test_it_succeeds(scene: Scene, operation: str) -> None:
    shape = scene.client.meta.service_model.operation_model(operation).output_shape

    answer = scene.call(operation, **SUCCESS[operation](scene))

    assert answer.pop("ResponseMetadata")["HTTPStatusCode"] == 200
    assert set(answer) <= set(shape.members if shape else {})
    if "NumResults" in answer:
        assert answer["NumResults"] == len(
            answer[next(name for name in answer if name not in {"NumResults", "NextToken"})]
        )


@pytest.mark.parametrize(
    ("operation", "told"), [(operation, told) for operation, found in ERRORS.items() for told in found]
)
def test_it_gives_this_error_and_changes_nothing(scene: Scene, operation: str, told: str) -> None:
    fit = SUCCESS[operation](scene) if operation in SUCCESS else {}
    params = {**fit, **ERRORS[operation][told](scene)}
    before = scene.market.balance()

    with pytest.raises(ClientError) as caught:
        scene.call(operation, **{name: value for name, value in params.items() if value is not None})

    response: Any = caught.value.response
    assert label(response["Error"]["Code"], response.get("TurkErrorCode")) == told, response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert response["Error"]["Message"].endswith(f"({int(scene.market.clock.now().timestamp() * 1000)})")
    assert scene.market.balance() == before


#: Qualification types are everybody's to look at and to require.
SHARED = {"GetQualificationType", "ListHITsForQualificationType"}
OWNED = ("HITId", "HITTypeId", "AssignmentId", "QualificationTypeId", "QualificationRequestId")


def names_something_owned(operation: str) -> bool:
    shape = service_model().operation_model(operation).input_shape
    return operation not in SHARED and shape is not None and any(name in shape.members for name in OWNED)


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if names_something_owned(name)])
def test_another_requesters_things_do_not_exist(scene: Scene, operation: str) -> None:
    params = SUCCESS[operation](scene) if operation in SUCCESS else {"AssignmentId": scene.submitted()}
    if operation == "ListQualificationRequests":
        params = {"QualificationTypeId": scene.kind()}
    if operation == "ListReviewableHITs":
        params = {"HITTypeId": scene.type_of(scene.hit())}
    if operation == "GetFileUploadURL":
        params["QuestionIdentifier"] = "q"
    assert set(params) & set(OWNED)
    stranger = scene.market.client_for(scene.market.other_requester())

    with pytest.raises(ClientError) as caught:
        getattr(stranger, xform_name(operation))(**params)

    assert str(caught.value.response.get("TurkErrorCode")).endswith("DoesNotExist"), caught.value.response


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("GetHIT", {"HITId": "lower case"}),
        ("CreateHIT", {**HIT, "Reward": "1.234"}),
        ("ListHITs", {"MaxResults": 101}),
        ("ListReviewableHITs", {"Status": "Assignable"}),
        ("CreateWorkerBlock", {"WorkerId": "B1", "Reason": "r"}),
    ],
)
def test_what_the_service_model_forbids_is_a_validation_exception(scene: Scene, operation: str, params: Params) -> None:
    with pytest.raises(ClientError) as caught:
        scene.call(operation, **params)

    assert caught.value.response["Error"]["Code"] == MODEL
    assert "failed to satisfy constraint" in str(caught.value)


def rows_of_review_results(scene: Scene) -> Params:
    hit_id = scene.hit(
        MaxAssignments=5, AssignmentReviewPolicy=policy("ScoreMyKnownAnswers/2011-09-01", {"statement": ["1"]})
    )
    five(lambda _number: scene.market.submitted(hit_id))
    return {"HITId": hit_id}


def five(make: Callable[[int], object]) -> None:
    for number in range(5):
        make(number)


def five_submissions(scene: Scene) -> Params:
    hit_id = scene.hit(MaxAssignments=5)
    five(lambda _number: scene.market.submitted(hit_id))
    return {"HITId": hit_id}


def five_bonuses(scene: Scene) -> Params:
    assignment_id = scene.submitted()
    five(lambda number: scene.bonus(assignment_id, Reason=str(number)))
    return {"AssignmentId": assignment_id}


def five_requests(scene: Scene) -> Params:
    kind = scene.kind()
    five(lambda _number: scene.market.engine.request_qualification(scene.worker(), kind))
    return {"QualificationTypeId": kind}


def five_holders(scene: Scene) -> Params:
    kind = scene.kind()
    five(lambda _number: scene.holder(kind))
    return {"QualificationTypeId": kind}


def five_guarded(scene: Scene) -> Params:
    kind = scene.kind()
    five(lambda _number: scene.hit(QualificationRequirements=needs(kind)))
    return {"QualificationTypeId": kind}


def five_plain(make: Callable[[Scene, int], object], **params: Any) -> Make:
    def rows(scene: Scene) -> Params:
        five(lambda number: make(scene, number))
        return params

    return rows


LISTS: dict[str, tuple[str, Make]] = {
    "ListAssignmentsForHIT": ("Assignments", five_submissions),
    "ListBonusPayments": ("BonusPayments", five_bonuses),
    "ListHITs": ("HITs", five_plain(lambda s, _n: s.hit())),
    "ListHITsForQualificationType": ("HITs", five_guarded),
    "ListQualificationRequests": ("QualificationRequests", five_requests),
    "ListQualificationTypes": (
        "QualificationTypes",
        five_plain(lambda s, n: s.kind(f"kind {n}"), MustBeRequestable=True, MustBeOwnedByCaller=True),
    ),
    "ListReviewableHITs": ("HITs", five_plain(lambda s, _n: s.done())),
    "ListWorkerBlocks": (
        "WorkerBlocks",
        five_plain(lambda s, _n: s.client.create_worker_block(WorkerId=s.worker(), Reason="r")),
    ),
    "ListWorkersWithQualificationType": ("Qualifications", five_holders),
}


def test_the_lists_are_all_that_boto3_can_page_through(market: Market) -> None:
    pageable = {name for name in OPERATIONS if market.client.can_paginate(xform_name(name))}  # type: ignore[call-overload]

    assert (
        set(LISTS)
        == pageable
        == {name for name in OPERATIONS if name.startswith("List")} - {"ListReviewPolicyResultsForHIT"}
    )


@pytest.mark.parametrize("operation", LISTS)
def test_its_list_goes_over_three_pages_by_hand_and_by_paginator(scene: Scene, operation: str) -> None:
    key, make = LISTS[operation]
    params = make(scene)
    whole = scene.call(operation, **params)[key]
    assert len(whole) == 5

    pages, token = [], {}
    while True:
        page = scene.call(operation, **params, **token, MaxResults=2)
        pages.append(page[key])
        assert page["NumResults"] == len(page[key])
        if not page.get("NextToken"):
            break
        token = {"NextToken": page["NextToken"]}

    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert [row for page in pages for row in page] == whole
    paginator = scene.client.get_paginator(xform_name(operation))
    assert paginator.paginate(**params, PaginationConfig={"PageSize": 2}).build_full_result()[key] == whole


def test_review_results_go_over_three_pages(scene: Scene) -> None:
    params = rows_of_review_results(scene)
    whole = scene.call("ListReviewPolicyResultsForHIT", **params)["AssignmentReviewReport"]["ReviewResults"]
    assert len(whole) == 10

    found, token, count = [], {}, 0
    while True:
        page = scene.call("ListReviewPolicyResultsForHIT", **params, **token, MaxResults=4)
        found += page["AssignmentReviewReport"].get("ReviewResults", [])
        count += 1
        if not page.get("NextToken"):
            break
        token = {"NextToken": page["NextToken"]}

    assert found == whole
    assert count >= 4
