"""The creation HIT as its worker meets it, and as somebody with bad intentions would."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask import Flask
from flask.testing import FlaskClient
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app.extensions import db
from app.factory import create_app
from app.frames import signature
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Assignment, Attempt, Hit, ModelVersion, Worker
from hits.predictions import ModelUnavailable
from hits.states import AssignmentState, AttemptState, HitState
from hits.tasks.sentiment import TASK
from inference.engine import EngineSettings, InProcessEngine, ModelSource
from inference.errors import ModelQueueFull, ModelWarmingUp, NothingToRead
from inference.target import ModelCard
from tests.app.conftest import ASSIGNMENT, WORKER, RuleEngine, ask, frame_query, gone_on, open_page, token_in
from tests.app.four_tasks import FourTaskEngine, creation_hit
from tests.factories import make_assignment, make_attempt, make_batch, make_context, make_hit, make_round

Rows = Callable[[type[Any]], list[Any]]


def soup(response: TestResponse) -> BeautifulSoup:
    return BeautifulSoup(response.text, "lxml")


def submit(client: FlaskClient, token: str, **fields: str) -> TestResponse:
    return client.post("/work/submit", data={"token": token, **fields})


def test_a_worker_opens_asks_fools_and_hands_in(client: FlaskClient, hit: Hit, rows: Rows, engine: RuleEngine) -> None:
    page = open_page(client, hit)
    token = token_in(page)
    held = ask(client, token, "I am sad.")
    fooled = ask(client, token, "The good old queue again.")
    done = submit(client, token, why="It is a complaint.")

    assert "a NEGATIVE statement" in page.text
    assert "5 of 5 tries left" in page.text
    assert held.status_code == 200
    assert "The model got it right" in held.text
    assert "4 of 5 tries left" in held.text
    assert "4 tries left." in held.text
    assert "You fooled the model" in fooled.text
    assert "You can submit now." in fooled.text
    assert "83%" in fooled.text
    assert 'action="http://127.0.0.1:8000/mturk/externalSubmit"' in done.text
    assert 'name="assignmentId" value="ASSIGNMENTONE"' in done.text
    assert [attempt.fooled for attempt in rows(Attempt)] == [False, True]
    assert [(one.state, one.why) for one in rows(Assignment)] == [("saved", "It is a complaint.")]
    assert engine.asked == ["I am sad.", "The good old queue again."]
    assert [(one.model_id, one.revision, one.labels) for one in rows(ModelVersion)] == [
        ("rule", "one", ["negative", "positive", "neutral"])
    ]


# Preview


def test_a_preview_tells_what_a_worker_needs_in_order_and_stores_nothing(
    client: FlaskClient, hit: Hit, rows: Rows, engine: RuleEngine
) -> None:
    response = client.get(
        f"/work/{hit.reference}",
        query_string={"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": hit.mturk_hit_id or ""},
    )

    text = soup(response).get_text(" ", strip=True)
    order = [
        "Write a short statement",
        "You are paid $0.30",
        "Bonus $0.30",
        "about 5 minutes",
        "Tries 5",
        "Who may do",
        "by itself after 3 days",
        "contact",
        "A train was late",
        "Accept the HIT to start",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert all(
        field.find_parent("fieldset", disabled=True) for field in soup(response).find_all(["textarea", "button"])
    )
    assert soup(response).find("input", {"name": "token"}) is None
    assert rows(Assignment) == rows(Worker) == rows(Attempt) == []
    assert engine.asked == []


@pytest.mark.parametrize("token", ["", "ASSIGNMENT_ID_NOT_AVAILABLE", "x.y.z"])
@pytest.mark.parametrize("path", ["/work/attempts", "/work/submit", "/work/attempts/some/explanation"])
def test_a_post_of_a_preview_changes_nothing(
    client: FlaskClient, hit: Hit, rows: Rows, engine: RuleEngine, path: str, token: str
) -> None:
    response = client.post(path, data={"token": token, "statement": "I am sad.", "assignmentId": ASSIGNMENT})

    assert response.status_code == 403
    assert rows(Assignment) == rows(Attempt) == []
    assert engine.asked == []


# Who may open the page


@pytest.mark.parametrize(
    "change",
    [
        {"hitId": "SOMEOTHERHIT"},
        {"turkSubmitTo": "http://evil.example"},
        {"worker": "not a worker"},
        {"worker": "AW\0RKER"},
        {"assignment": "made up <script>"},
        {"assignment": "A" * 65},
    ],
)
def test_a_claim_that_can_not_be_true_is_refused_and_stores_nothing(
    client: FlaskClient, hit: Hit, rows: Rows, change: dict[str, str]
) -> None:
    response = open_page(client, hit, **change)

    assert response.status_code in (403, 422)
    assert "Open the HIT again" in response.text or "Open the HIT from" in response.text
    assert "<script>" not in response.text.replace("<script src", "")
    assert rows(Assignment) == rows(Worker) == []


def test_an_assignment_of_another_worker_is_refused(client: FlaskClient, hit: Hit, token: str, rows: Rows) -> None:
    response = open_page(client, hit, worker="ATHIEF")

    assert response.status_code == 403
    assert "This is not your assignment" in response.text
    assert [one.mturk_worker_id for one in rows(Worker)] == [WORKER]


def test_a_hit_whose_id_is_not_stored_yet_opens(client: FlaskClient, session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        lost = make_hit(session, state=HitState.CREATING, mturk_hit_id=None)
        session.commit()
        reference = lost.reference

    response = gone_on(client, client.get(f"/work/{reference}", query_string={**frame_query(lost), "hitId": "HITNEW"}))

    assert response.status_code == 200
    assert "Ask the model" in response.text


def test_an_unknown_reference_says_that_returning_is_harmless(client: FlaskClient, hit: Hit) -> None:
    response = client.get("/work/unknown", query_string=frame_query(hit))

    assert response.status_code == 404
    assert "return it without harm" in response.text


@pytest.fixture
def strict(
    settings: Settings, session_factory: sessionmaker[Session], engine: RuleEngine, clock: FixedClock
) -> Iterator[FlaskClient]:
    """A client of a service that demands the marketplace's signature."""
    signed = settings.model_copy(update={"frame_secret": SecretStr("shared")})
    built = create_app(signed, engine=engine, clock=clock)
    yield built.test_client()
    with built.app_context():
        db.engine.dispose()


