"""A round's examples page by page, and found by what they are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from hits import listing
from hits.arms import Arm, draw_arm, set_arms
from hits.listing import IN_NO_ARM, Page, Place, Wanted, page_of, place_of
from hits.models import Example, Round, Worker
from hits.states import AssignmentState, Verdict
from hits.tasks import task
from tests import factories as make
from tests.factories import NOON

SPEC = task("sentiment")
TEXTS = ("The soup was cold.", "A CAFÉ, a café!", "100% rain_y", 'She said "no" \\ and left', "Strange: 😀 it rained")


@pytest.fixture
def round_(session: Session) -> Round:
    """Ten examples of two writers, two at each moment, so that the order among equal times matters."""
    ann, bob = make.make_worker(session), make.make_worker(session, pseudonym="w-bob")
    for number in range(10):
        writer = bob if number % 5 == 0 else ann
        work = make.make_assignment(session, worker=writer, state=AssignmentState.SUBMITTED)
        said = "negative" if number % 3 == 0 else "positive"
        answer = {"statement": TEXTS[number % 5]}
        attempt = make.make_attempt(session, assignment=work, answer=answer, predicted_label=said)
        make.make_example(session, attempt=attempt, collected_at=NOON + timedelta(minutes=number // 2))
    session.commit()
    return make.make_round(session)


def walked(session: Session, round_: Round, wanted: Wanted, per_page: int) -> list[tuple[int, ...]]:
    """Every page from the newest to the oldest; on the way back they must be the same."""
    pages = [page_of(session, round_, SPEC, wanted, per_page=per_page)]
    while (older := pages[-1].older) is not None:
        pages.append(page_of(session, round_, SPEC, wanted, older_than=older, per_page=per_page))
    if not wanted.text:
        back = [pages[-1]]
        while (newer := back[-1].newer) is not None:
            back.append(page_of(session, round_, SPEC, wanted, newer_than=newer, per_page=per_page))
        assert [page.ids for page in back] == [page.ids for page in reversed(pages)]
    return [page.ids for page in pages]


@pytest.mark.parametrize("few", [2_000, 1])
def test_pages_hold_every_example_once_the_newest_first(
    session: Session, round_: Round, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "FEW", few)
    ids = [example.id for example in session.query(Example).order_by(Example.id)]

    pages = walked(session, round_, Wanted(), 5)

    assert pages == [tuple(reversed(ids[5:])), tuple(reversed(ids[:5]))]
    assert page_of(session, round_, SPEC, Wanted(), per_page=10).older is None
    fooled = [number for number in ids if (number - ids[0]) % 3]
    assert walked(session, round_, Wanted(fooled=True, verdict=Verdict.PENDING), 4) == [
        tuple(reversed(fooled[2:])),
        tuple(reversed(fooled[:2])),
    ]
    assert walked(session, round_, Wanted(writer="w-bob", label="negative"), 9) == [(ids[5], ids[0])]
    for wanted in (Wanted(writer="w-nobody"), Wanted(label="neutral"), Wanted(verdict=Verdict.FLAGGED)):
        assert page_of(session, round_, SPEC, wanted) == Page((), None, None, 0)


@pytest.mark.parametrize("few", [2_000, 1])
def test_an_arm_has_the_examples_of_those_who_were_drawn_for_it(
    session: Session, round_: Round, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "FEW", few)
    set_arms(session, round_, [Arm("explained", 1)], seed=0, by="ada", now=NOON)
    newcomer = make.make_worker(session)
    assert draw_arm(session, round_, newcomer.id, NOON) is not None
    work = make.make_assignment(session, worker=newcomer, state=AssignmentState.SUBMITTED)
    attempt = make.make_attempt(session, assignment=work, answer={"statement": TEXTS[0]}, predicted_label="positive")
    inside = make.make_example(session, attempt=attempt).id
    elsewhere = make.make_round(session, number=2)
    set_arms(session, elsewhere, [Arm("other", 1)], seed=0, by="ada", now=NOON)
    for worker in session.query(Worker).all():
        draw_arm(session, elsewhere, worker.id, NOON)
    session.commit()
    before = [example.id for example in session.query(Example).order_by(Example.id) if example.id != inside]

    assert walked(session, round_, Wanted(arm="explained"), 5) == [(inside,)]
    assert walked(session, round_, Wanted(arm=IN_NO_ARM), 10) == [tuple(reversed(before))]
    assert page_of(session, round_, SPEC, Wanted(arm="explained", text="soup")).ids == (inside,)
    assert page_of(session, round_, SPEC, Wanted(arm="other")) == Page((), None, None, 0)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("SOUP", [5, 0]),
        ("café", [6, 1]),
        ("100%", [7, 2]),
        ("n_y", [7, 2]),
        ("nxy", []),
        ('"NO" \\', [8, 3]),
        ("😀", [9, 4]),
        ("statement", []),
        ("rain", [9, 7, 4, 2]),
    ],
)
def test_a_text_is_found_as_it_was_written(session: Session, round_: Round, text: str, numbers: list[int]) -> None:
    first = min(example.id for example in session.query(Example))

    found = page_of(session, round_, SPEC, Wanted(text=text))

    assert [number - first for number in found.ids] == numbers
    assert (found.is_whole, found.searched, found.older) == (True, 10, None)


def test_a_long_search_goes_on_where_it_was_paused(
    session: Session, round_: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "CHUNK", 3)
    # So much that a busy machine pauses no search that the test does not.
    monkeypatch.setattr(listing, "SECONDS", 600.0)
    ids = sorted(example.id for example in session.query(Example))
    clock = iter([0.0, 1.0, 601.0])

    paused = page_of(session, round_, SPEC, Wanted(text="soup"), now=lambda: next(clock))
    rest = page_of(session, round_, SPEC, Wanted(text="soup"), older_than=paused.older)

    assert (paused.ids, paused.searched, paused.is_whole) == ((ids[5],), 6, False)
    assert (rest.ids, rest.searched, rest.is_whole) == ((ids[0],), 4, True)
    # A page that is full ends there too, and the next one shows the next find first.
    assert walked(session, round_, Wanted(text="soup"), 1) == [(ids[5],), (ids[0],)]


def test_an_example_has_a_place_by_its_public_name(session: Session, round_: Round) -> None:
    example = session.query(Example).order_by(Example.id).first()
    assert example is not None

    assert place_of(session, example.attempt.public_id) == Place(NOON, example.id)
    assert place_of(session, "nothing") is None
