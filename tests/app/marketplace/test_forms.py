"""HITs that are forms on the site: previewed, filled in by hand, checked, and never a way to run somebody's script."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from flask import Flask

from app.marketplace import forms
from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.form_reader import read_form
from hits.marketplace.forms import FreeText, Question, Selection
from tests.app.marketplace.conftest import Account, Visitor, accepted, hit_params, new_worker
from tests.hits.marketplace.forms_for_tests import free_text, question, question_form, selection

NASTY = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
ESCAPED = NASTY.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
MANY = "<MinSelectionCount>1</MinSelectionCount><MaxSelectionCount>2</MaxSelectionCount>"
OTHER = "<OtherSelection/>"


def style(name: str) -> str:
    return f"<StyleSuggestion>{name}</StyleSuggestion>"


def picture(host: str) -> str:
    return (
        "<Binary><MimeType><Type>image</Type><SubType>png</SubType></MimeType>"
        f"<DataURL>https://{host}/cat.png</DataURL><AltText>A cat</AltText></Binary>"
    )


FORM = question_form(
    "<Overview><Title>About the weather</Title><Text>Answer as you like.</Text>"
    "<List><ListItem>quickly</ListItem><ListItem>honestly</ListItem></List>"
    "<FormattedContent><![CDATA[<p>Some <b>bold</b> words</p>]]></FormattedContent></Overview>",
    question("sky", selection("blue", "red"), required=True, content="<Text>What colour is the sky?</Text>"),
    question("words", selection("good", "bad", "ugly", counts=MANY), content="<Text>Which words fit?</Text>"),
    question("town", selection("oslo", "rome", style=style("dropdown")), content="<Text>Which town?</Text>"),
    question("degrees", free_text('<IsNumeric minValue="-50" maxValue="60"/>'), content="<Text>How warm?</Text>"),
    question(
        "why",
        free_text('<Length minLength="5" maxLength="200"/>', "<NumberOfLinesSuggestion>4</NumberOfLinesSuggestion>"),
        content="<Text>Why?</Text>",
    ),
)
GOOD = {
    "question-1": "blue",
    "question-2": ["good", "ugly"],
    "question-3": "oslo",
    "question-4": "21.5",
    "question-5": "Because of the light.",
}


def create(engine: Marketplace, account: Account, form: str = FORM, **changes: Any) -> str:
    params = hit_params(Question=form, **changes)
    return str(engine.call(account.requester_id, "CreateHIT", params)["HIT"]["HITId"])


def answers(engine: Marketplace, account: Account, hit_id: str) -> list[str]:
    found = engine.call(account.requester_id, "ListAssignmentsForHIT", {"HITId": hit_id})
    return [one["Answer"] for one in found["Assignments"]]


def parsed(*parts: str) -> Any:
    return read_form("Question", question_form(*parts))


def answer_of(xml: str) -> FreeText | Selection:
    (part,) = parsed(question("q", xml)).parts
    assert isinstance(part, Question)
    return part.answer


def test_a_preview_shows_the_form_and_takes_nothing(engine: Marketplace, account: Account, worker: Visitor) -> None:
    response = worker.get(f"/hits/{create(engine, account)}")

    assert response.status_code == 200
    assert worker.page.find("iframe") is None
    for words in ("About the weather", "honestly", "Some bold words", "What colour is the sky?", "Question 5"):
        assert words in worker.text()
    outside = worker.page.select_one("fieldset.question-form")
    assert outside is not None
    assert outside.has_attr("disabled")
    assert len(outside.select("fieldset.question")) == 5
    assert outside.find_parent("form") is None


def test_a_form_is_filled_in_and_ends_at_the_receipt(engine: Marketplace, account: Account, worker: Visitor) -> None:
    hit_id = create(engine, account)
    assignment_id = accepted(worker, hit_id)

    response = worker.post(f"/work/{assignment_id}", GOOD)

    assert response.request.path == f"/work/{assignment_id}/submitted"
    (answer,) = answers(engine, account, hit_id)
    assert "<SelectionIdentifier>good</SelectionIdentifier><SelectionIdentifier>ugly</SelectionIdentifier>" in answer
    assert "<FreeText>Because of the light.</FreeText>" in answer
    assert worker.get(f"/work/{assignment_id}").request.path == f"/work/{assignment_id}/submitted"


def test_what_does_not_fit_is_said_above_its_field_and_nothing_typed_is_lost(
    engine: Marketplace, account: Account, worker: Visitor
) -> None:
    hit_id = create(engine, account)
    assignment_id = accepted(worker, hit_id)
    bad = {**GOOD, "question-2": ["good", "bad", "ugly"], "question-4": "99", "question-5": "<b>"}
    del bad["question-1"]

    response = worker.post(f"/work/{assignment_id}", bad)

    assert response.status_code == 422
    assert worker.page.title is not None
    assert str(worker.page.title.string).startswith("Error: ")
    for number, words in [
        (1, "Answer this question."),
        (2, "Choose at most 2."),
        (4, "Write a number that is at most 60."),
        (5, "Write at least 5 characters."),
    ]:
        error = worker.page.find(id=f"question-{number}-error")
        assert error is not None
        assert words in error.text
        described = worker.page.select_one(f'[aria-describedby~="question-{number}-error"]')
        assert described is not None
        assert worker.page.find("a", href=f"#question-{number}") is not None
    assert worker.page.find(id="question-3-error") is None
    assert {box["value"] for box in worker.page.select("[name=question-2][checked]")} == {"good", "bad", "ugly"}
    assert worker.page.select_one("option[selected]")["value"] == "oslo"  # type: ignore[index]
    assert worker.page.select_one("textarea[name=question-5]").text.strip() == "<b>"  # type: ignore[union-attr]
    assert answers(engine, account, hit_id) == []
    assert worker.post(f"/work/{assignment_id}", GOOD).request.path.endswith("/submitted")


def test_a_forged_form_is_refused(engine: Marketplace, account: Account, worker: Visitor) -> None:
    hit_id = create(engine, account)
    assignment_id = accepted(worker, hit_id)

    for token in ({}, {"csrf_token": "made-up"}):
        assert worker.client.post(f"/work/{assignment_id}", data={**GOOD, **token}).status_code == 400

    assert answers(engine, account, hit_id) == []


def test_nobody_elses_assignment_can_be_seen_or_answered(
    app: Flask, engine: Marketplace, account: Account, worker: Visitor, visitor: Visitor
) -> None:
    hit_id = create(engine, account)
    assignment_id = accepted(worker, hit_id)
    other = new_worker(app, engine, "eve")
    other.get("/profile")

    assert other.get(f"/work/{assignment_id}").status_code == 404
    assert other.post(f"/work/{assignment_id}", GOOD).status_code == 404
    visitor.get("/sign-in")
    assert visitor.post(f"/work/{assignment_id}", GOOD, follow=False).location.startswith("/sign-in")
    assert answers(engine, account, hit_id) == []


def test_the_open_door_of_frames_takes_no_form(engine: Marketplace, account: Account, worker: Visitor) -> None:
    hit_id = create(engine, account)
    assignment_id = accepted(worker, hit_id)

    response = worker.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, "question-1": "blue"})

    assert response.status_code == 400
    assert answers(engine, account, hit_id) == []


def test_a_second_submission_leads_to_the_receipt_of_the_first(
    engine: Marketplace, account: Account, worker: Visitor
) -> None:
    hit_id = create(engine, account)
    assignment_id = accepted(worker, hit_id)
    token = worker.token
    worker.post(f"/work/{assignment_id}", GOOD)

    response = worker.post(f"/work/{assignment_id}", {**GOOD, "csrf_token": token, "question-5": "Another reason."})

    assert response.request.path == f"/work/{assignment_id}/submitted"
    assert len(answers(engine, account, hit_id)) == 1
    assert "Another reason" not in answers(engine, account, hit_id)[0]


def test_a_form_after_its_time_is_refused(
    engine: Marketplace, account: Account, worker: Visitor, clock: TestClock
) -> None:
    assignment_id = accepted(worker, create(engine, account))
    clock.advance(timedelta(hours=2))

    response = worker.post(f"/work/{assignment_id}", GOOD)

    assert response.status_code == 410
    assert "time for this assignment is over" in worker.text()


def test_no_text_of_a_form_becomes_markup(engine: Marketplace, account: Account, worker: Visitor) -> None:
    form = question_form(
        f"<Overview><Title>{ESCAPED}</Title><Text>{ESCAPED}</Text><List><ListItem>{ESCAPED}</ListItem></List></Overview>",
        f"<Question><QuestionIdentifier>{ESCAPED}</QuestionIdentifier><DisplayName>{ESCAPED}</DisplayName>"
        f"<QuestionContent><Text>{ESCAPED}</Text></QuestionContent><AnswerSpecification><SelectionAnswer><Selections>"
        f"<Selection><SelectionIdentifier>{ESCAPED}</SelectionIdentifier><Text>{ESCAPED}</Text></Selection>"
        f"<OtherSelection><DefaultText>{ESCAPED}</DefaultText></OtherSelection>"
        "</Selections></SelectionAnswer></AnswerSpecification></Question>",
        question("free", free_text("", f"<DefaultText>{ESCAPED}</DefaultText>")),
        question("area", free_text("", f"<DefaultText>&lt;/textarea&gt;{ESCAPED}</DefaultText>" + lines(3))),
        question("drop", selection("a", style=style("dropdown")), content=f"<Text>{ESCAPED}</Text>"),
        question("pic", free_text(), content=picture("x.example").replace("A cat", ESCAPED.replace('"', "&quot;"))),
    )
    hit_id = create(engine, account, form, Title=NASTY)
    worker.get(f"/hits/{hit_id}")
    pages = [worker.page]
    assignment_id = accepted(worker, hit_id)
    pages.append(worker.page)
    worker.post(f"/work/{assignment_id}", {"question-1": NASTY, "question-1-other": NASTY, "question-2": NASTY})
    pages.append(worker.page)

    for page in pages:
        assert page.find(id="question-1") is not None
        assert [script for script in page.find_all("script") if not script.get("src", "").startswith("/static/")] == []
        assert [tag for tag in page.find_all(True) if any(name.startswith("on") for name in tag.attrs)] == []
        assert [one["src"] for one in page.find_all("img")] == ["https://x.example/cat.png"]


def lines(count: int) -> str:
    return f"<NumberOfLinesSuggestion>{count}</NumberOfLinesSuggestion>"


def test_pictures_come_from_the_forms_own_hosts_alone(engine: Marketplace, account: Account, worker: Visitor) -> None:
    marked = '<FormattedContent><![CDATA[<img src="http://c.example:8080/x.png" alt="x"/>]]></FormattedContent>'
    form = question_form(
        f"<Overview>{picture('a.example')}{picture('b;script-src *.example'.replace(' ', ''))}{marked}</Overview>",
        question("q", free_text()),
    )
    hit_id = create(engine, account, form)

    policy = worker.get(f"/hits/{hit_id}").headers["Content-Security-Policy"]

    assert "img-src 'self' data: https://a.example http://c.example:8080;" in policy
    assert policy.count("script-src") == 1
    assert "default-src 'none'" in policy
    assert worker.page.find("a", string="A cat") is not None
    elsewhere = worker.get("/hits").headers["Content-Security-Policy"]
    assert "img-src 'self' data:;" in elsewhere


def test_a_sound_has_controls_a_name_and_a_link(engine: Marketplace, account: Account, worker: Visitor) -> None:
    sound = picture("a.example").replace("image", "audio").replace("cat.png", "purr.ogg").replace("A cat", "Purring")
    hit_id = create(engine, account, question_form(question("q", free_text(), content=sound)))

    policy = worker.get(f"/hits/{hit_id}").headers["Content-Security-Policy"]

    audio = worker.page.find("audio")
    assert audio is not None
    assert (audio["src"], audio["aria-label"]) == ("https://a.example/purr.ogg", "Purring")
    assert audio.has_attr("controls")
    assert not audio.has_attr("autoplay")
    assert worker.page.find("a", href="https://a.example/purr.ogg", string="Purring") is not None
    assert "media-src https://a.example;" in policy


@pytest.mark.parametrize(
    ("xml", "control"),
    [
        (free_text(), "line"),
        (free_text("", lines(4)), "area"),
        (free_text("<IsNumeric/>", lines(4)), "line"),
        (selection("a", "b"), "radio"),
        (selection("a", "b", style=style("radiobutton")), "radio"),
        (selection("a", "b", style=style("checkbox")), "checkbox"),
        (selection("a", "b", style=style("dropdown")), "select"),
        (selection("a", "b", style=style("combobox"), other=OTHER), "select"),
        (selection("a", "b", style=style("list")), "listbox"),
        (selection("a", "b", "c", counts=MANY, style=style("multichooser")), "checkbox"),
        (selection("a", "b", "c", counts=MANY, style=style("dropdown")), "checkbox"),
    ],
)
def test_each_style_has_a_control(xml: str, control: str) -> None:
    assert forms.control(answer_of(xml)) == control


def test_choices_with_more_than_words_are_radio_buttons_under_every_style() -> None:
    xml = selection("a", style=style("dropdown")).replace("<Text>A</Text>", picture("a.example"))

    assert forms.control(answer_of(xml)) == "radio"


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (free_text(), ""),
        (free_text("<IsNumeric/>"), "A number."),
        (free_text('<IsNumeric minValue="1" maxValue="5"/>'), "A number 1 to 5."),
        (free_text('<IsNumeric minValue="1"/>'), "A number at least 1."),
        (free_text('<Length minLength="2" maxLength="9"/>'), "2 to 9 characters."),
        (free_text('<Length maxLength="9"/>'), "At most 9 characters."),
        (free_text('<Length minLength="2"/>'), "At least 2 characters."),
        (selection("a", "b"), ""),
        (selection("a", "b", "c", counts=MANY), "Choose 1 to 2."),
        (selection("a", "b", counts=MANY.replace("n>1<", "n>0<").replace("t>1<", "t>0<")), "Choose up to 2."),
        (selection("a", "b", counts=MANY.replace("t>1<", "t>2<")), "Choose 2."),
    ],
)
def test_a_hint_says_what_fits(xml: str, words: str) -> None:
    assert forms.hint(answer_of(xml)) == words


def test_other_words_go_with_no_choice_and_an_optional_choice_can_be_taken_back(
    engine: Marketplace, account: Account, worker: Visitor
) -> None:
    form = question_form(
        question("a", selection("x", "y", other=OTHER), required=True), question("b", selection("x", "y"))
    )
    hit_id = create(engine, account, form)
    assignment_id = accepted(worker, hit_id)
    assert [box["value"] for box in worker.page.select("[name=question-1]")] == ["x", "y", ""]
    assert [box["value"] for box in worker.page.select("[name=question-2]")] == ["x", "y", ""]

    worker.post(f"/work/{assignment_id}", {"question-1": "", "question-1-other": "z", "question-2": ""})

    (answer,) = answers(engine, account, hit_id)
    assert "<OtherSelectionText>z</OtherSelectionText>" in answer
    assert "SelectionIdentifier" not in answer


@pytest.mark.parametrize(
    "address", ["https://a;b/x", "https://a,b/x", "https://a:99999/", "https://ä.example/", "ftp://a", "https://a'b/"]
)
def test_an_address_that_would_spoil_a_header_has_no_origin(address: str) -> None:
    assert forms.safe_origin(address) is None