def signed_query(hit: Hit, clock: FixedClock, **changes: str) -> dict[str, str]:
    expires = str(int((clock.now() + timedelta(minutes=20)).timestamp()))
    made = signature(
        "shared", assignment_id=ASSIGNMENT, worker_id=WORKER, hit_id=hit.mturk_hit_id or "", expires=expires
    )
    return {**frame_query(hit), "frameExpires": expires, "frameSignature": made, **changes}


def test_a_signed_frame_opens_with_the_marketplaces_deadline(
    strict: FlaskClient, hit: Hit, clock: FixedClock, rows: Rows
) -> None:
    response = gone_on(strict, strict.get(f"/work/{hit.reference}", query_string=signed_query(hit, clock)))

    assert response.status_code == 200
    assert 'data-countdown="1200"' in response.text
    assert rows(Assignment)[0].deadline_at == clock.now() + timedelta(minutes=20)


@pytest.mark.parametrize("change", [{"assignmentId": "MADEUP"}, {"workerId": "AMADEUP"}, {"frameSignature": ""}])
def test_a_made_up_claim_is_refused_where_frames_are_signed(
    strict: FlaskClient, hit: Hit, clock: FixedClock, rows: Rows, change: dict[str, str]
) -> None:
    response = strict.get(f"/work/{hit.reference}", query_string=signed_query(hit, clock, **change))

    assert response.status_code == 403
    assert "signature does not fit" in response.text
    assert rows(Assignment) == []


def test_a_signed_frame_that_is_too_old_says_so(strict: FlaskClient, hit: Hit, clock: FixedClock) -> None:
    query = signed_query(hit, clock)
    clock.advance(timedelta(minutes=20))

    response = strict.get(f"/work/{hit.reference}", query_string=query)

    assert response.status_code == 403
    assert "The time is over" in response.text


def test_no_page_of_a_hit_sets_a_cookie(client: FlaskClient, hit: Hit) -> None:
    page = open_page(client, hit)
    token = token_in(page)
    answers = [
        page,
        client.get(f"/work/{hit.reference}"),
        ask(client, token, "I am sad."),
        ask(client, token, "Such a good long wait."),
        submit(client, token),
        open_page(client, hit),
        client.get("/work/unknown"),
    ]

    assert [answer.headers.get("Set-Cookie") for answer in answers] == [None] * len(answers)


