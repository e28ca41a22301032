"""Erasing removes the person and keeps the books."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Table, func, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.admission_rules import set_aside
from app.operations.approve import approve_submitted
from app.operations.collect import collect
from app.operations.erase_worker import erase_worker, plan_erase
from app.operations.grant import grant_by_hand, revoke
from app.operations.practice import grade_practice
from app.operations.requirements import mirror_lists
from app.operations.settle import settle
from app.settings import Settings
from hits.clock import FixedClock
from hits.consent import agree, text_of
from hits.db import Base
from hits.errors import NotFound, Refused
from hits.exposure import show
from hits.models import Assignment, Attempt, Consent, Example, Exposure, Rejection, Vote, Worker
from hits.models.people import worker_for
from hits.mturk.errors import MTurkUnavailable
from hits.states import (
    AssignmentState,
    BadFaith,
    HitKind,
    HitState,
    Moderation,
    PracticeState,
    RejectionState,
    Verdict,
)
from hits.validations import withdraw_votes
from payments.models import Payout, PayoutState, Posting
from payments.planning import follow
from payments.rules import ReaderTerms
from qualification.grants import VALIDATOR
from qualification.limits_models import ListEntry, ListKind, PracticeGrade
from qualification.models import Level, LevelChange, QualificationGrant
from qualification.validators import validator_type
from tests.app.operations.people import Crowd, assignment_row
from tests.factories import (
    NOON,
    PSEUDONYM_KEY,
    make_assignment,
    make_attempt,
    make_batch,
    make_example,
    make_hit,
    make_validation_hit,
    make_vote,
    make_worker,
)
from tests.market import Market, failing
from tests.payments.builders import judge, plan, verified_example

#: What becomes of every table that knows a worker.
DEALT_WITH = {
    "arm_assignment": "kept: the data, by pseudonym",
    "worker": "the id goes, the pseudonym stays",
    "consent": "removed",
    "exposure": "removed",
    "assignment": "without draft and remark",
    "attempt": "removed unless handed in",
    "example": "kept: the data",
    "vote": "removed unless it counts, without the reason of a flag",
    "lease": "kept: which votes were asked for",
    "rejection": "without its words and those of its undoing",
    "payout": "kept: the books",
    "quiz_result": "without answers",
    "qualification_grant": "without reasons",
    "level_change": "without reasons",
    "list_entry": "ended, at the marketplace as well, without reasons",
}


def erase(session: Session, market: Market, settings: Settings, clock: FixedClock, who: str, **other: Any) -> None:
    erase_worker(session, market.mturk, settings, clock, who, by="robin", **other)


def everything(session: Session) -> str:
    """All that the database holds, as text."""
    found = []
    for name in Base.metadata.tables:
        found += [f"{name}: {row}" for row in session.execute(text(f"SELECT * FROM {name}"))]
    return "\n".join(found)


def make_payout(session: Session, *, example: Example, state: PayoutState) -> Payout:
    assignment = example.attempt.assignment
    known = {
        "approved_by": "robin",
        "sent_at": NOON if state is PayoutState.SENT else None,
        "cause": "no answer" if state is PayoutState.DOUBTFUL else None,
    }
    payout = Payout(
        reference="DH-TEST",
        rule="verified_fooling_example",
        subject=f"example:{example.id}",
        example_id=example.id,
        round_id=example.round_id,
        worker_id=example.writer_id,
        assignment_id=assignment.id,
        batch_id=assignment.hit.batch_id,
        endpoint="http://127.0.0.1:8000",
        amount=Decimal("0.30"),
        reason="For a statement. DH-TEST",
        request_token="token",
        state=state,
        planned_at=NOON,
        **known,
    )
    session.add(payout)
    session.flush()
    return payout


def knows_workers(table: Table) -> bool:
    return any(key.column.table.name == "worker" for column in table.columns for key in column.foreign_keys)


def test_every_table_that_knows_a_worker_is_dealt_with() -> None:
    found = {name for name, table in Base.metadata.tables.items() if knows_workers(table)}

    assert found | {"worker"} == set(DEALT_WITH)


@pytest.fixture
def person(session: Session) -> Worker:
    """A writer who was paid, with remarks, drafts, a rejection and words of others about them."""
    worker = make_worker(session, mturk_worker_id="AERASEME")
    consent = text_of(session, "We store what you write.", NOON)
    agree(session, "AERASEME", consent, str(consent.id), key=PSEUDONYM_KEY, now=NOON)
    unpromised = make_hit(session, batch=make_batch(session, bonus=Decimal("0.00")))
    paid = make_assignment(session, hit=unpromised, worker=worker, state=AssignmentState.APPROVED, why="secret remark")
    example = make_example(
        session,
        attempt=make_attempt(session, assignment=paid, answer={"statement": "A kept statement."}),
        verdict=Verdict.VALID_AND_MODEL_WRONG,
        final_label="negative",
    )
    session.add(PracticeGrade(example_id=example.id, passed=True, words="secret praise", graded_at=NOON, graded_by="r"))
    left = make_assignment(
        session, worker=worker, deadline_at=NOON - timedelta(days=1), draft={"statement": "secret draft"}
    )
    make_attempt(session, assignment=left, answer={"statement": "secret attempt"})
    show(session, left, "context:1", cap=5, now=NOON)
    rejected = make_assignment(session, worker=worker, state=AssignmentState.REJECTED)
    session.add(
        Rejection(
            assignment_id=rejected.id,
            worker_id=worker.id,
            batch_id=rejected.hit.batch_id,
            category=BadFaith.NONSENSE,
            words="secret blame",
            staff_name="robin",
            state=RejectionState.UNDONE,
            decided_at=NOON,
            rejected_at=NOON,
            undone_at=NOON,
            undone_reason="secret regret",
        )
    )
    session.add(LevelChange(worker_id=worker.id, task_code="nli", level=Level.WRITER, at=NOON, by="r", reason="secret"))
    session.add(
        ListEntry(
            worker_id=worker.id,
            kind=ListKind.SET_ASIDE,
            task_code="nli",
            round_number=0,
            reason="secret cause",
            added_at=NOON,
            added_by="r",
        )
    )
    reading = make_assignment(
        session,
        worker=worker,
        hit=make_validation_hit(session, examples=[make_example(session)]),
        state=AssignmentState.APPROVED,
    )
    make_vote(session, example=make_example(session), assignment=reading)
    dismissed = {"moderation": Moderation.DISMISSED, "moderation_reason": "no", "moderated_at": NOON}
    flagged = make_example(session, **dismissed)
    make_vote(session, example=flagged, assignment=reading, label=None, flag_reason="secret flag of theirs")
    make_vote(session, example=example, label=None, flag_reason="secret flag about them")
    session.commit()
    return worker


def test_the_person_is_gone_and_the_data_and_the_counts_stay(
    session: Session, market: Market, settings: Settings, clock: FixedClock, person: Worker
) -> None:
    pseudonym = person.pseudonym
    before = everything(session)
    assert "AERASEME" in before
    assert before.count("secret") == 10

    plan = plan_erase(session, market.mturk, settings, clock, pseudonym)
    assert (plan.consents, plan.shown_texts, plan.texts_removed, plan.remarks, plan.texts_kept, plan.votes_kept) == (
        1,
        1,
        1,
        1,
        1,
        2,
    )
    assert everything(session) == before
    erase(session, market, settings, clock, "AERASEME")

    after = everything(session)
    assert "AERASEME" not in after
    assert "secret" not in after
    assert "A kept statement." in after
    assert session.query(Consent).count() == session.query(Exposure).count() == 0
    assert session.query(Vote).filter(Vote.counted_at.is_not(None)).count() == 3
    row = session.scalars(select(Worker).where(Worker.pseudonym == pseudonym)).one()
    assert row.erased_at == clock.now()
    entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "worker.erase")).one()
    assert (entry.staff_name, entry.subject) == ("robin", pseudonym)
    with pytest.raises(NotFound, match="was erased on 15 November 2026"):
        erase(session, market, settings, clock, pseudonym)
    with pytest.raises(NotFound, match="Nobody of this pseudonym"):
        erase(session, market, settings, clock, "AERASEME")


def test_who_comes_back_is_somebody_new(
    session: Session, market: Market, settings: Settings, clock: FixedClock, person: Worker
) -> None:
    before = person.pseudonym
    erase(session, market, settings, clock, before)

    again = worker_for(session, "AERASEME", key=PSEUDONYM_KEY, now=clock.now())

    assert again.id != person.id
    assert again.pseudonym != before
    assert worker_for(session, "AERASEME", key=PSEUDONYM_KEY, now=clock.now()) is again


def test_the_database_keeps_no_id_of_somebody_erased(session: Session, person: Worker) -> None:
    person.erased_at = NOON
    with pytest.raises(IntegrityError):
        session.flush()


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (PayoutState.PLANNED, "owed or on their way"),
        (PayoutState.SENDING, "owed or on their way"),
        (PayoutState.DOUBTFUL, "owed or on their way"),
        (PayoutState.HELD, "owed or on their way"),
        (PayoutState.SENT, "not seen in the marketplace's list"),
    ],
)
def test_money_that_is_owed_or_unsure_stands_in_the_way(
    session: Session,
    market: Market,
    settings: Settings,
    clock: FixedClock,
    person: Worker,
    state: PayoutState,
    says: str,
) -> None:
    example = session.scalars(select(Example).where(Example.writer_id == person.id)).first()
    assert example is not None
    make_payout(session, example=example, state=state)
    session.commit()
    before = everything(session)

    with pytest.raises(Refused, match=says):
        erase(session, market, settings, clock, person.pseudonym)
    assert everything(session) == before


def test_work_in_hand_or_handed_in_stands_in_the_way(
    session: Session, market: Market, settings: Settings, clock: FixedClock, person: Worker
) -> None:
    make_assignment(session, worker=person, deadline_at=NOON + timedelta(hours=1))
    make_assignment(session, worker=person, state=AssignmentState.SUBMITTED)
    make_assignment(session, worker=person, state=AssignmentState.SAVED)
    session.commit()

    with pytest.raises(Refused) as refused:
        erase(session, market, settings, clock, person.pseudonym)

    assert "2 assignments are handed in" in str(refused.value)
    assert "1 assignments are being worked on" in str(refused.value)
    assert "AERASEME" not in str(refused.value)


def test_saved_work_that_the_marketplace_never_got_does_not_stand_in_the_way_for_ever(
    crowd: Crowd, hits: list[str], clock: FixedClock
) -> None:
    common = (crowd.session, crowd.market.mturk, crowd.settings, clock)
    ada = crowd.market.person("ada")
    left = crowd.open(ada, hits[0])
    crowd.ask(left, "I never sent this one.", fools=True)
    crowd.save(left)
    # An hour for the work, and one until it counts as never sent.
    clock.advance(timedelta(hours=1, minutes=59))
    with pytest.raises(Refused, match="1 assignments are handed in"):
        erase_worker(*common, ada, by="robin")

    clock.advance(timedelta(minutes=1))
    erase_worker(*common, ada, by="robin")

    assert ada not in everything(crowd.session)
    assert "I never sent this one." not in everything(crowd.session)


def test_work_that_the_marketplace_got_and_we_have_not_seen_stands_in_the_way(
    crowd: Crowd, hits: list[str], clock: FixedClock
) -> None:
    ada = crowd.market.person("ada")
    crowd.write(ada, hits[0], {"The good old queue.": True})
    clock.advance(timedelta(days=1))

    with pytest.raises(Refused, match="1 assignments are handed in"):
        erase_worker(crowd.session, crowd.market.mturk, crowd.settings, clock, ada, by="robin")


def test_what_staff_wrote_about_a_person_is_nowhere_afterwards(
    crowd: Crowd, hits: list[str], clock: FixedClock
) -> None:
    """Through the commands and pages that keep it, so that no copy of theirs is left."""
    session, market, settings = crowd.session, crowd.market, crowd.settings
    ada = market.person("ada")
    crowd.write(ada, hits[0], {"The good old queue.": True})
    collect(session, market.mturk, settings, clock)
    approve_submitted(session, market.mturk, clock)
    [example] = session.scalars(select(Example))
    example.practice_state = PracticeState.WAITING
    session.commit()
    worker, named = example.writer, example.attempt.public_id
    grade_practice(session, clock, named, passed=False, words="secret of the grade", by="robin")
    set_aside(session, clock, "sentiment", worker, reason="secret of the list", by="robin")
    common = (session, market.mturk, settings, clock, worker, VALIDATOR)
    grant_by_hand(*common, reason="secret of the grant", by="robin")
    revoke(*common, reason="secret of the end", by="robin")
    assert everything(session).count("secret of") == 3

    erase_worker(session, market.mturk, settings, clock, ada, by="robin")

    assert "secret of" not in everything(session)


def test_a_qualification_that_is_held_stands_in_the_way(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    type_id = validator_type(market.mturk, settings.validator_qualification)
    holder = market.person("holder", grants={type_id: 1})
    worker = make_worker(session, mturk_worker_id=holder)
    session.commit()

    with pytest.raises(Refused, match=rf"dynahit qualification revoke {worker.pseudonym} --kind validator"):
        erase(session, market, settings, clock, worker.pseudonym)

    market.mturk.revoke(type_id, holder)
    erase(session, market, settings, clock, worker.pseudonym)
    assert session.query(QualificationGrant).count() == 0


def test_a_flag_of_theirs_that_waits_stands_in_the_way(
    session: Session, market: Market, settings: Settings, clock: FixedClock, person: Worker
) -> None:
    example = make_example(session)
    vote = make_vote(session, example=example, label=None, flag_reason="a real person")
    vote.validator_id = person.id
    example.verdict = Verdict.FLAGGED
    session.commit()

    with pytest.raises(Refused, match="1 flags of theirs wait for a decision"):
        erase(session, market, settings, clock, person.pseudonym)


def test_the_marketplace_forgets_that_they_were_set_aside_and_nobody_is_erased_before_it_does(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    holder = market.person("holder")
    worker = make_worker(session, mturk_worker_id=holder)
    set_aside(session, clock, "nli", worker, reason="copies", by="robin")
    mirror_lists(session, market.mturk, settings, clock)
    type_id = market.mturk.find_qualification("dynahit: other work than nli")
    assert type_id is not None
    assert [seen.worker_id for seen in market.mturk.holders(type_id)] == [holder]
    assert plan_erase(session, market.mturk, settings, clock, worker.pseudonym).lists == 1

    market.before = failing("DisassociateQualificationFromWorker")
    with pytest.raises(MTurkUnavailable):
        erase(session, market, settings, clock, worker.pseudonym)
    session.rollback()
    assert session.get_one(Worker, worker.id, populate_existing=True).erased_at is None
    market.before = failing("DisassociateQualificationFromWorker", 400, "RequestError", times=1)
    with pytest.raises(Refused, match=r"did not take .* from"):
        erase(session, market, settings, clock, worker.pseudonym)

    assert mirror_lists(session, market.mturk, settings, clock).revoked == 1
    assert list(market.mturk.holders(type_id)) == []
    erase(session, market, settings, clock, worker.pseudonym)
    assert holder not in everything(session)


def test_a_bonus_that_was_earned_and_that_no_pass_has_planned_yet_stands_in_the_way(
    session: Session, market: Market, settings: Settings, clock: FixedClock, person: Worker
) -> None:
    done = make_assignment(session, worker=person, state=AssignmentState.APPROVED)
    example = make_example(session, attempt=make_attempt(session, assignment=done))
    example.verdict, example.final_label = Verdict.VALID_AND_MODEL_WRONG, example.goal_label
    session.commit()

    with pytest.raises(Refused, match=r"1 bonuses of \$0\.30 are earned and not planned yet"):
        erase(session, market, settings, clock, person.pseudonym, give_up_bonuses=True)


def test_statements_that_could_still_earn_are_given_up_only_if_said(
    session: Session, market: Market, settings: Settings, clock: FixedClock, person: Worker
) -> None:
    done = make_assignment(session, worker=person, state=AssignmentState.APPROVED)
    example = make_example(session, attempt=make_attempt(session, assignment=done))
    session.commit()

    with pytest.raises(Refused, match=r"1 statements are not decided yet and could earn \$0\.30"):
        erase(session, market, settings, clock, person.pseudonym)
    erase(session, market, settings, clock, person.pseudonym, give_up_bonuses=True)

    row = session.get_one(Example, example.id, populate_existing=True)
    row.verdict, row.final_label = Verdict.VALID_AND_MODEL_WRONG, row.goal_label
    session.commit()
    assert not settle(session, market.mturk, clock).settled
    assert session.query(Payout).count() == 0


def test_gold_items_of_a_batch_that_is_still_open_are_given_up_only_if_said(
    session: Session, market: Market, settings: Settings, clock: FixedClock, person: Worker
) -> None:
    terms = ReaderTerms(75, Decimal("0.20")).as_json()
    batch = make_batch(session, kind=HitKind.VALIDATION, items=4, extras=terms)
    judge(session, batch, 4, 0, worker=person)
    make_hit(session, batch=batch, state=HitState.CREATED)
    session.commit()

    with pytest.raises(Refused, match=r"1 batches of validation HITs are open, in which gold items could earn \$0.20"):
        erase(session, market, settings, clock, person.pseudonym)

    assert plan_erase(session, market.mturk, settings, clock, person.pseudonym).possible_gold == Decimal("0.20")
    erase(session, market, settings, clock, person.pseudonym, give_up_bonuses=True)


def test_the_books_of_an_erased_person_still_agree_and_the_id_does_not_come_back(
    crowd: Crowd, hits: list[str], clock: FixedClock
) -> None:
    """Paid on the real marketplace's engine, erased, then everything that reads its lists again."""
    ada = crowd.market.person("ada")
    assignment_id = crowd.write(ada, hits[0], {"The good old queue.": True})
    collect(crowd.session, crowd.market.mturk, crowd.settings, clock)
    approve_submitted(crowd.session, crowd.market.mturk, clock)
    row = assignment_row(crowd.session, assignment_id)
    pseudonym, balance = row.worker.pseudonym, crowd.session.scalar(select(func.sum(Posting.cents)))

    erase_worker(crowd.session, crowd.market.mturk, crowd.settings, clock, pseudonym, give_up_bonuses=True, by="robin")
    collect(crowd.session, crowd.market.mturk, crowd.settings, clock)

    assert ada not in everything(crowd.session)
    assert crowd.session.scalar(select(func.sum(Posting.cents))) == balance == 0
    assert crowd.session.scalar(select(func.count()).select_from(Worker)) == 1
    assert assignment_row(crowd.session, assignment_id).state is AssignmentState.APPROVED
    assert f":{pseudonym}" in everything(crowd.session)  # the ledger's accounts
    assert Decimal("0.30") == assignment_row(crowd.session, assignment_id).hit.batch.reward
    assert crowd.session.query(Attempt).count() == 1
    assert crowd.session.query(Assignment).filter(Assignment.review_reason.is_not(None)).count() == 0


