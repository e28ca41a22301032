"""Storing published rows: names that are the same everywhere, people told apart, votes that don't decide."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.imports.forms import FORMS
from hits.imports.rows import PublishedModel, PublishedRow, PublishedVote
from hits.imports.store import batches_for, known_origins, store_rows
from hits.models import Attempt, Example, Vote, Worker
from hits.states import Verdict
from hits.tasks import task
from tests import factories as make

ROW = PublishedRow(
    "u1",
    {"premise": "It rains."},
    {"hypothesis": "It is wet."},
    "entailment",
    model=PublishedModel("anli:target", "neutral"),
    votes=tuple(PublishedVote(None, label) for label in ("entailment", "neutral", "entailment")),
    why="Rain is wet.",
)


def stored(session: Session, *rows: PublishedRow) -> list[Example]:
    round_ = make.make_round(session, task_code="nli")
    form = FORMS["anli"]
    batches = batches_for(session, round_, form, "a key", make.NOON)
    store_rows(session, task("nli"), form, round_, batches, 0, rows, key="key", now=make.NOON)
    return list(session.scalars(select(Example).order_by(Example.id)))


def test_the_same_text_may_come_twice_and_readers_without_names_are_no_people(session: Session) -> None:
    first, second = stored(session, ROW, replace(ROW, name="u2"))

    assert first.attempt.public_id != second.attempt.public_id
    assert first.attempt.answer == second.attempt.answer
    assert first.context_id == second.context_id
    assert {worker.mturk_worker_id for worker in session.scalars(select(Worker))} == {
        f"import:unknown:{number}" for number in range(4)
    }
    votes = session.scalars(select(Vote).where(Vote.example_id == first.id).order_by(Vote.created_at)).all()
    assert [vote.label for vote in votes] == ["entailment", "neutral", "entailment"]
    assert (first.published or {})["why"] == "Rain is wet."
    assert known_origins(session, first.round_id, ["u1", "u9"]) == {"u1"}


def test_votes_that_do_not_decide_leave_the_published_label(session: Session) -> None:
    undecided = replace(ROW, name="u2", votes=(PublishedVote(None, "entailment"),))
    against = replace(ROW, name="u3", votes=tuple(PublishedVote(None, "contradiction") for _ in range(2)))

    first, second = stored(session, undecided, against)

    assert (first.verdict, first.final_label) == (Verdict.NOT_VALIDATED, "entailment")
    assert (second.verdict, second.final_label) == (Verdict.VALID_AND_MODEL_WRONG, "contradiction")


def test_tries_are_counted_for_each_person(session: Session) -> None:
    rows = [replace(ROW, name=f"u{number}", writer="w1" if number % 2 else "w2") for number in range(4)]

    stored(session, *rows)

    found = sorted(session.execute(select(Attempt.worker_id, Attempt.try_number)).all())
    assert [row[1] for row in found] == [1, 2, 1, 2]
