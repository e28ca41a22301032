"""A marketplace's bonus desk in memory, with faults on demand, for the tests of paying."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum

from sqlalchemy.orm import Session

from hits.clock import Clock
from hits.mturk.errors import DuplicateRequest, InsufficientFunds, MTurkRefused, MTurkUnavailable
from payments.fees import bonus_fee

ENDPOINT = "http://127.0.0.1:8000"


class Killed(BaseException):
    """The process ends here."""


class Fault(Enum):
    """What goes wrong with one call of SendBonus."""

    NONE = "none"
    ERROR_BEFORE = "500, nothing paid"
    ERROR_AFTER = "500, but paid"
    KILL_BEFORE = "killed before the call arrives"
    KILL_AFTER = "killed after it was paid"
    REFUSED = "refused"


@dataclass(frozen=True)
class Paid:
    """One payment that the desk made."""

    worker_id: str
    assignment_id: str
    amount: Decimal
    reason: str
    granted_at: datetime


class BonusDesk:
    """Pays, remembers tokens for 24 hours, and checks that nobody holds a transaction open while asking."""

    endpoint = ENDPOINT

    def __init__(self, clock: Clock, *, funds: str = "1000.00", session: Session | None = None) -> None:
        self.clock = clock
        self.funds = Decimal(funds)
        self.session = session
        self.paid: list[Paid] = []
        self.calls = 0
        self.faults: deque[Fault] = deque()
        self.list_faults: deque[Fault] = deque()
        self._tokens: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def balance(self) -> Decimal:
        self._check()
        return self.funds

    def send_bonus(
        self, *, worker_id: str, assignment_id: str, amount: Decimal, reason: str, request_token: str
    ) -> None:
        self._check()
        with self._lock:
            self.calls += 1
            fault = self.faults.popleft() if self.faults else Fault.NONE
            if fault is Fault.KILL_BEFORE:
                raise Killed
            if fault is Fault.ERROR_BEFORE:
                raise MTurkUnavailable("SendBonus", ENDPOINT, "ServiceFault")
            if fault is Fault.REFUSED:
                raise MTurkRefused("SendBonus", "AWS.MechanicalTurk.AssignmentDoesNotExist", "No such assignment.")
            now = self.clock.now()
            known = self._tokens.get(request_token)
            if known is not None and now - known < timedelta(hours=24):
                raise DuplicateRequest("SendBonus", "AWS.MechanicalTurk.DuplicateRequest", "already been processed")
            cost = amount + bonus_fee(amount, on=now.date())
            if cost > self.funds:
                raise InsufficientFunds("SendBonus", "AWS.MechanicalTurk.InsufficientFunds", "insufficient funds")
            self._tokens[request_token] = now
            self.funds -= cost
            self.paid.append(Paid(worker_id, assignment_id, amount, reason, now))
            if fault is Fault.ERROR_AFTER:
                raise MTurkUnavailable("SendBonus", ENDPOINT, "ServiceFault")
            if fault is Fault.KILL_AFTER:
                raise Killed

    def bonus_payments(self, *, assignment_id: str | None = None, hit_id: str | None = None) -> Iterator[Paid]:
        self._check()
        if self.list_faults and self.list_faults.popleft() is not Fault.NONE:
            raise MTurkUnavailable("ListBonusPayments", ENDPOINT, "ServiceFault")
        with self._lock:
            return iter([one for one in self.paid if assignment_id in (None, one.assignment_id)])

    def _check(self) -> None:
        if self.session is not None and self.session.in_transaction():
            raise AssertionError("a transaction is open while the marketplace is asked")
