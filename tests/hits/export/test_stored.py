"""Reading examples page by page: the same few statements however many rows, in an order no database decides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from sqlalchemy import event, update
from sqlalchemy.orm import Session

from hits.export.stored import id_pages, order_of, stored_examples
from hits.models import Worker
from hits.models.people import unknown_id
from tests import factories as make
from tests.rounds import collected


@pytest.fixture
def statements(session: Session) -> Iterator[list[str]]:
    found: list[str] = []

    def note(*arguments: object) -> None:
        found.append(str(arguments[2]))

    engine = session.get_bind()
    event.listen(engine, "before_cursor_execute", note)
    yield found
    event.remove(engine, "before_cursor_execute", note)


def test_a_page_takes_as_many_statements_as_a_row(session: Session, statements: list[str]) -> None:
    ids = [example.id for example in collected(session, 9, why="Because.")]
    session.flush()
    statements.clear()

    stored_examples(session, ids[:1])
    of_one = len(statements)
    found = stored_examples(session, ids)

    assert len(statements) - of_one == of_one <= 3
    assert [one.id for one in found] == ids
    assert all(len(one.votes) == 2 and one.why == "Because." for one in found)


def test_pages_hold_every_example_once_but_retracted_ones(session: Session) -> None:
    examples = collected(session, 7)
    examples[3].retracted_at, examples[3].retraction_reason = make.NOON, "It was copied."
    session.flush()

    pages = list(id_pages(session, examples[0].round_id, size=3))

    assert [len(page) for page in pages] == [3, 3]
    assert [row[0] for page in pages for row in page] == [one.id for one in examples if one is not examples[3]]


def test_the_order_follows_from_the_names_alone() -> None:
    names = [f"attempt-{number}" for number in range(50)]
    wanted = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())

    for start in (1, 1000):
        pairs = [(start + number, name) for number, name in enumerate(names)]
        order = order_of(iter([pairs[:20], pairs[20:]]))
        by_id = dict(pairs)
        assert [by_id[one] for page in order.pages(7) for one in page] == wanted


def test_somebody_unknown_has_no_name(session: Session) -> None:
    example = collected(session, 1)[0]
    session.execute(update(Worker).where(Worker.id == example.writer_id).values(mturk_worker_id=unknown_id(0)))

    (found,) = stored_examples(session, [example.id])

    assert found.writer is None
    assert all(vote.validator for vote in found.votes)