@pytest.mark.parametrize("frozen", [False, True], ids=["open", "frozen"])
def test_votes_that_were_withdrawn_stay_since_the_writer_s_promise_stands_on_them(
    session: Session, market: Market, settings: Settings, clock: FixedClock, frozen: bool
) -> None:
    example = verified_example(session, batch=make_batch(session), votes=2)
    [vote, _] = session.scalars(select(Vote).where(Vote.example_id == example.id).order_by(Vote.id))
    clock.advance(timedelta(hours=1))
    [payout] = plan(session, clock.now())
    vote.assignment.state, vote.assignment.rejected_at = AssignmentState.REJECTED, clock.now()
    withdraw_votes(session, vote.assignment, clock.now())
    if frozen:
        example.round.manifest_sha256, example.round.frozen_at = "0" * 64, clock.now()
    session.commit()

    erase(session, market, settings, clock, vote.validator.pseudonym)
    follow(session, clock.now())

    assert payout.state is PayoutState.APPROVED
    session.refresh(vote)
    assert (vote.counted_at, vote.label) == (None, "negative")


def test_a_draft_and_a_place_of_a_frozen_round_do_not_stand_in_the_way(
    session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    example = make_example(session)
    vote = make_vote(session, example=example, counted_at=None)
    vote.assignment.state, vote.assignment.deadline_at = AssignmentState.OPENED, NOON - timedelta(days=1)
    example.round.manifest_sha256, example.round.frozen_at = "0" * 64, clock.now()
    session.commit()

    erase(session, market, settings, clock, vote.validator.pseudonym)

    assert vote.validator.erased_at == clock.now()
