"""Judgements as drafts, saved, counted: whose they are, what they may say, and which ones come too late."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from hits import validations
from hits.clock import FixedClock
from hits.errors import AlreadySubmitted, InvalidAnswer, InvalidInput, NotYetSubmittable, OwnExample, Refused
from hits.models import Assignment, Example, Lease, Vote
from hits.states import AssignmentState, Verdict
from tests import factories as make
from tests.app.four_tasks import creation_hit, fooling_example

W, M, A = "negative", "positive", "neutral"


def opened(session: Session, examples: list[Example], **fields: object) -> tuple[Assignment, list[Lease]]:
    """An assignment that holds the examples, in order."""
    assignment = make.make_assignment(session, hit=make.make_validation_hit(session, examples=examples), **fields)
    return assignment, [make.make_lease(session, assignment=assignment, example=example) for example in examples]


@pytest.mark.parametrize(
    ("label", "details", "kept"),
    [
        ("hateful", {"hate_target": "origin", "hate_type": "threat"}, {"hate_target": "origin", "hate_type": "threat"}),
        ("hateful", {"hate_target": "", "hate_type": ""}, None),
        ("hateful", {"hate_type": "exclusion", "other": "x"}, {"hate_type": "exclusion"}),
        ("not_hateful", {"hate_target": "origin"}, None),
    ],
)
def test_what_a_reader_says_besides_the_label_is_kept_with_the_vote(
    session: Session, clock: FixedClock, label: str, details: dict[str, str], kept: dict[str, str] | None
) -> None:
    assignment, [item] = opened(session, [fooling_example(session, creation_hit(session, "hate"))])

    vote = validations.record_vote(session, assignment, item.id, label=label, details=details, now=clock.now())
    assert vote.details == kept

    validations.record_vote(session, assignment, item.id, flag_reason="a real person", now=clock.now())
    assert vote.details is None


def test_a_choice_that_there_is_not_is_refused(session: Session, clock: FixedClock) -> None:
    assignment, [item] = opened(session, [fooling_example(session, creation_hit(session, "hate"))])

    with pytest.raises(InvalidInput, match="no choice 'everybody'"):
        validations.record_vote(
            session, assignment, item.id, label="hateful", details={"hate_target": "everybody"}, now=clock.now()
        )


def test_a_reader_corrects_the_marked_answer(session: Session, clock: FixedClock) -> None:
    example = fooling_example(session, creation_hit(session, "qa"))
    assignment, [item] = opened(session, [example])
    passage = item.context_fields["passage"]
    word = next(one for one in passage.split() if one.isalpha() and len(one) > 4 and passage.count(one) == 1)

    vote = validations.record_vote(
        session, assignment, item.id, label="wrong", details={"answer": f" {word} "}, now=clock.now()
    )
    assert vote.correction == {"answer": word, "answer_start": str(passage.index(word))}

    validations.record_vote(session, assignment, item.id, label="right", details={"answer": word}, now=clock.now())
    assert vote.correction is None


def test_a_correction_of_several_places_means_the_first(session: Session, clock: FixedClock) -> None:
    example = fooling_example(session, creation_hit(session, "qa"))
    assignment, [item] = opened(session, [example])
    passage = item.context_fields["passage"]
    words = [word for word in passage.split() if word.isalpha() and len(word) > 2 and passage.split().count(word) > 1]
    word = next(word for word in words if word.lower() not in ("the", "and", item.answer["answer"].lower()))

    vote = validations.record_vote(
        session, assignment, item.id, label="wrong", details={"answer": word}, now=clock.now()
    )

    assert vote.correction == {"answer": word, "answer_start": vote.correction["answer_start"]}  # type: ignore[index]


@pytest.mark.parametrize(
    ("typed", "words"), [("a zeppelin of lead", "does not stand in the text above"), ("", None), ("the", "no word")]
)
def test_a_correction_must_stand_in_the_passage_and_speaks_of_no_tries(
    session: Session, clock: FixedClock, typed: str, words: str | None
) -> None:
    assignment, [item] = opened(session, [fooling_example(session, creation_hit(session, "qa"))])
    if words is None:
        vote = validations.record_vote(
            session, assignment, item.id, label="wrong", details={"answer": typed}, now=clock.now()
        )
        assert vote.correction is None
        return

    with pytest.raises(InvalidAnswer, match=words) as error:
        validations.record_vote(session, assignment, item.id, label="wrong", details={"answer": typed}, now=clock.now())
    assert error.value.field == "answer"
    assert "try" not in str(error.value)


def test_the_marked_answer_itself_is_no_correction(session: Session, clock: FixedClock) -> None:
    assignment, [item] = opened(session, [fooling_example(session, creation_hit(session, "qa"))])

    with pytest.raises(InvalidAnswer, match="marked already"):
        validations.record_vote(
            session, assignment, item.id, label="wrong", details={"answer": item.answer["answer"]}, now=clock.now()
        )


def test_only_what_was_drawn_for_this_assignment_is_judged_in_it(session: Session, clock: FixedClock) -> None:
    mine, others = make.make_example(session), make.make_example(session)
    assignment, [item] = opened(session, [mine])
    _, [foreign] = opened(session, [others])

    assert validations.items_for(session, assignment) == [item]
    for item_id in (foreign.id, foreign.id + 1000):
        with pytest.raises(Refused, match="not part of this HIT"):
            validations.record_vote(session, assignment, item_id, label=W, now=clock.now())


def test_nobody_judges_the_own_statement_even_if_it_was_drawn(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    assignment, [item] = opened(session, [example], worker=example.writer)

    with pytest.raises(OwnExample):
        validations.record_vote(session, assignment, item.id, label=W, now=clock.now())


def test_a_draft_may_be_changed_until_the_assignment_is_saved(session: Session, clock: FixedClock) -> None:
    assignment, [item] = opened(session, [make.make_example(session)])
    with pytest.raises(NotYetSubmittable, match="1 of 1"):
        validations.save_votes(session, assignment, clock.now())
    validations.record_vote(session, assignment, item.id, label=M, now=clock.now())
    validations.record_vote(session, assignment, item.id, flag_reason="  insult  ", now=clock.now())

    validations.save_votes(session, assignment, clock.now())
    validations.save_votes(session, assignment, clock.now())

    vote = validations.draft_votes(session, assignment)[item.id]
    assert (vote.label, vote.flag_reason) == (None, "insult")
    assert assignment.state is AssignmentState.SAVED
    assert item.expires_at is None
    with pytest.raises(AlreadySubmitted):
        validations.record_vote(session, assignment, item.id, label=W, now=clock.now())


def test_who_stops_early_hands_in_what_is_judged_and_the_rest_goes_back(session: Session, clock: FixedClock) -> None:
    first, second = make.make_example(session), make.make_example(session)
    assignment, items = opened(session, [first, second])
    with pytest.raises(NotYetSubmittable, match="2 of 2"):
        validations.save_votes(session, assignment, clock.now(), partial=True)
    validations.record_vote(session, assignment, items[0].id, label=W, now=clock.now())
    with pytest.raises(NotYetSubmittable, match="1 of 2"):
        validations.save_votes(session, assignment, clock.now())

    validations.save_votes(session, assignment, clock.now(), partial=True)

    assert assignment.state is AssignmentState.SAVED
    assert [item.place for item in items] == [1, None]
    assert [example.leased for example in (first, second)] == [1, 0]


def test_there_is_nothing_to_save_without_items(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    assignment = make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]))

    with pytest.raises(NotYetSubmittable, match="nothing here that you may judge"):
        validations.save_votes(session, assignment, clock.now())


@pytest.mark.parametrize(
    "judgement",
    [{"label": "angry"}, {"label": W, "flag_reason": "both"}, {}, {"flag_reason": "  "}, {"flag_reason": "a\0b"}],
)
def test_a_judgement_that_is_none_is_refused(session: Session, clock: FixedClock, judgement: dict[str, str]) -> None:
    assignment, [item] = opened(session, [make.make_example(session)])

    with pytest.raises(InvalidInput):
        validations.record_vote(session, assignment, item.id, now=clock.now(), **judgement)

    session.rollback()
    assert session.scalars(select(Vote)).all() == []


def test_a_vote_after_the_deadline_is_refused(session: Session, clock: FixedClock) -> None:
    assignment, [item] = opened(session, [make.make_example(session)])
    clock.advance(timedelta(hours=2))

    with pytest.raises(Refused, match="time"):
        validations.record_vote(session, assignment, item.id, label=W, now=clock.now())


def test_a_creation_hit_takes_no_votes(session: Session, clock: FixedClock) -> None:
    assignment = make.make_assignment(session)

    with pytest.raises(Refused, match="asks for statements"):
        validations.record_vote(session, assignment, 1, label=W, now=clock.now())


def test_what_was_flagged_meanwhile_is_left_out_unless_it_is_judged(session: Session, clock: FixedClock) -> None:
    examples = [make.make_example(session) for _ in range(3)]
    assignment, items = opened(session, examples)
    validations.record_vote(session, assignment, items[0].id, label=W, now=clock.now())
    examples[0].verdict = examples[1].verdict = Verdict.FLAGGED
    validations.retract(session, examples[2], reason="asked for", now=clock.now())

    assert validations.items_for(session, assignment) == [items[0]]
    validations.save_votes(session, assignment, clock.now())


def test_the_time_of_an_item_runs_from_the_judgement_before_it(session: Session, clock: FixedClock) -> None:
    assignment, items = opened(session, [make.make_example(session) for _ in range(2)])
    for item in items:
        item.drawn_at = clock.now()
    clock.advance(timedelta(seconds=12))
    first = validations.record_vote(session, assignment, items[0].id, label=W, now=clock.now())
    clock.advance(timedelta(seconds=7))
    second = validations.record_vote(session, assignment, items[1].id, label=W, now=clock.now())
    clock.advance(timedelta(seconds=50))
    validations.record_vote(session, assignment, items[0].id, label=M, now=clock.now())

    assert (first.seconds, second.seconds) == (12, 7)
    assert first.label == M


def submitted(session: Session, assignment: Assignment, clock: FixedClock) -> int:
    assignment.state = AssignmentState.SUBMITTED
    return validations.count_votes(session, assignment, clock.now())


def test_counting_keeps_the_place_of_a_label_and_gives_back_that_of_a_flag(session: Session, clock: FixedClock) -> None:
    examples = [make.make_example(session) for _ in range(3)]
    assignment, items = opened(session, examples)
    validations.record_vote(session, assignment, items[0].id, label=W, now=clock.now())
    validations.record_vote(session, assignment, items[1].id, flag_reason="insult", now=clock.now())

    assert submitted(session, assignment, clock) == 2
    assert submitted(session, assignment, clock) == 0

    assert [item.place for item in items] == [1, None, None]
    assert [(example.votes_wanted, example.leased) for example in examples] == [(1, 0), (0, 0), (2, 0)]


def test_a_vote_whose_lease_has_ended_counts_while_there_is_room(session: Session, clock: FixedClock) -> None:
    wanted, full = make.make_example(session), make.make_example(session)
    assignment, items = opened(session, [wanted, full])
    for item in items:
        validations.record_vote(session, assignment, item.id, label=M, now=clock.now())
        item.expires_at = clock.now()
    assert validations.release_expired(session, wanted.round, clock.now()) == 2
    for _ in range(2):
        opened(session, [full])

    assert submitted(session, assignment, clock) == 1

    votes = {vote.example_id: vote for vote in session.scalars(select(Vote))}
    assert votes[wanted.id].counted_at is not None
    assert votes[full.id].counted_at is None
    assert (items[0].place, items[1].place) == (1, None)


def test_a_late_vote_does_not_open_a_decided_example_again(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    example.round.split_votes, example.round.max_votes = 3, 5
    assignment, [item] = opened(session, [example])
    validations.record_vote(session, assignment, item.id, label=M, now=clock.now())
    item.expires_at = clock.now()
    validations.release_expired(session, example.round, clock.now())
    for _ in range(2):
        make.make_vote(session, example=example)
    validations.decide(session, example, clock.now())

    assert submitted(session, assignment, clock) == 0
    assert validations.decide(session, example, clock.now()).verdict is Verdict.VALID_AND_MODEL_WRONG


def test_votes_of_another_persons_claim_count_for_nothing(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    assignment, [item] = opened(session, [example])
    validations.record_vote(session, assignment, item.id, label=W, now=clock.now())
    row = {"context": {"prompt": "Rain."}, "answer": {"statement": "It rained all day."}, "label": "neutral"}
    gold = validations.add_gold(session, example.round, row, clock.now())
    assert gold is not None
    known = {"assignment_id": assignment.id, "validator_id": assignment.worker_id, "created_at": clock.now()}
    session.add(Vote(gold_item_id=gold.id, label="neutral", **known))
    session.flush()
    # The marketplace names another worker than the page was opened for.
    assignment.worker_id = make.make_worker(session).id

    assert submitted(session, assignment, clock) == 0


def test_one_statement_judged_in_two_tabs_at_the_same_moment_is_one_vote(
    session: Session, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    assignment, [item] = opened(session, [make.make_example(session)])
    session.commit()
    failures: list[Exception] = []

    def judge_in_the_other_tab() -> None:
        try:
            with session_factory() as other:
                row = other.get_one(Assignment, assignment_id)
                validations.record_vote(other, row, item_id, label=M, now=clock.now())
                other.commit()
        except Exception as error:
            failures.append(error)

    assignment_id, item_id = assignment.id, item.id
    validations.record_vote(session, assignment, item_id, label=W, now=clock.now())
    meanwhile = threading.Thread(target=judge_in_the_other_tab)
    meanwhile.start()
    meanwhile.join(timeout=0.3)
    session.commit()
    meanwhile.join()

    session.expire_all()
    vote = session.scalars(select(Vote)).one()
    assert failures == []
    assert vote.label == M


def test_the_database_has_one_vote_of_a_person_about_an_item_and_one_item_for_a_vote(session: Session) -> None:
    example = make.make_example(session)
    vote = make.make_vote(session, example=example)
    with pytest.raises(IntegrityError), session.begin_nested():
        make.make_vote(session, example=example, assignment=vote.assignment)
    with pytest.raises(IntegrityError), session.begin_nested():
        session.execute(update(Vote).where(Vote.id == vote.id).values(example_id=None))


def judged_by(session: Session, example: Example, clock: FixedClock, *labels: str) -> list[Assignment]:
    """The collected assignments of readers who gave the labels, in order; the votes have decided."""
    done = []
    for label in labels:
        assignment, [item] = opened(session, [example])
        validations.record_vote(session, assignment, item.id, label=label, now=clock.now())
        validations.save_votes(session, assignment, clock.now())
        assignment.state = AssignmentState.SUBMITTED
        validations.count_votes(session, assignment, clock.now())
        done.append(assignment)
    validations.decide(session, example, clock.now())
    return done


def test_votes_of_rejected_work_decide_nothing_and_others_are_asked_instead(
    session: Session, clock: FixedClock
) -> None:
    example = make.make_example(session)
    bad, _ = judged_by(session, example, clock, W, W)
    assert example.verdict is Verdict.VALID_AND_MODEL_WRONG

    assert validations.withdraw_votes(session, bad, clock.now()) == 1
    assert (example.verdict, example.final_label, example.votes_wanted) == (Verdict.PENDING, None, 1)
    [vote] = session.scalars(select(Vote).where(Vote.assignment_id == bad.id))
    assert (vote.label, vote.counted_at, vote.counted_before) == (W, None, clock.now())
    assert validations.withdraw_votes(session, bad, clock.now()) == 0

    again = make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]), worker=bad.worker)
    assert validations.draw(session, again, clock.now()) == []
    judged_by(session, example, clock, W)
    assert example.verdict is Verdict.VALID_AND_MODEL_WRONG


def test_votes_of_an_undone_rejection_count_again_as_of_when_they_did(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    bad, _ = judged_by(session, example, clock, W, W)
    counted = clock.now()
    clock.advance(timedelta(days=1))
    validations.withdraw_votes(session, bad, clock.now())

    assert validations.restore_votes(session, bad, clock.now()) == 1
    assert example.verdict is Verdict.VALID_AND_MODEL_WRONG
    [vote] = session.scalars(select(Vote).where(Vote.assignment_id == bad.id))
    assert (vote.counted_at, vote.counted_before) == (counted, None)
    assert validations.restore_votes(session, bad, clock.now()) == 0


def test_a_withdrawn_vote_whose_place_others_took_stays_withdrawn(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    bad, *_ = judged_by(session, example, clock, W, M)
    validations.withdraw_votes(session, bad, clock.now())
    judged_by(session, example, clock, A, W)
    assert example.verdict is Verdict.INVALID

    assert validations.restore_votes(session, bad, clock.now()) == 0
    assert validations.count_votes(session, bad, clock.now()) == 0
    assert example.verdict is Verdict.INVALID


def test_a_flag_of_rejected_work_holds_up_nothing(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    judged_by(session, example, clock, W, W)
    assignment, [item] = opened(session, [example])
    validations.record_vote(session, assignment, item.id, flag_reason="no reason", now=clock.now())
    item.place = 3
    assignment.state = AssignmentState.SUBMITTED
    validations.count_votes(session, assignment, clock.now())
    validations.decide(session, example, clock.now())
    assert example.verdict is Verdict.FLAGGED

    validations.withdraw_votes(session, assignment, clock.now())
    assert example.verdict is Verdict.VALID_AND_MODEL_WRONG


def test_votes_of_a_frozen_round_stay(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    bad, _ = judged_by(session, example, clock, W, W)
    example.round.frozen_at, example.round.manifest_sha256 = clock.now(), "0" * 64
    session.flush()

    assert validations.withdraw_votes(session, bad, clock.now()) == 0
    assert example.verdict is Verdict.VALID_AND_MODEL_WRONG
