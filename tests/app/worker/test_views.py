"""The creation HIT as its worker meets it, and as somebody with bad intentions would."""

from __future__ import annotations

from flask.testing import FlaskClient

from hits.models import Assignment, Attempt, Hit
from tests.app.conftest import RuleEngine, ask, open_page, token_in


def test_a_worker_opens_asks_fools_and_hands_in(client: FlaskClient, hit: Hit, rows, engine: RuleEngine) -> None:
    page = open_page(client, hit)
    token = token_in(page)
    held = ask(client, token, "I am sad.")
    fooled = ask(client, token, "The good old queue again.")
    done = client.post("/work/submit", data={"token": token, "why": "It is a complaint."})

    assert "a NEGATIVE statement" in page.text
    assert "5 of 5 tries left" in page.text
    assert held.status_code == 200
    assert "The model got it right" in held.text
    assert "4 of 5 tries left" in held.text
    assert "You fooled the model" in fooled.text
    assert "83%" in fooled.text
    assert 'action="http://127.0.0.1:8000/mturk/externalSubmit"' in done.text
    assert 'name="assignmentId" value="ASSIGNMENTONE"' in done.text
    assert [attempt.fooled for attempt in rows(Attempt)] == [False, True]
    assert [(one.state, one.why) for one in rows(Assignment)] == [("saved", "It is a complaint.")]
    assert engine.asked == ["I am sad.", "The good old queue again."]
