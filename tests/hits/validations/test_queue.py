"""What is drawn for whom and when: by need, never one's own, never twice, never more readers than are wanted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from hits import validations
from hits.clock import FixedClock
from hits.errors import Refused
from hits.models import Assignment, Attempt, Example, Hit, HitBatch, Lease, Round, Vote, Worker
from hits.states import AssignmentState, HitKind, HitState, PracticeState, Verdict
from hits.validations.queue import UNSUBMITTED_AFTER
from tests import factories as make
from tests.factories import NOON

W, M = "negative", "positive"


def attempt_in(session: Session, round_: Round, writer: Worker | None = None, **fields: object) -> Attempt:
    hit = make.make_hit(session, batch=make.make_batch(session, round=round_))
    assignment = make.make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED, worker=writer)
    return make.make_attempt(session, assignment=assignment, **fields)


def example_of(session: Session, round_: Round, writer: Worker | None = None, *, minute: int = 7) -> Example:
    return make.make_example(
        session, attempt=attempt_in(session, round_, writer), collected_at=NOON + timedelta(minutes=minute)
    )


def validation_batch(session: Session, round_: Round, **fields: object) -> HitBatch:
    return make.make_batch(session, round=round_, **{"kind": HitKind.VALIDATION, "items": 10, **fields})


def opens(session: Session, hit: Hit, worker: Worker | None = None, **fields: object) -> Assignment:
    return make.make_assignment(session, hit=hit, worker=worker, **fields)


def drawn(session: Session, assignment: Assignment, clock: FixedClock) -> list[int | None]:
    return [lease.example_id for lease in validations.draw(session, assignment, clock.now())]


@pytest.fixture
def round_(session: Session) -> Round:
    return make.make_round(session)


@pytest.fixture
def hit(session: Session, round_: Round) -> Hit:
    return make.make_hit(session, batch=validation_batch(session, round_), max_assignments=9)


def another(session: Session, hit: Hit) -> Hit:
    return make.make_hit(session, batch=hit.batch, max_assignments=9)


def test_the_nearest_to_a_decision_come_first_then_the_oldest(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    young, old, oldest = (example_of(session, round_, minute=minute) for minute in (30, 20, 10))
    half_read = example_of(session, round_, minute=40)
    make.make_vote(session, example=half_read)

    assert drawn(session, opens(session, hit), clock) == [half_read.id, oldest.id, old.id, young.id]
    # All are half read now, and the oldest comes first; nobody else is wanted for the other one.
    assert drawn(session, opens(session, hit), clock) == [oldest.id, old.id, young.id]
    assert drawn(session, opens(session, hit), clock) == []


def test_a_hit_shows_as_many_items_as_its_batch_says(session: Session, clock: FixedClock, round_: Round) -> None:
    examples = [example_of(session, round_, minute=minute) for minute in range(5)]
    small = make.make_hit(session, batch=validation_batch(session, round_, items=3), max_assignments=9)

    assert drawn(session, opens(session, small), clock) == [example.id for example in examples[:3]]


def test_opening_again_gives_the_same_items_and_draws_no_more(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    example = example_of(session, round_)
    assignment = opens(session, hit)
    first = drawn(session, assignment, clock)
    example_of(session, round_)

    assert drawn(session, assignment, clock) == first == [example.id]
    assert example.leased == 1


def test_who_found_nothing_gets_what_comes_later(session: Session, clock: FixedClock, round_: Round, hit: Hit) -> None:
    assignment = opens(session, hit)
    assert drawn(session, assignment, clock) == []
    example = example_of(session, round_)

    assert drawn(session, assignment, clock) == [example.id]


def test_never_the_own_never_twice_never_what_one_holds_elsewhere(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    validator = make.make_worker(session)
    example_of(session, round_, validator)
    judged, held = example_of(session, round_), example_of(session, round_)
    first = opens(session, another(session, hit), validator)
    make.make_lease(session, assignment=first, example=held)
    done = opens(session, another(session, hit), validator, state=AssignmentState.SUBMITTED)
    make.make_vote(session, example=judged, assignment=done)
    fresh = example_of(session, round_)

    assert drawn(session, opens(session, hit, validator), clock) == [fresh.id]


@pytest.mark.parametrize("fate", ["flagged", "decided", "retracted", "not validated", "practice", "another round"])
def test_what_wants_no_vote_is_not_drawn(
    session: Session, clock: FixedClock, round_: Round, hit: Hit, fate: str
) -> None:
    example = example_of(session, make.make_round(session, number=2) if fate == "another round" else round_)
    if fate == "flagged":
        make.make_vote(session, example=example, label=None, flag_reason="insult")
        validations.decide(session, example, clock.now())
    elif fate == "decided":
        validations.override(session, example, label=W, reason="Plain.", now=clock.now())
    elif fate == "retracted":
        validations.retract(session, example, reason="asked for", now=clock.now())
    elif fate == "not validated":
        example.verdict = Verdict.NOT_VALIDATED
    elif fate == "practice":
        example.practice_state = PracticeState.WAITING

    assert drawn(session, opens(session, hit), clock) == []
    assert validations.shortages(session, round_, clock.now()) == []
    if fate == "practice":
        example.practice_state = PracticeState.PASSED
        assert drawn(session, opens(session, hit), clock) == [example.id]


@pytest.mark.parametrize("state", [AssignmentState.SAVED, AssignmentState.SUBMITTED])
def test_nothing_is_drawn_for_work_that_is_done(
    session: Session, clock: FixedClock, round_: Round, hit: Hit, state: AssignmentState
) -> None:
    example_of(session, round_)

    assert drawn(session, opens(session, hit, state=state), clock) == []


def test_nothing_is_drawn_after_the_deadline(session: Session, clock: FixedClock, round_: Round, hit: Hit) -> None:
    example_of(session, round_)
    assignment = opens(session, hit)
    clock.advance(timedelta(minutes=30))

    assert drawn(session, assignment, clock) == []


def test_a_creation_hit_draws_nothing(session: Session, clock: FixedClock) -> None:
    with pytest.raises(Refused, match="asks for statements"):
        validations.draw(session, make.make_assignment(session), clock.now())


def test_what_nobody_judged_in_time_goes_to_others_and_comes_back(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    example = example_of(session, round_)
    round_.agreeing_votes = round_.max_votes = 1
    validations.recount(session, [example])
    validator = make.make_worker(session)
    late = opens(session, hit, validator)
    [lease] = validations.draw(session, late, clock.now())
    validations.record_vote(session, late, lease.id, label=M, now=clock.now())
    assert drawn(session, opens(session, hit), clock) == []

    clock.advance(timedelta(minutes=36))
    again = opens(session, another(session, hit), validator, deadline_at=clock.now() + timedelta(minutes=30))
    [moved] = validations.draw(session, again, clock.now())

    assert (moved.id, moved.assignment_id, moved.place) == (lease.id, again.id, 1)
    # What was judged before is there as a draft.
    assert validations.draft_votes(session, again)[moved.id].label == M
    assert validations.items_for(session, late) == []
    assert example.leased == 1


def test_coming_back_to_a_returned_hit_goes_on_with_its_items(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    examples = [example_of(session, round_, minute=minute) for minute in range(3)]
    validator = make.make_worker(session)
    returned = opens(session, hit, validator)
    leases = validations.draw(session, returned, clock.now())
    validations.record_vote(session, returned, leases[1].id, label=M, now=clock.now())
    clock.advance(timedelta(minutes=10))

    again = opens(session, hit, validator, deadline_at=clock.now() + timedelta(minutes=30))
    assert drawn(session, again, clock) == [example.id for example in examples]

    assert list(validations.draft_votes(session, again)) == [leases[1].id]
    assert {lease.expires_at for lease in leases} == {clock.now() + timedelta(minutes=35)}
    assert [example.leased for example in examples] == [1, 1, 1]


def test_coming_back_after_the_time_draws_anew_and_not_the_gold_items_alone(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    round_.gold_items = 1
    row = {"context": {"prompt": "Rain."}, "answer": {"statement": "It rained all day."}, "label": "neutral"}
    validations.add_gold(session, round_, row, clock.now())
    examples = [example_of(session, round_, minute=minute).id for minute in range(3)]
    validator = make.make_worker(session)
    first = validations.draw(session, opens(session, hit, validator), clock.now())
    assert len(first) == 4
    clock.advance(timedelta(minutes=40))
    validations.release_expired(session, round_, clock.now())

    again = opens(session, hit, validator, deadline_at=clock.now() + timedelta(minutes=30))

    assert drawn(session, again, clock) == examples
    # Returned once more: what the second one held goes on, and nothing of the first one's stands in its way.
    third = opens(session, hit, validator, deadline_at=clock.now() + timedelta(minutes=30))
    assert drawn(session, third, clock) == examples
    assert [lease.position for lease in validations.items_for(session, third)] == [1, 2, 3]


def test_saved_work_that_was_never_submitted_goes_back_after_a_while(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    example = example_of(session, round_)
    assignment = opens(session, hit)
    [lease] = validations.draw(session, assignment, clock.now())
    validations.record_vote(session, assignment, lease.id, label=M, now=clock.now())
    validations.save_votes(session, assignment, clock.now())
    clock.advance(timedelta(minutes=30) + UNSUBMITTED_AFTER - timedelta(seconds=1))
    endpoint = hit.batch.endpoint
    assert validations.release_expired(session, round_, clock.now()) == 0
    assert validations.release_unsubmitted(session, endpoint, clock.now()) == 0
    clock.advance(timedelta(seconds=1))

    assert validations.release_unsubmitted(session, endpoint, clock.now(), unread=[hit.id]) == 0
    assert validations.release_unsubmitted(session, "https://elsewhere.example.org", clock.now()) == 0
    assert validations.release_unsubmitted(session, endpoint, clock.now()) == 1
    assert (lease.place, example.leased) == (None, 0)
    # Submitted after all: it counts, as there is room.
    assignment.state = AssignmentState.SUBMITTED
    assert validations.count_votes(session, assignment, clock.now()) == 1
    assert lease.place == 1


def test_what_will_not_be_counted_is_given_back(session: Session, clock: FixedClock, round_: Round, hit: Hit) -> None:
    example = example_of(session, round_)
    assignment = opens(session, hit)
    drawn(session, assignment, clock)

    assert validations.release(session, assignment) == 1
    assert validations.release(session, assignment) == 0
    assert example.leased == 0


def test_two_who_judge_each_other_do_so_for_a_share_only(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    ann, ben = make.make_worker(session), make.make_worker(session)
    of_ann = [example_of(session, round_, ann, minute=minute) for minute in range(20)]
    of_ben = [example_of(session, round_, ben, minute=minute) for minute in range(20)]

    # Ben has judged nothing of Ann's, so that Ann may judge any of his.
    assert len(drawn(session, opens(session, hit, ann), clock)) == 10
    # From now on the two judge each other: a quarter of the other's twenty, and Ann has had more already.
    assert len(drawn(session, opens(session, hit, ben), clock)) == 5
    assert drawn(session, opens(session, another(session, hit), ben), clock) == []
    assert drawn(session, opens(session, another(session, hit), ann), clock) == []
    # Everybody else may.
    half_read = sorted([*of_ann[:5], *of_ben[:10]], key=lambda example: (example.collected_at, example.id))
    assert drawn(session, opens(session, hit), clock) == [example.id for example in half_read[:10]]


def test_in_a_small_round_two_who_judge_each_other_are_not_stuck(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    ann, ben = make.make_worker(session), make.make_worker(session)
    for writer in (ann, ben):
        for _ in range(3):
            example_of(session, round_, writer)

    assert len(drawn(session, opens(session, hit, ann), clock)) == 3
    assert len(drawn(session, opens(session, hit, ben), clock)) == validations.PAIR_FLOOR


def test_ties_go_to_seniors_only_and_seniors_get_ties_only(
    session: Session, clock: FixedClock, round_: Round, hit: Hit
) -> None:
    round_.senior_value = 2
    tied, plain = example_of(session, round_), example_of(session, round_)
    for label in (W, M):
        make.make_vote(session, example=tied, label=label)
    assert [(s.example_id, s.for_seniors) for s in validations.shortages(session, round_, clock.now())] == [
        (tied.id, True)
    ]

    senior = make.make_hit(session, batch=validation_batch(session, round_, senior_value=2), max_assignments=9)
    assert validations.shortages(session, round_, clock.now()) == []
    assert drawn(session, opens(session, hit), clock) == [plain.id]
    assert drawn(session, opens(session, senior), clock) == [tied.id]


def test_gold_items_stand_among_the_others_and_take_their_room(
    session: Session, clock: FixedClock, round_: Round
) -> None:
    round_.gold_items = 2
    for number in range(8):
        row = {"context": {"prompt": f"Day {number}."}, "answer": {"statement": f"It rained on day {number}."}}
        validations.add_gold(session, round_, {**row, "label": "neutral"}, clock.now())
    for minute in range(24):
        example_of(session, round_, minute=minute)
    hit = make.make_hit(session, batch=validation_batch(session, round_), max_assignments=9)
    positions = Counter[int]()
    seen: list[int | None] = []
    validator = make.make_worker(session)
    for _ in range(3):
        leases = validations.draw(session, opens(session, another(session, hit), validator), clock.now())
        gold = [lease for lease in leases if lease.gold_item_id is not None]
        assert (len(leases), len(gold)) == (10, 2)
        positions.update(lease.position for lease in gold)
        seen += [lease.gold_item_id for lease in gold]

    assert len(set(seen)) == 6
    assert len(positions) > 2
    # None without an example to stand among.
    assert validations.draw(session, opens(session, hit, validator), clock.now()) == []


def test_shortages_are_what_open_places_will_not_bring(session: Session, clock: FixedClock, round_: Round) -> None:
    example = example_of(session, round_)
    example_of(session, round_).verdict = Verdict.NOT_VALIDATED
    assert [(s.example_id, s.wanted) for s in validations.shortages(session, round_, clock.now())] == [(example.id, 2)]

    hit = make.make_hit(session, batch=validation_batch(session, round_), max_assignments=2)
    assert validations.shortages(session, round_, clock.now()) == []
    assert validations.waiting_items(session, hit.batch) == 1
    # Readers of ties are offered ties alone.
    assert validations.waiting_items(session, validation_batch(session, round_, senior_value=2)) == 0

    # A place that is being used counts by its lease.
    reading = opens(session, hit)
    drawn(session, reading, clock)
    assert validations.shortages(session, round_, clock.now()) == []

    # One reader's place is used without a vote on this example: one more place is wanted.
    validations.release(session, reading)
    reading.state = AssignmentState.SUBMITTED
    assert [s.wanted for s in validations.shortages(session, round_, clock.now())] == [1]

    clock.advance(timedelta(days=30))
    assert [s.wanted for s in validations.shortages(session, round_, clock.now())] == [2]


def test_open_places_are_shared_out_to_the_oldest(session: Session, clock: FixedClock, round_: Round) -> None:
    examples = [example_of(session, round_, minute=minute) for minute in range(5)]
    make.make_hit(session, batch=validation_batch(session, round_, items=3), max_assignments=1)
    make.make_hit(session, batch=validation_batch(session, round_, items=1), max_assignments=2)
    make.make_hit(session, batch=validation_batch(session, round_), max_assignments=2, state=HitState.CLOSED)

    # Four get a first reader and one a second one.
    found = [(s.example_id, s.wanted) for s in validations.shortages(session, round_, clock.now())]
    assert found == list(zip([example.id for example in examples[1:]], (1, 1, 1, 2), strict=True))


def test_a_place_belongs_to_one_person_and_a_person_has_one_lease_of_an_example(session: Session) -> None:
    example = make.make_example(session)
    first, second = (
        make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example])) for _ in range(2)
    )
    make.make_lease(session, assignment=first, example=example)
    for fields in (
        {"assignment": second, "place": 1},
        {"assignment": second, "place": 0},
        {"assignment": second, "place": 4},
        {"assignment": second, "validator_id": first.worker_id},
        {"assignment": second, "example_id": None},
        {"assignment": first, "position": 1, "validator_id": second.worker_id},
    ):
        with pytest.raises(IntegrityError), session.begin_nested():
            make.make_lease(session, example=example, **fields)  # type: ignore[arg-type]


@pytest.fixture
def counted(session: Session) -> Iterator[None]:
    """Whatever a test did, the counters are a recount in the end, and nobody has more readers than the round allows."""
    yield
    session.expire_all()
    for example in session.scalars(select(Example)):
        stored = (example.votes_wanted, example.leased)
        validations.recount(session, [example])
        assert stored == (example.votes_wanted, example.leased)


def test_fifty_who_open_at_once_never_hold_the_same_place(
    session: Session, session_factory: sessionmaker[Session], clock: FixedClock, round_: Round, hit: Hit, counted: None
) -> None:
    examples = [example_of(session, round_, minute=minute) for minute in range(60)]
    several = [another(session, hit) for _ in range(10)]
    assignments = [opens(session, several[number % 10]).id for number in range(50)]
    session.commit()
    failures: list[Exception] = []
    held: list[list[int | None]] = []
    start = threading.Barrier(50)

    def open_page(assignment_id: int) -> None:
        try:
            start.wait(timeout=30)
            with session_factory() as mine:
                row = mine.get_one(Assignment, assignment_id)
                held.append([lease.example_id for lease in validations.draw(mine, row, clock.now())])
                mine.commit()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_page, args=(assignment_id,)) for assignment_id in assignments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    readers = Counter(example_id for one in held for example_id in one)
    # Sixty examples want two readers each: twelve people get ten, the others find nothing.
    assert readers == dict.fromkeys([example.id for example in examples], 2)
    assert sorted(map(len, held)) == [0] * 38 + [10] * 12
    places = session.execute(select(Lease.example_id, func.count(Lease.place.distinct())).group_by(Lease.example_id))
    assert {count for _, count in places} == {2}
    assert session.scalar(select(func.count()).select_from(Vote)) == 0


def test_many_who_judge_count_and_decide_at_once_neither_block_nor_overdo_it(
    session: Session, session_factory: sessionmaker[Session], clock: FixedClock, round_: Round, hit: Hit, counted: None
) -> None:
    examples = [example_of(session, round_, minute=minute).id for minute in range(24)]
    people = [make.make_worker(session).id for _ in range(8)]
    several = [make.make_hit(session, batch=validation_batch(session, round_, items=5), max_assignments=9).id
               for _ in range(12)]  # fmt: skip
    work = [
        [
            make.make_assignment(session, hit=session.get_one(Hit, hit_id), worker=session.get_one(Worker, person)).id
            for hit_id in several
        ]
        for person in people
    ]
    session.commit()
    failures: list[Exception] = []
    start = threading.Barrier(8)

    def judge(mine: Session, assignment_id: int, seat: int) -> None:
        row = mine.get_one(Assignment, assignment_id)
        drawn = [(lease.id, lease.example_id or 0) for lease in validations.draw(mine, row, clock.now())]
        mine.commit()
        for lease_id, example_id in drawn:
            label = W if (example_id + seat) % 3 else M
            validations.record_vote(mine, row, lease_id, label=label, now=clock.now())
            mine.commit()
        if drawn:
            validations.save_votes(mine, row, clock.now())
            mine.commit()
            row.state = AssignmentState.SUBMITTED
            validations.count_votes(mine, row, clock.now())
            mine.commit()
        # In the opposite order of the locks that counting takes, one example at a time as the jobs do.
        for _, example_id in reversed(drawn):
            [example] = validations.locked_examples(mine, [example_id])
            validations.decide(mine, example, clock.now())
            mine.commit()

    def one_person(seat: int) -> None:
        try:
            start.wait(timeout=60)
            with session_factory() as mine:
                for assignment_id in work[seat]:
                    judge(mine, assignment_id, seat)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=one_person, args=(seat,)) for seat in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    session.expire_all()
    found = session.scalars(select(Example).where(Example.id.in_(examples))).all()
    assert {example.verdict for example in found} <= {
        Verdict.VALID_AND_MODEL_WRONG,
        Verdict.VALID_AND_MODEL_RIGHT,
        Verdict.INVALID,
    }
    votes = session.execute(select(Vote.example_id, func.count()).group_by(Vote.example_id)).all()
    assert {count for _, count in votes} <= {2, 3}
    for example in found:
        said = [vote.label for vote in session.scalars(select(Vote).where(Vote.example_id == example.id))]
        # A third reader was asked only where the first two differed.
        assert len(said) == 2 or len(set(said)) == 2
