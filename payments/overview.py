"""Where the money stands, over all months: by round and by task, every amount from the postings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from decimal import Decimal

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from hits.models import Example, Round
from hits.money import ZERO, from_cents, rounded
from hits.states import Verdict
from payments.ledger import Account, round_code
from payments.models import Posting
from payments.report import Figures, posted


@dataclass(frozen=True)
class Money(Figures):
    """What a round, a task or everything cost so far, and what is still set aside for it.

    ``promised`` is all that was ever promised and not withdrawn, ``owed`` what of it is not paid yet, ``verified`` how
    many statements fooled the model and were confirmed by readers.
    """

    owed: Decimal = ZERO
    reserved: Decimal = ZERO
    verified: int = 0

    @property
    def cost_per_verified(self) -> Decimal | None:
        """What one verified fooling example cost so far, None while there is none."""
        return rounded(self.total / self.verified) if self.verified else None


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
    for account, part in posted(session):
        found[account.round] = found.get(account.round, Money()) + Money(**asdict(part))
    # What is owed falls when a promise is kept; what was promised does not.
    standing = session.execute(
        select(Posting.account, func.sum(Posting.cents))
        .where(or_(Posting.account.startswith("promised:"), Posting.account.startswith("reserved:")))
        .group_by(Posting.account)
    )
    for name, cents in standing:
        account, amount = Account.parse(name), from_cents(int(cents))
        part_of = Money(owed=amount) if account.name == "promised" else Money(reserved=amount)
        if amount:
            found[account.round] = found.get(account.round, Money()) + part_of
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
