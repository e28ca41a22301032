"""Grants reach the marketplace once, whatever is interrupted; expiry, revocation, and what the marketplace shows."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations import grant as operation
from app.operations.grant import (
    checked_kind,
    grant_by_hand,
    kinds,
    live_grants,
    reset,
    revoke,
    settle_grants,
    take_over,
    type_of,
    worker_named,
)
from app.operations.jobs_pass import jobs_pass
from app.operations.launch import launch_batch, plan_launch
from app.operations.launch_quiz import publish_quiz
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound
from hits.marketplace.errors import NotQualified
from hits.models import Worker
from hits.mturk.errors import MTurkUnavailable
from qualification import grants
from qualification.admission import check_admission
from qualification.errors import NotAdmitted
from qualification.models import Ending, GrantState, QualificationGrant
from qualification.quizzes import fixed_items, quiz_for
from tests.app.operations.conftest import CONTEXTS, TERMS
from tests.app.operations.crashes import Killed
from tests.app.operations.people import Crowd, hit_row
from tests.app.operations.quizzes import launched, take
from tests.market import ENDPOINT, Market, failing
from tests.market import settings as settings_of_the_market
from tests.qualification.quiz_hits import ON_SQLITE

pytestmark = ON_SQLITE

KIND = "writer:sentiment"


@pytest.fixture
def ada(crowd: Crowd) -> Worker:
    """Somebody of the marketplace, known here."""
    found = worker_named(crowd.session, crowd.settings, crowd.clock, crowd.market.person("ada"))
    crowd.session.commit()
    return found


def settle(crowd: Crowd) -> operation.Settled:
    return settle_grants(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)


def holders(crowd: Crowd, kind: str = KIND) -> dict[str, int]:
    type_id = type_of(crowd.session, crowd.market.mturk, crowd.settings, kind)
    return {grant.worker_id: grant.value for grant in crowd.market.mturk.holders(type_id)}


def planned(crowd: Crowd, worker: Worker, version: int = 1, **fields: int) -> None:
    grants.plan_grant(
        crowd.session,
        worker.id,
        KIND,
        version=version,
        value=version,
        endpoint=ENDPOINT,
        reason="",
        by="quiz",
        now=crowd.clock.now(),
        **fields,
    )
    crowd.session.commit()


def states(crowd: Crowd) -> list[GrantState]:
    crowd.session.expire_all()
    return list(crowd.session.scalars(select(QualificationGrant.state).order_by(QualificationGrant.id)))


def test_there_is_a_kind_for_every_quiz_and_one_for_validators() -> None:
    assert "validator" in kinds()
    assert {"writer:nli", "validator:hate"} <= set(kinds())
    with pytest.raises(InvalidInput, match="writer:nli"):
        checked_kind("writer:poetry")


def test_a_planned_grant_reaches_the_marketplace_once(crowd: Crowd, ada: Worker) -> None:
    planned(crowd, ada)

    assert settle(crowd).granted == 1
    crowd.market.calls.clear()
    assert settle(crowd) == operation.Settled()

    assert holders(crowd) == {ada.mturk_worker_id: 1}
    assert "AssociateQualificationWithWorker" not in crowd.market.calls


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("operation_name", ["AssociateQualificationWithWorker", "DisassociateQualificationFromWorker"])
def test_a_process_that_is_killed_around_a_call_is_made_good_by_the_next(
    crowd: Crowd, ada: Worker, moment: str, operation_name: str
) -> None:
    planned(crowd, ada)
    ends = operation_name.startswith("Dis")
    if ends:
        settle(crowd)
        grants.end_grant(crowd.session, ada.id, KIND, ENDPOINT, reason="x", by="robin", now=crowd.clock.now())
        crowd.session.commit()

    def kill(called: str) -> None:
        if called == operation_name:
            raise Killed

    setattr(crowd.market, moment, kill)
    with pytest.raises(Killed):
        settle(crowd)
    crowd.session.rollback()
    setattr(crowd.market, moment, None)

    done = settle(crowd)

    assert (done.granted, done.ended) == ((0, 1) if ends else (1, 0))
    assert states(crowd) == [GrantState.ENDED if ends else GrantState.GRANTED]
    assert holders(crowd) == ({} if ends else {ada.mturk_worker_id: 1})


def test_no_transaction_is_open_while_the_marketplace_is_asked(crowd: Crowd, ada: Worker) -> None:
    planned(crowd, ada)
    seen = []
    crowd.market.before = lambda called: seen.append((called, crowd.session.in_transaction()))

    settle(crowd)

    assert ("AssociateQualificationWithWorker", False) in seen
    assert not any(open_ for _, open_ in seen)


def test_an_unreachable_marketplace_leaves_the_grant_for_the_next_pass(crowd: Crowd, ada: Worker) -> None:
    planned(crowd, ada)
    crowd.market.before = failing("AssociateQualificationWithWorker")

    with pytest.raises(MTurkUnavailable):
        settle(crowd)

    assert states(crowd) == [GrantState.GRANTING]
    crowd.market.before = None
    assert settle(crowd).granted == 1


def test_a_refused_grant_is_a_finding_without_the_workers_id(crowd: Crowd, caplog: pytest.LogCaptureFixture) -> None:
    nobody = worker_named(crowd.session, crowd.settings, crowd.clock, "ANOBODY0000000")
    planned(crowd, nobody)

    with caplog.at_level(logging.WARNING):
        done = settle(crowd)

    assert states(crowd) == [GrantState.FAILED]
    [finding] = done.findings
    assert nobody.pseudonym in finding
    for text in (finding, caplog.text, str(crowd.session.scalars(select(QualificationGrant.cause)).one())):
        assert nobody.mturk_worker_id not in text
    assert settle(crowd).findings == []


def test_what_expires_is_taken_away_by_the_jobs_pass(crowd: Crowd, ada: Worker) -> None:
    planned(crowd, ada, months=1)
    settle(crowd)
    crowd.clock.advance(timedelta(days=31))

    assert settle(crowd).ended == 1

    assert holders(crowd) == {}
    latest = grants.latest_grant(crowd.session, ada.id, KIND, ENDPOINT)
    assert latest is not None
    assert latest.ending is Ending.EXPIRED
    assert latest.reason == "It was granted until 15 December 2026. You can earn it again."


def test_a_person_grants_and_takes_away_and_both_are_on_the_trail(crowd: Crowd, ada: Worker) -> None:
    launched(crowd)
    common = (crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, ada, KIND)

    assert grant_by_hand(*common, reason="Wrote the rules.", by="robin", months=6).granted == 1
    assert grant_by_hand(*common, by="robin").granted == 0
    assert holders(crowd) == {ada.mturk_worker_id: 1}
    assert [one.worker.pseudonym for one in live_grants(crowd.session, ENDPOINT, KIND)] == [ada.pseudonym]

    assert revoke(*common, reason="Copied texts.", by="robin").ended == 1
    assert holders(crowd) == {}
    assert live_grants(crowd.session, ENDPOINT) == []
    with pytest.raises(NotFound, match="holds no qualification"):
        revoke(*common, reason="", by="robin")
    crowd.session.rollback()

    assert reset(crowd.session, crowd.clock, ada, KIND, by="robin") == 0
    latest = grants.latest_grant(crowd.session, ada.id, KIND, ENDPOINT)
    assert latest is not None
    assert not grants.is_barred(latest)
    trail = crowd.session.scalars(select(AuditEntry).order_by(AuditEntry.id)).all()
    assert [entry.action for entry in trail] == [
        "qualification.grant",
        "qualification.grant",
        "qualification.revoke",
        "qualification.reset",
    ]
    assert {entry.subject for entry in trail} == {ada.pseudonym}
    assert ada.mturk_worker_id not in str([entry.detail for entry in trail])


def test_a_quiz_without_a_version_can_not_be_granted_by_hand(crowd: Crowd, ada: Worker) -> None:
    with pytest.raises(NotFound, match="none yet"):
        grant_by_hand(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, ada, KIND, by="robin")


def test_validators_that_an_invitation_made_can_be_revoked(crowd: Crowd) -> None:
    name = crowd.settings.validator_qualification
    type_id = crowd.market.mturk.find_or_create_qualification(name, "Validators.")
    bea = crowd.market.person("bea", grants={type_id: 3})
    worker = worker_named(crowd.session, crowd.settings, crowd.clock, bea)

    done = revoke(
        crowd.session,
        crowd.market.mturk,
        crowd.settings,
        crowd.clock,
        worker,
        grants.VALIDATOR,
        reason="",
        by="robin",
    )

    assert done.ended == 1
    assert holders(crowd, grants.VALIDATOR) == {}
    assert crowd.session.scalars(select(QualificationGrant.value)).one() == 3


def test_passes_of_the_marketplaces_own_quiz_are_taken_over(
    crowd: Crowd, session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    done = publish_quiz(session, market.mturk, settings, clock, "sentiment", "writer")
    type_id = market.mturk.find_qualification(done.qualification) or ""
    quiz = quiz_for("sentiment", "writer")
    ada, bea = market.person("ada"), market.person("bea")
    for person, right in ((ada, 6), (bea, 5)):
        view = market.engine.request_qualification(person, type_id)
        fields = {}
        assert view.form is not None
        for place, (question, item) in enumerate(zip(view.form.questions, fixed_items(quiz), strict=True)):
            wrong = next(code for code in quiz.choice_codes if code != item.right)
            fields[question.field] = [item.right if place < right else wrong]
        market.engine.submit_qualification_test(person, view.request_id, fields)

    assert take_over(session, market.mturk, settings, clock).found == 1
    assert take_over(session, market.mturk, settings, clock).found == 0

    grant = session.scalars(select(QualificationGrant)).one()
    assert grant.worker.mturk_worker_id == ada
    assert (grant.state, grant.version, grant.by) == (GrantState.GRANTED, 1, "marketplace")
    assert grants.holds(session, grant.worker_id, KIND, frozenset({1}), clock.now())


def test_a_quiz_that_is_gone_from_the_marketplace_is_a_finding_and_holds_up_nothing(crowd: Crowd, ada: Worker) -> None:
    done = publish_quiz(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, "sentiment", "validator")
    crowd.market.call(
        "DeleteQualificationType", QualificationTypeId=crowd.market.mturk.find_qualification(done.qualification)
    )
    planned(crowd, ada)

    settled = settle(crowd)

    assert settled.granted == 1
    [finding] = settled.findings
    assert "'validator:sentiment' is not on the marketplace any more" in finding


def test_what_the_marketplace_will_not_take_away_is_ended_here_and_said_once(crowd: Crowd, ada: Worker) -> None:
    planned(crowd, ada)
    settle(crowd)
    grants.end_grant(crowd.session, ada.id, KIND, ENDPOINT, reason="x", by="robin", now=crowd.clock.now())
    crowd.session.commit()
    crowd.market.before = failing("DisassociateQualificationFromWorker", 400, "RequestError")

    [finding] = settle(crowd).findings

    assert "refused to take away" in finding
    assert states(crowd) == [GrantState.ENDED]
    assert settle(crowd).findings == []


def test_a_worker_is_named_by_pseudonym_or_id(crowd: Crowd, ada: Worker) -> None:
    named = (crowd.session, crowd.settings, crowd.clock)

    assert worker_named(*named, ada.pseudonym).id == ada.id
    assert worker_named(*named, ada.mturk_worker_id).id == ada.id
    with pytest.raises(NotFound, match="w-0000"):
        worker_named(*named, "w-0000")
    for nonsense in ("ada", "a1b2", "A B", "", "A" * 65):
        with pytest.raises(InvalidInput, match="neither"):
            worker_named(*named, nonsense)


def test_a_quiz_and_a_revocation_that_meet_end_without_the_qualification(crowd: Crowd) -> None:
    person = crowd.market.person("cleo")
    first, _ = launched(crowd)
    take(crowd, person, first)
    worker = worker_named(crowd.session, crowd.settings, crowd.clock, person)
    common = (crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, worker, KIND)
    grant_by_hand(*common, by="robin")
    revoke(*common, reason="Two accounts.", by="robin")

    jobs_pass(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    assert holders(crowd) == {}
    assert not grants.holds(crowd.session, worker.id, KIND, None, crowd.clock.now())


def asked_of(market: Market, hit: dict[str, Any], name: str) -> dict[str, Any]:
    """What a HIT asks of the qualification of this name."""
    type_id = market.mturk.find_qualification(name)
    [asked] = [one for one in hit["QualificationRequirements"] if one["QualificationTypeId"] == type_id]
    found: dict[str, Any] = asked
    return found


def test_writing_hits_ask_for_the_quiz_on_the_marketplace_and_here(crowd: Crowd) -> None:
    terms = replace(TERMS, quiz=True, hits=1)
    world = (crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    with pytest.raises(NotFound, match="no version that is accepted"):
        plan_launch(*world, terms, CONTEXTS)
    first, _ = launched(crowd)
    person = crowd.market.person("ada")

    launch_batch(*world, terms, CONTEXTS)

    [hit] = [one for one in crowd.market.hits() if "/work/" in one["Question"]]
    asked = asked_of(crowd.market, hit, "dynahit sentiment writer")
    assert (asked["Comparator"], asked["IntegerValues"]) == ("In", [1])
    with pytest.raises(NotQualified):
        crowd.market.accept(person, hit["HITId"])
    row = hit_row(crowd.session, hit["HITId"])
    worker = worker_named(crowd.session, crowd.settings, crowd.clock, person)
    with pytest.raises(NotAdmitted, match="writers' quiz"):
        check_admission(crowd.session, row, worker, crowd.clock.now(), phase="load")
    crowd.session.commit()

    take(crowd, person, first)
    jobs_pass(*world)

    assert crowd.market.accept(person, hit["HITId"])
    check_admission(crowd.session, row, worker, crowd.clock.now(), phase="load")


def test_validation_hits_ask_for_the_readers_quiz_where_that_is_set(
    session: Session, market: Market, clock: FixedClock
) -> None:
    by_quiz = settings_of_the_market(validators_by_quiz=True, validation_wait_seconds=0)
    crowd = Crowd(session, market, by_quiz, clock)
    launched(crowd, quiz_for="validator")
    launch_batch(session, market.mturk, by_quiz, clock, replace(TERMS, hits=1), CONTEXTS)
    [writing] = [hit for hit in market.hits() if "/work/" in hit["Question"]]
    crowd.write(market.person("ada"), writing["HITId"], {"What a treat, cold soup.": True})
    jobs_pass(session, market.mturk, by_quiz, clock)

    report = jobs_pass(session, market.mturk, by_quiz, clock)

    assert report.findings == []
    [judging] = [hit for hit in market.hits() if "/validate/" in hit["Question"]]
    general = market.mturk.find_qualification(by_quiz.validator_qualification)
    assert general not in [one["QualificationTypeId"] for one in judging["QualificationRequirements"]]
    asked = asked_of(market, judging, "dynahit sentiment validator")
    assert (asked["Comparator"], asked["IntegerValues"]) == ("In", [1])
    reader = market.person("bea")
    worker = worker_named(session, by_quiz, clock, reader)
    row = hit_row(session, judging["HITId"])
    with pytest.raises(NotAdmitted, match="validators' quiz"):
        check_admission(session, row, worker, clock.now(), phase="load")
    grant_by_hand(session, market.mturk, by_quiz, clock, worker, "validator:sentiment", by="robin")
    check_admission(session, row, worker, clock.now(), phase="load")
