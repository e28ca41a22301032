"""The client over a real boto3 client: our words, all pages, and errors by what the marketplace said."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from moto import mock_aws

from hits.clock import FixedClock
from hits.mturk.client import MTurk, Requirement
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
)
from hits.mturk.questions import external_question
from tests.market import Market, failing


@pytest.fixture
def market(clock: FixedClock) -> Market:
    return Market(clock)


def created(mturk: MTurk, token: str = "token", *, places: int = 1, reward: str = "0.30") -> str:
    hit_type = mturk.create_hit_type(
        title="Write",
        description="Write a statement.",
        keywords="writing",
        reward=Decimal(reward),
        assignment_seconds=3600,
        auto_approval_seconds=3600,
    )
    return mturk.create_hit(
        hit_type,
        question_xml=external_question("http://localhost:8001/work/abc"),
        max_assignments=places,
        lifetime_seconds=86400,
        annotation=f"dynahit:{token}",
        request_token=token,
    ).hit_id


def submitted(market: Market, hit_id: str, name: str = "worker") -> tuple[str, str]:
    worker = market.person(name)
    assignment = market.accept(worker, hit_id)
    market.submit(assignment)
    return worker, assignment


def test_a_token_that_was_used_gives_the_hit_it_made(market: Market) -> None:
    hit_id = created(market.mturk)

    with pytest.raises(HitAlreadyExists) as caught:
        created(market.mturk)

    assert caught.value.hit_id == hit_id
    assert caught.value.code == "AWS.MechanicalTurk.HitAlreadyExists"


def test_equal_properties_are_one_hit_type(market: Market) -> None:
    first, second = (market.mturk.hit(created(market.mturk, token)) for token in ("one", "two"))

    assert first.hit_type_id == second.hit_type_id


def test_a_hit_is_seen_as_it_was_created(market: Market, clock: FixedClock) -> None:
    seen = market.mturk.hit(created(market.mturk, places=3))

    assert (seen.status, seen.max_assignments, seen.available) == ("Assignable", 3, 3)
    assert seen.expires_at == clock.now() + timedelta(days=1)
    assert seen.requirements == frozenset()


def test_hits_are_found_by_annotation_over_all_pages(market: Market) -> None:
    wanted = {f"dynahit:{number}": created(market.mturk, str(number)) for number in range(205)}
    market.calls.clear()

    found = market.mturk.find_hits_by_annotation("dynahit:")

    assert {annotation: seen.hit_id for annotation, seen in found.items()} == wanted
    assert market.calls.count("ListHITs") >= 3
    assert market.mturk.find_hits_by_annotation("elsewhere:") == {}


def test_a_requirement_is_read_back_as_it_was_asked_for(market: Market) -> None:
    mturk = market.mturk
    requirement = Requirement(mturk.find_or_create_qualification("dynahit validator", "for tests"), 1)
    held = Requirement(mturk.find_or_create_qualification("another", "for tests"))
    hit_type = mturk.create_hit_type(
        title="Judge",
        description="Judge statements.",
        keywords="reading",
        reward=Decimal("0.25"),
        assignment_seconds=3600,
        auto_approval_seconds=3600,
        requirements=(requirement, held),
    )

    seen = mturk.create_hit(
        hit_type,
        question_xml=external_question("http://localhost:8001/validate/abc"),
        max_assignments=2,
        lifetime_seconds=3600,
        annotation="dynahit:abc",
        request_token="abc",
    )

    assert seen.requirements == {str(requirement), str(held)}


def test_assignments_carry_their_times_and_hide_their_worker_in_logs(market: Market, clock: FixedClock) -> None:
    hit_id = created(market.mturk)
    worker, assignment = submitted(market, hit_id)

    (seen,) = market.mturk.assignments(hit_id)

    assert (seen.assignment_id, seen.worker_id, seen.status) == (assignment, worker, "Submitted")
    assert (seen.submit_time, seen.auto_approval_time) == (clock.now(), clock.now() + timedelta(hours=1))
    assert seen.approval_time is None
    assert worker not in repr(seen)


def test_approving_twice_says_that_the_state_is_wrong(market: Market) -> None:
    _, assignment = submitted(market, created(market.mturk))
    market.mturk.approve(assignment, "Thank you.")

    with pytest.raises(InvalidAssignmentState) as caught:
        market.mturk.approve(assignment)

    assert caught.value.status == "Submitted"
    assert market.mturk.assignment(assignment).status == "Approved"


def test_an_assignment_that_is_held_cannot_be_approved(market: Market) -> None:
    assignment = market.accept(market.person("worker"), created(market.mturk))

    with pytest.raises(InvalidAssignmentState):
        market.mturk.approve(assignment)
    with pytest.raises(InvalidAssignmentState):
        market.mturk.assignment(assignment)


def test_what_is_missing_is_named(market: Market) -> None:
    with pytest.raises(HitMissing, match="3NOTHING"):
        market.mturk.hit("3NOTHING")
    with pytest.raises(AssignmentMissing, match="3NOTHING"):
        market.mturk.approve("3NOTHING")
    with pytest.raises(HitMissing):
        list(market.mturk.assignments("3NOTHING"))


def test_money_that_is_not_there_is_said(clock: FixedClock) -> None:
    market = Market(clock, balance="0")

    with pytest.raises(InsufficientFunds):
        created(market.mturk)
    assert market.mturk.balance() == 0


def test_a_bonus_is_paid_once_per_token(market: Market) -> None:
    hit_id = created(market.mturk)
    worker, assignment = submitted(market, hit_id)
    bonus = {"worker_id": worker, "assignment_id": assignment, "reason": "It fooled the model. [p-1]"}
    market.mturk.send_bonus(**bonus, amount=Decimal("0.30"), request_token="p-1")

    with pytest.raises(DuplicateRequest):
        market.mturk.send_bonus(**bonus, amount=Decimal("0.30"), request_token="p-1")

    (paid,) = market.mturk.bonus_payments(hit_id=hit_id)
    assert (paid.worker_id, paid.amount, paid.reason) == (worker, Decimal("0.30"), bonus["reason"])
    assert [one.assignment_id for one in market.mturk.bonus_payments(assignment_id=assignment)] == [assignment]
    assert worker not in repr(paid)


def test_bonuses_are_asked_for_by_one_thing(market: Market) -> None:
    with pytest.raises(TypeError):
        list(market.mturk.bonus_payments())


def test_a_server_error_is_retried_and_paid_once(clock: FixedClock) -> None:
    market = Market(clock, attempts=4)
    hit_id = created(market.mturk)
    worker, assignment = submitted(market, hit_id)
    # Carried out, but the answer is lost twice; the third request meets its own token.
    market.after = failing("SendBonus", times=2)

    with pytest.raises(DuplicateRequest):
        market.mturk.send_bonus(
            worker_id=worker, assignment_id=assignment, amount=Decimal("0.30"), reason="x", request_token="p-2"
        )

    assert len(list(market.mturk.bonus_payments(assignment_id=assignment))) == 1
    assert market.calls.count("SendBonus") == 3


@pytest.mark.parametrize(
    ("status", "kind"), [(500, "ServiceFault"), (503, "ServiceUnavailable"), (400, "ThrottlingException")]
)
def test_what_may_work_later_is_told_apart_from_a_refusal(market: Market, status: int, kind: str) -> None:
    market.before = failing("GetAccountBalance", status, kind)

    with pytest.raises(MTurkUnavailable, match=r"http://127\.0\.0\.1:8000 did not answer GetAccountBalance"):
        market.mturk.balance()

    assert market.calls.count("GetAccountBalance") == 2


def test_a_refusal_of_an_unknown_kind_keeps_its_code_and_words(market: Market) -> None:
    market.before = failing("GetAccountBalance", 400, "AccessDeniedException")

    with pytest.raises(MTurkRefused, match=r"Rate exceeded \[AccessDeniedException\]"):
        market.mturk.balance()


def test_a_marketplace_that_does_not_listen_is_unavailable() -> None:
    with pytest.raises(MTurkUnavailable, match="Is it running"):
        MTurk("http://127.0.0.1:1", "AKID", "secret", attempts=1).balance()


def test_expiring_twice_is_expiring_once(market: Market) -> None:
    hit_id = created(market.mturk)

    market.mturk.expire(hit_id)
    market.mturk.expire(hit_id)

    assert market.mturk.hit(hit_id).status == "Reviewable"


def test_a_hit_that_was_extended_can_be_expired_again(market: Market, clock: FixedClock) -> None:
    hit_id = created(market.mturk)
    market.mturk.expire(hit_id)
    market.call("UpdateExpirationForHIT", HITId=hit_id, ExpireAt=clock.now() + timedelta(days=1))
    assert market.mturk.hit(hit_id).status == "Assignable"

    market.mturk.expire(hit_id)

    assert market.mturk.hit(hit_id).status == "Reviewable"


def test_a_hit_with_unreviewed_work_is_not_deleted(market: Market) -> None:
    hit_id = created(market.mturk)
    _, assignment = submitted(market, hit_id)

    with pytest.raises(InvalidHitState):
        market.mturk.delete(hit_id)
    market.mturk.reject(assignment, "Not done.")
    market.mturk.delete(hit_id)

    assert hit_id not in {seen.hit_id for seen in market.mturk.hits()}


def test_a_qualification_that_another_process_just_made_is_taken(market: Market) -> None:
    market.call(
        "CreateQualificationType",
        Name="dynahit validator",
        Description="theirs",
        QualificationTypeStatus="Active",
    )
    first = [True]

    def hide(operation: str) -> tuple[int, dict[str, str], bytes] | None:
        if operation == "ListQualificationTypes" and first:
            first.clear()
            return 200, {}, b'{"NumResults": 0, "QualificationTypes": []}'
        return None

    market.before = hide

    type_id = market.mturk.find_or_create_qualification("dynahit validator", "ours")

    assert market.call("GetQualificationType", QualificationTypeId=type_id)["QualificationType"]["Description"] == (
        "theirs"
    )


def test_a_grant_makes_a_holder_and_a_revocation_ends_it(market: Market) -> None:
    type_id = market.mturk.find_or_create_qualification("dynahit validator", "for tests")
    worker = market.person("validator")

    market.mturk.grant(type_id, worker, 1)
    holders = [grant.worker_id for grant in market.mturk.holders(type_id)]
    market.mturk.revoke(type_id, worker, "for tests")

    assert holders == [worker]
    assert list(market.mturk.holders(type_id)) == []


def test_the_client_works_against_moto_as_well() -> None:
    import hits.marketplace.moto  # noqa: F401 - registers mturk

    with mock_aws():
        mturk = MTurk("https://mturk-requester.us-east-1.amazonaws.com", "AKID", "secret")

        assert mturk.balance() == Decimal("10000.00")


def test_all_errors_are_of_one_family() -> None:
    assert issubclass(MTurkRefused, MTurkError)
    assert issubclass(MTurkUnavailable, MTurkError)
    assert not issubclass(MTurkUnavailable, MTurkRefused)


NONSENSE = {
    "a web page": b"<html>Sign in to this network</html>",
    "a list": b"[]",
    "null": b"null",
    "not text": b"\xff\xfe",
}


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("nonsense", NONSENSE)
def test_an_answer_that_no_marketplace_gives_is_no_answer(market: Market, nonsense: str, status: int) -> None:
    _, assignment = submitted(market, created(market.mturk))
    market.after = lambda _: (status, {"Content-Type": "text/html"}, NONSENSE[nonsense])
    calls = (
        market.mturk.balance,
        lambda: list(market.mturk.hits()),
        lambda: list(market.mturk.bonus_payments(assignment_id=assignment)),
        lambda: market.mturk.approve(assignment),
        lambda: market.mturk.send_bonus(
            worker_id="A1", assignment_id=assignment, amount=Decimal("0.30"), reason="Well done", request_token="t"
        ),
    )
    for call in calls:
        with pytest.raises(MTurkUnavailable):
            call()


@pytest.mark.parametrize("content", [b"{}", b""])
def test_an_answer_that_lacks_what_was_asked_for_is_no_answer(market: Market, content: bytes) -> None:
    hit_id = created(market.mturk)
    market.after = lambda _: (200, {"Content-Type": "application/x-amz-json-1.1"}, content)

    for call in (market.mturk.balance, lambda: list(market.mturk.hits()), lambda: market.mturk.hit(hit_id)):
        with pytest.raises(MTurkUnavailable, match="without"):
            call()


QUIZ_FORM = """<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2017-11-06/QuestionForm.xsd">
<Question><QuestionIdentifier>a</QuestionIdentifier><IsRequired>true</IsRequired>
<QuestionContent><Text>Is it?</Text></QuestionContent><AnswerSpecification><SelectionAnswer><Selections>
<Selection><SelectionIdentifier>yes</SelectionIdentifier><Text>Yes</Text></Selection>
<Selection><SelectionIdentifier>no</SelectionIdentifier><Text>No</Text></Selection>
</Selections></SelectionAnswer></AnswerSpecification></Question></QuestionForm>"""
QUIZ_KEY = """<AnswerKey xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/AnswerKey.xsd">
<Question><QuestionIdentifier>a</QuestionIdentifier><AnswerOption><SelectionIdentifier>yes</SelectionIdentifier>
<AnswerScore>1</AnswerScore></AnswerOption></Question></AnswerKey>"""


def test_a_quiz_stands_on_its_type_as_it_was_sent(market: Market) -> None:
    type_id = market.mturk.find_or_create_qualification("quiz", "Says that you passed.")
    assert market.mturk.quiz(type_id) == ("", "")

    market.mturk.put_quiz(type_id, form_xml=QUIZ_FORM, key_xml=QUIZ_KEY, seconds=600, retry_seconds=86_400)

    assert market.mturk.quiz(type_id) == (QUIZ_FORM, QUIZ_KEY)
    worker = market.person("ada")
    asked = market.engine.request_qualification(worker, type_id)
    assert asked.form is not None
    [question] = asked.form.questions
    market.engine.submit_qualification_test(worker, asked.request_id, {question.field: ["yes"]})
    assert [grant.value for grant in market.mturk.holders(type_id)] == [1]


def test_a_quiz_that_is_no_form_is_refused(market: Market) -> None:
    type_id = market.mturk.find_or_create_qualification("quiz", "Says that you passed.")

    with pytest.raises(MTurkRefused):
        market.mturk.put_quiz(type_id, form_xml="<a/>", key_xml=QUIZ_KEY, seconds=600, retry_seconds=0)
    assert market.mturk.quiz(type_id) == ("", "")
    with pytest.raises(MTurkRefused):
        market.mturk.quiz("3NOSUCHTYPE")


def test_a_requirement_reads_the_same_whatever_the_order_of_its_values(market: Market) -> None:
    mturk = market.mturk
    mine = mturk.find_or_create_qualification("mine", "for tests")
    requirements = (
        Requirement(mine, comparator="NotIn", values=(3, 1, 2)),
        Requirement("00000000000000000071", comparator="In", locales=("US-NY", "GB"), actions_guarded="Accept"),
    )
    hit_type = mturk.create_hit_type(
        title="Judge",
        description="Judge statements.",
        keywords="reading",
        reward=Decimal("0.25"),
        assignment_seconds=3600,
        auto_approval_seconds=3600,
        requirements=requirements,
    )

    seen = mturk.create_hit(
        hit_type,
        question_xml=external_question("http://localhost:8001/validate/abc"),
        max_assignments=2,
        lifetime_seconds=3600,
        annotation="dynahit:abc",
        request_token="abc",
    )

    assert seen.requirements == {
        f"{mine} not in 1, 2, 3, DiscoverPreviewAndAccept",
        "00000000000000000071 in GB, US-NY, Accept",
    }
    assert seen.requirements == {str(one) for one in requirements}


def test_a_qualification_is_found_by_its_whole_name_and_may_be_inactive(market: Market) -> None:
    mturk = market.mturk
    mturk.find_or_create_qualification("mine and more", "for tests")
    assert mturk.find_qualification("mine") is None

    mine = mturk.find_or_create_qualification("mine", "for tests")
    assert mturk.find_qualification("mine") == mine
    assert mturk.qualification_is_active(mine)
    market.call("UpdateQualificationType", QualificationTypeId=mine, QualificationTypeStatus="Inactive")
    assert not mturk.qualification_is_active(mine)


def test_messages_reach_workers_whose_work_was_reviewed_and_tell_of_the_others(market: Market) -> None:
    worker, assignment = submitted(market, created(market.mturk))

    before = market.mturk.notify([worker], "About your work", "Well done.")
    market.mturk.approve(assignment)
    after = market.mturk.notify([worker], "About your work", "Well done.")

    assert (before, after) == (["HardFailure"], [])
    assert [one.text for one in market.engine.messages(worker).messages] == ["Well done."]
