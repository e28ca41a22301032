"""A walk over the worker site in a made-up language: what is still English was not gathered for translation.

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
AS_WRITTEN = {"Your request was accepted", "You now have the qualification “Γνώση” with the value 7.", "English"}
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

    def _look(self, response: Any) -> Any:
        super()._look(response)
        if response.mimetype == "text/html":
            self.read += 1
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