# Asking


def test_a_script_gets_a_fragment_with_the_parts_that_change(client: FlaskClient, token: str) -> None:
    response = ask(client, token, "I am sad.", script=True)

    assert response.headers["X-Fragment"] == "1"
    assert "<html" not in response.text
    assert [part["id"] for part in soup(response).body.find_all(recursive=False)] == [
        "trouble",
        "tries",
        "model-answer",
    ]


def test_the_bars_are_a_table_with_words(client: FlaskClient, token: str) -> None:
    table = soup(ask(client, token, "I am sad.")).find("table", class_="probability-bars")

    assert table.find("caption").get_text() == "What the model says"
    assert [
        [cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])] for row in table.tbody.find_all("tr")
    ] == [["negative your goal", "", "83%"], ["positive", "", "12%"], ["neutral", "", "5%"]]


def test_the_same_text_again_is_the_same_attempt(
    client: FlaskClient, token: str, rows: Rows, engine: RuleEngine
) -> None:
    first = ask(client, token, "I am sad.")
    again = ask(client, token, "  I am sad.\r\n")

    assert "4 of 5 tries left" in first.text
    assert "4 of 5 tries left" in again.text
    assert len(rows(Attempt)) == 1
    assert engine.asked == ["I am sad."]


def test_a_reload_shows_the_last_answer(client: FlaskClient, hit: Hit, token: str) -> None:
    ask(client, token, "I am sad.")

    page = open_page(client, hit)

    assert "The model got it right" in page.text
    assert "4 of 5 tries left" in page.text


def test_earlier_statements_are_folded_beneath(client: FlaskClient, token: str) -> None:
    ask(client, token, "I am sad.")
    page = soup(ask(client, token, "I am very sad."))

    earlier = page.find("details", class_="earlier")
    assert earlier.summary.get_text() == "Your other statements (1)"
    assert "I am sad." in earlier.get_text()
    assert not earlier.has_attr("open")


def test_instructions_are_open_the_first_time_only(client: FlaskClient, hit: Hit) -> None:
    first = open_page(client, hit)
    ask(client, token_in(first), "I am sad.")
    second = open_page(client, hit)

    assert soup(first).find("details", class_="instructions").has_attr("open")
    assert not soup(second).find("details", class_="instructions").has_attr("open")


def test_the_sixth_try_is_refused(client: FlaskClient, token: str, rows: Rows, engine: RuleEngine) -> None:
    for number in range(5):
        ask(client, token, f"I am sad {number}.")

    response = ask(client, token, "I am sad again.")
    by_script = ask(client, token, "I am sad once more.", script=True)

    assert response.status_code == by_script.status_code == 409
    assert "All 5 tries are used" in response.text
    assert "Submit" in response.text
    assert "All 5 tries are used" in soup(by_script).find(id="trouble").get_text()
    assert soup(by_script).find("form", {"action": "/work/submit"}) is not None
    assert len(rows(Attempt)) == 5
    assert len(engine.asked) == 5


