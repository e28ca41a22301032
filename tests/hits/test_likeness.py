"""What examples share, kept and counted; and that nothing is decided by how they were written."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.likeness import (
    NOTHING_SAID,
    Measured,
    Told,
    likeness_of,
    measure_examples,
    measured,
    note_writing,
    told_about,
    told_then,
)
from hits.models import Context, Example, Likeness, TextBand, Writing
from hits.states import AssignmentState
from hits.tasks import task
from tests.factories import make_assignment, make_attempt, make_context, make_example, make_hit, make_round, make_worker

ROOT = Path(__file__).resolve().parents[2]
SPEC = task("sentiment")
TRAIN = "The train was late again, but the conductor brought us free coffee and we laughed."
OTHER = "Nobody spoke at the museum, which was closed on Mondays."
PROMPT = "A man is playing a guitar on a stage in the dark."


def example(session: Session, text: str, **fields: object) -> Example:
    assignment = make_assignment(session, state=AssignmentState.SUBMITTED, **fields)
    return make_example(session, attempt=make_attempt(session, assignment=assignment, answer={"statement": text}))


def context_of(session: Session) -> Context:
    return make_context(session, round=make_round(session), fields={"prompt": PROMPT})


def told(session: Session, text: str) -> Told:
    context = session.scalars(select(Context).where(Context.fields["prompt"].as_string() == PROMPT)).first()
    context = context or context_of(session)
    return told_about(session, SPEC, context.round_id, context, {"statement": text})


def test_examples_that_nearly_repeat_an_earlier_one_are_counted_by_writer(session: Session) -> None:
    first, again = make_worker(session), make_worker(session)
    leader = example(session, TRAIN, worker=first)
    repeat = example(session, TRAIN.replace("coffee", "tea"), worker=again)
    copy = make_hit(session, context_id=context_of(session).id, goal_label="negative")
    example(session, "A man is playing a guitar on a stage!", worker=again, hit=copy)

    assert measure_examples(session) == 3
    assert measure_examples(session) == 0

    found = session.get_one(Likeness, repeat.id)
    assert found.near_example_id == leader.id
    assert found.similarity is not None
    assert 0.7 <= found.similarity < 1
    stats = likeness_of(session, leader.round_id)
    assert (stats.near.hits, stats.near.of, stats.copied.hits) == (1, 3, 1)
    assert [(one.pseudonym, one.near.hits, one.copied.hits) for one in stats.writers] == [
        (again.pseudonym, 1, 1),
        (first.pseudonym, 0, 0),
    ]
    # A repeat fills no band: however often it comes, looking it up stays quick.
    assert set(session.scalars(select(TextBand.example_id))) == {leader.id, leader.id + 2}


def test_a_writer_is_told_of_what_was_handed_in_and_of_copies(session: Session) -> None:
    assert told(session, TRAIN) == Told()
    example(session, TRAIN)
    assert told(session, TRAIN) == Told(), "what is not measured yet is not looked up"
    measure_examples(session)

    assert told(session, TRAIN.upper()) == Told(near=True)
    assert told(session, OTHER) == Told()
    assert told(session, PROMPT) == Told(copied=True)
    assert told(session, "") == Told()


def test_a_round_knows_only_its_own_texts_and_retracted_ones_count_no_more(session: Session) -> None:
    one = example(session, TRAIN)
    measure_examples(session)
    context = make_context(session, round=make_round(session, number=2))

    assert told_about(session, SPEC, context.round_id, context, {"statement": TRAIN}) == Told()
    one.retracted_at, one.retraction_reason = one.collected_at, "a name"
    session.flush()
    assert likeness_of(session, one.round_id).near.of == 0


def test_the_same_question_about_another_passage_is_another_question(session: Session) -> None:
    spec = task("qa")
    round_ = make_round(session, task_code="qa", number=1)
    passages = [
        make_context(session, round=round_, fields={"passage": f"Anna won in {year}."}) for year in (1990, 1991)
    ]
    answer = {"question": "In which year did she win?", "answer": "1990", "answer_start": "12"}
    hit = make_hit(session, context_id=passages[0].id, goal_label="right")
    hit.batch.round_id = round_.id
    attempt = make_attempt(
        session, assignment=make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED), answer=answer
    )
    make_example(session, attempt=attempt, round_id=round_.id)
    measure_examples(session)

    assert told_about(session, spec, round_.id, passages[0], answer).near
    assert not told_about(session, spec, round_.id, passages[1], answer).near


def test_what_a_browser_says_is_kept_once_and_believed_for_nothing(session: Session) -> None:
    attempt = make_attempt(session)
    said = measured({"browser_pastes": "2", "browser_pasted": "9" * 9, "browser_keys": "-4", "browser_seconds": "1e3"})

    assert said == Measured(2, 1_000_000, None, None)
    assert measured({}) == NOTHING_SAID
    note_writing(session, attempt.id, NOTHING_SAID, Told())
    assert session.get(Writing, attempt.id) is None
    note_writing(session, attempt.id, said, Told(near=True))
    note_writing(session, attempt.id, NOTHING_SAID, Told(copied=True))
    assert told_then(session, attempt.id) == Told(near=True)


def test_nothing_that_decides_about_people_or_money_reads_how_a_text_was_written() -> None:
    # Whoever may know: what stores it, shows it, sums it up for the requester, and takes it away with the person.
    may = {
        "app/operations/erase_worker.py",
        "app/operations/measure_examples.py",
        "app/operations/round_stats.py",
        "app/operations/submit_attempt.py",
        "app/requester/writers.py",
        "app/worker/views.py",
        "hits/likeness.py",
        "hits/models/__init__.py",
        "hits/models/likeness.py",
    }
    known = re.compile(
        r"\((Writing|Likeness)\b|\b(Writing|Likeness)\.|hits\.likeness|keystrokes|typing_seconds|told_near"
    )

    found = {
        str(path.relative_to(ROOT))
        for package in ("app", "hits", "payments", "qualification", "inference")
        for path in (ROOT / package).rglob("*.py")
        if "migrations" not in path.parts and known.search(path.read_text())
    }

    assert found <= may
    assert found >= {"app/worker/views.py", "hits/likeness.py"}
