"""The verdict table for every multiset of votes, and who may judge what."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from itertools import combinations_with_replacement, permutations

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from hits import validations
from hits.clock import FixedClock
from hits.errors import AlreadySubmitted, AlreadyVoted, InvalidInput, NotYetSubmittable, OwnExample, Refused
from hits.models import Assignment, Attempt, Example, Round, Vote
from hits.states import AssignmentState, HitKind, Moderation, Verdict
from hits.tasks import task
from tests import factories as make
from tests.app.four_tasks import creation_hit, fooling_example
from tests.launched import ROOT

# The writer aims at w, the model said m; a is a further label.
W, M, A = "negative", "positive", "neutral"
WRONG, RIGHT = Verdict.VALID_AND_MODEL_WRONG, Verdict.VALID_AND_MODEL_RIGHT
#: votes -> verdict, final label, votes wanted, writer confirmed; docs/verdicts.md shows the same table.
TABLE = {
    (): (Verdict.PENDING, None, 2, False),
    (W,): (Verdict.PENDING, None, 1, False),
    (M,): (Verdict.PENDING, None, 1, False),
    (A,): (Verdict.PENDING, None, 1, False),
    (W, W): (WRONG, W, 0, True),
    (M, M): (RIGHT, M, 0, False),
    (A, A): (WRONG, A, 0, False),
    (W, M): (Verdict.PENDING, None, 1, False),
    (W, A): (Verdict.PENDING, None, 1, False),
    (M, A): (Verdict.PENDING, None, 1, False),
    (W, W, W): (WRONG, W, 0, True),
    (W, W, M): (WRONG, W, 0, True),
    (W, W, A): (WRONG, W, 0, True),
    (M, M, W): (RIGHT, M, 0, False),
    (M, M, A): (RIGHT, M, 0, False),
    (M, M, M): (RIGHT, M, 0, False),
    (A, A, W): (WRONG, A, 0, False),
    (A, A, M): (WRONG, A, 0, False),
    (A, A, A): (WRONG, A, 0, False),
    (W, M, A): (Verdict.INVALID, None, 0, False),
}


def said(votes: tuple[str, ...], flags: int = 0, **options: object) -> tuple[Verdict, str | None, int, bool]:
    policy: dict[str, object] = {"agreeing_votes": 2, "max_votes": 3, **options}
    found = validations.outcome(W, M, votes, flags, **policy)  # type: ignore[arg-type]
    return found.verdict, found.final_label, found.votes_wanted, found.writer_confirmed


def test_the_table_covers_every_multiset_of_up_to_three_votes() -> None:
    every = {tuple(sorted(votes)) for n in range(4) for votes in combinations_with_replacement((W, M, A), n)}

    assert {tuple(sorted(votes)) for votes in TABLE} == every


@pytest.mark.parametrize("votes", TABLE, ids=lambda votes: "+".join(votes) or "none")
def test_a_multiset_of_votes_gives_its_verdict_in_any_order(votes: tuple[str, ...]) -> None:
    assert {said(order) for order in permutations(votes)} == {TABLE[votes]}


@pytest.mark.parametrize("votes", TABLE, ids=lambda votes: "+".join(votes) or "none")
def test_a_flag_stops_every_verdict_until_it_is_moderated(votes: tuple[str, ...]) -> None:
    assert said(votes, flags=1) == (Verdict.FLAGGED, None, 0, False)
    assert said(votes, flags=1, moderation=Moderation.OPEN) == (Verdict.FLAGGED, None, 0, False)
    assert said(votes, flags=2, moderation=Moderation.DISMISSED) == TABLE[votes]
    assert said(votes, flags=1, moderation=Moderation.UPHELD) == (Verdict.INVALID, None, 0, False)


# Question answering: readers say whether the writer's marked answer is right (R) or wrong (N).
R, N = "right", "wrong"
QA_TABLE = {
    (): (Verdict.PENDING, None, 2, False),
    (R,): (Verdict.PENDING, None, 1, False),
    (N,): (Verdict.PENDING, None, 1, False),
    (R, R): (WRONG, R, 0, True),
    (R, N): (Verdict.PENDING, None, 1, False),
    (N, N): (Verdict.INVALID, N, 0, False),
    (R, R, R): (WRONG, R, 0, True),
    (R, R, N): (WRONG, R, 0, True),
    (R, N, N): (Verdict.INVALID, N, 0, False),
    (N, N, N): (Verdict.INVALID, N, 0, False),
}


def qa_said(votes: tuple[str, ...], flags: int = 0, **options: object) -> tuple[Verdict, str | None, int, bool]:
    policy: dict[str, object] = {"agreeing_votes": 2, "max_votes": 3, **options}
    rejecting = task("qa").rejecting_labels
    found = validations.outcome(R, N, votes, flags, rejecting_labels=rejecting, **policy)  # type: ignore[arg-type]
    return found.verdict, found.final_label, found.votes_wanted, found.writer_confirmed


def test_the_table_of_marked_answers_covers_every_multiset_of_up_to_three_votes() -> None:
    every = {tuple(sorted(votes)) for n in range(4) for votes in combinations_with_replacement((R, N), n)}

    assert {tuple(sorted(votes)) for votes in QA_TABLE} == every


@pytest.mark.parametrize("votes", QA_TABLE, ids=lambda votes: "+".join(votes) or "none")
def test_votes_about_a_marked_answer_give_their_verdict_in_any_order_and_flags_stop_it(votes: tuple[str, ...]) -> None:
    assert {qa_said(order) for order in permutations(votes)} == {QA_TABLE[votes]}
    assert qa_said(votes, flags=1) == (Verdict.FLAGGED, None, 0, False)
    assert qa_said(votes, flags=1, moderation=Moderation.DISMISSED) == QA_TABLE[votes]
    assert qa_said(votes, flags=1, moderation=Moderation.UPHELD) == (Verdict.INVALID, None, 0, False)


def test_a_tie_about_a_marked_answer_is_unresolved() -> None:
    assert qa_said((R, R, N, N), max_votes=4) == (Verdict.UNRESOLVED, None, 0, False)
    assert qa_said((R, R, N, N), max_votes=5) == (Verdict.PENDING, None, 1, False)


def test_both_tables_are_the_ones_in_the_document() -> None:
    document = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([rn ]+) \| (\w+) \| (right|wrong|)\s*\|", document, flags=re.MULTILINE)
    names = {"r": R, "n": N}

    written = {tuple(names[vote] for vote in votes.split()): (verdict, final or None) for votes, verdict, final in rows}
    assert written == {votes: (found[0].value, found[1]) for votes, found in QA_TABLE.items() if votes}


def test_an_example_that_readers_reject_earns_no_bonus(session: Session, clock: FixedClock) -> None:
    example = fooling_example(session, creation_hit(session, "qa"))
    for _ in range(2):
        make.make_vote(session, example=example, label=N)

    validations.decide(session, example, clock.now())

    assert (example.verdict, example.final_label) == (Verdict.INVALID, N)
    assert not validations.writer_confirmed(example)


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
    example = fooling_example(session, creation_hit(session, "hate"))
    assignment = make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]))

    vote = validations.record_vote(session, assignment, example.id, label=label, details=details, now=clock.now())
    assert vote.details == kept

    validations.record_vote(session, assignment, example.id, flag_reason="a real person", now=clock.now())
    assert vote.details is None


def test_a_choice_that_there_is_not_is_refused(session: Session, clock: FixedClock) -> None:
    example = fooling_example(session, creation_hit(session, "hate"))
    assignment = make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]))

    with pytest.raises(InvalidInput, match="no choice 'everybody'"):
        validations.record_vote(
            session, assignment, example.id, label="hateful", details={"hate_target": "everybody"}, now=clock.now()
        )


def test_a_tie_at_the_most_votes_is_unresolved_when_the_majority_is_not_against_the_writer() -> None:
    assert said((W, W, M, M), max_votes=4) == (Verdict.UNRESOLVED, None, 0, False)
    assert said((W, W, M, M), max_votes=5) == (Verdict.PENDING, None, 1, False)


def test_an_unvalidated_example_where_the_model_was_right_is_never_confirmed() -> None:
    found = validations.outcome(W, W, [W, W], 0, agreeing_votes=2, max_votes=3)

    assert (found.verdict, found.writer_confirmed) == (RIGHT, False)


def test_two_counted_votes_decide_and_drafts_do_not(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    make.make_vote(session, example=example)
    make.make_vote(session, example=example, counted_at=None)

    assert validations.decide(session, example, clock.now()).verdict is Verdict.PENDING

    make.make_vote(session, example=example)

    assert validations.decide(session, example, clock.now()).writer_confirmed
    assert example.verdict is WRONG
    assert example.final_label == W
    assert example.decided_at == clock.now()
    assert validations.writer_confirmed(example)


def test_a_dismissed_flag_asks_for_another_vote_and_an_upheld_one_ends_it(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    make.make_vote(session, example=example)
    make.make_vote(session, example=example, label=None, flag_reason="names a person")
    validations.decide(session, example, clock.now())
    assert example.verdict is Verdict.FLAGGED

    assert validations.moderate(session, example, upheld=False, reason="nobody real", now=clock.now()).votes_wanted == 1
    assert example.verdict is Verdict.PENDING

    with pytest.raises(Refused, match="no open flag"):
        validations.moderate(session, example, upheld=True, reason="again", now=clock.now())


def test_a_validator_sees_neither_own_statements_nor_ones_judged_before(session: Session, clock: FixedClock) -> None:
    validator = make.make_worker(session)
    own_attempt = make.make_attempt(
        session, assignment=make.make_assignment(session, worker=validator, state=AssignmentState.SUBMITTED)
    )
    own = make.make_example(session, attempt=own_attempt)
    round_ = own.round
    judged, fresh = (_example_of(session, round_) for _ in range(2))
    first = make.make_validation_hit(session, examples=[judged])
    done = make.make_assignment(session, hit=first, worker=validator)
    validations.record_vote(session, done, judged.id, label=W, now=clock.now())
    validations.save_votes(session, done, clock.now())
    hit = make.make_validation_hit(session, examples=[own, judged, fresh])
    assignment = make.make_assignment(session, hit=hit, worker=validator)

    assert validations.items_for(session, assignment) == [fresh]
    with pytest.raises(OwnExample):
        validations.record_vote(session, assignment, own.id, label=W, now=clock.now())
    with pytest.raises(AlreadyVoted):
        validations.record_vote(session, assignment, judged.id, label=M, now=clock.now())
    with pytest.raises(Refused, match="not part of this HIT"):
        validations.record_vote(session, assignment, fresh.id + 1000, label=W, now=clock.now())


def test_a_draft_may_be_changed_until_the_assignment_is_saved(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    assignment = make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]))
    with pytest.raises(NotYetSubmittable, match="1 of 1"):
        validations.save_votes(session, assignment, clock.now())
    validations.record_vote(session, assignment, example.id, label=M, now=clock.now())
    validations.record_vote(session, assignment, example.id, flag_reason="  insult  ", now=clock.now())

    validations.save_votes(session, assignment, clock.now())
    validations.save_votes(session, assignment, clock.now())

    vote = validations.draft_votes(session, assignment)[example.id]
    assert (vote.label, vote.flag_reason) == (None, "insult")
    assert assignment.state is AssignmentState.SAVED
    with pytest.raises(AlreadySubmitted):
        validations.record_vote(session, assignment, example.id, label=W, now=clock.now())


def test_a_draft_of_a_returned_hit_moves_to_the_next_one(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    validator = make.make_worker(session)
    returned, taken = (
        make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]), worker=validator)
        for _ in range(2)
    )
    validations.record_vote(session, returned, example.id, label=M, now=clock.now())

    validations.record_vote(session, taken, example.id, label=W, now=clock.now())

    assert validations.draft_votes(session, returned) == {}
    assert validations.draft_votes(session, taken)[example.id].label == W


@pytest.mark.parametrize(
    "judgement",
    [{"label": "angry"}, {"label": W, "flag_reason": "both"}, {}, {"flag_reason": "  "}, {"flag_reason": "a\0b"}],
)
def test_a_judgement_that_is_none_is_refused(session: Session, clock: FixedClock, judgement: dict[str, str]) -> None:
    example = make.make_example(session)
    assignment = make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]))

    with pytest.raises(InvalidInput):
        validations.record_vote(session, assignment, example.id, now=clock.now(), **judgement)

    assert validations.draft_votes(session, assignment) == {}


def test_a_vote_after_the_deadline_is_refused(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    assignment = make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]))
    clock.advance(timedelta(hours=2))

    with pytest.raises(Refused, match="time"):
        validations.record_vote(session, assignment, example.id, label=W, now=clock.now())


def test_shortages_are_what_open_places_will_not_bring(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    make.make_example(session, verdict=Verdict.NOT_VALIDATED, attempt=_attempt_in(session, example.round))
    assert [(s.example_id, s.wanted) for s in validations.shortages(session, example.round, clock.now())] == [
        (example.id, 2)
    ]

    batch = make.make_batch(session, round=example.round, kind=HitKind.VALIDATION)
    hit = make.make_validation_hit(session, examples=[example], batch=batch, max_assignments=2)
    assert validations.shortages(session, example.round, clock.now()) == []

    # One reader's place is used without a vote on this example: one more place is wanted.
    make.make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
    assert [s.wanted for s in validations.shortages(session, example.round, clock.now())] == [1]

    clock.advance(timedelta(days=30))
    assert [s.wanted for s in validations.shortages(session, example.round, clock.now())] == [2]


def _attempt_in(session: Session, round_: Round) -> Attempt:
    hit = make.make_hit(session, batch=make.make_batch(session, round=round_))
    return make.make_attempt(
        session, assignment=make.make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
    )


def _example_of(session: Session, round_: Round) -> Example:
    return make.make_example(session, attempt=_attempt_in(session, round_))


def test_one_statement_judged_in_two_hits_at_the_same_moment_is_one_vote(
    session: Session, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    example, validator = make.make_example(session), make.make_worker(session)
    first, second = (
        make.make_assignment(session, hit=make.make_validation_hit(session, examples=[example]), worker=validator)
        for _ in range(2)
    )
    session.commit()
    failures: list[Exception] = []

    def judge_in_the_second_hit() -> None:
        try:
            with session_factory() as other:
                row = other.get_one(Assignment, second.id)
                validations.record_vote(other, row, example.id, label=M, now=clock.now())
                other.commit()
        except Exception as error:
            failures.append(error)

    validations.record_vote(session, first, example.id, label=W, now=clock.now())
    meanwhile = threading.Thread(target=judge_in_the_second_hit)
    meanwhile.start()
    meanwhile.join(timeout=0.3)
    session.commit()
    meanwhile.join()

    session.expire_all()
    vote = session.scalars(select(Vote)).one()
    assert failures == []
    assert (vote.label, vote.assignment_id) == (M, second.id)
