"""How many disturbing texts a person is shown in a day."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from hits.errors import DayIsFull
from hits.exposure import break_due, context_subject, example_subject, show, shown_in, shown_today
from hits.models import Assignment, Exposure
from tests.factories import NOON, make_assignment, make_worker


def test_each_text_counts_once_in_an_assignment(session: Session) -> None:
    assignment = make_assignment(session)

    numbers = [show(session, assignment, subject, cap=5, now=NOON).number for subject in ("a", "b", "a", "b", "c")]

    assert numbers == [1, 2, 1, 2, 3]
    assert shown_in(session, assignment) == {"a": 1, "b": 2, "c": 3}
    assert shown_today(session, assignment.worker_id, NOON) == 3


def test_the_cap_is_a_persons_over_all_assignments_and_lasts_a_utc_day(session: Session) -> None:
    worker = make_worker(session)
    first, second = (make_assignment(session, worker=worker) for _ in range(2))
    show(session, first, "a", cap=2, now=NOON)
    show(session, second, "a", cap=2, now=NOON)

    with pytest.raises(DayIsFull, match="read 2 such texts"):
        show(session, second, "b", cap=2, now=NOON + timedelta(hours=11, minutes=59))
    assert show(session, second, "a", cap=2, now=NOON).number == 2  # what was shown stays shown
    assert show(session, second, "b", cap=2, now=NOON + timedelta(hours=12)).number == 1
    assert show(session, make_assignment(session), "b", cap=2, now=NOON).number == 1  # somebody else


def test_twelve_windows_together_do_not_pass_the_cap(session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        assignment_id = make_assignment(session).id
        session.commit()
    together = threading.Barrier(12)
    outcomes: list[str] = []

    def window(number: int) -> None:
        with session_factory() as session:
            together.wait()
            assignment = session.get_one(Assignment, assignment_id)
            try:
                show(session, assignment, f"example:{number}", cap=5, now=NOON)
                session.commit()
                outcomes.append("shown")
            except DayIsFull:
                outcomes.append("full")

    windows = [threading.Thread(target=window, args=(number,)) for number in range(12)]
    for one in windows:
        one.start()
    for one in windows:
        one.join()

    with session_factory() as session:
        assert sorted(one.number for one in session.query(Exposure)) == [1, 2, 3, 4, 5]
    assert sorted(outcomes) == ["full"] * 7 + ["shown"] * 5


def test_the_database_itself_refuses_the_same_number_twice(session: Session) -> None:
    assignment = make_assignment(session)
    made = show(session, assignment, "a", cap=5, now=NOON)

    session.add(
        Exposure(
            worker_id=made.worker_id, assignment_id=assignment.id, subject="b", day=made.day, number=1, shown_at=NOON
        )
    )
    with pytest.raises(IntegrityError):
        session.flush()


def test_a_break_is_due_after_every_so_many_texts() -> None:
    assert [number for number in range(1, 13) if break_due([number], 5)] == [5, 10]
    assert not break_due([], 5)


def test_subjects_name_what_was_shown() -> None:
    assert (example_subject(12), context_subject(5)) == ("example:12", "context:5")
