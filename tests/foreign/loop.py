"""The requester's loop that each foreign client goes through: publish, collect, approve, pay, qualify, be refused."""

from __future__ import annotations

import pytest
from lxml import etree

from tests.app.marketplace.conftest import hit_params, question
from tests.foreign.conftest import Client, Refused, Served, SiteRefused, SiteWorker

TYPE_PARAMS = ("Title", "Description", "Keywords", "Reward", "AssignmentDurationInSeconds")
ASSIGNMENTS_OF_ONE_PAGE = 10


def play(client: Client, served: Served) -> None:
    """Play the loop and check every answer."""
    assert client.call("GetAccountBalance")["AvailableBalance"] == "100.00"
    hit_id = publish(client)
    collect_and_pay(client, served, hit_id)
    qualify(client, served)
    be_refused(client, hit_id)


def publish(client: Client) -> str:
    """Make a HIT type and a HIT of it, a HIT beside it, and find both and ten more over two pages."""
    params = hit_params()
    made = client.call("CreateHITType", **{name: params[name] for name in TYPE_PARAMS})
    hit = client.call(
        "CreateHITWithHITType",
        HITTypeId=made["HITTypeId"],
        Question=question("https://example.org/hit?round=1&lang=de"),
        MaxAssignments=2,
        LifetimeInSeconds=86400,
        RequesterAnnotation='batch "1", é 文',
        UniqueRequestToken="token-1",
    )["HIT"]
    assert hit["HITTypeId"] == made["HITTypeId"]
    assert hit["RequesterAnnotation"] == 'batch "1", é 文'
    others = [client.call("CreateHIT", **hit_params())["HIT"]["HITId"] for _ in range(ASSIGNMENTS_OF_ONE_PAGE + 1)]

    found = client.every("ListHITs", "HITs")

    assert {one["HITId"] for one in found} == {hit["HITId"], *others}
    assert len(found) == len(others) + 1
    client.call("UpdateExpirationForHIT", HITId=others[0], ExpireAt="2020-01-01T00:00:00Z")
    assert client.call("GetHIT", HITId=others[0])["HIT"]["HITStatus"] == "Reviewable"
    client.call("DeleteHIT", HITId=others[0])
    return str(hit["HITId"])


def collect_and_pay(client: Client, served: Served, hit_id: str) -> None:
    """Let two people work, approve one and reject one, and pay a bonus once."""
    ada, ben = SiteWorker(served, "ada"), SiteWorker(served, "ben")
    good = ada.work_on(hit_id, sentence='A "fine" day & <more> é 文')
    bad = ben.work_on(hit_id, sentence="asdf")

    listed = client.every("ListAssignmentsForHIT", "Assignments", HITId=hit_id)
    assert {(one["AssignmentId"], one["WorkerId"], one["AssignmentStatus"]) for one in listed} == {
        (good, ada.worker_id, "Submitted"),
        (bad, ben.worker_id, "Submitted"),
    }
    (answer,) = [one["Answer"] for one in listed if one["AssignmentId"] == good]
    fields = etree.fromstring(answer.encode()).iter("{*}FreeText")
    assert [field.text for field in fields] == ['A "fine" day & <more> é 文']
    client.call("ApproveAssignment", AssignmentId=good, RequesterFeedback="Thank you")
    client.call("RejectAssignment", AssignmentId=bad, RequesterFeedback="Not a sentence")
    status = {
        one["AssignmentId"]: one["AssignmentStatus"]
        for one in client.every("ListAssignmentsForHIT", "Assignments", HITId=hit_id)
    }
    assert status == {good: "Approved", bad: "Rejected"}

    bonus = {"WorkerId": ada.worker_id, "AssignmentId": good, "BonusAmount": "0.30", "Reason": "It fooled the model"}
    client.call("SendBonus", **bonus, UniqueRequestToken="bonus-1")
    with pytest.raises(Refused) as refused:
        client.call("SendBonus", **bonus, UniqueRequestToken="bonus-1")
    assert refused.value.code == "RequestError"
    (paid,) = client.every("ListBonusPayments", "BonusPayments", AssignmentId=good)
    assert (paid["WorkerId"], paid["BonusAmount"], paid["Reason"]) == (ada.worker_id, "0.30", "It fooled the model")


