"""Who agreed to which version of the text."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy.orm import Session, sessionmaker

from hits.consent import agree, has_agreed, require_consent, text_by_version, text_of
from hits.errors import ConsentMissing, NotFound, Refused
from hits.models import Consent, ConsentText, Worker
from tests.factories import NOON, PSEUDONYM_KEY, make_assignment, make_worker


def test_a_text_keeps_its_version_also_when_it_comes_back(session: Session) -> None:
    first = text_of(session, "one", NOON)
    second = text_of(session, "two", NOON)

    assert text_of(session, "one", NOON).id == first.id
    assert second.id != first.id
    assert text_by_version(session, first.id).body == "one"
    with pytest.raises(NotFound, match="no version 99"):
        text_by_version(session, 99)


def test_agreeing_is_stored_once_with_the_version_that_was_read(session: Session) -> None:
    text = text_of(session, "one", NOON)
    for _ in range(2):
        agree(session, "AWRITER", text, str(text.id), key=PSEUDONYM_KEY, now=NOON)

    assert [(one.consent_text_id, one.given_at) for one in session.query(Consent)] == [(text.id, NOON)]
    assert has_agreed(session, "AWRITER", text)
    assert not has_agreed(session, "AWRITER", text_of(session, "two", NOON))
    assert not has_agreed(session, "AOTHER", text)


@pytest.mark.parametrize("version", ["", "0", "999", "1; DROP TABLE consent"])
def test_agreeing_to_another_version_than_the_current_one_stores_nothing(session: Session, version: str) -> None:
    text = text_of(session, "one", NOON)

    with pytest.raises(Refused, match=f"version {text.id} holds now"):
        agree(session, "AWRITER", text, version, key=PSEUDONYM_KEY, now=NOON)

    assert session.query(Worker).count() == session.query(Consent).count() == 0


def test_an_assignment_without_consent_takes_nothing(session: Session) -> None:
    with pytest.raises(ConsentMissing):
        require_consent(make_assignment(session, consent_text_id=None))
    require_consent(make_assignment(session))


def test_two_tabs_that_agree_together_leave_one_worker_and_one_consent(session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        version = text_of(session, "one", NOON).id
        session.commit()
    together = threading.Barrier(4)
    trouble: list[BaseException] = []

    def tab() -> None:
        try:
            with session_factory() as session:
                together.wait()
                text = session.get_one(ConsentText, version)
                agree(session, "AWRITER", text, str(version), key=PSEUDONYM_KEY, now=NOON)
                session.commit()
        except BaseException as error:
            trouble.append(error)

    tabs = [threading.Thread(target=tab) for _ in range(4)]
    for one in tabs:
        one.start()
    for one in tabs:
        one.join()

    with session_factory() as session:
        assert trouble == []
        assert session.query(Worker).count() == session.query(Consent).count() == 1


def test_a_new_text_that_two_requests_meet_together_is_one_version(session_factory: sessionmaker[Session]) -> None:
    together = threading.Barrier(4)
    versions: list[int] = []

    def request() -> None:
        with session_factory() as session:
            together.wait()
            version = text_of(session, "new", NOON).id
            session.commit()
            versions.append(version)

    requests = [threading.Thread(target=request) for _ in range(4)]
    for one in requests:
        one.start()
    for one in requests:
        one.join()

    assert len(versions) == 4
    assert len(set(versions)) == 1


def test_a_worker_who_was_there_before_agrees_under_the_same_row(session: Session) -> None:
    worker = make_worker(session, mturk_worker_id="AWRITER")
    text = text_of(session, "one", NOON)

    assert agree(session, "AWRITER", text, str(text.id), key=PSEUDONYM_KEY, now=NOON).worker_id == worker.id
