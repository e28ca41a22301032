"""HITs that ask for a quiz let in by our own database only those who hold an accepted version now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import NotFound
from hits.models import Hit, Worker
from hits.mturk.client import Requirement
from hits.states import HitKind
from qualification import grants
from qualification.admission import check_admission
from qualification.errors import NotAdmitted
from qualification.models import QuizType
from qualification.quiz_requirements import (
    accepted_versions,
    check_quizzes,
    note_type,
    quiz_requirement,
    retire_version,
)
from qualification.quizzes import current_version, quiz_for
from qualification.requirements import as_json, check_requirements
from tests import factories as make
from tests.factories import NOON

ENDPOINT = "http://127.0.0.1:8000"
KIND = "writer:sentiment"
TYPE = "3QUIZTYPE00000000000000000000A"


def asking(session: Session, *requirements: Requirement, kind: HitKind = HitKind.CREATION) -> Hit:
    """A HIT whose batch asks for these."""
    batch = make.make_batch(session, kind=kind, requirements=[as_json(one) for one in requirements] or None)
    return make.make_hit(session, batch=batch)


def holder(session: Session, version: int, *, months: int = 0) -> Worker:
    worker = make.make_worker(session)
    plan = {"version": version, "value": version, "endpoint": ENDPOINT, "reason": "", "by": "quiz", "now": NOON}
    grants.plan_grant(session, worker.id, KIND, months=months, **plan)  # type: ignore[arg-type]
    [row] = grants.waiting(session, ENDPOINT)
    order = grants.claim(session, *row)
    assert order is not None
    grants.mark_done(session, order, NOON)
    return worker


def test_new_hits_accept_every_version_that_is_not_retired(session: Session) -> None:
    with pytest.raises(NotFound, match="no version that is accepted"):
        accepted_versions(session, KIND)
    first = current_version(session, quiz_for("sentiment", "writer"), NOON)
    assert accepted_versions(session, KIND) == (1,)

    assert retire_version(session, KIND, first.number, NOON)
    assert not retire_version(session, KIND, first.number, NOON)

    with pytest.raises(NotFound):
        accepted_versions(session, KIND)
    with pytest.raises(NotFound, match="no version 7"):
        retire_version(session, KIND, 7, NOON)


def test_the_requirement_names_its_versions_and_the_marketplace_would_take_it() -> None:
    requirement = quiz_requirement(TYPE, (1, 3))

    check_requirements([requirement])
    assert str(requirement) == f"{TYPE} in 1, 3, DiscoverPreviewAndAccept"


def test_an_id_is_noted_once_and_follows_the_marketplace(session: Session) -> None:
    note_type(session, KIND, ENDPOINT, TYPE)
    note_type(session, KIND, ENDPOINT, TYPE)
    note_type(session, KIND, ENDPOINT, "3ANOTHER")
    note_type(session, KIND, "https://elsewhere", TYPE)

    found = session.execute(select(QuizType.endpoint, QuizType.qualification_type_id).order_by(QuizType.id)).all()
    assert [tuple(row) for row in found] == [(ENDPOINT, "3ANOTHER"), ("https://elsewhere", TYPE)]


@pytest.mark.parametrize(
    ("comparator", "values", "lets_in"),
    [
        ("In", (1, 2), {1, 2}),
        ("EqualTo", (2,), {2}),
        ("Exists", (), {1, 2, 3}),
        # Left to the marketplace alone.
        ("GreaterThan", (2,), {0, 1, 2, 3}),
    ],
)
def test_who_holds_an_accepted_version_may_write(
    session: Session, comparator: str, values: tuple[int, ...], lets_in: set[int]
) -> None:
    note_type(session, KIND, ENDPOINT, TYPE)
    hit = asking(session, Requirement(TYPE, comparator=comparator, values=values))
    people = {0: make.make_worker(session), **{version: holder(session, version) for version in (1, 2, 3)}}

    for version, worker in people.items():
        if version in lets_in:
            check_admission(session, hit, worker, NOON, phase="load")
            continue
        with pytest.raises(NotAdmitted, match="passed the writers' quiz of the sentiment task") as caught:
            check_admission(session, hit, worker, NOON, phase="load")
        assert worker.mturk_worker_id not in str(caught.value)


def test_what_expired_or_was_taken_away_lets_nobody_in_before_the_marketplace_is_told(session: Session) -> None:
    note_type(session, KIND, ENDPOINT, TYPE)
    hit = asking(session, quiz_requirement(TYPE, (1,)))
    ada, bea = holder(session, 1, months=1), holder(session, 1)
    check_quizzes(session, hit, ada, NOON)
    check_quizzes(session, hit, bea, NOON + timedelta(days=400))

    with pytest.raises(NotAdmitted):
        check_quizzes(session, hit, ada, NOON + timedelta(days=31))
    grants.end_grant(session, bea.id, KIND, ENDPOINT, reason="x", by="robin", now=NOON)
    with pytest.raises(NotAdmitted):
        check_quizzes(session, hit, bea, NOON)


def test_hits_that_ask_for_no_quiz_or_for_something_else_let_everybody_in(session: Session) -> None:
    note_type(session, KIND, "https://elsewhere", TYPE)
    ada = make.make_worker(session)

    for hit in (asking(session), asking(session, quiz_requirement(TYPE, (1,))), asking(session, Requirement("3X"))):
        check_quizzes(session, hit, ada, NOON)


def test_who_has_begun_may_finish(session: Session) -> None:
    note_type(session, KIND, ENDPOINT, TYPE)
    hit = asking(session, quiz_requirement(TYPE, (1,)))
    ada = holder(session, 1)
    assignment = make.make_assignment(session, hit=hit, worker=ada)
    make.make_attempt(session, assignment=assignment)
    grants.end_grant(session, ada.id, KIND, ENDPOINT, reason="x", by="robin", now=NOON)

    check_admission(session, hit, ada, NOON, phase="submit")
