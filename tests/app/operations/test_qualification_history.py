"""What somebody took, held and lost, in order and without the worker id."""

from __future__ import annotations

from datetime import timedelta

from app.operations.grant import grant_by_hand, reset, revoke, settle_grants, worker_named
from app.operations.jobs_pass import jobs_pass
from app.operations.qualification_history import history
from qualification import grants
from qualification.models import Level
from tests.app.operations.people import Crowd
from tests.app.operations.quizzes import launched, take
from tests.qualification.quiz_hits import ON_SQLITE

pytestmark = ON_SQLITE

KIND = "writer:sentiment"


def test_everything_that_happened_is_told_in_order(crowd: Crowd) -> None:
    person = crowd.market.person("ada")
    first, second = launched(crowd)
    world = (crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    steps = (
        lambda: take(crowd, person, first, right=3),
        lambda: take(crowd, person, second),
        lambda: jobs_pass(*world),
    )
    for step in steps:
        step()
        crowd.clock.advance(timedelta(hours=25))
    ada = worker_named(crowd.session, crowd.settings, crowd.clock, person)
    grants.raise_level(
        crowd.session, ada.id, "sentiment", Level.WRITER, by="robin", reason="Good work.", now=crowd.clock.now()
    )
    crowd.clock.advance(timedelta(days=1))
    revoke(*world, ada, KIND, reason="Two accounts.", by="robin")
    crowd.clock.advance(timedelta(days=1))
    reset(crowd.session, crowd.clock, ada, KIND, by="robin")
    nobody = worker_named(crowd.session, crowd.settings, crowd.clock, "ANOBODY0000000")
    grant_by_hand(*world, nobody, KIND, by="robin")
    settle_grants(*world)

    events = history(crowd.session, ada)

    assert [event.what for event in events if "quiz" not in event.what] == [
        "grant planned",
        "granted",
        "level writer",
        "revoked",
        "revocation lifted",
    ]
    assert [event.detail for event in events if event.what.startswith("quiz ")][:3] == [
        "version 1, try 1",
        "version 1, try 1: 3 of 7 right",
        "version 1, try 2",
    ]
    assert [event.what for event in events if event.what == "quiz set aside"] == ["quiz set aside"] * 2
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert next(event for event in events if event.what == "revoked").as_json()["detail"] == "Two accounts."
    assert person not in str([event.as_json() for event in events])
    refused = [event.what for event in history(crowd.session, nobody)]
    assert refused == ["grant planned", "refused by the marketplace"]
