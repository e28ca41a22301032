"""Review policies at work."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hits.marketplace.review_policies import KNOWN_ANSWERS, PLURALITY
from hits.marketplace.reviews import answers_in
from tests.hits.marketplace.forms_for_tests import TEST
from tests.hits.marketplace.market import Market, refused
from tests.hits.marketplace.test_review_policies import policy


def answered(market: Market, hit_id: str, **answers: str) -> str:
    assignment_id = market.accepted(hit_id)
    market.engine.external_submit(assignment_id, {name: [value] for name, value in answers.items()})
    return assignment_id


def state(market: Market, assignment_id: str) -> str:
    return market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["AssignmentStatus"]


def report(
    market: Market, hit_id: str, level: str
) -> tuple[set[tuple[str, str, str, str]], list[tuple[str, str, str]]]:
    answer: Any = market.client.list_review_policy_results_for_hit(HITId=hit_id)
    found = answer[f"{level}ReviewReport"]
    return (
        {(r["SubjectId"], r.get("QuestionId", ""), r["Key"], r["Value"]) for r in found["ReviewResults"]},
        [(a["ActionName"], a["TargetId"], a["Status"]) for a in found["ReviewActions"]],
    )


def known(**parameters: str) -> dict[str, Any]:
    return policy(KNOWN_ANSWERS, {"sky": ["blue"], "grass": ["green"]}, **parameters)


def test_known_answers_approve_reject_and_leave(market: Market) -> None:
    rules = known(
        ApproveIfKnownAnswerScoreIsAtLeast="100",
        ApproveReason="Well done",
        RejectIfKnownAnswerScoreIsLessThan="50",
        RejectReason="Look again",
    )
    hit_id = market.create_hit(MaxAssignments=4, AssignmentReviewPolicy=rules)
    right = answered(market, hit_id, sky=" blue ", grass="green")
    half = answered(market, hit_id, sky="blue", grass="Green")
    wrong = answered(market, hit_id, other="x")

    assert [state(market, one) for one in (right, half, wrong)] == ["Approved", "Submitted", "Rejected"]
    assert market.client.get_assignment(AssignmentId=right)["Assignment"]["RequesterFeedback"] == "Well done"
    assert market.client.get_assignment(AssignmentId=wrong)["Assignment"]["RequesterFeedback"] == "Look again"
    results, actions = report(market, hit_id, "Assignment")
    assert {(half, "sky", "KnownAnswerCorrect", "1"), (half, "grass", "KnownAnswerCorrect", "0")} <= results
    assert {(right, "", "KnownAnswerScore", "100"), (half, "", "KnownAnswerScore", "50")} <= results
    assert actions == [
        ("review", right, "Succeeded"),
        ("approve", right, "Succeeded"),
        ("review", half, "Succeeded"),
        ("review", wrong, "Succeeded"),
        ("reject", wrong, "Succeeded"),
    ]
    assert market.balance() == ("998.92", "0.72")


def test_the_receipt_knows_what_the_policy_did(market: Market) -> None:
    hit_id = market.create_hit(AssignmentReviewPolicy=known(ApproveIfKnownAnswerScoreIsAtLeast="0"))

    assert market.engine.external_submit(market.accepted(hit_id), {"a": ["1"]}).state == "Approved"


def test_known_answers_extend_up_to_their_most(market: Market) -> None:
    rules = known(ExtendIfKnownAnswerScoreIsLessThan="100", ExtendMaximumAssignments="3")
    hit_id = market.create_hit(AssignmentReviewPolicy=rules)

    for expected in (("Assignable", 1), ("Assignable", 1), ("Reviewable", 0)):
        answered(market, hit_id, sky="red")
        assert market.counters(hit_id)[:2] == expected

    assert market.hit(hit_id)["MaxAssignments"] == 3
    _results, actions = report(market, hit_id, "Assignment")
    assert [status for name, _target, status in actions if name == "extend"] == ["Succeeded", "Succeeded", "Cancelled"]


def test_an_extension_without_money_fails_and_changes_nothing(stored_market: Market) -> None:
    market = stored_market
    rules = known(ExtendIfKnownAnswerScoreIsLessThan="100", RejectIfKnownAnswerScoreIsLessThan="1")
    hit_id = market.create_hit(AssignmentReviewPolicy=rules)
    held = market.accepted(hit_id)
    market.create_hit(Reward="833.00")
    rest = market.engine.balance(market.requester_id).available
    assert rest < Decimal("0.36")

    market.engine.external_submit(held, {"sky": ["red"]})

    assert market.hit(hit_id)["MaxAssignments"] == 1
    answer: Any = market.client.list_review_policy_results_for_hit(HITId=hit_id, RetrieveResults=False)
    assert answer["AssignmentReviewReport"]["ReviewResults"] == []
    failed = answer["AssignmentReviewReport"]["ReviewActions"][1]
    assert (failed["ActionName"], failed["Status"]) == ("extend", "Failed")
    assert failed["ErrorCode"] == "AWS.MechanicalTurk.InsufficientFunds"
    assert state(market, held) == "Rejected", "what comes after it still happens"


def test_an_extension_does_not_cross_ten_and_can_prolong(market: Market) -> None:
    rules = known(
        ExtendIfKnownAnswerScoreIsLessThan="100", ExtendMaximumAssignments="25", ExtendMinimumTimeInSeconds="7200"
    )
    nine = market.create_hit(MaxAssignments=9, AssignmentReviewPolicy=rules)
    one = market.create_hit(AssignmentReviewPolicy=rules)
    held = market.accepted(one)
    answered(market, nine, sky="red")
    assert market.hit(nine)["MaxAssignments"] == 9
    market.client.update_expiration_for_hit(HITId=one, ExpireAt=0)

    market.engine.external_submit(held, {"sky": ["red"]})

    assert market.counters(one)[:2] == ("Assignable", 1)
    assert (market.hit(one)["Expiration"] - market.clock.now()).total_seconds() == 7200


def plurality(**parameters: str) -> dict[str, Any]:
    return policy(PLURALITY, QuestionIds="a,b,c,d", QuestionAgreementThreshold="50", **parameters)


ANSWERS = (
    {"a": "coat", "b": "blue", "c": "large", "d": "Furry"},
    {"a": "sweater", "b": "blue", "c": "large ", "d": "fur"},
    {"a": "coat", "b": "green", "c": "large", "d": "furr"},
)


def test_a_plurality_is_found_as_in_mturks_example(market: Market) -> None:
    rules = plurality(ApproveIfWorkerAgreementScoreIsAtLeast="100", RejectIfWorkerAgreementScoreIsLessThan="66")
    hit_id = market.create_hit(MaxAssignments=3, HITReviewPolicy=rules)

    first, second, third = (answered(market, hit_id, **answers) for answers in ANSWERS)

    results, actions = report(market, hit_id, "HIT")
    assert {
        (hit_id, "a", "AgreedAnswer", "coat"),
        (hit_id, "a", "AnswerAgreementScore", "66"),
        (hit_id, "c", "AnswerAgreementScore", "100"),
        (hit_id, "d", "AgreedAnswerFound", "false"),
        (hit_id, "", "HitAgreementScore", "75"),
        (first, "", "WorkerAgreementScore", "100"),
        (second, "", "WorkerAgreementScore", "66"),
        (third, "", "WorkerAgreementScore", "66"),
        (third, "", "PluralityAnswersCorrect", "a,c"),
        (third, "", "PluralityAnswersIncorrect", "b"),
    } <= results
    assert actions == [("approve", first, "Succeeded")]
    assert [state(market, one) for one in (first, second, third)] == ["Approved", "Submitted", "Submitted"]


def test_a_hit_without_agreement_is_extended_and_reviewed_again(stored_market: Market) -> None:
    market = stored_market
    rules = plurality(
        ExtendIfHITAgreementScoreIsLessThan="100",
        ExtendMaximumAssignments="4",
        RejectIfWorkerAgreementScoreIsLessThan="67",
    )
    hit_id = market.create_hit(MaxAssignments=3, HITReviewPolicy=rules)

    first, second, third = (answered(market, hit_id, **answers) for answers in ANSWERS)
    assert market.counters(hit_id)[:2] == ("Assignable", 1)
    assert state(market, second) == "Submitted", "nothing is decided while more answers are asked for"
    fourth = answered(market, hit_id, **ANSWERS[0])

    assert market.counters(hit_id)[0] == "Reviewable"
    results, actions = report(market, hit_id, "HIT")
    assert (hit_id, "a", "AnswerAgreementScore", "75") in results
    assert (hit_id, "a", "AnswerAgreementScore", "66") not in results
    assert [name for name, _target, _status in actions] == ["extend", "extend", "reject", "reject"]
    assert [state(market, one) for one in (first, second, third, fourth)] == [
        "Submitted",
        "Rejected",
        "Rejected",
        "Submitted",
    ]


def test_rejected_long_and_badly_scored_answers_are_left_out(market: Market) -> None:
    rules = policy(
        PLURALITY,
        QuestionIds="a",
        QuestionAgreementThreshold="50",
        DisregardAssignmentIfRejected="true",
        DisregardAssignmentIfKnownAnswerScoreIsLessThan="100",
    )
    check = policy(KNOWN_ANSWERS, {"check": ["ok"]})
    hit_id = market.create_hit(MaxAssignments=5, HITReviewPolicy=rules, AssignmentReviewPolicy=check)
    rejected = answered(market, hit_id, a="x", check="ok")
    market.client.reject_assignment(AssignmentId=rejected, RequesterFeedback="no")
    answered(market, hit_id, a="x", check="bad")
    answered(market, hit_id, a="x" * 257, check="ok")
    answered(market, hit_id, a="y", check="ok")

    answered(market, hit_id, a="y", check="ok")

    results, _actions = report(market, hit_id, "HIT")
    assert {(hit_id, "a", "AgreedAnswer", "y"), (hit_id, "a", "AnswerAgreementScore", "66")} <= results


def test_selections_agree_as_sets(market: Market) -> None:
    xml = "<?xml version='1.0'?><A><Answer><QuestionIdentifier>q</QuestionIdentifier>{}</Answer></A>"
    some = "<SelectionIdentifier>{}</SelectionIdentifier>"
    first = answers_in(xml.format(some.format("a") + some.format("b")))
    assert first == answers_in(xml.format(some.format("b") + some.format("a")))
    assert first != answers_in(xml.format(some.format("a")))
    assert answers_in(xml.format("<FreeText> </FreeText>")) == {"q": frozenset()}


def test_policies_work_on_forms(market: Market) -> None:
    rules = policy(KNOWN_ANSWERS, {"primes": ["2", "3"]}, ApproveIfKnownAnswerScoreIsAtLeast="100")
    hit_id = market.create_hit(Question=TEST, AssignmentReviewPolicy=rules)
    worker_id = market.worker()

    receipt = market.engine.submit_form(
        worker_id, market.accepted(hit_id, worker_id), {"question-1": ["red"], "question-2": ["3", "2"]}
    )

    assert receipt.state == "Approved"


def test_reports_are_filtered_paged_and_private(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=3, HITReviewPolicy=plurality(), AssignmentReviewPolicy=known())
    for answers in ANSWERS:
        answered(market, hit_id, **answers)
    ask = market.client.list_review_policy_results_for_hit

    whole: Any = ask(HITId=hit_id)
    assert whole["AssignmentReviewPolicy"] == {"PolicyName": KNOWN_ANSWERS}
    assert whole["HITReviewPolicy"] == {"PolicyName": PLURALITY}
    only: Any = ask(HITId=hit_id, PolicyLevels=["HIT"], RetrieveActions=False)
    assert "AssignmentReviewReport" not in only
    found, token, pages = [], {}, 0
    while True:
        page: Any = ask(HITId=hit_id, MaxResults=7, **token)
        for level in ("Assignment", "HIT"):
            found += page[f"{level}ReviewReport"]["ReviewResults"] + page[f"{level}ReviewReport"]["ReviewActions"]
        pages += 1
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert pages > 3
    for level in ("Assignment", "HIT"):
        for part in ("ReviewResults", "ReviewActions"):
            assert all(item in found for item in whole[f"{level}ReviewReport"][part])
    plain: Any = ask(HITId=market.create_hit())
    assert "HITReviewReport" not in plain
    other = market.client_for(market.other_requester())
    with refused("RequestError", "HITDoesNotExist"):
        other.list_review_policy_results_for_hit(HITId=hit_id)
    with refused("ParameterValidationError"):
        market.create_hit(HITReviewPolicy=known())
