"""The random interleavings with operators in them: disputes, HITs taken down, payout runs; and what stays true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from sqlalchemy import select

from hits.marketplace.console_views import Actor
from hits.marketplace.errors import OperatorError
from hits.marketplace.tables import AuditRow, DisputeRow, PayoutItemRow, PayoutRunRow
from tests.hits.marketplace.interleavings import DRAWN, Interleavings

OLGA, OTTO = Actor.operator("olga"), Actor.operator("otto")
LEGAL_RUNS = {"Drafted": {"Paid", "Cancelled"}, "Paid": set(), "Cancelled": set()}
LEGAL_DISPUTES = {
    "Open": {"Overturned", "Upheld", "Settled"},
    "Overturned": set(),
    "Upheld": set(),
    "Settled": set(),
}


class OperatorInterleavings(Interleavings):
    """Two operators beside everybody else."""

    def operate(self, name: str, action: Callable[[], object]) -> bool:
        """Let an operator do something; a refusal must leave everything that is stored as it was."""
        self.engine.settle()
        before = self.stored()
        try:
            action()
        except OperatorError:
            assert self.stored() == before
            DRAWN[name, "refused"] += 1
            return False
        DRAWN[name, "done"] += 1
        return True

    def disputes(self) -> dict[str, str]:
        """The state of each dispute, oldest first."""
        with self.engine.store.session(writes=False) as session:
            return {row.dispute_id: row.state for row in session.scalars(select(DisputeRow).order_by(DisputeRow.seq))}

    def runs(self) -> dict[str, str]:
        """The state of each payout run, oldest first."""
        with self.engine.store.session(writes=False) as session:
            return {row.run_id: row.state for row in session.scalars(select(PayoutRunRow).order_by(PayoutRunRow.seq))}

    @precondition(lambda self: self.seen["Assignment Submitted"])
    @rule(data=st.data())
    def reject_and_dispute(self, data: st.DataObject) -> None:
        assignment_id, worker_id = data.draw(st.sampled_from(self.assignments("Submitted")))
        if self.call("RejectAssignment", AssignmentId=assignment_id, RequesterFeedback="No.") is None:
            assert self.site("dispute", lambda: self.engine.open_dispute(worker_id, assignment_id, "Unfair."))

    @precondition(lambda self: self.seen["Assignment"])
    @rule(data=st.data())
    def dispute_anything(self, data: st.DataObject) -> None:
        assignment_id, worker_id = data.draw(st.sampled_from(self.assignments()))
        self.site("dispute", lambda: self.engine.open_dispute(worker_id, assignment_id, "Unfair."))

    @precondition(lambda self: self.seen["Dispute"])
    @rule(data=st.data(), overturned=st.booleans())
    def decide_a_dispute(self, data: st.DataObject, overturned: bool) -> None:
        dispute_id = data.draw(st.sampled_from(list(self.disputes())))
        decide = self.engine.overturn_dispute if overturned else self.engine.uphold_dispute
        found = self.engine.dispute(dispute_id)
        can_pay = self.engine.balance(self.requester_id).available >= found.cost
        name = "overturn" if overturned else "uphold"
        done = self.operate(name, lambda: decide(dispute_id, "So it is.", by=OLGA))
        assert done == (found.state == "Open" and (can_pay or not overturned))

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data(), whole_type=st.booleans())
    def take_down(self, data: st.DataObject, whole_type: bool) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        self.operate("take down", lambda: self.engine.take_down(hit_id, "Why.", whole_type=whole_type, by=OLGA))

    @precondition(lambda self: self.seen["Assignment Approved"])
    @rule(seconds=st.sampled_from([0, 1]))
    def draft_a_run(self, seconds: int) -> None:
        self.market.clock.advance(seconds=seconds)
        owed = self.engine.open_earnings()
        done = self.operate("draft", lambda: self.engine.draft_payout_run(by=OTTO))
        assert done == bool(owed.earnings)
        if done:
            assert self.engine.payout_runs().entries[0].total == owed.total
            assert self.engine.open_earnings().total == 0

    @precondition(lambda self: self.seen["Run"])
    @rule(data=st.data(), pays=st.booleans())
    def end_a_run(self, data: st.DataObject, pays: bool) -> None:
        runs = self.runs()
        run_id = data.draw(st.sampled_from(list(runs)))
        if pays:
            done = self.operate("pay", lambda: self.engine.mark_payout_run_paid(run_id, "bank", by=OLGA))
        else:
            done = self.operate("cancel", lambda: self.engine.cancel_payout_run(run_id, by=OTTO))
        assert done == (runs[run_id] == "Drafted")

    @invariant()
    def what_is_paid_out_and_what_is_open_is_what_was_earned(self) -> None:
        if not hasattr(self, "market"):
            return
        with self.engine.store.session(writes=False) as session:
            live = list(session.scalars(select(PayoutItemRow).where(PayoutItemRow.released_at.is_(None))))
            runs = {row.run_id: row.state for row in session.scalars(select(PayoutRunRow))}
        earnings = Counter((item.assignment_id, item.bonus_seq) for item in live)
        assert all(count == 1 for count in earnings.values()), "an earning is in two runs"
        assert {runs[item.run_id] for item in live} <= {"Drafted", "Paid"}
        for worker_id in self.workers:
            earned, found = self.engine.earnings(worker_id), self.engine.worker_payouts(worker_id)
            assert found.earned == earned.approved + earned.bonuses
            assert found.earned == found.open + found.being_paid + found.paid
            assert min(found.open, found.being_paid, found.paid) >= 0
            paid = sum(
                item.amount_cents for item in live if item.worker_id == worker_id and runs[item.run_id] == "Paid"
            )
            assert found.paid == Decimal(paid) / 100

    @invariant()
    def runs_and_disputes_move_legally_and_every_act_is_in_the_log(self) -> None:
        if not hasattr(self, "market"):
            return
        runs, disputes = self.runs(), self.disputes()
        for run_id, state in runs.items():
            before = self.known_runs.get(run_id, "Drafted")
            assert state == before or state in LEGAL_RUNS[before]
        for dispute_id, state in disputes.items():
            before = self.known_disputes.get(dispute_id, "Open")
            assert state == before or state in LEGAL_DISPUTES[before]
        self.known_runs, self.known_disputes = runs, disputes
        with self.engine.store.session(writes=False) as session:
            acts = Counter(session.scalars(select(AuditRow.action)))
        states = Counter(runs.values())
        assert acts["payout run drafted"] == len(runs)
        assert (acts["payout run paid"], acts["payout run cancelled"]) == (states["Paid"], states["Cancelled"])
        for state in ("Overturned", "Upheld", "Settled"):
            assert acts[f"dispute {state.lower()}"] == Counter(disputes.values())[state]

    @invariant()
    def look_at_the_operators_things(self) -> None:
        if not hasattr(self, "market"):
            return
        self.seen["Dispute"], self.seen["Run"] = len(self.disputes()), len(self.runs())

    known_runs: dict[str, str]
    known_disputes: dict[str, str]

    def __init__(self) -> None:
        super().__init__()
        self.known_runs, self.known_disputes = {}, {}
