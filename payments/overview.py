"""Where the money stands, over all months: by round and by task, every amount from the postings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.models import Example, Round
from hits.money import ZERO, from_cents, rounded
from hits.states import Verdict
from payments.ledger import Account, round_code
from payments.models import LedgerTransaction, Posting, TransactionKind
from payments.report import reversed_kind


@dataclass(frozen=True)
class Money:
    """What a round, a task or everything cost so far, and what is still set aside for it.

    ``promised`` is all that was ever promised and not withdrawn, ``owed`` what of it is not paid yet, ``verified`` how
    many statements fooled the model and were confirmed by readers.
    """

    rewards: Decimal = ZERO
    bonuses: Decimal = ZERO
    fees: Decimal = ZERO
    promised: Decimal = ZERO
    owed: Decimal = ZERO
    reserved: Decimal = ZERO
    verified: int = 0

    @property
    def spent(self) -> Decimal:
        """All that left the account: rewards, bonuses and fees."""
        return self.rewards + self.bonuses + self.fees

    @property
    def cost_per_verified(self) -> Decimal | None:
        """What one verified fooling example cost so far, None while there is none."""
        return rounded(self.spent / self.verified) if self.verified else None

    def __add__(self, other: Money) -> Money:
        return Money(
            rewards=self.rewards + other.rewards,
            bonuses=self.bonuses + other.bonuses,
            fees=self.fees + other.fees,
            promised=self.promised + other.promised,
            owed=self.owed + other.owed,
            reserved=self.reserved + other.reserved,
            verified=self.verified + other.verified,
        )


@dataclass(frozen=True)
class Overview:
    """Money by round; what belongs to no round stands under an empty name."""

    by_round: dict[str, Money]

    @property
    def totals(self) -> Money:
        return sum(self.by_round.values(), Money())

    @property
    def by_task(self) -> dict[str, Money]:
        found: dict[str, Money] = {}
        for name, money in self.by_round.items():
            code = name.partition("/")[0]
            found[code] = found.get(code, Money()) + money
        return found


def overview(session: Session) -> Overview:
    """Return where the money stands now, for every round."""
    rounds = session.scalars(select(Round).order_by(Round.task_code, Round.number)).all()
    found = {round_code(one): Money() for one in rounds}
    kind = reversed_kind()
    rows = session.execute(
        select(kind, Posting.account, func.sum(Posting.cents))
        .join(LedgerTransaction, LedgerTransaction.id == Posting.transaction_id)
        .group_by(kind, Posting.account)
    )
    for of_kind, name, cents in rows:
        account = Account.parse(name)
        part = _money(of_kind, account.name, from_cents(int(cents)))
        if part != Money():
            found[account.round] = found.get(account.round, Money()) + part
    verified = session.execute(
        select(Example.round_id, func.count())
        .where(Example.verdict == Verdict.VALID_AND_MODEL_WRONG, Example.fooled.is_(True))
        .where(Example.retracted_at.is_(None))
        .group_by(Example.round_id)
    )
    codes = {one.id: round_code(one) for one in rounds}
    for round_id, count in verified:
        found[codes[round_id]] = replace(found[codes[round_id]], verified=count)
    return Overview({name: found[name] for name in sorted(found)})


def _money(kind: str, account: str, amount: Decimal) -> Money:
    # What is owed falls when a promise is kept; what was promised does not.
    is_promise = kind in (TransactionKind.PROMISE, TransactionKind.WITHDRAWAL)
    parts = {
        "rewards": Money(rewards=amount),
        "bonuses": Money(bonuses=amount),
        "reward_fees": Money(fees=amount),
        "bonus_fees": Money(fees=amount),
        "promised": Money(owed=amount, promised=amount if is_promise else ZERO),
        "reserved": Money(reserved=amount),
    }
    return parts.get(account, Money())
