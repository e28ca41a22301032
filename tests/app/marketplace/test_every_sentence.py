"""Walks over the site and its consoles in a made-up language: what is still English was not gathered.

Everything that people wrote is in Greek letters here, and every translated sentence stands in brackets, so that any
Latin word outside of brackets is a sentence that no translator has seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from bs4 import BeautifulSoup, Comment, NavigableString, Tag
from flask import Flask

from app.marketplace import catalogs, factory
from app.marketplace.languages import init_languages
from app.marketplace.settings import Settings
from hits.marketplace.clock import TestClock
from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from tests.app.marketplace.conftest import CONTENT_URL, PASSWORD, Visitor, hit_params, question
from tests.hits.marketplace.people import Mailbox

LANGUAGE = "el"
IN_BRACKETS = re.compile(r"⟦[^⟦⟧]*⟧")
#: Ids, addresses, the zone, tokens of links; and what the API calls the system's own qualifications.
DATA = re.compile(
    r"\b[A-Z0-9]{10,32}\b|https?://\S+|[\w.+-]+@[\w.-]+|\bUTC\b|\bWorker_\w+\b|\bMasters\b|\bHITs?\b|\b(CSV|JSON|USD)\b"
)
#: Messages are kept as they were written, the site's own too; and a language has a name of its own.
AS_WRITTEN = {
    "Your request was accepted",
    "You now have the qualification “Γνώση” with the value 7.",
    "English",
    "Worker disputes your rejection of assignment . You can answer, or approve the assignment after all, until the "
    "operator decides.",
    "The operator approved assignment after all. $0.36 (reward and fee) was taken from your balance. Ναι",
    "The operator took down . Nobody can accept them any more; work that was handed in is yours to review. Όχι",
}
#: Details of the audit log, as they are stored.
LOGGED = {": GR", ": is_master", ": True", ": False"}
WORD = re.compile(r"[A-Za-z]{2,}")
SPOKEN = ("aria-label", "title", "placeholder", "alt", "data-words", "data-300", "data-60", "data-0")
FORM = (
    '<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2017-11-06/QuestionForm.xsd">'
    "<Question><QuestionIdentifier>a</QuestionIdentifier><IsRequired>true</IsRequired>"
    "<QuestionContent><Text>Πόσο;</Text></QuestionContent>"
    '<AnswerSpecification><FreeTextAnswer><Constraints><IsNumeric minValue="1" maxValue="5"/></Constraints>'
    "</FreeTextAnswer></AnswerSpecification></Question>"
    "<Question><QuestionIdentifier>b</QuestionIdentifier><QuestionContent><Text>Ποιο;</Text></QuestionContent>"
    "<AnswerSpecification><SelectionAnswer><StyleSuggestion>radiobutton</StyleSuggestion><Selections>"
    "<Selection><SelectionIdentifier>x</SelectionIdentifier><Text>Αυτό</Text></Selection>"
    "<Selection><SelectionIdentifier>y</SelectionIdentifier><Text>Εκείνο</Text></Selection>"
    "</Selections></SelectionAnswer></AnswerSpecification></Question>"
    "<Question><QuestionIdentifier>c</QuestionIdentifier><QuestionContent><Text>Γιατί;</Text></QuestionContent>"
    '<AnswerSpecification><FreeTextAnswer><Constraints><Length minLength="5" maxLength="9"/></Constraints>'
    "</FreeTextAnswer></AnswerSpecification></Question></QuestionForm>"
)
GREEK: dict[str, Any] = {"Title": "Γράψε κάτι", "Description": "Μια περιγραφή", "Keywords": "λέξη"}


@pytest.fixture
def engine(clock: TestClock) -> Iterator[Marketplace]:
    settings = MarketplaceSettings.for_tests(content_url=CONTENT_URL, sends_mail=True)
    opened = Marketplace("sqlite://", settings=settings, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def site(settings: Settings, engine: Marketplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flask:
    """The site with one translation: every sentence in brackets."""
    catalog = Catalog(locale=LANGUAGE)
    for message in catalogs.gathered():
        if message.id and isinstance(message.id, str):
            catalog.add(message.id, f"⟦{message.id}⟧", flags=message.flags)
        elif message.id:
            catalog.add(message.id, tuple(f"⟦{one}⟧" for one in message.id), flags=message.flags)
    path = tmp_path / LANGUAGE / "LC_MESSAGES" / "messages.mo"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_mo(file, catalog)
    monkeypatch.setattr(factory, "init_languages", partial(init_languages, folder=tmp_path))
    changes = {"site_name": "Αγορά", "contact": "Μαρία", "sign_up": "open"}
    mail = {"smtp_host": "127.0.0.1", "mail_from": "m@example.org"}
    made = factory.create_app(settings.model_copy(update=changes | mail), marketplace=engine)
    made.testing = True
    return made


class Reader(Visitor):
    """A visitor who reads everything on every page and writes down what is not in brackets."""

    def __init__(self, app: Flask) -> None:
        client = app.test_client()
        client.environ_base["HTTP_ACCEPT_LANGUAGE"] = LANGUAGE
        super().__init__(client)
        self.english: dict[str, set[str]] = {}
        self.read = 0
        self.addresses = app.url_map.bind("")
        self.endpoints: set[str] = set()

    def _look(self, response: Any) -> Any:
        super()._look(response)
        if response.mimetype == "text/html":
            self.read += 1
            if response.status_code == 200 and response.request.method == "GET":
                self.endpoints.add(self.addresses.match(response.request.path, method="GET")[0])
            assert self.page.html is not None
            assert self.page.html["lang"] == LANGUAGE
            for sentence in untranslated(self.page):
                self.english.setdefault(sentence, set()).add(response.request.path)
        return response


def untranslated(page: BeautifulSoup) -> Iterator[str]:
    """Yield the texts of a page that have a Latin word outside of brackets."""
    texts = [
        str(text)
        for text in page.find_all(string=True)
        if isinstance(text, NavigableString)
        and not isinstance(text, Comment)
        and text.parent is not None
        and text.parent.name not in {"script", "style", "code", "[document]"}
        # What says of itself that it is English, in a page of another language: the kinds of lines of the audit log.
        and (text.parent.name == "html" or text.parent.get("lang") != "en")
        and text.strip() != "html"
    ]
    for element in page.find_all(True):
        assert isinstance(element, Tag)
        texts += [str(element[name]) for name in SPOKEN if element.has_attr(name)]
    # A sentence can have elements inside it, so brackets are closed over the whole page's text first.
    whole = "\x00".join(texts)
    while IN_BRACKETS.search(whole):
        whole = IN_BRACKETS.sub("", whole)
    for text in whole.split("\x00"):
        rest = DATA.sub("", text)
        if WORD.search(rest):
            yield " ".join(rest.split())


def test_no_sentence_of_the_worker_site_is_missed(site: Flask, engine: Marketplace, clock: TestClock) -> None:
    requester = engine.create_requester("Εργαστήριο", email="lab@example.org", password=PASSWORD).requester_id
    engine.top_up(requester, Decimal("100.00"))

    def call(operation: str, **params: Any) -> dict[str, Any]:
        return engine.call(requester, operation, params)

    kind = call("CreateQualificationType", Name="Γνώση", Description="Τι ξέρεις", QualificationTypeStatus="Active")
    type_id = kind["QualificationType"]["QualificationTypeId"]
    test = call(
        "CreateQualificationType",
        Name="Δοκιμή",
        Description="Μια δοκιμή",
        QualificationTypeStatus="Active",
        Test=FORM,
        TestDurationInSeconds=600,
        RetryDelayInSeconds=3600,
    )["QualificationType"]["QualificationTypeId"]
    requirement = {"QualificationTypeId": type_id, "Comparator": "GreaterThan", "IntegerValues": [5]}
    external = call("CreateHIT", **hit_params(**GREEK))["HIT"]["HITId"]
    form = call("CreateHIT", **hit_params(**{**GREEK, "Title": "Έντυπο"}, Question=FORM))["HIT"]["HITId"]
    closed = call(
        "CreateHIT",
        **hit_params(**{**GREEK, "Title": "Κλειστό"}, QualificationRequirements=[requirement], Question=question()),
    )["HIT"]["HITId"]

    reader, box = Reader(site), Mailbox()
    for path in ("/", "/sign-in", "/join", "/sign-up", "/password/forgotten", "/nowhere", f"/hits/{external}"):
        reader.get(path)
    reader.get("/sign-in")
    reader.post("/sign-in", {"user_name": "κάτι", "password": "λάθος"})
    reader.get("/join")
    reader.post("/join", {"code": "λάθος", "user_name": "x", "password": "y", "email": "z"})
    code = engine.create_invitation()
    for user_name, password, email in (("ά", PASSWORD, ""), ("άννα", "μικρό", ""), ("άννα", PASSWORD, "λάθος")):
        reader.post("/join", {"code": code, "user_name": user_name, "password": password, "email": email})
    reader.get("/sign-up")
    reader.post("/sign-up", {"email": "λάθος"})
    reader.post("/sign-up", {"email": "anna@example.org"})
    engine.send_mail_due(box)
    token = box.token()
    reader.get(f"/sign-up/finish?token={token}")
    reader.post("/sign-up/finish", {"token": token, "user_name": "ά", "password": PASSWORD})
    reader.post("/sign-up/finish", {"token": token, "user_name": "άννα", "password": PASSWORD})
    reader.get(f"/password/new?token={token}")

    worker_id = engine.authenticate_worker("άννα", PASSWORD).worker_id
    for path in (
        "/hits",
        "/hits?q=τίποτα",
        "/hits?qualified=1&sort=newest",
        "/work",
        "/dashboard",
        "/qualifications",
        f"/qualifications/{type_id}",
        f"/qualifications/{test}",
        "/messages",
        "/messages/sent",
        "/payouts",
        "/profile",
        "/profile/password",
        "/profile/address",
        f"/hits/{external}",
        f"/hits/{form}",
        f"/hits/{closed}",
        f"/hits/{external}/contact",
        f"/hits/{external}/report",
        "/hits/3NOSUCHHIT",
        "/mturk/preview?groupId=3NOSUCHGROUP",
    ):
        reader.get(path)
    reader.get("/profile/password")
    reader.post("/profile/password", {"old": "λάθος", "password": PASSWORD})
    reader.post("/profile/address", {"old": PASSWORD, "email": "other@example.org"})
    reader.get("/profile")
    reader.post("/profile/language", {"language": LANGUAGE})
    reader.get(f"/hits/{external}/contact")
    reader.post(f"/hits/{external}/contact", {"text": ""})
    reader.post(f"/hits/{external}/contact", {"text": "Μια ερώτηση"})
    reader.get(f"/hits/{external}/report")
    reader.post(f"/hits/{external}/report", {"reason": "other", "text": ""})
    reader.post(f"/hits/{external}/report", {"reason": "broken", "text": "Δεν ανοίγει"})
    reader.get("/messages/sent")

    # An ExternalQuestion: accepted, returned, accepted, submitted, rejected with words, disputed.
    reader.get(f"/hits/{external}")
    reader.post(f"/hits/{external}/accept")
    (held,) = engine.held(worker_id)
    reader.get("/work")
    reader.get(f"/work/{held.assignment_id}/return")
    reader.post(f"/work/{held.assignment_id}/return", {"reason": "Όχι τώρα"})
    reader.get(f"/work/{held.assignment_id}")
    reader.get(f"/hits/{external}")
    reader.post(f"/hits/{external}/accept")
    (held,) = engine.held(worker_id)
    reader.post("/mturk/externalSubmit", {"assignmentId": held.assignment_id, "α": "ναι"})
    reader.post("/mturk/externalSubmit", {"assignmentId": held.assignment_id, "α": "ναι"})
    reader.get(f"/work/{held.assignment_id}/submitted")
    reader.get("/dashboard")
    call("RejectAssignment", AssignmentId=held.assignment_id, RequesterFeedback="Δεν είναι καλό")
    call(
        "SendBonus",
        WorkerId=worker_id,
        AssignmentId=held.assignment_id,
        BonusAmount="0.05",
        Reason="Ευχαριστώ",
        UniqueRequestToken="one",
    )
    reader.get("/dashboard")
    reader.get(f"/work/{held.assignment_id}/submitted")
    reader.get(f"/work/{held.assignment_id}/dispute")
    reader.post(f"/work/{held.assignment_id}/dispute", {"words": ""})
    reader.post(f"/work/{held.assignment_id}/dispute", {"words": "Είναι καλό"})
    reader.get(f"/work/{held.assignment_id}/submitted")
    reader.get(f"/hits/{external}")

    # A QuestionForm: wrong answers, then right ones.
    reader.get(f"/hits/{form}")
    reader.post(f"/hits/{form}/accept")
    (held,) = engine.held(worker_id)
    for fields in ({}, {"question-1": "9", "question-3": "ω"}, {"question-1": "κάτι", "question-2": "zz"}):
        reader.post(f"/work/{held.assignment_id}", fields)
    reader.post(f"/work/{held.assignment_id}", {"question-1": "3", "question-3": "γιατί έτσι"[:9]})
    call("ApproveAssignment", AssignmentId=held.assignment_id)
    reader.get("/dashboard")

    # Qualifications: one that waits, one with a test that runs out.
    reader.get(f"/qualifications/{type_id}")
    reader.post(f"/qualifications/{type_id}/request")
    reader.get(f"/qualifications/{test}")
    reader.post(f"/qualifications/{test}/request")
    clock.advance(hours=1)
    for path in (f"/qualifications/{test}", "/qualifications", "/messages"):
        reader.get(path)
    (request,) = call("ListQualificationRequests", QualificationTypeId=type_id)["QualificationRequests"]
    call("AcceptQualificationRequest", QualificationRequestId=request["QualificationRequestId"], IntegerValue=7)
    reader.get(f"/qualifications/{type_id}")
    call("NotifyWorkers", WorkerIds=[worker_id], Subject="Νέα", MessageText="Γεια σου")
    reader.get("/messages")
    reader.get("/hits")
    reader.post("/sign-out")

    found = {sentence: sorted(paths)[:3] for sentence, paths in sorted(reader.english.items())}
    assert set(found) - AS_WRITTEN == set(), found
    assert reader.read > 60


ROOT = Actor.command_line("ρίζα")
OPERATOR_PASSWORD = "ένας μακρύς κωδικός"


def pages(app: Flask, console: str) -> set[str]:
    """Return the endpoints of a console that are pages."""
    return {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith(f"{console}.") and "GET" in (rule.methods or ()) and ".csv" not in rule.rule
    }


class Trade:
    """A requester, a worker and what went on between them: an assignment in each state, a dispute, requests."""

    def __init__(self, engine: Marketplace) -> None:
        self.engine = engine
        self.requester = engine.create_requester("Εργαστήριο", email="lab@example.org", password=PASSWORD).requester_id
        engine.top_up(self.requester, Decimal("100.00"), "Πρώτη")
        self.key = engine.create_access_key(self.requester).access_key_id
        self.old_key = engine.create_access_key(self.requester).access_key_id
        engine.revoke_access_key(self.requester, self.old_key)
        self.worker = engine.register_worker(engine.create_invitation("Για την Άννα"), "άννα", PASSWORD).worker_id
        engine.create_invitation("Για τον Νίκο")
        self.layout = engine.create_layout(
            self.requester, "Διάταξη", "<!doctype html><html><body><form><input name=a></form></body></html>"
        ).layout_id
        self.hits = [self._hit(f"Γράψε {number}") for number in ("ένα", "δύο", "τρία", "τέσσερα")]
        self.free = self._hit("Ελεύθερο", MaxAssignments=3)
        self.submitted, self.approved, self.rejected, self.overturned = [self._handed_in(hit) for hit in self.hits]
        self.call("ApproveAssignment", AssignmentId=self.approved, RequesterFeedback="Ευχαριστώ")
        for one in (self.rejected, self.overturned):
            self.call("RejectAssignment", AssignmentId=one, RequesterFeedback="Όχι")
        self.dispute = engine.open_dispute(self.worker, self.rejected, "Είναι καλό").dispute_id
        other = engine.open_dispute(self.worker, self.overturned, "Κι αυτό").dispute_id
        engine.overturn_dispute(other, "Ναι", by=ROOT)
        self.decided = other
        self.call(
            "SendBonus",
            WorkerId=self.worker,
            AssignmentId=self.approved,
            BonusAmount="0.05",
            Reason="Ευχαριστώ",
            UniqueRequestToken="one",
        )
        self.kind = self._kind("Γνώση")
        self.kind_asked = self._kind("Πείρα")
        self.call(
            "AssociateQualificationWithWorker", QualificationTypeId=self.kind, WorkerId=self.worker, IntegerValue=3
        )
        engine.request_qualification(self.worker, self.kind_asked)
        self.message = engine.contact_requester(self.worker, self.free, "Μια ερώτηση")
        self.report = engine.report_hit(self.worker, self.free, "broken", "Δεν ανοίγει")
        held = engine.accept(self.worker, self.free).assignment_id
        engine.return_assignment(self.worker, held, "Όχι τώρα")
        self.type = self.call("GetHIT", HITId=self.free)["HIT"]["HITTypeId"]

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        return self.engine.call(self.requester, operation, params)

    def _hit(self, title: str, **changes: Any) -> str:
        return str(self.call("CreateHIT", **hit_params(**{**GREEK, "Title": title, **changes}))["HIT"]["HITId"])

    def _handed_in(self, hit_id: str) -> str:
        held = self.engine.accept(self.worker, hit_id).assignment_id
        self.engine.external_submit(held, {"α": ["ναι"]})
        return held

    def _kind(self, name: str) -> str:
        made = self.call(
            "CreateQualificationType", Name=name, Description="Τι ξέρεις", QualificationTypeStatus="Active"
        )
        return str(made["QualificationType"]["QualificationTypeId"])


def test_no_sentence_of_the_requester_console_is_missed(site: Flask, engine: Marketplace) -> None:
    trade, reader = Trade(engine), Reader(site)
    reader.get("/requester/sign-in")
    reader.post("/requester/sign-in", {"email": "lab@example.org", "password": "λάθος"})
    reader.post("/requester/sign-in", {"email": "lab@example.org", "password": PASSWORD})
    for path in (
        "",
        "account",
        "account?kind=bonus",
        "keys",
        f"keys/{trade.key}/revoke",
        "types",
        f"types/{trade.type}",
        f"types/{trade.type}/notifications",
        "webhook-secret",
        "hits",
        "hits?status=Disposed",
        f"hits?type={trade.type}",
        *(f"hits/{hit}" for hit in trade.hits),
        f"hits/{trade.free}",
        f"hits/{trade.free}/expire",
        f"hits/{trade.free}/delete",
        "review",
        *(f"assignments/{one}" for one in (trade.submitted, trade.approved, trade.rejected, trade.overturned)),
        f"assignments/{trade.rejected}/override",
        f"assignments/{trade.approved}/bonus",
        "messages",
        "messages?unanswered=1",
        "blocks",
        "disputes",
        "disputes?state=Upheld",
        "disputes?state=Overturned",
        f"disputes/{trade.dispute}",
        f"disputes/{trade.decided}",
        "qualifications",
        "qualifications/new",
        f"qualifications/{trade.kind}",
        f"qualifications/{trade.kind}/edit",
        f"qualifications/{trade.kind}/revoke/{trade.worker}",
        f"qualifications/{trade.kind}/delete",
        f"qualifications/{trade.kind_asked}",
        "layouts",
        "layouts/new",
        f"layouts/{trade.layout}",
        "nowhere",
    ):
        reader.get(f"/requester/{path}")

    def send(path: str, **fields: Any) -> None:
        reader.post(f"/requester/{path}", fields)

    send("keys")
    send(f"keys/{trade.key}/revoke")
    send("webhook-secret")
    send(f"types/{trade.type}/notifications", transport="SQS", destination="https://sqs/1/q", event="HITExpired")
    for number in ("0", "1", "2"):
        reader.get(f"/requester/hits/{trade.free}")
        field = reader.page.find("input", {"name": "token"})
        send(f"hits/{trade.free}/places", number=number, token=str(field["value"]) if isinstance(field, Tag) else "")
    send(f"hits/{trade.hits[0]}/delete")
    send(f"hits/{trade.free}/expire")
    send("review/decide", action="approve")
    send("review/decide", action="reject", assignment=trade.submitted)
    send("review/decide", action="reject", assignment=trade.submitted, step="words")
    send("review/decide", action="reject", assignment=trade.submitted, step="words", words="Όχι")
    send("review/decide", action="approve", assignment=trade.submitted)
    send("review/decide", action="approve", assignment=trade.submitted, step="words", words="ω" * 1025)
    send("review/decide", action="approve", assignment=trade.submitted, step="words")
    send("review/decide", action="approve", assignment=trade.submitted, step="words")
    send("review/decide", action="reject", assignment=trade.submitted, step="sure", words="Όχι")
    send(f"assignments/{trade.approved}/bonus", amount="ω")
    for step in ("", "sure", "sure"):
        send(f"assignments/{trade.approved}/bonus", amount="1", words="Ευχαριστώ", step=step, token="t" * 32)
    send(f"messages/{trade.message}/reply")
    send(f"messages/{trade.message}/reply", words="Ναι")
    send("blocks", worker_id="ω")
    send("blocks", worker_id=trade.worker, words="Όχι")
    send(f"blocks/{trade.worker}/end")
    send(f"disputes/{trade.dispute}", words="Δεν είναι")
    send(f"assignments/{trade.rejected}/override")
    send("qualifications/new", name="Άλλη", description="Κάτι", retry="ω")
    send("qualifications/new", name="Γνώση", description="Κάτι")
    send("qualifications/new", name="Άλλη", description="Κάτι", auto="1")
    send(f"qualifications/{trade.kind}/edit", description="Άλλο", status="Inactive")
    send(f"qualifications/{trade.kind}/assign", worker_id="ω", value="1")
    send(f"qualifications/{trade.kind}/assign", worker_id=trade.worker, value="ω")
    send(f"qualifications/{trade.kind_asked}/assign", worker_id=trade.worker, value="2")
    send(f"qualifications/{trade.kind_asked}/revoke/{trade.worker}", words="Τέλος")
    reader.get(f"/requester/qualifications/{trade.kind_asked}")
    send(f"qualifications/{trade.kind_asked}/delete")
    send("layouts/new", name="Νέα", height="ω", html="ω")
    send("layouts/new", name="Νέα", height="0", html="<!doctype html><html><body><form></form></body></html>")
    engine.take_down(trade.free, "Όχι", by=ROOT)
    reader.get(f"/requester/hits/{trade.free}")
    reader.get("/requester/messages")
    send("sign-out")

    assert pages(site, "requester") - reader.endpoints == set()
    found = {sentence: sorted(paths)[:3] for sentence, paths in sorted(reader.english.items())}
    assert set(found) - AS_WRITTEN == set(), found


def test_no_sentence_of_the_operator_console_is_missed(site: Flask, engine: Marketplace, clock: TestClock) -> None:
    trade, reader = Trade(engine), Reader(site)
    engine.add_operator("όλγα", OPERATOR_PASSWORD, by=ROOT)
    reader.get("/operator/sign-in")
    reader.post("/operator/sign-in", {"name": "όλγα", "password": "λάθος"})
    reader.post("/operator/sign-in", {"name": "όλγα", "password": OPERATOR_PASSWORD})
    clock.advance(hours=1)
    reader.get("/operator/confirm-password")
    reader.post("/operator/confirm-password", {"password": "λάθος"})
    reader.post(f"/operator/disputes/{trade.dispute}", {"action": "uphold", "words": "Όχι"})
    reader.get(f"/operator/disputes/{trade.dispute}")
    reader.post("/operator/confirm-password", {"password": OPERATOR_PASSWORD})
    run = engine.draft_payout_run(by=ROOT).run_id
    for path in (
        "",
        "workers",
        "workers?q=άννα",
        "workers?q=κανείς",
        f"workers/{trade.worker}",
        f"workers/{trade.worker}/disable",
        "requesters",
        "requesters?q=Εργαστήριο",
        "requesters?q=κανείς",
        f"requesters/{trade.requester}",
        f"requesters/{trade.requester}/top-up",
        f"requesters/{trade.requester}/disable",
        "invitations",
        "audit",
        "reports",
        "reports?all=1",
        "returns",
        f"hits/{trade.free}/take-down",
        "disputes",
        "disputes?state=Upheld",
        "disputes?state=Overturned",
        f"disputes/{trade.dispute}",
        f"disputes/{trade.decided}",
        "payouts",
        f"payouts/{run}",
        f"payouts/{run}/cancel",
        "nowhere",
    ):
        reader.get(f"/operator/{path}")

    def send(path: str, **fields: Any) -> None:
        reader.post(f"/operator/{path}", {"token": "t" * 32, **fields})

    send("invitations", count="2", note="Για όλους")
    send(f"workers/{trade.worker}/traits", is_master="1", country="GR")
    send(f"workers/{trade.worker}/traits", country="ω")
    for who in (f"workers/{trade.worker}", f"requesters/{trade.requester}"):
        send(f"{who}/disable", disabled="1")
        reader.get(f"/operator/{who}/disable")
        send(f"{who}/disable", disabled="0")
    send(f"requesters/{trade.requester}/top-up", amount="ω")
    send(f"requesters/{trade.requester}/top-up", amount="5")
    send(f"requesters/{trade.requester}/top-up", amount="5", step="sure", token="a" * 32)
    send(f"reports/{trade.report}/close")
    send(f"reports/{trade.report}/close", words="Έγινε")
    reader.get("/operator/reports?all=1")
    send(f"hits/{trade.free}/take-down")
    send(f"hits/{trade.free}/take-down", words="Όχι")
    reader.get(f"/operator/hits/{trade.free}/take-down")
    send(f"disputes/{trade.dispute}", action="overturn")
    for action in ("overturn", "uphold"):
        send(f"disputes/{trade.dispute}", action=action, words="Γιατί έτσι", token="b" * 32)
    send(f"disputes/{trade.dispute}", action="uphold", words="Γιατί έτσι", step="sure", token="b" * 32)
    send(f"disputes/{trade.dispute}", action="uphold", words="Γιατί έτσι", step="sure", token="c" * 32)
    send("payouts", day="ω")
    send("payouts", day="2999-01-01")
    send(f"payouts/{run}/paid")
    send(f"payouts/{run}/paid", reference="Ένα", token="d" * 32)
    send(f"payouts/{run}/paid", reference="Δύο", token="e" * 32)
    send(f"payouts/{run}/cancel", token="f" * 32)
    reader.get(f"/operator/workers/{trade.worker}")
    clock.advance(hours=13)
    reader.get("/operator/")
    send("sign-out")

    assert pages(site, "operator") - reader.endpoints == set()
    found = {sentence: sorted(paths)[:3] for sentence, paths in sorted(reader.english.items())}
    kinds = set(engine.audit_actions())
    assert set(found) - AS_WRITTEN - LOGGED - kinds == set(), found
