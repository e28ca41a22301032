"""Remove a person and keep the books: the id, the consents and every free text about somebody go, amounts stay.

What was handed in stays in the data under the pseudonym, as the consent text says; published data can't be called back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.requirements import leave_lists
from app.settings import Settings
from hits.clock import Clock
from hits.errors import NotFound, Refused
from hits.models import (
    Assignment,
    Attempt,
    Consent,
    Example,
    Exposure,
    Hit,
    HitBatch,
    Rejection,
    Round,
    Vote,
    Worker,
    Writing,
)
from hits.models.people import erased_id
from hits.money import ZERO, display
from hits.mturk.client import MTurk
from hits.mturk.errors import AssignmentMissing, InvalidAssignmentState
from hits.states import AssignmentState, HitState, Moderation, RejectionState, Verdict
from hits.validations import release
from hits.validations.queue import UNSUBMITTED_AFTER
from payments.budgets import locked_limits
from payments.due import due_bonuses, gold_judged
from payments.models import OWED, Payout, PayoutState
from payments.rules import ReaderTerms
from qualification.grants import VALIDATOR
from qualification.limits_models import ListEntry, PracticeGrade
from qualification.models import LIVE, LevelChange, QualificationGrant, QuizResult
from qualification.validators import validator_type

#: Stands in the place of words about an erased person.
ERASED_WORDS = "(erased)"


@dataclass(frozen=True)
class ErasePlan:
    """What erasing somebody would remove and keep, and what stands in its way, each with what to do."""

    pseudonym: str
    consents: int
    shown_texts: int
    texts_removed: int
    remarks: int
    texts_kept: int
    votes_kept: int
    paid: Decimal
    undecided: int
    possible_bonus: Decimal
    #: Batches of validation HITs that are open, and what their gold items could still earn.
    open_batches: int
    possible_gold: Decimal
    obstacles: tuple[str, ...]
    #: Places on lists of workers, which the marketplace shows by a qualification each.
    lists: int = 0


def plan_erase(session: Session, mturk: MTurk, settings: Settings, clock: Clock, who: str) -> ErasePlan:
    """Return what erasing would do. Changes nothing. Raises NotFound, MTurkError."""
    worker = known_worker(session, who)
    worker_id, mturk_worker_id = worker.id, worker.mturk_worker_id
    session.commit()
    held = _holds_on_marketplace(mturk, settings, mturk_worker_id)
    lapsed = _lapsed(session, mturk, worker_id, clock.now())
    plan = _plan(session, session.get_one(Worker, worker_id), clock.now(), held=held, lapsed=lapsed)
    session.rollback()
    return plan


def erase_worker(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    who: str,
    *,
    give_up_bonuses: bool = False,
    by: str,
) -> ErasePlan:
    """Erase somebody; who did it is kept. Returns what was done.

    First the marketplace is told that the person is on none of our lists any more, while there is an id to tell it of;
    then everything goes in one transaction. If the marketplace does not do its part, nobody is erased: the jobs ask it
    again, and so does the next call.
    Raises NotFound, MTurkError, and Refused with every obstacle: money that is owed or on its way, work that waits,
    qualifications that are held, and, unless ``give_up_bonuses``, statements and gold items that could still earn.
    """
    worker = known_worker(session, who)
    worker_id, mturk_worker_id = worker.id, worker.mturk_worker_id
    session.commit()
    held = _holds_on_marketplace(mturk, settings, mturk_worker_id)
    now = clock.now()
    lapsed = _lapsed(session, mturk, worker_id, now)
    before = _plan(session, session.get_one(Worker, worker_id), now, held=held, lapsed=lapsed)
    _refuse_obstacles(session, before, give_up_bonuses)
    left = leave_lists(session, mturk, settings, clock, worker_id, by=by)
    if left:
        session.rollback()
        raise Refused(f"{before.pseudonym} was not erased:\n" + "\n".join(f"  - {one}" for one in left))
    # Nothing is planned or paid while this goes on: planners wait for the budgets, everything else for the row.
    locked_limits(session, now)
    worker = session.get_one(Worker, worker_id, populate_existing=True, with_for_update=True)
    if worker.erased_at is not None:
        session.rollback()
        raise NotFound(f"{who!r} was erased in the meantime. Nothing was changed.")
    shown = (ListEntry.worker_id == worker_id, ListEntry.granted_at.is_not(None), ListEntry.revoked_at.is_(None))
    if session.scalar(select(ListEntry.id).where(*shown).limit(1)) is not None:
        session.rollback()
        raise Refused(f"The jobs put {before.pseudonym} on a list at this moment. Nothing was erased; run it again.")
    plan = replace(_plan(session, worker, now, held=held, lapsed=lapsed), lists=before.lists)
    _refuse_obstacles(session, plan, give_up_bonuses)
    _remove(session, worker, now)
    session.add(
        AuditEntry(
            at=now,
            staff_name=by,
            action="worker.erase",
            subject=plan.pseudonym,
            detail={"texts_removed": plan.texts_removed, "texts_kept": plan.texts_kept, "votes_kept": plan.votes_kept},
        )
    )
    session.commit()
    return plan


def _refuse_obstacles(session: Session, plan: ErasePlan, give_up_bonuses: bool) -> None:
    obstacles = list(plan.obstacles)
    if plan.undecided and not give_up_bonuses:
        obstacles.append(
            f"{plan.undecided} statements are not decided yet and could earn {display(plan.possible_bonus)}, which"
            " nobody can be paid afterwards. Wait for the readers, or, if the person says so, erase with"
            " --give-up-bonuses."
        )
    if plan.open_batches and not give_up_bonuses:
        obstacles.append(
            f"{plan.open_batches} batches of validation HITs are open, in which gold items could earn"
            f" {display(plan.possible_gold)}. Wait until their HITs are closed and settle, or, if the person says so,"
            " erase with --give-up-bonuses."
        )
    if obstacles:
        session.rollback()
        raise Refused(f"{plan.pseudonym} was not erased:\n" + "\n".join(f"  - {one}" for one in obstacles))


def known_worker(session: Session, who: str) -> Worker:
    """Return somebody by pseudonym or worker id. Raises NotFound, also for who was erased before."""
    found = session.scalar(select(Worker).where((Worker.pseudonym == who) | (Worker.mturk_worker_id == who)))
    if found is None:
        raise NotFound(
            "Nobody of this pseudonym or worker id is known here. `dynahit workers list` shows the pseudonyms."
        )
    if found.erased_at is not None:
        raise NotFound(f"{found.pseudonym} was erased on {found.erased_at:%d %B %Y}. Nothing is left to erase.")
    return found


def _holds_on_marketplace(mturk: MTurk, settings: Settings, mturk_worker_id: str) -> bool:
    """Tell whether the marketplace lists the person among our validators, who would be met again by that list."""
    type_id = validator_type(mturk, settings.validator_qualification)
    return any(seen.worker_id == mturk_worker_id for seen in mturk.holders(type_id))


def _lapsed(session: Session, mturk: MTurk, worker_id: int, now: datetime) -> frozenset[int]:
    """Return the ids of saved assignments whose time ran out and that the marketplace never got: nothing follows."""
    rows = session.execute(
        select(Assignment.id, Assignment.mturk_assignment_id)
        .join(Assignment.hit)
        .join(Hit.batch)
        .where(Assignment.worker_id == worker_id, Assignment.state == AssignmentState.SAVED)
        .where(Assignment.deadline_at <= now - UNSUBMITTED_AFTER, HitBatch.endpoint == mturk.endpoint)
    ).all()
    session.commit()
    found = set()
    for assignment_id, name in rows:
        try:
            mturk.assignment(name)
        except (AssignmentMissing, InvalidAssignmentState):
            found.add(assignment_id)
    return frozenset(found)


def _plan(session: Session, worker: Worker, now: datetime, *, held: bool, lapsed: frozenset[int]) -> ErasePlan:
    def count(table: type, *where: ColumnElement[bool]) -> int:
        return session.scalar(select(func.count()).select_from(table).where(*where)) or 0

    undecided = session.execute(
        select(func.count(), func.sum(HitBatch.bonus))
        .select_from(Example)
        .join(Example.attempt)
        .join(Attempt.hit)
        .join(HitBatch)
        .where(Example.writer_id == worker.id, Example.fooled)
        .where(or_(HitBatch.bonus > ZERO, HitBatch.extras.is_not(None)))
        .where(
            or_(Example.verdict.in_((Verdict.PENDING, Verdict.FLAGGED)), Example.moderation == Moderation.OPEN),
            Example.retracted_at.is_(None),
        )
    ).one()
    paid = session.scalar(
        select(func.sum(Payout.amount)).where(
            Payout.worker_id == worker.id,
            Payout.state.in_((PayoutState.SENT, PayoutState.CONFIRMED, PayoutState.COMPENSATED)),
        )
    )
    open_batches = [
        ReaderTerms.of(session.get_one(HitBatch, row[0])).gold_bonus
        for row in session.execute(
            gold_judged().where(
                Vote.validator_id == worker.id,
                exists().where(Hit.batch_id == HitBatch.id, Hit.state != HitState.CLOSED).correlate(HitBatch),
            )
        )
    ]
    return ErasePlan(
        pseudonym=worker.pseudonym,
        consents=count(Consent, Consent.worker_id == worker.id),
        shown_texts=count(Exposure, Exposure.worker_id == worker.id),
        texts_removed=count(Attempt, *_not_handed_in(worker)),
        remarks=count(Assignment, Assignment.worker_id == worker.id, Assignment.why != ""),
        texts_kept=count(Example, Example.writer_id == worker.id),
        votes_kept=count(Vote, Vote.validator_id == worker.id, Vote.counted_at.is_not(None)),
        paid=paid or ZERO,
        undecided=undecided[0],
        possible_bonus=undecided[1] or ZERO,
        open_batches=len(open_batches),
        possible_gold=sum(open_batches, ZERO),
        obstacles=tuple(_obstacles(session, worker, now, held=held, lapsed=lapsed)),
        lists=count(ListEntry, ListEntry.worker_id == worker.id, ListEntry.ended_at.is_(None)),
    )


def _obstacles(session: Session, worker: Worker, now: datetime, *, held: bool, lapsed: frozenset[int]) -> list[str]:
    found = []
    owed = session.execute(
        select(func.count(), func.sum(Payout.amount)).where(
            Payout.worker_id == worker.id, Payout.state.in_((*OWED, PayoutState.NO_BUDGET))
        )
    ).one()
    if owed[0]:
        found.append(
            f"{owed[0]} payouts of {display(owed[1])} are owed or on their way. Settle them first:"
            " `dynahit payments settle`, and `dynahit payments status` shows what holds them up."
        )
    earned = [due.bonus.amount for due in due_bonuses(session) if due.assignment.worker_id == worker.id]
    if earned:
        found.append(
            f"{len(earned)} bonuses of {display(sum(earned, ZERO))} are earned and not planned yet. Settle them first:"
            " `dynahit payments settle`."
        )
    unconfirmed = session.scalar(
        select(func.count()).select_from(Payout).where(Payout.worker_id == worker.id, Payout.state == PayoutState.SENT)
    )
    if unconfirmed:
        found.append(
            f"{unconfirmed} payments were sent and not seen in the marketplace's list yet. Run `dynahit payments"
            " settle` or `dynahit payments reconcile`."
        )
    mine = Assignment.worker_id == worker.id
    waiting = session.scalar(
        select(func.count())
        .select_from(Assignment)
        .where(mine, Assignment.state.in_((AssignmentState.SAVED, AssignmentState.SUBMITTED)))
        .where(Assignment.id.not_in(lapsed))
    )
    if waiting:
        found.append(
            f"{waiting} assignments are handed in and not approved yet. The next pass of `dynahit jobs run` pays them,"
            " or the review page shows why not."
        )
    working = session.scalar(
        select(func.count())
        .select_from(Assignment)
        .where(mine, Assignment.state == AssignmentState.OPENED, Assignment.deadline_at > now)
    )
    if working:
        found.append(f"{working} assignments are being worked on. Wait until they are returned or their time is over.")
    flagged = session.scalar(
        select(func.count())
        .select_from(Vote)
        .join(Vote.example)
        .where(Vote.validator_id == worker.id, Vote.flag_reason.is_not(None), Vote.counted_at.is_not(None))
        .where(Example.verdict == Verdict.FLAGGED, Example.retracted_at.is_(None))
    )
    if flagged:
        found.append(
            f"{flagged} flags of theirs wait for a decision, which needs the reason that goes with them. Decide about"
            " them on the round's page first."
        )
    sending = select(func.count()).select_from(Rejection)
    if session.scalar(sending.where(Rejection.worker_id == worker.id, Rejection.state == RejectionState.SENDING)):
        found.append("A rejection was begun and the marketplace has not answered. Finish it on the review page.")
    kinds = set(
        session.scalars(
            select(QualificationGrant.kind).where(
                QualificationGrant.worker_id == worker.id, QualificationGrant.state.in_(LIVE)
            )
        )
    ) | ({VALIDATOR} if held else set())
    found.extend(
        f"The qualification {kind!r} is held. Take it away first:"
        f" `dynahit qualification revoke {worker.pseudonym} --kind {kind}`."
        for kind in sorted(kinds)
    )
    return found


def _not_handed_in(worker: Worker) -> tuple[ColumnElement[bool], ...]:
    collected = select(Example.id).where(Example.attempt_id == Attempt.id)
    return Attempt.worker_id == worker.id, ~collected.exists()


def _remove(session: Session, worker: Worker, now: datetime) -> None:
    mine = Assignment.worker_id == worker.id
    left = (AssignmentState.OPENED, AssignmentState.SAVED)
    # A frozen round's rows don't change any more, and nobody draws from it.
    unfrozen = select(Round.id).where(Round.frozen_at.is_(None))
    held = select(Assignment).join(Assignment.hit).join(Hit.batch).where(HitBatch.round_id.in_(unfrozen))
    for assignment in session.scalars(held.where(mine, Assignment.state.in_(left))):
        release(session, assignment)
    flagged = Vote.flag_reason.is_not(None)
    decided = select(Example.id).where(Example.writer_id == worker.id, Example.verdict != Verdict.FLAGGED)
    statements = (
        delete(Consent).where(Consent.worker_id == worker.id),
        delete(Exposure).where(Exposure.worker_id == worker.id),
        delete(Writing).where(Writing.attempt_id.in_(select(Attempt.id).where(Attempt.worker_id == worker.id))),
        delete(Attempt).where(*_not_handed_in(worker)),
        # A writer's promise may stand on votes that were withdrawn (payments.planning).
        delete(Vote).where(
            Vote.validator_id == worker.id,
            Vote.counted_at.is_(None),
            Vote.counted_before.is_(None),
            or_(
                Vote.example_id.is_(None),
                Vote.example_id.in_(select(Example.id).where(Example.round_id.in_(unfrozen))),
            ),
        ),
        update(Assignment).where(mine).values(why="", draft=None),
        # The reasons of flags: the person's own, and what others said of the person's texts once that is decided.
        update(Vote).where(Vote.validator_id == worker.id, flagged).values(flag_reason=ERASED_WORDS),
        update(Vote).where(Vote.example_id.in_(decided), flagged).values(flag_reason=ERASED_WORDS),
        update(Rejection).where(Rejection.worker_id == worker.id).values(words=ERASED_WORDS),
        update(Rejection)
        .where(Rejection.worker_id == worker.id, Rejection.undone_reason.is_not(None))
        .values(undone_reason=ERASED_WORDS),
        update(QuizResult).where(QuizResult.worker_id == worker.id, QuizResult.answers.is_not(None)).values(answers={}),
        update(QualificationGrant).where(QualificationGrant.worker_id == worker.id).values(reason=""),
        update(LevelChange).where(LevelChange.worker_id == worker.id).values(reason=""),
        update(ListEntry).where(ListEntry.worker_id == worker.id).values(reason=""),
        update(PracticeGrade)
        .where(PracticeGrade.example_id.in_(select(Example.id).where(Example.writer_id == worker.id)))
        .values(words=ERASED_WORDS),
    )
    for statement in statements:
        session.execute(statement, execution_options={"synchronize_session": False})
    worker.mturk_worker_id = erased_id()
    worker.erased_at = now
    session.flush()
    session.expire_all()