def test_two_windows_that_take_the_fifth_try_at_once_get_one_between_them(
    app: Flask, token: str, client: FlaskClient, rows: Rows, engine: RuleEngine
) -> None:
    for number in range(4):
        ask(client, token, f"I am sad {number}.")
    start = threading.Barrier(2)
    found: list[TestResponse] = []

    def race(name: str) -> None:
        own = app.test_client()
        start.wait(timeout=10)
        found.append(ask(own, token, f"I am sad, says {name}."))

    threads = [threading.Thread(target=race, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert sorted(response.status_code for response in found) == [200, 409]
    assert sorted(attempt.try_number for attempt in rows(Attempt)) == [1, 2, 3, 4, 5]
    assert len(engine.asked) == 5


def test_a_double_click_asks_with_one_try(app: Flask, token: str, rows: Rows) -> None:
    start = threading.Barrier(2)
    found: list[TestResponse] = []

    def click() -> None:
        own = app.test_client()
        start.wait(timeout=10)
        found.append(ask(own, token, "I am sad."))

    threads = [threading.Thread(target=click) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert [response.status_code for response in found] == [200, 200]
    assert [attempt.try_number for attempt in rows(Attempt)] == [1]


def test_nothing_is_asked_after_the_model_was_fooled(client: FlaskClient, token: str, engine: RuleEngine) -> None:
    ask(client, token, "A good queue.")

    response = ask(client, token, "Another good queue.")

    assert response.status_code == 409
    assert "already fooled the model" in response.text
    assert engine.asked == ["A good queue."]


def test_labels_and_verdicts_from_the_browser_are_not_believed(client: FlaskClient, token: str, rows: Rows) -> None:
    ask(
        client,
        token,
        "I am sad.",
        goal_label="positive",
        label="positive",
        fooled="1",
        predicted_label="positive",
        workerId="ATHIEF",
        assignmentId="OTHER",
        hit="1",
    )

    attempt = rows(Attempt)[0]
    assert (attempt.goal_label, attempt.predicted_label, attempt.fooled) == ("negative", "negative", False)
    assert [one.mturk_worker_id for one in rows(Worker)] == [WORKER]


def test_an_expired_token_changes_nothing(
    client: FlaskClient, token: str, clock: FixedClock, rows: Rows, engine: RuleEngine
) -> None:
    clock.advance(timedelta(hours=2))

    response = ask(client, token, "I am sad.")

    assert response.status_code == 403
    assert "This page is too old" in response.text
    assert rows(Attempt) == []
    assert engine.asked == []


def test_after_the_deadline_nothing_is_asked(client: FlaskClient, token: str, clock: FixedClock, rows: Rows) -> None:
    clock.advance(timedelta(minutes=30))

    response = ask(client, token, "I am sad.")

    assert response.status_code == 409
    assert "time for this HIT is over" in response.text
    assert rows(Attempt) == []


BAD_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "invisible": "\u200b\u200d",
    "nul": "I am\0 sad.",
    "escape": "I am\x1b[31m sad.",
    "too long": "x" * 1001,
}


@pytest.mark.parametrize("kind", sorted(BAD_TEXTS))
def test_a_text_that_can_not_be_used_is_told_at_its_field_and_uses_no_try(
    client: FlaskClient, token: str, rows: Rows, engine: RuleEngine, kind: str
) -> None:
    page = ask(client, token, BAD_TEXTS[kind])
    by_script = ask(client, token, BAD_TEXTS[kind], script=True)

    assert page.status_code == by_script.status_code == 422
    field = soup(page).find("textarea", id="statement")
    assert field["aria-invalid"] == "true"
    assert "statement-error" in field["aria-describedby"]
    assert by_script.json["field"] == "statement"
    assert "5 of 5 tries left" in page.text
    assert rows(Attempt) == []
    assert engine.asked == []


def test_a_text_in_which_the_model_finds_nothing_to_read_uses_no_try(
    client: FlaskClient, token: str, rows: Rows, engine: RuleEngine
) -> None:
    engine.error = NothingToRead()

    response = ask(client, token, "!?")

    assert response.status_code == 422
    assert "nothing that the model can read" in response.text
    assert "5 of 5 tries left" in response.text
    assert [attempt.state for attempt in rows(Attempt)] == [AttemptState.UNANSWERED]


GOOD_TEXTS = {
    "markup": "<b>I</b> am <script>alert(1)</script> sad & \"done\" 'here'.",
    "template": "{{ config }} {% raw %} sad",
    "emoji": "So sad 😭👨‍👩‍👧‍👦🏳️‍🌈",
    "right to left": "الطعام بارد \u202eevil\u202c sad",
    "accents": "naïve coöperation, Ärger",
}


@pytest.mark.parametrize("kind", sorted(GOOD_TEXTS))
def test_every_writing_is_kept_and_shown_as_written(client: FlaskClient, token: str, rows: Rows, kind: str) -> None:
    text = GOOD_TEXTS[kind]
    page = ask(client, token, text)

    assert rows(Attempt)[0].answer == {"statement": text}
    assert soup(page).find("textarea", id="statement").get_text().strip() == text
    assert all(script.get("src", "").startswith("/static/") for script in soup(page).find_all("script"))


def test_markup_in_the_context_is_only_text(client: FlaskClient, session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        batch = make_batch(session, round=make_round(session), title="<i>Title</i>")
        context = make_context(session, round=batch.round, fields={"prompt": "<img src=x onerror=alert(1)>"})
        made = make_hit(session, batch=batch, context_id=context.id, goal_label="negative")
        session.commit()
        page = soup(open_page(client, made))

    assert page.find("img") is None
    assert page.find("i") is None
    assert "<img src=x onerror=alert(1)>" in page.get_text()


# When the model fails


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ModelUnavailable("down"), 503),
        (ModelQueueFull(64), 429),
        (ModelWarmingUp(2.0), 503),
        (RuntimeError("broken"), 503),
    ],
)
def test_a_model_that_fails_uses_no_try_and_the_worker_can_submit(
    client: FlaskClient, token: str, rows: Rows, engine: RuleEngine, error: Exception, status: int
) -> None:
    engine.error = error

    response = ask(client, token, "I am sad.")
    done = submit(client, token)

    assert response.status_code == status
    assert "No try was used" in response.text
    assert "5 of 5 tries left" in response.text
    assert ("you are paid <span" in response.text) is not isinstance(error, ModelWarmingUp)
    assert "broken" not in response.text
    assert "Your work is saved" in done.text
    assert [(one.state, one.try_number) for one in rows(Attempt)] == [(AttemptState.UNANSWERED, None)]
    assert rows(Assignment)[0].state is AssignmentState.SAVED


