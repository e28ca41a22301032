"""What externalSubmit takes, stores and refuses."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from hits.marketplace.errors import (
    AlreadySubmitted,
    AnswerTooLarge,
    AssignmentReturned,
    AssignmentUnknown,
    FormExpected,
    FormIncomplete,
    HitUnknown,
    NothingSubmitted,
    PreviewCannotBeSubmitted,
    TooLate,
)
from hits.marketplace.questions import QUESTION_FORM_ANSWERS, write_html_question
from hits.marketplace.xmltext import legal
from tests.hits.marketplace.forms_for_tests import TEST
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


def test_a_form_is_answered_on_the_site(market: Market) -> None:
    worker_id, hit_id = market.worker(), market.create_hit(Question=TEST, MaxAssignments=2)
    view = market.engine.preview(worker_id, hit_id)
    assert (view.question_kind, view.frame_url) == ("QuestionForm", None)
    assert view.form is not None
    held = market.engine.accept(worker_id, hit_id)
    assert held.form == view.form

    with pytest.raises(FormExpected):
        market.engine.external_submit(held.assignment_id, {"sky": ["blue"]})
    with pytest.raises(FormIncomplete):
        market.engine.submit_form(worker_id, held.assignment_id, {})
    with pytest.raises(AssignmentUnknown):
        market.engine.submit_form(market.worker(), held.assignment_id, {"question-1": ["blue"]})
    receipt = market.engine.submit_form(worker_id, held.assignment_id, {"question-1": ["blue"], "question-2": ["3"]})

    assert receipt.state == "Submitted"
    answer = market.client.get_assignment(AssignmentId=held.assignment_id)["Assignment"]["Answer"]
    assert "<QuestionIdentifier>sky</QuestionIdentifier><SelectionIdentifier>blue</SelectionIdentifier>" in answer
    with pytest.raises(AlreadySubmitted):
        market.engine.submit_form(worker_id, held.assignment_id, {"question-1": ["red"]})
    assert market.engine.assignment(worker_id, held.assignment_id).form is None


def test_a_form_is_not_taken_late_returned_or_for_another_kind(market: Market) -> None:
    worker_id = market.worker()
    external = market.accepted(market.create_hit(), worker_id)
    returned, late = (market.accepted(market.create_hit(Question=TEST), worker_id) for _ in range(2))
    market.engine.return_assignment(worker_id, returned)
    market.clock.advance(hours=1)

    for assignment_id, refusal in (
        (external, AssignmentUnknown),
        (returned, AssignmentReturned),
        (late, TooLate),
        ("3NONE", AssignmentUnknown),
        ("\x00", AssignmentUnknown),
    ):
        with pytest.raises(refusal):
            market.engine.submit_form(worker_id, assignment_id, {"question-1": ["blue"]})


def test_html_is_served_at_its_signed_address_until_the_deadline(market: Market) -> None:
    page = "<form><input name='a'></form>"
    worker_id, hit_id = market.worker(), market.create_hit(Question=write_html_question(page, 0), MaxAssignments=2)
    preview, held = market.engine.preview(None, hit_id), market.engine.accept(worker_id, hit_id)

    for url in (preview.frame_url, held.frame_url):
        parts = urlsplit(url or "")
        query = dict(parse_qsl(parts.query))
        assert (parts.netloc, parts.path) == ("localhost:8000", f"/hit-content/{hit_id}")
        signed = query["contentExpires"], query["contentSignature"]
        assert market.engine.question_html(hit_id, *signed) == page
    assert (query["assignmentId"], query["workerId"]) == (held.assignment_id, worker_id)
    assert held.question_kind == "HTMLQuestion"
    assert market.engine.external_submit(held.assignment_id, {"a": ["1"]}).state == "Submitted"

    other = market.create_hit(Question=write_html_question(page, 0))
    for wrong in ((other, *signed), (hit_id, "99999999999", signed[1]), (hit_id, signed[0], "ü"), ("ü", *signed)):
        with pytest.raises(HitUnknown):
            market.engine.question_html(*wrong)
    market.clock.advance(minutes=10)
    with pytest.raises(HitUnknown):
        market.engine.question_html(hit_id, *signed)
