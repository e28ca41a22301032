"""The worker site, page by page, as a person meets it."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from app.marketplace.headers import SANDBOX
from hits.marketplace import groups
from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import PASSWORD, Account, Visitor, accepted, hit_params, new_worker, question


def submit(visitor: Visitor, assignment_id: str, **fields: str) -> Any:
    return visitor.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, **fields})


# Joining and signing in


def test_an_invitation_makes_an_account_and_signs_in(visitor: Visitor, engine: Marketplace) -> None:
    response = visitor.join(engine.create_invitation("test"), "ada")

    assert response.request.path == "/hits"
    assert "Your account is ready" in visitor.text()
    assert engine.authenticate_worker("ada", PASSWORD).user_name == "ada"


def test_a_used_invitation_is_refused_in_words_beside_its_field(
    visitor: Visitor, worker: Visitor, engine: Marketplace
) -> None:
    code = engine.invitations()[0].code

    response = visitor.join(code, "berta")

    assert response.status_code == 422
    field = visitor.page.find("input", {"name": "code"})
    assert field is not None
    assert field["aria-invalid"] == "true"
    error = visitor.page.find(id="code-error")
    assert error is not None
    assert "used already" in error.get_text()


@pytest.mark.parametrize(
    ("code", "user_name", "password", "field"),
    [
        ("nonsense", "berta", PASSWORD, "code"),
        (None, "a", PASSWORD, "user_name"),
        (None, "ada", PASSWORD, "user_name"),
        (None, "berta", "qwertz", "password"),
        (None, "", "", "user_name"),
    ],
)
def test_a_wrong_field_is_named_and_no_account_is_made(
    visitor: Visitor, worker: Visitor, engine: Marketplace, code: str | None, user_name: str, password: str, field: str
) -> None:
    open_code = engine.create_invitation("open")
    visitor.get("/join")

    response = visitor.post(
        "/join", {"code": open_code if code is None else code, "user_name": user_name, "password": password}
    )

    assert response.status_code == 422
    assert visitor.page.find(id=f"{field}-error") is not None
    assert engine.invitations()[-1].used_at is None
    assert password == "" or password not in response.text


def test_sign_out_and_in_again(worker: Visitor) -> None:
    worker.post("/sign-out")
    assert worker.client.get("/dashboard").status_code == 303

    worker.get("/sign-in")
    worker.post("/sign-in", {"user_name": "ada", "password": PASSWORD})

    assert worker.client.get("/dashboard").status_code == 200


def test_a_wrong_password_is_refused_and_failures_are_limited(visitor: Visitor, worker: Visitor) -> None:
    visitor.get("/sign-in")
    answers = [visitor.post("/sign-in", {"user_name": "ada", "password": f"wrong {n}"}).status_code for n in range(11)]

    assert answers[:10] == [422] * 10
    assert answers[10] == 429
    assert "Too many attempts" in visitor.text()


def test_other_spellings_of_a_user_name_are_not_other_accounts_to_the_limit(app: Flask, worker: Visitor) -> None:
    def attempt(number: int, user_name: str) -> int:
        visitor = Visitor(app.test_client())
        visitor.client.environ_base["REMOTE_ADDR"] = f"192.0.2.{number}"
        visitor.get("/sign-in")
        return visitor.post("/sign-in", {"user_name": user_name, "password": "wrong"}).status_code

    spellings = [
        "ada",
        "\uff41da",
        "a\uff44a",
        "ad\uff41",
        "ADA",
        " ada ",
        "\U0001d41ada",
        "\u24d0da",
        "a\u24d3a",
        "ad\u24d0",
    ]

    assert [attempt(*one) for one in enumerate([*spellings, "\uff21\uff24\uff21"])] == [422] * 10 + [429]


def test_many_people_behind_one_address_may_sign_in(app: Flask, engine: Marketplace) -> None:
    for n in range(12):
        visitor = new_worker(app, engine, f"worker{n}")
        visitor.post("/sign-out")
        visitor.get("/sign-in")

        assert visitor.post("/sign-in", {"user_name": f"worker{n}", "password": PASSWORD}).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/hits", "/work", "/work/3ABC", "/dashboard", "/dashboard.csv", "/profile", "/dashboard.json", "/earnings.csv"],
)
def test_a_page_of_ones_own_needs_signing_in(visitor: Visitor, path: str) -> None:
    response = visitor.client.get(path)

    assert response.status_code == 303
    assert response.location.startswith("/sign-in?next=")


@pytest.mark.parametrize(
    "path", ["/sign-in", "/join", "/sign-out", "/hits/3ABC/accept", "/groups/3A/accept", "/work/3A/return"]
)
def test_a_forged_form_changes_nothing(worker: Visitor, hit: dict[str, Any], engine: Marketplace, path: str) -> None:
    path = path.replace("3ABC", hit["HITId"])

    response = worker.client.post(path, data={"csrf_token": "forged", "user_name": "ada", "password": PASSWORD})

    assert response.status_code == 400
    assert "nothing was changed" in response.text
    assert worker.client.get("/dashboard").status_code == 200
    assert engine.held(worker_id(worker)) == []


def worker_id(worker: Visitor) -> str:
    worker.get("/profile")
    code = worker.page.find("code")
    assert code is not None
    return code.get_text()


# Finding HITs


def test_the_list_shows_what_decides(worker: Visitor, hit: dict[str, Any]) -> None:
    worker.get("/hits")

    text = worker.text()
    for words in (
        "Write a statement that fools a model",
        "Bonus $0.30 for each verified one.",
        "Reward $0.30",
        "Time allotted 1 hour",
        "HITs left for you 1",
        "Requester Sentiment Lab",
        "Paid at the latest 3 days after you submit",
        "You qualify",
    ):
        assert words in text


def test_an_empty_list_says_what_will_appear(worker: Visitor) -> None:
    worker.get("/hits")

    assert "No HITs are open for you at the moment." in worker.text()


def titles(worker: Visitor) -> list[str]:
    return [heading.get_text() for heading in worker.page.select(".hit-list h2")]


@pytest.fixture
def three_hits(engine: Marketplace, account: Account, clock: TestClock) -> None:
    for title, reward, seconds in [("Long", "2.00", 7200), ("Short", "0.05", 60), ("Middle", "0.50", 600)]:
        params = hit_params(Title=title, Reward=reward, AssignmentDurationInSeconds=seconds)
        engine.call(account.requester_id, "CreateHIT", params)
        clock.advance(minutes=1)


@pytest.mark.usefixtures("three_hits")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["Long", "Middle", "Short"]),
        ("?sort=reward", ["Long", "Middle", "Short"]),
        ("?sort=newest", ["Middle", "Short", "Long"]),
        ("?sort=time", ["Short", "Middle", "Long"]),
        ("?sort=bogus", ["Long", "Middle", "Short"]),
        ("?q=mid", ["Middle"]),
        ("?q=sentiment+lab&sort=time", ["Short", "Middle", "Long"]),
    ],
)
def test_the_list_is_searched_and_sorted_by_its_address(worker: Visitor, query: str, expected: list[str]) -> None:
    worker.get("/hits" + query)

    assert titles(worker) == expected


def test_the_list_has_pages_that_keep_the_choice(worker: Visitor, engine: Marketplace, account: Account) -> None:
    for number in range(27):
        engine.call(account.requester_id, "CreateHIT", hit_params(Title=f"HIT {number}", Reward=f"0.{number + 10}"))
    worker.get("/hits?q=hit&sort=reward&qualified=1&_external=1")
    assert (titles(worker)[0], len(titles(worker))) == ("HIT 26", 25)
    assert "27 kinds of HIT for “hit”" in worker.text()
    following = worker.page.find("a", string="Next page")
    assert following is not None

    worker.get(str(following["href"]))

    assert titles(worker) == ["HIT 1", "HIT 0"]
    assert "Page 2 of 2" in worker.text()
    before = worker.page.find("a", string="Previous page")
    assert before is not None
    assert before["href"] == "/hits?page=1&q=hit&sort=reward&qualified=1"
    for beyond in ("99", "999999999999999999999", "-1", "x", "²"):
        assert worker.get(f"/hits?page={beyond}").status_code == 200


def test_the_measured_pay_is_shown_and_sorts(
    app: Flask, worker: Visitor, engine: Marketplace, account: Account, clock: TestClock
) -> None:
    def create(**changes: Any) -> dict[str, Any]:
        made: dict[str, Any] = engine.call(account.requester_id, "CreateHIT", hit_params(**changes))["HIT"]
        return made

    measured, dear = create(Title="Measured", MaxAssignments=9), create(Title="Dear", Reward="9.00")
    for number in range(5):
        person = new_worker(app, engine, f"worker{number}")
        assignment_id = accepted(person, measured["HITId"])
        clock.advance(minutes=3)
        submit(person, assignment_id, text="x")

    worker.get("/hits?sort=wage")

    assert titles(worker) == ["Measured", "Dear"]
    assert "Measured pay per hour $6.00" in worker.text()
    assert "Measured pay per hour not measured yet" in worker.text()
    worker.get(f"/hits/{measured['HITId']}")
    assert "Measured pay per hour $6.00" in worker.text()
    assert f"over the latest {groups.LATEST} submissions" in worker.text()
    assert f"{groups.LEAST_WORKERS} workers have submitted {groups.LEAST_SUBMISSIONS} HITs" in worker.text()
    worker.get("/hits?sort=most")
    assert len(titles(worker)) == 2
    assert dear["HITId"]


def test_accept_in_the_list_takes_whichever_hit_of_the_group_is_left(
    app: Flask, worker: Visitor, engine: Marketplace, account: Account
) -> None:
    first, second = (
        engine.call(account.requester_id, "CreateHIT", hit_params(MaxAssignments=1))["HIT"] for _ in range(2)
    )
    worker.get("/hits")
    form = worker.page.select_one(".hit-list form")
    assert form is not None
    accepted(new_worker(app, engine, "berta"), first["HITId"])

    worker.post(str(form["action"]))

    assert [held.hit_id for held in engine.held(worker_id(worker))] == [second["HITId"]]


def test_a_search_without_result_offers_the_whole_list(worker: Visitor, hit: dict[str, Any]) -> None:
    worker.get("/hits?q=zebra")

    assert "No HIT matches." in worker.text()
    assert worker.page.find("a", string="Show all HITs") is not None


@pytest.fixture
def guarded_hit(engine: Marketplace, account: Account) -> dict[str, Any]:
    kind = engine.call(
        account.requester_id,
        "CreateQualificationType",
        {"Name": "Validator", "Description": "Validates", "QualificationTypeStatus": "Active"},
    )["QualificationType"]
    requirement = {"QualificationTypeId": kind["QualificationTypeId"], "Comparator": "Exists"}
    params = hit_params(Title="Validate", QualificationRequirements=[requirement])
    hit = engine.call(account.requester_id, "CreateHIT", params)["HIT"]
    return {**hit, "kind": kind["QualificationTypeId"]}


def test_a_hit_one_does_not_qualify_for_says_why_and_cannot_be_accepted(
    worker: Visitor, guarded_hit: dict[str, Any]
) -> None:
    worker.get("/hits")
    assert "You do not qualify" in worker.text()
    assert "Validator" in worker.text()
    worker.get("/hits?qualified=1")
    assert "No HIT matches." in worker.text()

    worker.get(f"/hits/{guarded_hit['HITId']}")
    assert worker.page.find("button", string="Accept this HIT") is None
    response = worker.post(f"/hits/{guarded_hit['HITId']}/accept")

    assert response.status_code == 403
    assert "Validator" in worker.text()


def test_an_invitation_can_grant_what_a_hit_asks_for(
    app: Flask, visitor: Visitor, engine: Marketplace, guarded_hit: dict[str, Any]
) -> None:
    visitor.join(engine.create_invitation("validator", grants={guarded_hit["kind"]: 1}), "vera")

    assert accepted(visitor, guarded_hit["HITId"])


# Preview and work


def frame(worker: Visitor) -> dict[str, Any]:
    found = worker.page.find("iframe")
    assert found is not None
    return dict(found.attrs)


def test_a_preview_shows_the_frame_without_the_worker_and_needs_no_account(
    visitor: Visitor, hit: dict[str, Any]
) -> None:
    response = visitor.get(f"/hits/{hit['HITId']}")

    assert response.status_code == 200
    assert frame(visitor)["src"] == (
        f"http://localhost:8001/hit?round=1&assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId={hit['HITId']}"
    )
    assert "Sign in to accept this HIT" in visitor.text()


MTURK_PATHS = (
    "/mturk/preview?groupId={}",
    "/mturk/previewandaccept?groupId={}",
    "/projects/{}/tasks",
    "/projects/{}/tasks/accept_random",
)


def test_mturks_own_addresses_lead_to_the_preview_and_take_nothing(
    worker: Visitor, engine: Marketplace, hit: dict[str, Any]
) -> None:
    for entity in (hit["HITGroupId"], hit["HITTypeId"]):
        for path in MTURK_PATHS:
            assert worker.get(path.format(entity)).request.path == f"/hits/{hit['HITId']}"
    assert engine.held(worker_id(worker)) == []


def test_mturks_own_addresses_need_no_account_to_look(visitor: Visitor, hit: dict[str, Any]) -> None:
    assert visitor.get(f"/mturk/preview?groupId={hit['HITGroupId']}").request.path == f"/hits/{hit['HITId']}"


@pytest.mark.parametrize("path", MTURK_PATHS)
@pytest.mark.parametrize("entity", ["3NOSUCH", "", "%00", "a'b", "A" * 65])
def test_mturks_own_addresses_of_nothing_are_not_found(worker: Visitor, path: str, entity: str) -> None:
    assert worker.get(path.format(entity)).status_code == 404


def test_mturks_own_addresses_lead_on_to_what_one_holds_once_nothing_else_is_left(
    app: Flask, engine: Marketplace, worker: Visitor, hit: dict[str, Any]
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    accepted(new_worker(app, engine, "berta"), hit["HITId"])
    address = f"/projects/{hit['HITGroupId']}/tasks"

    assert worker.get(address).request.path == f"/work/{assignment_id}"
    submit(worker, assignment_id, text="x")
    response = worker.get(address)
    assert response.status_code == 404
    assert "no more HITs of this kind" in worker.text()


def test_a_hit_that_is_gone_leads_to_the_next_one_of_its_group(
    app: Flask, engine: Marketplace, account: Account, worker: Visitor
) -> None:
    first, second = (
        engine.call(account.requester_id, "CreateHIT", hit_params(MaxAssignments=1))["HIT"] for _ in range(2)
    )
    worker.get(f"/hits/{first['HITId']}")
    form = worker.page.select_one("form[action$='/accept']")
    assert form is not None
    filled = {str(field["name"]): str(field["value"]) for field in form.find_all("input")}
    accepted(new_worker(app, engine, "berta"), first["HITId"])

    response = worker.post(f"/hits/{first['HITId']}/accept", filled)

    assert response.request.path == f"/hits/{second['HITId']}"
    assert "That HIT is taken. This is the next one of the same kind." in worker.text()
    assert engine.held(worker_id(worker)) == []
    accepted(new_worker(app, engine, "clara"), second["HITId"])
    worker.get("/work")
    assert worker.post(f"/hits/{second['HITId']}/accept", filled).request.path == "/hits"
    assert "no more HITs of this kind" in worker.text()
    assert worker.post(f"/hits/{second['HITId']}/accept", {"group_id": "\x00"}).status_code == 410


def test_the_work_page_holds_the_signed_in_frame_the_reward_and_the_time(
    worker: Visitor, hit: dict[str, Any], clock: TestClock
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    clock.advance(seconds=90)
    worker.get(f"/work/{assignment_id}")

    source = frame(worker)["src"]
    assert f"assignmentId={assignment_id}" in source
    assert f"hitId={hit['HITId']}" in source
    assert f"workerId={worker_id(worker)}" in source
    assert "turkSubmitTo=http%3A%2F%2F127.0.0.1%3A8000" in source
    worker.get(f"/work/{assignment_id}")
    assert frame(worker)["sandbox"] == SANDBOX.split()
    assert "allow-top-navigation" not in SANDBOX
    assert frame(worker)["data-origin"] == "http://localhost:8001"
    assert "$0.30" in worker.text()
    assert "Time left: 58:30" in worker.text()


def test_a_reload_does_not_give_more_time(worker: Visitor, hit: dict[str, Any], clock: TestClock) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    clock.advance(minutes=55)

    worker.get(f"/work/{assignment_id}")

    countdown = worker.page.select_one("[data-countdown]")
    assert countdown is not None
    assert countdown["data-countdown"] == "300"


def test_a_fixed_frame_height_is_kept(worker: Visitor, engine: Marketplace, account: Account) -> None:
    tall = engine.call(account.requester_id, "CreateHIT", hit_params(Question=question(height=1400)))["HIT"]

    accepted(worker, tall["HITId"])

    assert frame(worker)["height"] == "1400"


def test_accepting_twice_leads_to_the_same_assignment(worker: Visitor, hit: dict[str, Any]) -> None:
    assert accepted(worker, hit["HITId"]) == accepted(worker, hit["HITId"])


def test_content_on_the_sites_own_origin_is_not_opened(worker: Visitor, engine: Marketplace, account: Account) -> None:
    params = hit_params(Question=question("http://127.0.0.1:8000/dashboard"))
    own = engine.call(account.requester_id, "CreateHIT", params)["HIT"]

    response = worker.get(f"/hits/{own['HITId']}")

    assert response.status_code == 502
    assert "lies on this site's own address" in worker.text()
    assert worker.page.find("iframe") is None
    assert "frame-src 'none'" in response.headers["Content-Security-Policy"]


def test_another_workers_assignment_is_not_shown_returned_or_listed(
    app: Flask, worker: Visitor, engine: Marketplace, hit: dict[str, Any]
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    other = new_worker(app, engine, "berta")

    assert other.get(f"/work/{assignment_id}").status_code == 404
    assert other.get(f"/work/{assignment_id}/submitted").status_code == 404
    assert other.post(f"/work/{assignment_id}/return").status_code == 404
    other.get("/work")
    assert "You hold no HIT at the moment." in other.text()
    assert [held.assignment_id for held in engine.held(worker_id(worker))] == [assignment_id]


def test_returning_asks_first_and_frees_the_place(worker: Visitor, engine: Marketplace, hit: dict[str, Any]) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    worker.get("/work")
    assert "Write a statement that fools a model" in worker.text()
    worker.get(f"/work/{assignment_id}/return")
    assert "You are not paid for it" in worker.text()

    worker.post(f"/work/{assignment_id}/return", {"reason": "too long"})

    assert "You returned" in worker.text()
    assert engine.held(worker_id(worker)) == []
    assert worker.get(f"/work/{assignment_id}").status_code == 409
    assert worker.post(f"/work/{assignment_id}/return").status_code == 409


def test_the_time_over_is_said_and_the_frame_is_closed(worker: Visitor, hit: dict[str, Any], clock: TestClock) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    clock.advance(hours=2)

    response = worker.get(f"/work/{assignment_id}")

    assert response.status_code == 409
    assert worker.page.find("iframe") is None


def test_the_receipt_offers_the_next_hit_of_the_kind(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    second = engine.call(account.requester_id, "CreateHIT", hit_params())["HIT"]
    assignment_id = accepted(worker, hit["HITId"])
    assert submit(worker, assignment_id, text="x").status_code == 200

    assert worker.get(f"/work/{assignment_id}").request.path == f"/work/{assignment_id}/submitted"
    assert "Waiting for approval" in worker.text()
    worker.post(f"/groups/{second['HITGroupId']}/accept")

    (held,) = engine.held(worker_id(worker))
    assert held.hit_id == second["HITId"]
    submit(worker, held.assignment_id, text="x")
    worker.post(f"/groups/{second['HITGroupId']}/accept")
    assert "There are no more HITs of this kind" in worker.text()


def test_a_hit_is_not_done_twice(worker: Visitor, hit: dict[str, Any]) -> None:
    submit(worker, accepted(worker, hit["HITId"]), text="x")

    response = worker.post(f"/hits/{hit['HITId']}/accept")

    assert response.status_code == 409
    assert "already submitted this HIT" in worker.text()


# The account, and what must not happen


def test_the_profile_tells_the_worker_id(worker: Visitor) -> None:
    assert worker_id(worker).startswith("A")


def test_html_in_a_hit_is_shown_as_text(worker: Visitor, engine: Marketplace, account: Account) -> None:
    params = hit_params(Title="<script>alert(1)</script>", Description="<img src=x onerror=alert(1)>")
    hostile = engine.call(account.requester_id, "CreateHIT", params)["HIT"]

    for path in ("/hits", f"/hits/{hostile['HITId']}"):
        response = worker.get(path)
        assert "<script>alert" not in response.text
        assert "<img" not in response.text


@pytest.mark.parametrize("path", ["/hits/3NOSUCH", "/work/3NOSUCH", "/nowhere", "/work/%00", "/hits/" + "A" * 5000])
def test_an_unknown_address_is_a_page_not_a_failure(worker: Visitor, path: str) -> None:
    response = worker.get(path)

    assert response.status_code == 404
    assert worker.page.find("h1") is not None


def test_a_blocked_worker_reads_that_and_not_that_they_lack_a_qualification(
    engine: Marketplace, account: Account, worker: Visitor, hit: dict[str, Any]
) -> None:
    with worker.client.session_transaction() as session:
        blocked = {"WorkerId": session["worker_id"], "Reason": "Copied answers"}
    engine.call(account.requester_id, "CreateWorkerBlock", blocked)

    assert worker.get(f"/hits/{hit['HITId']}").status_code == 403

    assert "This requester takes no work from you" in worker.text()
    assert "You do not qualify" not in worker.text()
    assert "Copied answers" not in worker.text()