def test_a_page_asks_again_by_itself_only_while_the_model_warms_up(
    client: FlaskClient, token: str, engine: RuleEngine
) -> None:
    engine.error = ModelWarmingUp(2.0)
    warming = ask(client, token, "I am sad.", script=True)
    engine.error = ModelUnavailable("down")
    down = ask(client, token, "I am sad.", script=True)

    assert soup(warming).find(id="model-answer")["data-again"] == "3000"
    assert not soup(down).find(id="model-answer").has_attr("data-again")


def test_the_same_text_is_asked_again_after_a_failure(client: FlaskClient, token: str, engine: RuleEngine) -> None:
    engine.error = ModelUnavailable("down")
    ask(client, token, "I am sad.")
    engine.error = None

    response = ask(client, token, "I am sad.")

    assert response.status_code == 200
    assert "4 of 5 tries left" in response.text
    assert engine.asked == ["I am sad."] * 2


@pytest.mark.parametrize(
    "probabilities",
    [
        {"negative": 0.9, "positive": 0.1},
        {"negative": float("nan"), "positive": 0.5, "neutral": 0.5},
        {"negative": 0.1, "positive": 0.8, "neutral": 0.1},
    ],
)
def test_an_answer_that_is_none_counts_as_a_failure(
    client: FlaskClient, token: str, rows: Rows, engine: RuleEngine, probabilities: dict[str, float]
) -> None:
    engine.probabilities = probabilities

    response = ask(client, token, "I am sad.")

    assert response.status_code == 503
    assert "5 of 5 tries left" in response.text
    assert [one.state for one in rows(Attempt)] == [AttemptState.UNANSWERED]


def test_a_model_that_hangs_is_given_up_in_time(
    settings: Settings, session_factory: sessionmaker[Session], hit: Hit, clock: FixedClock, rows: Rows
) -> None:
    never = threading.Event()

    class Hanging:
        calls = 0

        model_id, revision = "rule", "one"
        card = ModelCard("rule", "one", TASK.label_codes)

        def predict_all(self, inputs: Any) -> Any:
            self.calls += 1
            if self.calls > 1:
                never.wait(20)
            return [RuleEngine().predict("sentiment", {"statement": text}) for (text,) in inputs]

        def explain(self, item: Any, target: str, method: str | None = None) -> Any:
            return RuleEngine().explain("sentiment", {"statement": item[0]}, target)

    source = ModelSource(TASK.kind, TASK.model_fields, TASK.label_codes, load=Hanging)
    engine = InProcessEngine({"sentiment": source}, EngineSettings(lanes=1, predict_seconds=0.2))
    app = create_app(settings, engine=engine, clock=clock)
    client = app.test_client()
    token = token_in(open_page(client, hit))
    engine.wait_until_settled(10)
    try:
        response = ask(client, token, "I am sad.")
    finally:
        never.set()
        engine.stop()
        with app.app_context():
            db.engine.dispose()

    assert response.status_code == 503
    assert "No try was used" in response.text
    assert [one.state for one in rows(Attempt)] == [AttemptState.UNANSWERED]


def test_no_transaction_is_open_while_the_model_reads(
    client: FlaskClient, token: str, engine: RuleEngine, session_factory: sessionmaker[Session], rows: Rows
) -> None:
    seen: list[AttemptState] = []

    def look(text: str) -> None:
        with session_factory() as session:
            session.connection().exec_driver_sql("UPDATE hit SET position = position")
            session.commit()
        seen.extend(attempt.state for attempt in rows(Attempt))

    engine.before_answer = look
    ask(client, token, "I am sad.")

    assert seen == [AttemptState.ASKING]


