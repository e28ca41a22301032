"""What stands before a HIT's page."""

from __future__ import annotations

import pytest
from flask import Flask
from sqlalchemy.orm import Session

from app.care.gate import ConsentWanted, WarningWanted, after_opening, before_opening, go_on, require_care
from app.frames import Frame
from hits.consent import agree
from hits.errors import ConsentMissing, InvalidInput, NotWarned, WrongWorker
from hits.models import Hit
from hits.states import AssignmentState
from tests.app.four_tasks import creation_hit
from tests.factories import NOON, PSEUDONYM_KEY, make_assignment, make_hit


def frame_of(hit: Hit, assignment: str = "AONE", worker: str = "AWRITER") -> Frame:
    return Frame(assignment, hit.mturk_hit_id or "", worker, None)


def test_consent_comes_first_and_lasts(app: Flask, session: Session) -> None:
    known, hit = app.extensions["dynahit"], make_hit(session)

    with pytest.raises(ConsentWanted) as wanted:
        before_opening(session, known, hit, frame_of(hit))
    text = wanted.value.text
    agree(session, "AWRITER", text, str(text.id), key=PSEUDONYM_KEY, now=NOON)

    assert before_opening(session, known, hit, frame_of(hit)) is text
    with pytest.raises(ConsentWanted):
        before_opening(session, known, creation_hit(session, "hate"), frame_of(hit))  # its text says more


def test_claims_that_can_not_be_are_refused_before(app: Flask, session: Session) -> None:
    known, hit = app.extensions["dynahit"], make_hit(session)
    theirs = make_assignment(session, hit=hit)

    with pytest.raises(InvalidInput):
        before_opening(session, known, hit, frame_of(hit, worker="nobody"))
    with pytest.raises(WrongWorker):
        before_opening(session, known, hit, frame_of(hit, theirs.mturk_assignment_id))
    with pytest.raises(WrongWorker):
        before_opening(
            session,
            known,
            make_hit(session),
            frame_of(hit, theirs.mturk_assignment_id, theirs.worker.mturk_worker_id),
        )


def test_handed_in_work_wants_nothing(app: Flask, session: Session) -> None:
    known, hit = app.extensions["dynahit"], creation_hit(session, "hate")
    done = make_assignment(session, hit=hit, state=AssignmentState.SAVED, consent_text_id=None, warned_at=None)

    frame = frame_of(hit, done.mturk_assignment_id, done.worker.mturk_worker_id)
    assert before_opening(session, known, hit, frame) is None
    after_opening(done)
    require_care(done)


def test_a_task_with_disturbing_texts_warns_each_time_a_hit_is_opened(session: Session) -> None:
    assignment = make_assignment(session, hit=creation_hit(session, "hate"), warned_at=None)
    with pytest.raises(WarningWanted):
        after_opening(assignment)
    with pytest.raises(NotWarned):
        require_care(assignment)

    go_on(assignment, NOON)
    go_on(assignment, NOON.replace(hour=23))

    after_opening(assignment)
    require_care(assignment)
    assert assignment.warned_at == NOON
    after_opening(make_assignment(session, warned_at=None))  # sentiment does not warn


def test_a_form_without_consent_is_refused_before_the_warning(session: Session) -> None:
    assignment = make_assignment(session, hit=creation_hit(session, "hate"), warned_at=None, consent_text_id=None)

    with pytest.raises(ConsentMissing):
        require_care(assignment)