def qualify(client: Client, served: Served) -> None:
    """Make a qualification type, grant it unasked and on request, require it, and take it back."""
    carl, dora = SiteWorker(served, "carl"), SiteWorker(served, "dora")
    made = client.call(
        "CreateQualificationType",
        Name="dynahit validator",
        Description="May judge statements",
        QualificationTypeStatus="Active",
    )["QualificationType"]
    type_id = made["QualificationTypeId"]
    owned = client.every(
        "ListQualificationTypes", "QualificationTypes", MustBeRequestable=True, MustBeOwnedByCaller=True
    )
    assert [one["QualificationTypeId"] for one in owned] == [type_id]
    client.call(
        "AssociateQualificationWithWorker",
        QualificationTypeId=type_id,
        WorkerId=carl.worker_id,
        IntegerValue=7,
        SendNotification=False,
    )
    dora.ask_for(type_id)
    (asked,) = client.every("ListQualificationRequests", "QualificationRequests", QualificationTypeId=type_id)
    assert (asked["WorkerId"], asked["QualificationTypeId"]) == (dora.worker_id, type_id)
    client.call("AcceptQualificationRequest", QualificationRequestId=asked["QualificationRequestId"], IntegerValue=3)
    holders = client.every("ListWorkersWithQualificationType", "Qualifications", QualificationTypeId=type_id)
    assert {(one["WorkerId"], one["IntegerValue"], one["Status"]) for one in holders} == {
        (carl.worker_id, 7, "Granted"),
        (dora.worker_id, 3, "Granted"),
    }
    requirement = {"QualificationTypeId": type_id, "Comparator": "GreaterThan", "IntegerValues": [5]}
    guarded = client.call("CreateHIT", **hit_params(QualificationRequirements=[requirement]))["HIT"]
    assert guarded["QualificationRequirements"][0]["IntegerValues"] == [5]
    with pytest.raises(SiteRefused):
        dora.work_on(guarded["HITId"], sentence="May I not")
    carl.work_on(guarded["HITId"], sentence="May I")
    client.call("DisassociateQualificationFromWorker", QualificationTypeId=type_id, WorkerId=dora.worker_id)
    with pytest.raises(Refused) as revoked:
        client.call("GetQualificationScore", QualificationTypeId=type_id, WorkerId=dora.worker_id)
    assert "operation can be called with a status of: Granted" in revoked.value.message
    failures = client.call(
        "NotifyWorkers", Subject="News", MessageText="A new round begins", WorkerIds=[carl.worker_id]
    )
    assert failures["NotifyWorkersFailureStatuses"][0]["NotifyWorkersFailureCode"] == "HardFailure"


def be_refused(client: Client, hit_id: str) -> None:
    """See that errors arrive with MTurk's own code and words."""
    with pytest.raises(Refused) as unknown:
        client.call("GetHIT", HITId="3XUNKNOWN")
    assert unknown.value.code == "RequestError"
    assert unknown.value.turk_code == "AWS.MechanicalTurk.HITDoesNotExist"
    assert "Hit 3XUNKNOWN does not exist." in unknown.value.message
    client.call("CreateHIT", **hit_params(UniqueRequestToken="token-2"))
    with pytest.raises(Refused) as repeated:
        client.call("CreateHIT", **hit_params(UniqueRequestToken="token-2"))
    assert repeated.value.turk_code == "AWS.MechanicalTurk.HitAlreadyExists"
    with pytest.raises(Refused) as poor:
        client.call("CreateHIT", **hit_params(Reward="1000.00"))
    assert poor.value.turk_code == "AWS.MechanicalTurk.InsufficientFunds"
    assert client.call("GetHIT", HITId=hit_id)["HIT"]["HITStatus"] == "Reviewable"