def test_a_crash_while_the_model_reads_gives_the_try_back(
    client: FlaskClient, hit: Hit, token: str, engine: RuleEngine, clock: FixedClock
) -> None:
    class Killed(BaseException):
        pass

    def die(text: str) -> None:
        raise Killed

    engine.before_answer = die
    with pytest.raises(Killed):
        ask(client, token, "I am sad.")
    engine.before_answer = lambda text: None
    clock.advance(timedelta(seconds=31))

    page = open_page(client, hit)
    answered = ask(client, token, "I am sad.")

    assert "5 of 5 tries left" in page.text
    assert "4 of 5 tries left" in answered.text


# Explanations


def public_id(rows: Rows) -> str:
    return str(rows(Attempt)[-1].public_id)


def explain(client: FlaskClient, token: str, attempt: str, *, script: bool = True) -> TestResponse:
    headers = {"X-Requested-With": "fetch"} if script else {}
    return client.post(f"/work/attempts/{attempt}/explanation", data={"token": token}, headers=headers)


def test_the_verdict_comes_without_an_explanation_and_asks_for_it(
    client: FlaskClient, token: str, engine: RuleEngine
) -> None:
    page = soup(ask(client, token, "I am sad.", script=True))

    assert engine.explained == []
    assert page.find("form", {"data-auto": True})["action"].endswith("/explanation")


def test_an_explanation_marks_the_words_and_says_what_the_marks_mean(
    client: FlaskClient, token: str, rows: Rows
) -> None:
    ask(client, token, "I am sad today.")
    page = soup(explain(client, token, public_id(rows)))

    marked = page.find("p", class_="attribution")
    assert marked.get_text() == "I am sad today."
    assert [(mark.get_text(), mark["class"][0]) for mark in marked.find_all("mark")] == [
        ("I", "for-3"),
        ("am", "against-2"),
        ("sad", "for-2"),
    ]
    assert "solid line marks words that spoke for negative" in page.find("p", class_="legend").get_text()
    assert next(row.get_text(" ", strip=True) for row in page.find("tbody").find_all("tr")) == "I for it 100 +1.000"


def test_an_explanation_is_made_once(client: FlaskClient, token: str, rows: Rows, engine: RuleEngine) -> None:
    ask(client, token, "I am sad.")
    for _ in range(3):
        explain(client, token, public_id(rows))

    assert engine.explained == ["I am sad."]
    assert rows(Attempt)[0].convergence_delta == 0.001


def test_without_a_script_the_explanation_is_part_of_the_page(client: FlaskClient, token: str, rows: Rows) -> None:
    ask(client, token, "I am sad.")

    page = explain(client, token, public_id(rows), script=False)

    assert page.status_code == 200
    assert soup(page).find("p", class_="attribution") is not None
    assert "Ask the model" in page.text


@pytest.mark.parametrize("error", [ModelUnavailable("down"), RuntimeError("broken")])
def test_an_explanation_that_fails_says_so_and_costs_nothing(
    client: FlaskClient, token: str, rows: Rows, engine: RuleEngine, error: Exception
) -> None:
    ask(client, token, "I am sad.")
    engine.explain_error = error

    response = explain(client, token, public_id(rows))

    assert response.status_code == 503
    assert "The explanation could not be made" in response.text
    assert soup(response).find("form", {"data-auto": True}) is None
    assert rows(Attempt)[0].attribution is None


def test_an_explanation_of_another_workers_attempt_is_refused(
    client: FlaskClient, token: str, session_factory: sessionmaker[Session], engine: RuleEngine
) -> None:
    with session_factory() as session:
        other = make_attempt(
            session,
            assignment=make_assignment(
                session, hit=make_hit(session, batch=make_batch(session, round=make_round(session, number=2)))
            ),
        )
        session.commit()
        theirs = other.public_id

    response = explain(client, token, theirs)

    assert response.status_code == 409
    assert engine.explained == []


def test_a_new_version_of_the_model_does_not_explain_an_old_answer(
    client: FlaskClient, token: str, rows: Rows, engine: RuleEngine
) -> None:
    ask(client, token, "I am sad.")
    engine.revision = "two"

    response = explain(client, token, public_id(rows))

    assert response.status_code == 503
    assert rows(Attempt)[0].attribution is None


