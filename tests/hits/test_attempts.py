"""A writer's way through a creation HIT, and everything that may be tried to bend it."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from hits import attempts
from hits.clock import FixedClock
from hits.errors import (
    AlreadySubmitted,
    ConsentMissing,
    HitsError,
    InvalidAnswer,
    InvalidInput,
    NoTriesLeft,
    NotYetSubmittable,
    Refused,
    WrongWorker,
)
from hits.models import Assignment, Attempt
from hits.predictions import AnswerSpan, Attribution, MemberAnswer, Prediction, WordAttribution
from hits.states import AssignmentState, AttemptState
from tests import factories as make
from tests.app.four_tasks import ANSWERS, PASSAGE, creation_hit


def says(label: str, **probabilities: float) -> Prediction:
    values = probabilities or {"negative": 0.1, "positive": 0.1, "neutral": 0.1, label: 0.8}
    return Prediction("model", "r1", label, values, 12.5)


def ask(session: Session, assignment: Assignment, text: str, label: str, clock: FixedClock) -> Attempt:
    attempt, must_ask = attempts.begin_attempt(session, assignment, {"statement": text}, clock.now())
    assert must_ask
    attempts.record_prediction(session, attempt, says(label), clock.now())
    clock.advance(timedelta(seconds=10))
    return attempt


@pytest.fixture
def assignment(session: Session) -> Assignment:
    return make.make_assignment(session, hit=make.make_hit(session))


def test_opening_twice_gives_one_assignment(session: Session, clock: FixedClock) -> None:
    hit = make.make_hit(session)
    claim = {"mturk_assignment_id": "3ABC", "mturk_worker_id": "AONE", "pseudonym_key": "k", "deadline": None}

    first = attempts.open_assignment(session, hit, **claim, now=clock.now())  # type: ignore[arg-type]
    clock.advance(timedelta(minutes=1))
    second = attempts.open_assignment(session, hit, **claim, now=clock.now())  # type: ignore[arg-type]

    assert first is second
    assert first.deadline_at == clock.now() + timedelta(seconds=hit.batch.assignment_seconds - 60)
    assert first.worker.pseudonym.startswith("w-")


def test_an_assignment_of_another_worker_or_hit_is_refused(session: Session, clock: FixedClock) -> None:
    hit, other_hit = make.make_hit(session), make.make_hit(session)
    known = make.make_assignment(session, hit=hit)
    claim = {"mturk_assignment_id": known.mturk_assignment_id, "pseudonym_key": "k", "deadline": None}

    with pytest.raises(WrongWorker):
        attempts.open_assignment(session, hit, mturk_worker_id="AOTHER", **claim, now=clock.now())  # type: ignore[arg-type]
    with pytest.raises(WrongWorker):
        attempts.open_assignment(
            session,
            other_hit,
            mturk_worker_id=known.worker.mturk_worker_id,
            **claim,
            now=clock.now(),  # type: ignore[arg-type]
        )


@pytest.mark.parametrize(
    ("assignment_id", "worker_id"), [("3ABC", "B1"), ("<script>", "AONE"), ("", "AONE"), ("3A", "")]
)
def test_ids_that_are_none_are_refused(session: Session, clock: FixedClock, assignment_id: str, worker_id: str) -> None:
    with pytest.raises(InvalidInput):
        attempts.open_assignment(
            session,
            make.make_hit(session),
            mturk_assignment_id=assignment_id,
            mturk_worker_id=worker_id,
            pseudonym_key="k",
            deadline=None,
            now=clock.now(),
        )
    assert session.scalar(select(func.count(Assignment.id))) == 0


def test_the_server_decides_that_the_model_was_fooled(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    right = ask(session, assignment, "The soup was awful.", "negative", clock)
    wrong = ask(session, assignment, "I had worse soup in prison, I think.", "positive", clock)

    stands = attempts.progress(session, assignment, clock.now())
    assert (right.fooled, wrong.fooled) == (False, True)
    assert stands.fooling is wrong
    assert (stands.tries_used, stands.can_ask, stands.can_submit) == (2, False, True)
    with pytest.raises(Refused, match="already fooled"):
        attempts.begin_attempt(session, assignment, {"statement": "One more."}, clock.now())


def test_the_same_text_again_takes_no_second_try(session: Session, assignment: Assignment, clock: FixedClock) -> None:
    first = ask(session, assignment, "The soup was awful.", "negative", clock)

    again, must_ask = attempts.begin_attempt(
        session, assignment, {"statement": "  The soup was awful. \r\n"}, clock.now()
    )

    assert again is first
    assert not must_ask
    assert attempts.progress(session, assignment, clock.now()).tries_used == 1


def test_a_sixth_try_is_refused_also_after_returning_and_accepting_again(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    for number in range(5):
        ask(session, assignment, f"Bad soup, visit {number}.", "negative", clock)
    with pytest.raises(NoTriesLeft):
        attempts.begin_attempt(session, assignment, {"statement": "Bad soup again."}, clock.now())
    accepted_again = make.make_assignment(session, hit=assignment.hit, worker=assignment.worker)

    with pytest.raises(NoTriesLeft):
        attempts.begin_attempt(session, accepted_again, {"statement": "Bad soup again."}, clock.now())
    assert attempts.progress(session, accepted_again, clock.now()).can_submit


def test_submitting_needs_a_fooling_attempt_or_the_last_try(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    with pytest.raises(NotYetSubmittable, match="not asked"):
        attempts.save_submission(session, assignment, "", clock.now())
    ask(session, assignment, "The soup was awful.", "negative", clock)
    with pytest.raises(NotYetSubmittable, match="4 tries left"):
        attempts.save_submission(session, assignment, "", clock.now())
    ask(session, assignment, "I had worse soup in prison.", "positive", clock)

    attempts.save_submission(session, assignment, " irony\0 ", clock.now())
    attempts.save_submission(session, assignment, "another story", clock.now())

    assert assignment.state is AssignmentState.SAVED
    assert assignment.why == "irony"
    with pytest.raises(AlreadySubmitted):
        attempts.begin_attempt(session, assignment, {"statement": "Late."}, clock.now())


def test_a_failing_model_uses_no_try_and_lets_the_worker_submit(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    attempt, _ = attempts.begin_attempt(session, assignment, {"statement": "The soup."}, clock.now())
    attempts.record_failure(session, attempt, "The model took too long.")

    stands = attempts.progress(session, assignment, clock.now())
    assert (stands.tries_used, stands.can_ask, stands.can_submit) == (0, True, True)

    again, must_ask = attempts.begin_attempt(session, assignment, {"statement": "The soup."}, clock.now())
    assert (again is attempt, must_ask, again.try_number) == (True, True, 1)
    attempts.record_failure(session, again, "The model took too long.")
    attempts.save_submission(session, assignment, "", clock.now())
    assert assignment.state is AssignmentState.SAVED


def test_an_attempt_that_a_crash_left_open_gives_its_try_back(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    attempt, _ = attempts.begin_attempt(session, assignment, {"statement": "The soup."}, clock.now())
    with pytest.raises(Refused, match="still reading"):
        attempts.begin_attempt(session, assignment, {"statement": "Another soup."}, clock.now())
    clock.advance(attempts.INTERRUPTED_AFTER)

    assert attempts.progress(session, assignment, clock.now()).can_submit
    later = ask(session, assignment, "Another soup.", "negative", clock)

    assert attempt.state is AttemptState.UNANSWERED
    assert later.try_number == 1
    attempts.record_prediction(session, attempt, says("positive"), clock.now())
    assert attempt.fooled is None


@pytest.mark.parametrize(
    "prediction",
    [
        says("positive", negative=0.5, positive=0.5),
        says("positive", negative=0.1, positive=0.8, neutral=float("nan")),
        says("positive", negative=0.3, positive=0.8, neutral=0.3),
        says("positive", negative=0.8, positive=0.1, neutral=0.1),
        says("LABEL_1", negative=0.8, positive=0.1, neutral=0.1),
        says("positive", negative=-0.5, positive=1.4, neutral=0.1),
    ],
)
def test_an_answer_that_can_not_be_used_is_a_failure_and_no_verdict(
    session: Session, assignment: Assignment, clock: FixedClock, prediction: Prediction
) -> None:
    attempt, _ = attempts.begin_attempt(session, assignment, {"statement": "The soup."}, clock.now())

    attempts.record_prediction(session, attempt, prediction, clock.now())

    assert attempt.state is AttemptState.UNANSWERED
    assert attempt.fooled is None
    assert attempts.progress(session, assignment, clock.now()).tries_used == 0


@pytest.mark.parametrize(
    "text", ["", "   \n", "\u200b\u2060", "a\0b", "x" * 100_000, "\ud800", "a\x1bb", None, 7, ["x"]]
)
def test_text_that_can_not_be_used_is_refused_and_uses_no_try(
    session: Session, assignment: Assignment, clock: FixedClock, text: object
) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        attempts.begin_attempt(session, assignment, {"statement": text}, clock.now())

    assert caught.value.field == "statement"
    assert attempts.progress(session, assignment, clock.now()).attempts == ()


@pytest.mark.parametrize(
    "text",
    [
        "😀 Das war nix 👩‍👩‍👧",
        "هذا المطعم سيئ جدا",
        "<script>alert(1)</script>",
        "'; DROP TABLE attempt; --",
        "a\n\tb",
        "é",
    ],
)
def test_any_other_text_is_kept_exactly(session: Session, assignment: Assignment, clock: FixedClock, text: str) -> None:
    attempt = ask(session, assignment, text, "negative", clock)
    session.commit()
    session.expire_all()

    assert session.get_one(Attempt, attempt.id).answer == {"statement": text}


def test_the_time_for_the_hit_ends(session: Session, assignment: Assignment, clock: FixedClock) -> None:
    clock.advance(timedelta(hours=1))

    with pytest.raises(Refused, match="time"):
        attempts.begin_attempt(session, assignment, {"statement": "Late soup."}, clock.now())


def test_a_draft_is_kept_until_the_assignment_is_saved(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    attempts.keep_draft(session, assignment, {"statement": " half\0 a soup", "goal_label": "x", "why": "w" * 9999})
    session.commit()
    session.expire_all()
    assert assignment.draft == {"statement": "half a soup", "why": "w" * attempts.WHY_MAX_CHARACTERS}

    ask(session, assignment, "I had worse soup in prison.", "positive", clock)
    assert assignment.draft["statement"] == "I had worse soup in prison."
    attempts.save_submission(session, assignment, "irony", clock.now())
    attempts.keep_draft(session, assignment, {"statement": "Too late."})

    assert assignment.draft is None


def test_an_explanation_comes_back_as_it_was_stored(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    attempt = ask(session, assignment, "Bad soup.", "negative", clock)
    assert attempts.stored_attribution(attempt) is None
    given = Attribution(
        "m", "r", "integrated_gradients", 20, "negative", (WordAttribution(0, 3, "Bad", 1.5),), 0.01, True, 0.3
    )

    attempts.store_attribution(session, attempt, given)
    session.commit()
    session.expire_all()

    assert attempts.stored_attribution(session.get_one(Attempt, attempt.id)) == given


def test_two_tabs_at_once_never_take_more_tries_than_there_are(
    session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    with session_factory() as session:
        assignment_id = make.make_assignment(session, hit=make.make_hit(session)).id
        session.commit()
    gate = threading.Barrier(8)
    errors: list[BaseException] = []

    def tab(number: int) -> None:
        gate.wait()
        with session_factory() as session:
            try:
                assignment = session.get_one(Assignment, assignment_id)
                attempt, _ = attempts.begin_attempt(session, assignment, {"statement": f"Soup {number}."}, clock.now())
                session.commit()
                attempts.record_prediction(session, attempt, says("negative"), clock.now())
                session.commit()
            except HitsError:
                session.rollback()
            except BaseException as error:
                errors.append(error)

    tabs = [threading.Thread(target=tab, args=(number,)) for number in range(8)]
    for thread in tabs:
        thread.start()
    for thread in tabs:
        thread.join()

    with session_factory() as session:
        numbers = list(session.scalars(select(Attempt.try_number).order_by(Attempt.try_number)))
    assert errors == []
    assert 1 <= len(numbers) <= 5
    assert numbers == list(range(1, len(numbers) + 1))


# Tasks whose models answer with a stretch of a passage, and ensembles


def qa_attempt(session: Session, clock: FixedClock, **answer: str) -> Attempt:
    hit = creation_hit(session, "qa")
    opened = make.make_assignment(session, hit=hit)
    given = {**ANSWERS["qa"], **answer}
    attempt, must_ask = attempts.begin_attempt(session, opened, given, clock.now())
    assert must_ask
    return attempt


def read(start: int, end: int, **fields: object) -> Prediction:
    span = AnswerSpan(start, end, PASSAGE[start:end])
    return Prediction("reader", "7", "", {}, 4.0, **{"span": span, "confidence": 0.4, **fields})  # type: ignore[arg-type]


def test_a_span_is_stored_with_its_place_and_its_overlap(session: Session, clock: FixedClock) -> None:
    attempt = qa_attempt(session, clock)
    at = PASSAGE.index("of stone")

    attempts.record_prediction(
        session, attempt, read(at, at + 8, truncated=True, characters_read={"passage": 150}), clock.now()
    )

    assert attempt.answer == ANSWERS["qa"]
    assert attempts.stored_answer(attempt) == AnswerSpan(at, at + 8, "of stone")
    assert (attempt.predicted_label, attempt.fooled, attempt.confidence) == ("right", False, 0.4)
    assert attempt.answer_f1 == pytest.approx(2 / 3)
    assert (attempt.probabilities, attempt.members, attempt.policy) == ({}, None, None)
    assert (attempt.truncated, attempt.characters_read) == (True, {"passage": 150})


def test_a_span_of_other_words_fools_the_model(session: Session, clock: FixedClock) -> None:
    attempt = qa_attempt(session, clock)

    attempts.record_prediction(session, attempt, read(4, 14), clock.now())

    assert (attempt.predicted_label, attempt.fooled, attempt.answer_f1) == ("wrong", True, 0.0)


@pytest.mark.parametrize(
    ("prediction", "reason"),
    [
        (Prediction("reader", "7", "", {}, 4.0), "no span"),
        (read(4, 14, span=AnswerSpan(4, 14, "old brigde")), "not what stands there"),
        (read(4, 14, span=AnswerSpan(5, 5, "")), "not what stands there"),
        (read(4, 14, span=AnswerSpan(-10, 3, PASSAGE[-10:3])), "not what stands there"),
        (read(4, 14, span=AnswerSpan(4, 9999, PASSAGE[4:])), "not what stands there"),
        (read(4, 14, confidence=float("nan")), "confidence"),
        (read(4, 14, confidence=1.5), "confidence"),
        (read(4, 14, wrong_members_needed=1), "1 of 0 members"),
        (read(4, 14, members=(MemberAnswer("a", "1", "", {}),), wrong_members_needed=1), "no span"),
    ],
)
def test_a_span_that_is_none_is_a_failure_and_no_verdict(
    session: Session, clock: FixedClock, prediction: Prediction, reason: str
) -> None:
    attempt = qa_attempt(session, clock)

    attempts.record_prediction(session, attempt, prediction, clock.now())

    assert (attempt.state, attempt.try_number, attempt.fooled) == (AttemptState.UNANSWERED, None, None)
    assert reason in str(attempt.failure)


def test_every_member_of_an_ensemble_is_stored_and_one_is_shown(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    def member(name: str, label: str, sure: float) -> MemberAnswer:
        rest = (1 - sure) / 2
        chances = dict.fromkeys(("negative", "positive", "neutral"), rest) | {label: sure}
        return MemberAnswer(name, "1", label, chances)

    members = (member("a", "negative", 0.9), member("b", "positive", 0.6), member("c", "neutral", 0.7))
    prediction = Prediction(
        "ensemble", "x", "negative", members[0].probabilities, 9.0, members=members, policy="wrong>=2",
        wrong_members_needed=2,
    )  # fmt: skip
    attempt, _ = attempts.begin_attempt(session, assignment, {"statement": "It rains."}, clock.now())

    attempts.record_prediction(session, attempt, prediction, clock.now())
    session.expire_all()

    assert (attempt.fooled, attempt.predicted_label, attempt.model_id) == (True, "neutral", "c")
    assert (attempt.policy, attempt.confidence) == ("wrong>=2", 0.7)
    assert attempt.members is not None
    assert [(one["model_id"], one["label"], one["probabilities"][one["label"]]) for one in attempt.members] == [
        ("a", "negative", 0.9),
        ("b", "positive", 0.6),
        ("c", "neutral", 0.7),
    ]


@pytest.mark.parametrize(
    ("statement", "goal", "shown", "read"),
    [("It rains a lot.", "negative", "whole", None), ("It rains no more.", "positive", "short", {"statement": 8})],
)
def test_what_is_said_of_a_long_text_is_what_the_shown_member_read(
    session: Session, clock: FixedClock, statement: str, goal: str, shown: str, read: dict[str, int] | None
) -> None:
    assignment = make.make_assignment(session, hit=make.make_hit(session, goal_label=goal))
    chances = {"negative": 0.8, "positive": 0.1, "neutral": 0.1}
    short = MemberAnswer("short", "1", "negative", chances, truncated=True, characters_read={"statement": 8})
    whole = MemberAnswer("whole", "1", "positive", {"negative": 0.2, "positive": 0.7, "neutral": 0.1})
    # The most confident member stands for the ensemble until it is known what the writer aimed at.
    prediction = Prediction(
        "ensemble", "x", "negative", chances, 9.0, truncated=True, characters_read={"statement": 8},
        members=(short, whole), policy="wrong>=1", wrong_members_needed=1,
    )  # fmt: skip
    attempt, _ = attempts.begin_attempt(session, assignment, {"statement": statement}, clock.now())

    attempts.record_prediction(session, attempt, prediction, clock.now())
    session.expire_all()

    assert attempt.model_id == shown
    assert (attempt.truncated, attempt.characters_read) == (read is not None, read)
    assert attempt.members is not None
    assert [one["characters_read"] for one in attempt.members] == [{"statement": 8}, None]


def test_the_words_for_the_goal_are_kept_beside_those_for_the_answer(session: Session) -> None:
    attempt = make.make_attempt(session)
    said, meant = (
        Attribution("m", "r", "ig", 12, target, (WordAttribution(0, 3, "The", 0.5, "statement"),), 0.0, True, 0.1)
        for target in ("positive", "negative")
    )

    attempts.store_attribution(session, attempt, meant, of_goal=True)
    assert attempts.stored_attribution(attempt) is None
    attempts.store_attribution(session, attempt, said)
    session.expire_all()

    assert attempts.stored_attribution(attempt) == said
    assert attempts.stored_attribution(attempt, of_goal=True) == meant


def test_an_explanation_from_before_fields_were_told_apart_is_still_read(session: Session) -> None:
    word = {"start": 0, "end": 3, "text": "The", "score": 0.5}
    stored = {"model_id": "m", "revision": "r", "method": "ig", "steps": 20, "target": "positive"}
    rest = {"words": [word], "convergence_delta": 0.0, "converged": True, "seconds": 0.1}
    attempt = make.make_attempt(session, attribution={**stored, **rest})

    found = attempts.stored_attribution(attempt)

    assert found is not None
    assert found.words[0].field == ""


def test_a_draft_keeps_what_is_marked(session: Session, clock: FixedClock) -> None:
    opened = make.make_assignment(session, hit=creation_hit(session, "qa"))

    attempts.keep_draft(session, opened, {"answer": "stone", "answer_start_utf16": "115", "other": "x"})

    assert opened.draft == {"answer": "stone", "answer_start_utf16": "115"}


GOOD_LABELS = {"negative": 0.1, "positive": 0.8, "neutral": 0.1}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"model_id": ""}, "name"),
        ({"model_id": "x" * 201}, "name"),
        ({"model_id": "a\0b"}, "name"),
        ({"revision": "two\nlines"}, "revision"),
        ({"revision": "9" * 81}, "revision"),
        ({"confidence": float("nan")}, "confidence"),
        ({"confidence": 7.0}, "confidence"),
        ({"characters_read": {"nowhere": 3}}, "texts in part"),
        ({"characters_read": {"statement": -1}}, "texts in part"),
        ({"characters_read": {"statement": 10**30}}, "texts in part"),
        ({"members": (MemberAnswer("m", "1", "positive", GOOD_LABELS, confidence=float("inf")),)}, "confidence"),
        ({"members": (MemberAnswer("m", "1", "positive", GOOD_LABELS, characters_read={"x": 1}),)}, "texts in part"),
        ({"members": (MemberAnswer("m\u2028n", "1", "positive", GOOD_LABELS),)}, "name"),
    ],
)
def test_what_no_table_and_no_page_can_hold_of_an_answer_is_a_failure(
    session: Session, assignment: Assignment, clock: FixedClock, changes: dict[str, object], fault: str
) -> None:
    attempt, _ = attempts.begin_attempt(session, assignment, {"statement": "Fine."}, clock.now())

    attempts.record_prediction(session, attempt, replace(says("positive"), **changes), clock.now())  # type: ignore[arg-type]

    assert (attempt.state, attempt.try_number) == (AttemptState.UNANSWERED, None)
    assert fault in str(attempt.failure)


def test_nothing_is_kept_of_a_worker_who_has_not_agreed(session: Session, clock: FixedClock) -> None:
    unasked = make.make_assignment(session, consent_text_id=None)

    with pytest.raises(ConsentMissing):
        attempts.begin_attempt(session, unasked, {"statement": "Fine."}, clock.now())
    with pytest.raises(ConsentMissing):
        attempts.keep_draft(session, unasked, {"statement": "half"})

    assert unasked.draft is None
    assert session.query(Attempt).count() == 0


def test_a_writer_of_disturbing_texts_may_stop_from_the_first_answer_on(session: Session, clock: FixedClock) -> None:
    harsh = make.make_assignment(session, hit=creation_hit(session, "hate"))
    with pytest.raises(NotYetSubmittable):
        attempts.save_submission(session, harsh, "", clock.now(), leave=True)
    asking, _ = attempts.begin_attempt(session, harsh, {"message": "They are fine."}, clock.now())
    with pytest.raises(NotYetSubmittable):
        attempts.save_submission(session, harsh, "", clock.now(), leave=True)
    said = Prediction("m", "1", "hateful", {"hateful": 0.9, "not_hateful": 0.1}, 1.0)
    attempts.record_prediction(session, asking, said, clock.now())
    with pytest.raises(NotYetSubmittable):
        attempts.save_submission(session, harsh, "", clock.now())

    attempts.save_submission(session, harsh, "", clock.now(), leave=True)

    assert (harsh.state, harsh.left_at) == (AssignmentState.SAVED, clock.now())


def test_stopping_at_the_regular_end_is_no_early_end(
    session: Session, assignment: Assignment, clock: FixedClock
) -> None:
    ask(session, assignment, "Fine.", "positive", clock)
    with pytest.raises(NotYetSubmittable):
        attempts.save_submission(session, make.make_assignment(session), "", clock.now(), leave=True)

    attempts.save_submission(session, assignment, "", clock.now(), leave=True)

    assert (assignment.state, assignment.left_at) == (AssignmentState.SAVED, None)
