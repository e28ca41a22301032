"""Pay the bonuses that are owed: plan, send one by one with a commit before and after each call, confirm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.operations.plan_payouts import plan_payouts
from hits.clock import Clock
from hits.models import Example, Round, Worker
from hits.money import ZERO, display
from hits.mturk.errors import AssignmentMissing, DuplicateRequest, InsufficientFunds, MTurkError, MTurkUnavailable
from payments import payouts, planning
from payments.due import due_bonuses
from payments.fees import bonus_fee
from payments.ledger import round_code
from payments.models import OWED, UNSURE, Payout, PayoutState
from payments.payouts import BonusSender, Order, Waiting
from payments.report import ExampleInWords, example_in_words

#: So many in a row without success mean that something is wrong for all of them.
STOP_AFTER: Final = 3


class Result(StrEnum):
    """What became of one payout."""

    PAID = "paid"
    FOUND = "found paid"
    DOUBTFUL = "doubtful"
    FAILED = "failed"
    LEFT = "left for later"
    TOO_LATE = "needs compensation"


@dataclass(frozen=True)
class Settled:
    """One payout that was dealt with."""

    reference: str
    worker: str
    amount: Decimal
    reason: str
    result: Result
    cause: str | None = None


@dataclass(frozen=True)
class Settlement:
    """What one run of settle did. ``stopped``: why it ended before the last row, with what to do."""

    settled: tuple[Settled, ...] = ()
    confirmed: int = 0
    waiting: int = 0
    stopped: str | None = None

    def of(self, *results: Result) -> tuple[Settled, ...]:
        """Return the payouts with one of these results."""
        return tuple(one for one in self.settled if one.result in results)

    @property
    def paid(self) -> Decimal:
        return sum((one.amount for one in self.of(Result.PAID, Result.FOUND)), ZERO)


@dataclass(frozen=True)
class PlanLine:
    """One bonus that settle would deal with. ``example``: what it is for, None when it is not for one."""

    round: str
    worker: str
    example: ExampleInWords | None
    amount: Decimal
    fee: Decimal
    state: PayoutState
    reason: str


@dataclass(frozen=True)
class SettlePlan:
    """What settle would do. ``untouched``: rows that wait for something else, which it would leave alone."""

    lines: tuple[PlanLine, ...]
    untouched: tuple[PlanLine, ...]
    balance: Decimal
    #: Paid by HITs of their own, which offer_compensations makes.
    offers: tuple[PlanLine, ...] = ()
    bonuses: Decimal = field(init=False)
    fees: Decimal = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bonuses", sum((line.amount for line in (*self.lines, *self.offers)), ZERO))
        object.__setattr__(self, "fees", sum((line.fee for line in (*self.lines, *self.offers)), ZERO))

    @property
    def failed(self) -> int:
        """How many would be tried again if that is asked for."""
        return sum(line.state is PayoutState.FAILED for line in self.untouched)

    @property
    def total(self) -> Decimal:
        return self.bonuses + self.fees

    @property
    def missing(self) -> Decimal:
        """How much the balance falls short, 0.00 if it does not."""
        return max(self.total - self.balance, ZERO)


def plan_settlement(
    session: Session, sender: BonusSender, clock: Clock, *, approval_limit: Decimal | None = None
) -> SettlePlan:
    """Return who is owed which bonus for which example, and what it costs. Changes nothing.

    Above ``approval_limit`` people are asked first; None asks nobody. Raises MTurkUnavailable when the balance can't be
    read.
    """
    balance = sender.balance()
    today = clock.now().date()
    lines: list[PlanLine] = []
    untouched: list[PlanLine] = []
    offers: list[PlanLine] = []
    states = (*OWED, PayoutState.NO_BUDGET)
    rows = session.scalars(
        select(Payout).where(Payout.state.in_(states), Payout.endpoint == sender.endpoint).order_by(Payout.id)
    ).all()
    for row in rows:
        small = approval_limit is None or row.amount <= approval_limit
        goes = row.state in (*UNSURE, PayoutState.APPROVED) or (row.state is PayoutState.PLANNED and small)
        line = _plan_line(session, row.round, row.worker, row.example, row.state, row.amount, row.reason, today)
        if row.state is PayoutState.NEEDS_COMPENSATION and (small or row.approved_by is not None):
            offers.append(line)
        else:
            (lines if goes else untouched).append(line)
    for one in due_bonuses(session):
        small = approval_limit is None or one.bonus.amount <= approval_limit
        line = _plan_line(
            session,
            one.assignment.hit.batch.round,
            one.assignment.worker,
            one.example,
            PayoutState.PLANNED,
            one.bonus.amount,
            one.bonus.reason,
            today,
        )
        (lines if small else untouched).append(line)
    session.rollback()
    return SettlePlan(lines=tuple(lines), untouched=tuple(untouched), balance=balance, offers=tuple(offers))


def settle(
    session: Session,
    sender: BonusSender,
    clock: Clock,
    *,
    limit: int | None = None,
    retry_failed: bool = False,
    approval_limit: Decimal | None = None,
    on_settled: Callable[[Settled], None] | None = None,
) -> Settlement:
    """Pay what is owed, at most ``limit`` bonuses, and return what became of each; ``on_settled`` hears at once.

    Safe to be killed anywhere, to run again, and to run in several processes: a bonus whose payment is not certain is
    looked up in the marketplace's own list first. Stops when the balance runs out and after three bonuses in a row
    that could not be paid. Failed ones are tried again only with ``retry_failed``; ones above ``approval_limit`` are
    left until two people stand behind them.
    """
    plan_payouts(session, clock, endpoint=sender.endpoint, approval_limit=approval_limit)
    if retry_failed:
        payouts.free_failed(session, sender.endpoint)
        session.commit()
    queue = payouts.waiting(session, sender.endpoint)
    session.commit()
    settled: list[Settled] = []
    stopped = None
    for row in queue[:limit]:
        try:
            one = _settle_one(session, sender, clock, row)
        except InsufficientFunds as error:
            stopped = _funds_needed(session, sender, clock, error)
            break
        if one is None:
            continue
        settled.append(one)
        if on_settled is not None:
            on_settled(one)
        if len(settled) >= STOP_AFTER and all(
            each.result in (Result.DOUBTFUL, Result.FAILED) for each in settled[-STOP_AFTER:]
        ):
            stopped = (
                f"{STOP_AFTER} bonuses in a row could not be paid. Last cause: {one.cause} Mend it, then settle again."
            )
            break
    confirmed = confirm(session, sender, clock)
    left = len(payouts.waiting(session, sender.endpoint))
    session.commit()
    return Settlement(tuple(settled), confirmed, left, stopped)


def confirm(session: Session, sender: BonusSender, clock: Clock) -> int:
    """Mark the sent bonuses that the marketplace's own list shows, and return how many.

    Stops without an error when the marketplace can't be reached: the rest is confirmed by the next run.
    """
    rows = [
        (payout.id, payout.assignment.mturk_assignment_id, payout.reference, payout.amount)
        for payout in payouts.unconfirmed(session, sender.endpoint)
        if payout.assignment is not None
    ]
    session.commit()
    confirmed = 0
    for payout_id, assignment_id, reference, amount in rows:
        try:
            seen = payouts.find_payment(sender, assignment_id, reference)
        except MTurkUnavailable:
            break
        except MTurkError:
            # The row stays unconfirmed; reconcile says what is wrong with it.
            continue
        if seen is not None and seen.amount == amount:
            payouts.mark_confirmed(session, payout_id, clock.now())
            session.commit()
            confirmed += 1
    return confirmed


def _settle_one(session: Session, sender: BonusSender, clock: Clock, row: Waiting) -> Settled | None:
    order = payouts.claim(session, row, clock.now())
    session.commit()
    if order is None:
        return None
    if order.unsure or payouts.is_token_forgotten(order, clock.now()):
        try:
            seen = payouts.find_payment(sender, order.assignment_id, order.reference)
        except MTurkError as error:
            return _doubtful(session, order, error)
        if seen is not None:
            return _paid(session, order, seen.granted_at, Result.FOUND)
        if not _is_still_owed(session, order):
            return _not_owed(session, order, clock)
        if payouts.is_token_forgotten(order, clock.now()):
            if payouts.may_be_on_its_way(order, clock.now()):
                cause = "An earlier call may still be on its way and its token is too old to be sent again."
                payouts.mark_doubtful(session, order, cause)
                session.commit()
                return _settled(order, Result.LEFT, cause)
            token = payouts.renew_token(session, order, clock.now())
            session.commit()
            if token is None:
                return None
            order = replace(order, request_token=token)
    try:
        sender.send_bonus(
            worker_id=order.worker_id,
            assignment_id=order.assignment_id,
            amount=order.amount,
            reason=order.reason,
            request_token=order.request_token,
        )
    except DuplicateRequest:
        # The token was used: an earlier call paid it.
        return _paid(session, order, clock.now(), Result.FOUND)
    except MTurkUnavailable as error:
        return _doubtful(session, order, error)
    except InsufficientFunds:
        payouts.put_back(session, order)
        session.commit()
        raise
    except AssignmentMissing as error:
        # It was taken over from the marketplace's own list, so that it was there and is gone.
        payouts.mark_too_late(session, order, str(error))
        session.commit()
        return _settled(order, Result.TOO_LATE, str(error))
    except MTurkError as error:
        payouts.mark_failed(session, order, str(error))
        session.commit()
        return _settled(order, Result.FAILED, str(error))
    return _paid(session, order, clock.now(), Result.PAID)


def _is_still_owed(session: Session, order: Order) -> bool:
    """Tell whether what a claimed payout is for earns it as things stand. Reads only, and commits."""
    payout = session.get_one(Payout, order.payout_id, populate_existing=True)
    for row in (payout.example, payout.assignment):
        if row is not None:
            session.refresh(row)
    owed = planning.wanted_state(session, payout) is PayoutState.PLANNED
    session.commit()
    return owed


def _not_owed(session: Session, order: Order, clock: Clock) -> Settled:
    """Leave a bonus unsent that was looked up and not found, since its example earns none at this moment."""
    cause = "Nothing was sent: the example is flagged now, or earns no bonus any more."
    if payouts.may_be_on_its_way(order, clock.now()):
        payouts.mark_doubtful(session, order, cause)
    else:
        # The next planning holds it or withdraws it.
        payouts.put_back(session, order)
    session.commit()
    return _settled(order, Result.LEFT, cause)


def _paid(session: Session, order: Order, sent_at: datetime, result: Result) -> Settled | None:
    is_new = payouts.mark_sent(session, order, sent_at)
    session.commit()
    return _settled(order, result) if is_new else None


def _doubtful(session: Session, order: Order, error: MTurkError) -> Settled:
    payouts.mark_doubtful(session, order, str(error))
    session.commit()
    return _settled(order, Result.DOUBTFUL, str(error))


def _settled(order: Order, result: Result, cause: str | None = None) -> Settled:
    return Settled(order.reference, order.pseudonym, order.amount, order.reason, result, cause)


def _funds_needed(session: Session, sender: BonusSender, clock: Clock, error: InsufficientFunds) -> str:
    today = clock.now().date()
    amounts = session.scalars(
        select(Payout.amount).where(Payout.state == PayoutState.APPROVED, Payout.endpoint == sender.endpoint)
    ).all()
    session.commit()
    needed = sum((amount + bonus_fee(amount, on=today) for amount in amounts), ZERO)
    try:
        balance = sender.balance()
    except MTurkError:
        return f"{error} {display(needed)} are needed for the rest. Top up the account, then settle again."
    missing = max(needed - balance, ZERO)
    return (
        f"The balance of {display(balance)} does not cover the {display(needed)} that are still to pay: "
        f"{display(missing)} are missing. Nothing more was sent. Top up the account, then settle again."
    )


def _plan_line(
    session: Session,
    round_: Round,
    worker: Worker,
    example: Example | None,
    state: PayoutState,
    amount: Decimal,
    reason: str,
    today: date,
) -> PlanLine:
    return PlanLine(
        round=round_code(round_),
        worker=worker.pseudonym,
        example=None if example is None else example_in_words(session, example),
        amount=amount,
        fee=bonus_fee(amount, on=today),
        state=state,
        reason=reason,
    )