# Submitting


def test_submitting_without_an_attempt_is_refused(client: FlaskClient, token: str, rows: Rows) -> None:
    response = submit(client, token)

    assert response.status_code == 409
    assert "not asked the model yet" in response.text
    assert "externalSubmit" not in response.text
    assert rows(Assignment)[0].state is AssignmentState.OPENED


def test_submitting_with_tries_left_is_refused(client: FlaskClient, token: str) -> None:
    ask(client, token, "I am sad.")

    response = submit(client, token)

    assert response.status_code == 409
    assert "4 tries left" in response.text


def test_submitting_again_leads_to_the_same_receipt(client: FlaskClient, hit: Hit, token: str, rows: Rows) -> None:
    ask(client, token, "A good queue.")
    pages = [submit(client, token, why="first"), submit(client, token, why="second"), open_page(client, hit)]

    receipts = {soup(page).find("input", {"name": "dynahit"})["value"] for page in pages}
    assert len(receipts) == 1
    assert rows(Assignment)[0].why == "first"


def test_a_saved_hit_takes_no_more_questions(client: FlaskClient, token: str, engine: RuleEngine) -> None:
    ask(client, token, "A good queue.")
    submit(client, token)

    response = ask(client, token, "Something else.", script=True)
    page = ask(client, token, "Something else.")

    assert response.status_code == page.status_code == 409
    assert "already submitted" in response.json["error"]["what"]
    assert "Your work is saved" in page.text
    assert engine.asked == ["A good queue."]


def test_a_collected_hit_shows_its_receipt_and_no_form(
    client: FlaskClient, hit: Hit, token: str, session_factory: sessionmaker[Session]
) -> None:
    ask(client, token, "A good queue.")
    submit(client, token)
    with session_factory() as session:
        session.query(Assignment).one().state = AssignmentState.SUBMITTED
        session.commit()

    page = open_page(client, hit)

    assert "This HIT is submitted" in page.text
    assert soup(page).find("form") is None


def test_the_remark_may_hold_anything(client: FlaskClient, token: str, rows: Rows) -> None:
    ask(client, token, "A good queue.")

    response = submit(client, token, why="<script>\0" + "é" * 3000)

    assert response.status_code == 200
    assert rows(Assignment)[0].why.startswith("<script>é")
    assert len(rows(Assignment)[0].why) == 2000


def test_a_token_of_a_creation_hit_opens_no_validation(client: FlaskClient, token: str) -> None:
    response = client.post("/validate/votes", data={"token": token, "statement": "x", "label": "negative"})

    assert response.status_code == 403


def test_the_way_out_asks_the_worker_site_only(client: FlaskClient, hit: Hit) -> None:
    button = soup(open_page(client, hit)).find("button", {"data-return": True})

    assert button["data-return"] == "http://127.0.0.1:8000"


def test_a_draft_comes_back_with_the_page_and_needs_the_token(
    client: FlaskClient, hit: Hit, token: str, rows: Callable[[type[Any]], list[Any]]
) -> None:
    typed = {"statement": "<b>half a soup", "label": "positive"}
    assert client.post("/work/draft", data={"token": "x" + token, **typed}).status_code == 403
    assert rows(Assignment)[0].draft is None

    assert client.post("/work/draft", data={"token": token, **typed}).status_code == 204

    assert rows(Assignment)[0].draft == {"statement": "<b>half a soup"}
    assert "&lt;b&gt;half a soup</textarea>" in open_page(client, hit).text
    assert rows(Attempt) == []


# Answers marked in a passage


TOLL = "Here the toll was low. Then the toll rose to two pence."


@pytest.fixture
def qa_hit(session_factory: sessionmaker[Session]) -> Hit:
    with session_factory() as session:
        made = creation_hit(session, "qa", context={"passage": TOLL})
        session.commit()
        session.expunge_all()
        return made


@pytest.fixture
def qa_client(
    settings: Settings, session_factory: sessionmaker[Session], clock: FixedClock
) -> Iterator[tuple[FlaskClient, FourTaskEngine]]:
    model = FourTaskEngine()
    built = create_app(settings, engine=model, clock=clock)
    yield built.test_client(), model
    with built.app_context():
        db.engine.dispose()


