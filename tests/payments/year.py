"""A year of books, made up by number: every kind of transaction, in two rounds, for a handful of workers."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sqlalchemy.orm import Session

from hits.models import Round
from hits.money import from_cents, usd
from payments.fees import bonus_fee
from payments.ledger import Account, marketplace_account, post, record_deposit, reverse, round_code
from payments.models import TransactionKind
from tests import factories
from tests.payments.senders import ENDPOINT

WORKERS = tuple(f"w-{number:016x}" for number in range(1, 8))


def make_year(session: Session, *, events: int = 200, seed: int = 7) -> None:
    """Book a deposit each month and so many rewards and bonuses over 2026; some are withdrawn, some reversed."""
    chance = random.Random(seed)
    rounds = (factories.make_round(session), factories.make_round(session, number=2))
    start = datetime(2026, 1, 1, 6, tzinfo=UTC)
    for number in range(12):
        at = start + timedelta(days=30 * number)
        record_deposit(session, ENDPOINT, usd("500.00"), reference=f'invoice "{number}" \\ ü', now=at)
    for number in range(events):
        at = start + timedelta(minutes=chance.randrange(364 * 24 * 60))
        _event(session, chance, number, chance.choice(rounds), chance.choice(WORKERS), at)


def _event(session: Session, chance: random.Random, number: int, round_: Round, worker: str, at: datetime) -> None:
    amount = from_cents(chance.randrange(1, 200))
    if number % 3 == 0:
        spend(session, TransactionKind.REWARD, f"A{number:06d}", round_, worker, amount, at)
        if number % 21 == 0:
            reverse(session, f"reward:A{number:06d}", reason="never approved", now=at + timedelta(hours=1))
        return
    promise(session, TransactionKind.PROMISE, number, round_, worker, amount, at)
    if number % 7 == 0:
        promise(session, TransactionKind.WITHDRAWAL, number, round_, worker, -amount, at + timedelta(hours=1))
    elif number % 11:
        spend(session, TransactionKind.BONUS, f"DH-{number:06d}", round_, worker, amount, at + timedelta(hours=2))
        if number % 13 == 0:
            reverse(session, f"bonus:DH-{number:06d}", reason="never arrived", now=at + timedelta(hours=3))


def spend(
    session: Session, kind: TransactionKind, reference: str, round_: Round, worker: str, amount: Decimal, at: datetime
) -> None:
    """Book a reward or a bonus with its fee; a bonus keeps its promise."""
    fee, code = bonus_fee(amount, on=at.date()), round_code(round_)
    names = ("rewards", "reward_fees") if kind is TransactionKind.REWARD else ("bonuses", "bonus_fees")
    postings = {
        str(Account(names[0], code, worker)): amount,
        str(Account(names[1], code, worker)): fee,
        marketplace_account(ENDPOINT): -(amount + fee),
    }
    if kind is TransactionKind.BONUS:
        postings |= _promised(code, worker, -amount)
    key = f"{kind}:{reference}"
    post(session, key=key, kind=kind, reference=reference, round_id=round_.id, postings=postings, now=at)


def promise(
    session: Session, kind: TransactionKind, number: int, round_: Round, worker: str, amount: Decimal, at: datetime
) -> None:
    """Book a promise, or with a negative amount that it is withdrawn."""
    reference = f"DH-{number:06d}"
    post(
        session,
        key=f"{kind}:{reference}:1",
        kind=kind,
        reference=reference,
        round_id=round_.id,
        postings=_promised(round_code(round_), worker, amount),
        now=at,
    )


def _promised(code: str, worker: str, amount: Decimal) -> dict[str, Decimal]:
    return {str(Account("promised", code, worker)): amount, str(Account("promises", code, worker)): -amount}
