"""What externalSubmit takes, stores and refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from hits.marketplace.errors import (
    AlreadySubmitted,
    AnswerTooLarge,
    AssignmentReturned,
    AssignmentUnknown,
    NothingSubmitted,
    PreviewCannotBeSubmitted,
    TooLate,
)
from hits.marketplace.questions import QUESTION_FORM_ANSWERS
from hits.marketplace.xmltext import legal
from tests.hits.marketplace.market import Market


def answers_of(market: Market, assignment_id: str) -> dict[str, str]:
    answer = market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["Answer"]
    root = etree.fromstring(answer.encode())
    return {
        item.findtext(f"{{{QUESTION_FORM_ANSWERS}}}QuestionIdentifier"): item.findtext(
            f"{{{QUESTION_FORM_ANSWERS}}}FreeText"
        )
        for item in root
    }


def test_answers_are_stored_in_mturks_form(market: Market) -> None:
    assignment_id = market.accepted(market.create_hit())

    receipt = market.engine.external_submit(
        assignment_id, {"assignmentId": [assignment_id], "mood": ["4"], "text": ["naïve <b>&</b> 🙂"]}
    )

    assert receipt.state == "Submitted"
    assert receipt.submitted_at == market.clock.now()
    assert market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["Answer"] == (
        '<?xml version="1.0" encoding="ASCII"?>'
        '<QuestionFormAnswers xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/'
        'QuestionFormAnswers.xsd">'
        "<Answer><QuestionIdentifier>mood</QuestionIdentifier><FreeText>4</FreeText></Answer>"
        "<Answer><QuestionIdentifier>text</QuestionIdentifier>"
        "<FreeText>na&#239;ve &lt;b&gt;&amp;&lt;/b&gt; &#128578;</FreeText></Answer></QuestionFormAnswers>"
    )


def test_reserved_and_repeated_and_unspeakable_fields(market: Market) -> None:
    assignment_id = market.accepted(market.create_hit())

    market.engine.external_submit(
        assignment_id,
        {
            "assignmentId": ["x"],
            "hitId": ["x"],
            "workerId": ["x"],
            "turkSubmitTo": ["x"],
            "repeated": ["first", "second"],
            "na\x00me": ["a\x0bb\ud800c\ufffe"],
            "name": ["the cleaned name comes second"],
            "\x01": ["a name of nothing"],
            "none": [],
        },
    )

    assert answers_of(market, assignment_id) == {"repeated": "first", "name": "abc"}


@settings(deadline=None, max_examples=60)
@given(fields=st.dictionaries(st.text(max_size=8), st.text(max_size=30), min_size=1, max_size=4))
def test_any_unicode_comes_back(fields: dict[str, str]) -> None:
    market = _shared_market()
    assignment_id = market.accepted(market.create_hit(Reward="0.00"))
    expected = {}
    for name, value in fields.items():
        if legal(name) and name not in {"assignmentId", "hitId", "workerId", "turkSubmitTo"}:
            expected.setdefault(legal(name), legal(value))

    if not expected:
        with pytest.raises(NothingSubmitted):
            market.engine.external_submit(assignment_id, {name: [value] for name, value in fields.items()})
        return
    market.engine.external_submit(assignment_id, {name: [value] for name, value in fields.items()})

    found = {name: value or "" for name, value in answers_of(market, assignment_id).items()}
    assert found == expected


def test_submissions_that_are_refused_store_nothing(market: Market) -> None:
    hit_id, worker_id = market.create_hit(MaxAssignments=4), market.worker()
    returned = market.accepted(hit_id, worker_id)
    market.engine.return_assignment(worker_id, returned)
    abandoned = market.accepted(hit_id)
    market.clock.advance(minutes=10)
    held = market.accepted(hit_id)
    before = market.counters(hit_id)

    for assignment_id, error in (
        ("ASSIGNMENT_ID_NOT_AVAILABLE", PreviewCannotBeSubmitted),
        ("3NOTHERE", AssignmentUnknown),
        ("", AssignmentUnknown),
        ("nul\x00", AssignmentUnknown),
        (returned, AssignmentReturned),
        (abandoned, TooLate),
    ):
        with pytest.raises(error):
            market.engine.external_submit(assignment_id, {"a": ["1"]})
    with pytest.raises(NothingSubmitted):
        market.engine.external_submit(held, {"assignmentId": [held]})
    with pytest.raises(AnswerTooLarge, match="Nothing was stored"):
        market.engine.external_submit(held, {"a": ["x" * 600_000]})

    assert market.counters(hit_id) == before
    assert market.client.list_assignments_for_hit(HITId=hit_id)["NumResults"] == 0


def test_the_first_submission_counts(market: Market) -> None:
    assignment_id = market.accepted(market.create_hit())
    market.engine.external_submit(assignment_id, {"a": ["first"]})

    with pytest.raises(AlreadySubmitted, match="Your first submission is stored"):
        market.engine.external_submit(assignment_id, {"a": ["second"]})
    market.client.approve_assignment(AssignmentId=assignment_id)
    with pytest.raises(AlreadySubmitted):
        market.engine.external_submit(assignment_id, {"a": ["third"]})

    assert answers_of(market, assignment_id) == {"a": "first"}


_markets: list[Market] = []


def _shared_market() -> Market:
    if not _markets:
        _markets.append(Market())
    return _markets[0]