def ask_about(client: FlaskClient, token: str, answer: str, *, script: bool = True, **sent: str) -> TestResponse:
    headers = {"X-Requested-With": "fetch"} if script else {}
    fields = {"token": token, "question": "How much was it in pence?", "answer": answer, **sent}
    return client.post("/work/attempts", data=fields, headers=headers)


def test_an_answer_at_two_places_is_asked_back_and_no_try_is_used(
    qa_client: tuple[FlaskClient, FourTaskEngine], qa_hit: Hit, rows: Rows
) -> None:
    client, model = qa_client
    token = token_in(open_page(client, qa_hit))

    by_script = ask_about(client, token, "the toll")
    by_form = ask_about(client, token, "the toll", script=False)

    assert by_script.status_code == by_form.status_code == 422
    assert by_script.json is not None
    assert by_script.json["field"] == "answer"
    assert [place["start"] for place in by_script.json["places"]] == [5, 28]
    radios = soup(by_form).find_all("input", {"type": "radio", "name": "answer_start"})
    assert [radio["value"] for radio in radios] == ["5", "28"]
    assert "How much was it in pence?" in by_form.text
    assert rows(Attempt) == model.asked == []

    chosen = ask_about(client, token, "the toll", answer_start="28")
    assert chosen.status_code == 200
    assert rows(Attempt)[0].answer["answer_start"] == "28"


def test_a_marked_answer_of_too_many_words_uses_no_try_and_the_page_says_the_limit(
    qa_client: tuple[FlaskClient, FourTaskEngine], session_factory: sessionmaker[Session], rows: Rows
) -> None:
    wall = " ".join(f"brick{number}" for number in range(40))
    with session_factory() as session:
        hit = creation_hit(session, "qa", context={"passage": wall})
        session.commit()
        session.expunge_all()
    client, model = qa_client
    page = open_page(client, hit)
    token = token_in(page)
    hint = soup(page).find(id="answer-hint")
    assert hint is not None
    assert "30 words at most. Mark it there" in hint.get_text()

    by_script = ask_about(client, token, wall, answer_start="0")
    by_form = ask_about(client, token, wall, script=False)

    assert by_script.status_code == by_form.status_code == 422
    assert by_script.json["field"] == "answer"  # type: ignore[index]
    error = soup(by_form).find(id="answer-error")
    assert error is not None
    assert "Your answer has 40 words; 30 are the most." in error.get_text()
    assert rows(Attempt) == model.asked == []


def test_offsets_of_the_browser_choose_a_place_but_never_make_an_answer(
    qa_client: tuple[FlaskClient, FourTaskEngine], qa_hit: Hit, rows: Rows
) -> None:
    client, _ = qa_client
    token = token_in(open_page(client, qa_hit))

    forged = ask_about(client, token, "a million", answer_start="0", answer_start_utf16="3", answer_f1="0", fooled="1")
    marked = ask_about(client, token, "two pence", answer_start_utf16=str(TOLL.index("two")))

    assert forged.status_code == 422
    assert "does not stand in the text" in forged.json["message"]  # type: ignore[index]
    assert marked.status_code == 200
    attempt = rows(Attempt)[0]
    assert attempt.answer == {
        "question": "How much was it in pence?",
        "answer": "two pence",
        "answer_start": str(TOLL.index("two")),
    }
    assert (attempt.fooled, attempt.predicted_answer["text"]) == (False, "pence")
    assert "overlap by <strong>66%</strong>" in marked.text


def test_a_passage_that_the_model_did_not_see_whole_is_told(
    qa_client: tuple[FlaskClient, FourTaskEngine], qa_hit: Hit
) -> None:
    client, model = qa_client
    model.characters_read = {"passage": 20}
    token = token_in(open_page(client, qa_hit))

    response = ask_about(client, token, "two pence")

    assert "The model did not see everything. Of “Passage” it read 20 of 55 characters." in response.text


def test_a_draft_brings_the_mark_back(qa_client: tuple[FlaskClient, FourTaskEngine], qa_hit: Hit) -> None:
    client, _ = qa_client
    token = token_in(open_page(client, qa_hit))
    client.post("/work/draft", data={"token": token, "answer": "toll", "answer_start_utf16": "4"})

    page = soup(open_page(client, qa_hit))

    assert page.find("textarea", {"name": "answer"}).get_text().strip() == "toll"
    assert page.find("input", {"name": "answer_start_utf16"})["value"] == "4"
