"""Validation HITs: full ones at once, small ones after the wait, for holders of the qualification only."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker

from app.operations.collect import collect
from app.operations.create_hits import create_hits
from app.operations.decide import decide_pending
from app.operations.launch import launch_batch
from app.operations.validation_hits import Group, ValidationBelowFloor, grouped, open_validation_hits
from app.settings import Settings
from hits import validations
from hits.clock import FixedClock
from hits.marketplace.errors import SiteError
from hits.models import Example, Hit, HitBatch, Round
from hits.mturk.errors import RequirementsMismatch
from hits.states import HitKind, HitState, Verdict
from hits.tasks import task
from hits.validations import Shortage
from payments.models import Reservation
from qualification.admission import check_admission
from qualification.errors import NotAdmitted
from qualification.grants import VALIDATOR, plan_grant
from qualification.quizzes import QuizFor, current_version, quiz_of
from tests import market as markets
from tests.app.operations.conftest import CONTEXTS, terms
from tests.app.operations.crashes import Killed, killed_at
from tests.app.operations.people import Crowd, assignment_row
from tests.factories import NOON, make_batch, make_hit, make_vote, make_worker
from tests.market import Market


def opened(crowd: Crowd) -> int:
    return open_validation_hits(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)


def fooling(crowd: Crowd, hits: list[str], *, start: int = 0) -> None:
    """One collected fooling example in each HIT."""
    for number, hit in enumerate(hits, start=start):
        crowd.write(crowd.market.person(f"writer{number}"), hit, {f"What a treat, soup {number}.": True})
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)


def validation_rows(session: Session) -> list[Hit]:
    wanted = select(Hit).join(Hit.batch).where(HitBatch.kind == HitKind.VALIDATION).order_by(Hit.id)
    return list(session.scalars(wanted.execution_options(populate_existing=True)))


def shortage(number: int, wanted: int = 2, *, waited: int = 0) -> Shortage:
    return Shortage(number, wanted, NOON - timedelta(seconds=waited))


def test_ten_waiting_examples_make_a_full_hit_at_once() -> None:
    groups = grouped([shortage(number) for number in range(23)], items=10, wait=timedelta(seconds=60), now=NOON)

    assert groups == [Group(2, tuple(range(10))), Group(2, tuple(range(10, 20)))]


def test_what_readers_can_earn_is_set_aside_and_said_before_anybody_takes_the_hit(
    crowd: Crowd, hits: list[str]
) -> None:
    fooling(crowd, hits)
    crowd.session.scalars(select(Round)).one().gold_items = 1
    crowd.session.commit()
    bonuses = {"validation_bonus": Decimal("0.05"), "gold_bonus": Decimal("0.20"), "gold_bonus_percent": 80}
    crowd.settings = crowd.settings.model_copy(update=bonuses)
    crowd.clock.advance(timedelta(seconds=61))

    opened(crowd)

    [batch] = {hit.batch for hit in validation_rows(crowd.session)}
    [kept] = crowd.session.scalars(select(Reservation).where(Reservation.batch_id == batch.id))
    assert batch.extras == {"gold_percent": 80, "gold_bonus": "0.20", "hit_bonus": "0.05"}
    assert "You get $0.05 more for each" in batch.description
    assert "You get $0.20 more, once" in batch.description
    # Two readers: $0.25 and $0.05 each for the HIT, $0.05 and $0.01 for judging all, $0.20 and $0.04 for gold.
    assert (kept.held, kept.bonuses) == (Decimal("1.20"), Decimal("0.60"))


def test_two_processes_that_look_at_once_open_each_validation_hit_once(
    crowd: Crowd, hits: list[str], session_factory: sessionmaker[Session]
) -> None:
    fooling(crowd, hits)
    crowd.clock.advance(timedelta(seconds=61))
    others: list[int] = []

    def other_goes_first(operation: str) -> None:
        # The other process opens its HITs between this one's look and its writing.
        if not others:
            others.append(0)
            with session_factory() as other:
                others[0] = open_validation_hits(other, crowd.market.mturk, crowd.settings, crowd.clock)

    crowd.market.before = other_goes_first

    assert opened(crowd) == 0
    assert others == [1]
    assert len(validation_rows(crowd.session)) == 1


def test_a_smaller_hit_is_due_when_its_oldest_example_has_waited() -> None:
    waiting = [shortage(1), shortage(2, waited=60), shortage(3)]

    assert grouped(waiting, items=10, wait=timedelta(seconds=60), now=NOON) == [Group(2, (2, 1, 3))]
    assert grouped(waiting[::2], items=10, wait=timedelta(seconds=60), now=NOON) == []


def test_none_is_opened_below_the_wage_floor_unless_the_launch_has_said_why(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits[:1])
    crowd.clock.advance(timedelta(seconds=60))
    # 10 statements are 4 minutes.
    risen = markets.settings(wage_floor="12.00", validation_reward="0.60")

    with pytest.raises(ValidationBelowFloor, match=r"\$9\.00 an hour.*DYNAHIT_VALIDATION_REWARD to 0\.80"):
        open_validation_hits(crowd.session, crowd.market.mturk, risen, crowd.clock)
    crowd.session.rollback()
    assert validation_rows(crowd.session) == []
    writing = crowd.session.scalars(select(HitBatch).where(HitBatch.kind == HitKind.CREATION)).one()
    writing.wage_reason = "Students who are paid otherwise."
    crowd.session.commit()

    assert open_validation_hits(crowd.session, crowd.market.mturk, risen, crowd.clock) == 1
    assert validation_rows(crowd.session)[0].batch.wage_reason == "Students who are paid otherwise."


def test_at_the_wage_floor_readers_are_asked(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits[:1])
    crowd.clock.advance(timedelta(seconds=60))
    at_it = markets.settings(wage_floor="12.00", validation_reward="0.80")

    assert open_validation_hits(crowd.session, crowd.market.mturk, at_it, crowd.clock) == 1
    assert validation_rows(crowd.session)[0].batch.wage_reason is None


def test_examples_that_want_other_numbers_of_votes_do_not_share_a_hit() -> None:
    waiting = [shortage(1, 2, waited=99), shortage(2, 1, waited=99), shortage(3, 2, waited=99)]

    assert grouped(waiting, items=10, wait=timedelta(seconds=60), now=NOON) == [Group(2, (1, 3)), Group(1, (2,))]


def test_nothing_is_opened_before_the_wait_is_over(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits[:1])

    assert opened(crowd) == 0
    crowd.clock.advance(timedelta(seconds=60))
    assert opened(crowd) == 1
    assert opened(crowd) == 0


def test_a_validation_hit_is_what_validators_were_promised(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits)
    crowd.clock.advance(timedelta(seconds=60))

    assert opened(crowd) == 1

    row = validation_rows(crowd.session)[0]
    hit = crowd.market.call("GetHIT", HITId=row.mturk_hit_id)["HIT"]
    assert (row.state, row.max_assignments, hit["MaxAssignments"]) == (HitState.CREATED, 2, 2)
    assert hit["Reward"] == "0.25"
    assert f"http://localhost:8001/validate/{row.reference}" in hit["Question"]
    [requirement] = [
        one for one in hit["QualificationRequirements"] if one["QualificationTypeId"] == row.batch.qualification_type_id
    ]
    assert (requirement["Comparator"], requirement["IntegerValues"]) == ("GreaterThanOrEqualTo", [1])
    assert requirement["ActionsGuarded"] == "DiscoverPreviewAndAccept"
    assert (row.batch.items, row.batch.senior_value) == (10, None)
    with pytest.raises(SiteError):
        crowd.market.accept(crowd.market.person("anybody"), row.mturk_hit_id or "")


def test_the_qualification_is_found_again_among_many_of_similar_names(crowd: Crowd, hits: list[str]) -> None:
    for number in range(120):
        crowd.market.call(
            "CreateQualificationType",
            Name=f"dynahit validator {number}",
            Description="another",
            QualificationTypeStatus="Active",
        )
    mturk, name = crowd.market.mturk, crowd.settings.validator_qualification

    first = mturk.find_or_create_qualification(name, "for tests")
    crowd.market.calls.clear()
    second = mturk.find_or_create_qualification(name, "for tests")

    assert first == second
    assert "CreateQualificationType" not in crowd.market.calls


@pytest.mark.parametrize(
    ("moment", "hours"), [("before_commit", 0), pytest.param("after_commit", 25, marks=pytest.mark.slow)]
)
def test_a_kill_at_any_commit_opens_each_hit_once(crowd: Crowd, hits: list[str], moment: str, hours: int) -> None:
    number = 0
    batches = iter(range(1, 100))
    while True:
        number += 1
        launch_batch(
            crowd.session,
            crowd.market.mturk,
            crowd.settings,
            crowd.clock,
            terms(name=f"{next(batches)}", hits=2),
            CONTEXTS,
        )
        fresh = [
            hit["HITId"]
            for hit in crowd.market.hits()
            if hit["HITStatus"] == "Assignable" and hit["HITId"] not in hits and "/work/" in hit["Question"]
        ]
        fooling(crowd, fresh, start=number * 10)
        crowd.clock.advance(timedelta(seconds=60))
        before = len(validation_rows(crowd.session))
        crowd.session.commit()
        with killed_at(crowd.session, moment, number) as count:
            try:
                opened(crowd)
            except Killed:
                crowd.session.close()
        crowd.clock.advance(timedelta(hours=hours))
        opened(crowd)
        rows = validation_rows(crowd.session)
        there = [hit for hit in crowd.market.hits() if "/validate/" in hit["Question"]]
        assert len(rows) == before + 1, number
        assert {row.mturk_hit_id for row in rows} == {hit["HITId"] for hit in there}
        if count["commits"] < number:
            break
        # These have their HIT; what follows is about the next ones only.
        crowd.session.execute(update(Example).values(verdict=Verdict.INVALID))
        crowd.session.execute(update(Hit).where(Hit.id.in_([row.id for row in rows])).values(state=HitState.CLOSED))
        crowd.session.commit()
    assert number > 5


def test_a_disagreement_asks_for_a_third_vote(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits[:1])
    crowd.clock.advance(timedelta(seconds=60))
    opened(crowd)
    row = validation_rows(crowd.session)[0]
    grants = {row.batch.qualification_type_id or "": 1}
    example = crowd.session.scalars(select(Example)).one()
    other = next(label for label in ("negative", "positive", "neutral") if label != example.goal_label)
    crowd.judge(crowd.market.person("first", grants=grants), row.mturk_hit_id or "")
    crowd.judge(crowd.market.person("second", grants=grants), row.mturk_hit_id or "", label=other)
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    assert decide_pending(crowd.session, crowd.clock) == 0
    crowd.clock.advance(timedelta(seconds=60))
    assert opened(crowd) == 1
    third = validation_rows(crowd.session)[1]
    assert third.max_assignments == 1
    crowd.judge(crowd.market.person("third", grants=grants), third.mturk_hit_id or "")
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    assert decide_pending(crowd.session, crowd.clock) == 1
    crowd.session.refresh(example)
    assert (example.verdict, example.final_label) == (Verdict.VALID_AND_MODEL_WRONG, example.goal_label)


def test_places_that_expire_unused_are_opened_again(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits[:1])
    crowd.clock.advance(timedelta(seconds=60))
    opened(crowd)
    crowd.clock.advance(timedelta(days=7, seconds=1))
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    assert opened(crowd) == 1


def test_a_place_that_somebody_took_and_left_is_opened_again(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits[:1])
    crowd.clock.advance(timedelta(seconds=60))
    opened(crowd)
    row = validation_rows(crowd.session)[0]
    mturk_hit_id, grants = row.mturk_hit_id or "", {row.batch.qualification_type_id or "": 1}
    crowd.session.commit()
    assignment_id = crowd.open(crowd.market.person("first", grants=grants), mturk_hit_id)
    validations.draw(crowd.session, assignment_row(crowd.session, assignment_id), crowd.clock.now())
    crowd.session.commit()
    crowd.judge(crowd.market.person("second", grants=grants), mturk_hit_id)
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    assert opened(crowd) == 0

    # The first one never comes back: the lease ends, and so do the HIT's other places.
    crowd.clock.advance(timedelta(days=7, seconds=1))

    assert opened(crowd) == 1
    assert validation_rows(crowd.session)[-1].max_assignments == 1


def test_what_was_saved_and_never_submitted_is_read_by_somebody_else(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits)
    crowd.clock.advance(timedelta(seconds=60))
    opened(crowd)
    row = validation_rows(crowd.session)[0]
    mturk_hit_id, grants = row.mturk_hit_id or "", {row.batch.qualification_type_id or "": 1}
    crowd.session.commit()
    assignment_id = crowd.open(crowd.market.person("first", grants=grants), mturk_hit_id)
    mine = assignment_row(crowd.session, assignment_id)
    for lease in validations.draw(crowd.session, mine, crowd.clock.now()):
        validations.record_vote(crowd.session, mine, lease.id, label="neutral", now=crowd.clock.now())
    validations.save_votes(crowd.session, mine, crowd.clock.now())
    crowd.session.commit()
    crowd.judge(crowd.market.person("second", grants=grants), mturk_hit_id)
    # No HIT is on the site any more, so that the marketplace is not even asked.
    for row in crowd.session.scalars(select(Hit)):
        row.state = HitState.CLOSED
    crowd.session.commit()

    crowd.clock.advance(timedelta(days=7))
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    assert opened(crowd) == 1


def test_ties_open_hits_of_their_own_for_seniors(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits)
    examples = crowd.session.scalars(select(Example).order_by(Example.id)).all()
    examples[0].round.senior_value = 5
    for label in ("negative", "positive"):
        make_vote(crowd.session, example=examples[0], label=label, counted_at=crowd.clock.now())
    crowd.session.execute(update(Hit).where(Hit.mturk_hit_id.like("HIT0%")).values(state=HitState.CLOSED))
    crowd.session.commit()
    crowd.clock.advance(timedelta(seconds=60))

    assert opened(crowd) == 2

    rows = [row for row in validation_rows(crowd.session) if not (row.mturk_hit_id or "").startswith("HIT0")]
    assert [(row.batch.senior_value, row.max_assignments) for row in rows] == [(None, 2), (5, 1)]
    asked = crowd.market.call("GetHIT", HITId=rows[1].mturk_hit_id)["HIT"]["QualificationRequirements"]
    validator = next(one for one in asked if one["QualificationTypeId"] == rows[1].batch.qualification_type_id)
    assert (validator["Comparator"], validator["IntegerValues"]) == ("GreaterThanOrEqualTo", [5])
    assert opened(crowd) == 0


def test_a_hit_that_lost_its_requirement_is_expired_and_stops_everything(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits)
    crowd.clock.advance(timedelta(seconds=60))

    def strip(operation: str) -> tuple[int, dict[str, str], bytes] | None:
        if operation != "CreateHITWithHITType":
            return None
        newest = next(hit for hit in crowd.market.hits() if "/validate/" in hit["Question"])
        open_to_all = {
            "HITId": newest["HITId"],
            "Expiration": newest["Expiration"].timestamp(),
            "HITStatus": "Assignable",
        }
        return 200, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps({"HIT": open_to_all}).encode()

    crowd.market.after = strip
    with pytest.raises(RequirementsMismatch, match="was expired at once"):
        opened(crowd)

    row = validation_rows(crowd.session)[0]
    assert crowd.market.mturk.hit(row.mturk_hit_id or "").status == "Reviewable"


def test_two_processes_that_open_at_the_same_time_make_one_batch(
    crowd: Crowd, hits: list[str], session: Session, market: Market, settings: Settings, clock: FixedClock
) -> None:
    fooling(crowd, hits)
    crowd.clock.advance(timedelta(seconds=60))
    opened(crowd)
    batch = validation_rows(session)[0].batch
    session.commit()

    assert create_hits(session, market.mturk, settings, clock, batch.id) == 0
    assert session.scalar(select(func.count()).select_from(HitBatch)) == 2


def test_ties_go_to_experts_of_the_task_where_validators_pass_quizzes(crowd: Crowd, hits: list[str]) -> None:
    fooling(crowd, hits)
    examples = crowd.session.scalars(select(Example).order_by(Example.id)).all()
    examples[0].round.senior_value = 5
    for label in ("negative", "positive"):
        make_vote(crowd.session, example=examples[0], label=label, counted_at=crowd.clock.now())
    crowd.session.execute(update(Hit).where(Hit.mturk_hit_id.like("HIT0%")).values(state=HitState.CLOSED))
    current_version(crowd.session, quiz_of(task("sentiment"), QuizFor.VALIDATOR), crowd.clock.now())
    crowd.session.commit()
    crowd.clock.advance(timedelta(seconds=60))
    by_quiz = crowd.settings.model_copy(update={"validators_by_quiz": True})

    assert open_validation_hits(crowd.session, crowd.market.mturk, by_quiz, crowd.clock) == 2

    [row] = [row for row in validation_rows(crowd.session) if row.batch.senior_value is not None]
    asked = crowd.market.call("GetHIT", HITId=row.mturk_hit_id)["HIT"]["QualificationRequirements"]
    expert = crowd.market.mturk.find_qualification("dynahit sentiment expert")
    assert ("Exists", expert) in [(one["Comparator"], one["QualificationTypeId"]) for one in asked]
    with pytest.raises(NotAdmitted, match="for experts of the sentiment task"):
        check_admission(crowd.session, row, make_worker(crowd.session), crowd.clock.now(), phase="load")


def test_a_senior_hit_asks_our_database_for_the_value_too(crowd: Crowd, session: Session) -> None:
    hit = make_hit(
        session,
        batch=make_batch(
            session,
            kind=HitKind.VALIDATION,
            qualification_type_id="Q1",
            senior_value=5,
            endpoint=crowd.market.mturk.endpoint,
        ),
    )
    ada = make_worker(session)
    for value, phase in ((4, "load"), (4, "submit"), (5, "load"), (5, "submit")):
        plan_grant(
            session,
            ada.id,
            VALIDATOR,
            version=0,
            value=value,
            endpoint=crowd.market.mturk.endpoint,
            reason="",
            by="r",
            now=crowd.clock.now(),
        )
        if value == 4:
            with pytest.raises(NotAdmitted, match="the value 5 or more"):
                check_admission(session, hit, ada, crowd.clock.now(), phase=phase)
        else:
            check_admission(session, hit, ada, crowd.clock.now(), phase=phase)
