"""Workers writing to requesters, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from hits.marketplace.errors import (
    BlockedByRequester,
    HitUnknown,
    MessageUnfit,
    NotQualified,
    OperatorError,
    SiteError,
    WorkerUnknown,
    WroteTooOften,
)
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question
from tests.hits.marketplace.people import house
from tests.hits.marketplace.test_qualifications import create
from tests.hits.marketplace.test_work import all_at_once


def test_a_message_reaches_the_requester_and_the_reply_the_worker(stored_market: Market) -> None:
    engine, worker_id, hit_id = stored_market.engine, stored_market.worker(), stored_market.create_hit()
    before = engine.contact_requester(worker_id, hit_id, "  Is German fine?\x00 ")
    assignment_id = stored_market.accepted(hit_id, worker_id)
    stored_market.clock.advance(minutes=1)
    engine.contact_requester(worker_id, hit_id, "The button does nothing.")

    inbox = engine.requester_messages(stored_market.requester_id)

    assert [(one.text, one.assignment_id) for one in inbox.messages] == [
        ("The button does nothing.", assignment_id),
        ("Is German fine?", None),
    ]
    assert (inbox.total, inbox.unanswered) == (2, 2)
    assert {(one.worker_id, one.hit_id, one.hit_title) for one in inbox.messages} == {
        (worker_id, hit_id, "Fool the model")
    }
    engine.reply_to_worker(stored_market.requester_id, before, "Yes, it is.")
    engine.reply_to_worker(stored_market.requester_id, before, "Other languages too.")
    left = engine.requester_messages(stored_market.requester_id, unanswered_only=True)
    assert [one.text for one in left.messages] == ["The button does nothing."]
    assert (left.total, left.unanswered) == (1, 1)
    newest, older = engine.messages(worker_id).messages
    assert (newest.text, older.text) == ("Other languages too.", "Yes, it is.")
    assert (older.subject, older.question) == ("Reply about “Fool the model”", "Is German fine?")
    assert older.requester_name == "Language Lab"
    assert engine.unread_messages(worker_id) == 2
    assert engine.mark_messages_read(worker_id) == 2
    assert engine.unread_messages(worker_id) == 0
    sent = engine.sent_messages(worker_id)
    assert [[reply.text for reply in one.replies] for one in sent.messages] == [
        [],
        ["Yes, it is.", "Other languages too."],
    ]


def test_nobody_reads_or_answers_what_was_written_to_another_requester(market: Market) -> None:
    other = market.other_requester()
    message_id = market.engine.contact_requester(market.worker(), market.create_hit(), "Hello")

    assert market.engine.requester_messages(other).messages == ()
    for requester_id, unknown in ((other, message_id), (market.requester_id, "3NONE")):
        with pytest.raises(OperatorError, match="no worker's message"):
            market.engine.reply_to_worker(requester_id, unknown, "Hi")


def test_who_never_had_the_hit_must_be_allowed_to_look_at_it(market: Market) -> None:
    type_id = create(market)
    needs = {"QualificationTypeId": type_id, "Comparator": "Exists", "ActionsGuarded": "DiscoverPreviewAndAccept"}
    guarded, open_hit = market.create_hit(QualificationRequirements=[needs]), market.create_hit(MaxAssignments=3)
    blocked, worker_id = market.worker(), market.worker()
    gone = market.create_hit()
    market.client.update_expiration_for_hit(HITId=gone, ExpireAt=0)
    market.client.delete_hit(HITId=gone)
    market.client.create_worker_block(WorkerId=blocked, Reason="spam")

    for who, hit_id, refusal in (
        (worker_id, guarded, NotQualified),
        (worker_id, gone, HitUnknown),
        (worker_id, "3NONE", HitUnknown),
        (blocked, open_hit, BlockedByRequester),
        ("A0", open_hit, WorkerUnknown),
    ):
        with pytest.raises(refusal):
            market.engine.contact_requester(who, hit_id, "Hello")

    assert market.engine.requester_messages(market.requester_id).total == 0


def test_a_blocked_worker_may_still_write_about_work_they_did(market: Market) -> None:
    worker_id, hit_id = market.worker(), market.create_hit()
    market.submitted(hit_id, worker_id)
    market.client.create_worker_block(WorkerId=worker_id, Reason="spam")

    market.engine.contact_requester(worker_id, hit_id, "Why was I blocked?")

    assert market.engine.requester_messages(market.requester_id).total == 1


@pytest.mark.parametrize("text", ["", " \n\x00", "x" * 4001])
def test_a_message_has_words_but_not_too_many(market: Market, text: str) -> None:
    worker_id, hit_id = market.worker(), market.create_hit()

    with pytest.raises(MessageUnfit):
        market.engine.contact_requester(worker_id, hit_id, text)

    message_id = market.engine.contact_requester(worker_id, hit_id, "x" * 4000)
    with pytest.raises(MessageUnfit):
        market.engine.reply_to_worker(market.requester_id, message_id, text)
    assert market.engine.messages(worker_id).total == 0


def test_five_messages_a_day_to_one_requester(market: Market) -> None:
    worker_id, hit_id = market.worker(), market.create_hit()
    for _ in range(5):
        market.engine.contact_requester(worker_id, hit_id, "Hello?")
        market.clock.advance(minutes=1)
    again = market.clock.now()

    with pytest.raises(WroteTooOften, match="sent 5 messages to this requester") as refused:
        market.engine.contact_requester(worker_id, hit_id, "Hello?")

    assert refused.value.again_at > again
    market.engine.contact_requester(market.worker(), hit_id, "Somebody else may.")
    market.clock.advance(seconds=(refused.value.again_at - again).total_seconds())
    market.engine.contact_requester(worker_id, hit_id, "A day later.")


def test_twenty_messages_a_day_in_all(market: Market) -> None:
    worker_id = market.worker()
    for _ in range(4):
        client = market.client_for(market.other_requester())
        hit = client.create_hit(**HIT_PROPERTIES, LifetimeInSeconds=3600, Question=external_question())["HIT"]
        for _ in range(5):
            market.engine.contact_requester(worker_id, hit["HITId"], "Hello?")

    with pytest.raises(WroteTooOften, match="sent 20 messages"):
        market.engine.contact_requester(worker_id, market.create_hit(), "Hello?")


def test_the_limit_holds_for_messages_at_once(stored_market: Market) -> None:
    worker_id, hit_id = stored_market.worker(), stored_market.create_hit()

    def send() -> Callable[[], object]:
        def call() -> object:
            try:
                return stored_market.engine.contact_requester(worker_id, hit_id, "Hello?")
            except SiteError as refusal:
                return type(refusal).__name__

        return call

    outcomes = all_at_once([send() for _ in range(12)])

    assert outcomes.count("WroteTooOften") == 7
    assert stored_market.engine.requester_messages(stored_market.requester_id).total == 5


def test_pages_of_messages(market: Market) -> None:
    hit_id = market.create_hit()
    for number in range(5):
        market.engine.contact_requester(market.worker(), hit_id, f"{number}")

    pages = [market.engine.requester_messages(market.requester_id, page=page, page_size=2) for page in (0, 1, 2, 3, 99)]

    assert [[one.text for one in page.messages] for page in pages] == [["4", "3"], ["4", "3"], ["2", "1"], ["0"], ["0"]]
    assert [(page.page, page.pages, page.total) for page in pages] == [
        (1, 3, 5),
        (1, 3, 5),
        (2, 3, 5),
        (3, 3, 5),
        (3, 3, 5),
    ]


def test_a_requester_with_an_address_is_told_by_mail_once_for_what_has_not_gone_out(database_url: str) -> None:
    with house(database_url) as opened:
        engine, worker_id = opened.engine, opened.worker()
        opened.box.letters.clear()
        hits = []
        for email in ("lab@example.org", None):
            requester_id = engine.create_requester("Lab", email=email).requester_id
            engine.top_up(requester_id, Decimal(10))
            hit = {**HIT_PROPERTIES, "LifetimeInSeconds": 3600, "Question": external_question()}
            hit_id = engine.call(requester_id, "CreateHIT", hit)["HIT"]["HITId"]
            engine.contact_requester(worker_id, hit_id, "The secret of my life")
            engine.contact_requester(worker_id, hit_id, "Another one")
            hits.append(hit_id)

        opened.post()

        (letter,) = opened.box.letters
        assert letter.address == "lab@example.org"
        assert "secret" not in letter.text
        assert worker_id not in letter.text + letter.subject
        for hit_id in hits:
            engine.contact_requester(worker_id, hit_id, "More")
        opened.post()
        assert len(opened.box.letters) == 2
