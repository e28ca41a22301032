"""No call reads all HITs or all assignments, or sorts them: what SQLite says it will do, whatever their number is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question

# The partial index of HITs to be disposed of is read in its order up to the first entry.
_READS_ALL = re.compile(
    r"SCAN (mp_hit|mp_assignment|mp_request_token|mp_account_entry)\b(?! USING (COVERING )?INDEX ix_mp_hit_disposable)"
)
# Grouping what one worker has taken sorts few rows; anything else that sorts has read them all before.
_SORTS = re.compile(r"TEMP B-TREE FOR (ORDER BY|DISTINCT)")
NEW_HIT = {**HIT_PROPERTIES, "LifetimeInSeconds": 3600, "Question": external_question()}


class Scene:
    """A market with a few HITs in every state, and a worker."""

    def __init__(self, market: Market) -> None:
        self.market, self.engine, self.requester_id = market, market.engine, market.requester_id
        self.worker_id = market.worker()
        self.hit_id, self.done = market.create_hit(MaxAssignments=5), market.create_hit()
        market.create_hit()
        self.group_id = market.hit(self.hit_id)["HITGroupId"]
        self.assignment_id = market.submitted(self.done, self.worker_id)

    def call(self, operation: str, **params: Any) -> Callable[[], dict[str, Any]]:
        return lambda: self.engine.call(self.requester_id, operation, params)

    def settles(self) -> Callable[[], object]:
        """Everything that time brings about: expiry, abandonment, approval, disposal."""
        self.market.accepted(self.hit_id)
        self.market.clock.advance(days=200)
        return self.engine.settle


DEEDS: dict[str, Callable[[Scene], Callable[[], object]]] = {
    "create": lambda s: s.call("CreateHIT", **NEW_HIT, UniqueRequestToken="t"),
    "show": lambda s: s.call("GetHIT", HITId=s.hit_id),
    "list": lambda s: s.call("ListHITs"),
    "list more": lambda s: s.call("ListHITs", NextToken=s.call("ListHITs", MaxResults=1)()["NextToken"]),
    "list reviewable": lambda s: s.call("ListReviewableHITs"),
    "list reviewable of a type": lambda s: s.call(
        "ListReviewableHITs", HITTypeId=s.market.hit(s.hit_id)["HITTypeId"], Status="Reviewing"
    ),
    "list assignments": lambda s: s.call("ListAssignmentsForHIT", HITId=s.done),
    "approve": lambda s: s.call("ApproveAssignment", AssignmentId=s.assignment_id),
    "expire": lambda s: s.call("UpdateExpirationForHIT", HITId=s.hit_id, ExpireAt=0),
    "balance": lambda s: s.call("GetAccountBalance"),
    "groups": lambda s: lambda: s.engine.hit_groups(s.worker_id, sort="wage"),
    "groups, searched": lambda s: lambda: s.engine.hit_groups(s.worker_id, query="fool", qualified_only=True),
    "group": lambda s: lambda: s.engine.hit_of_group(s.worker_id, s.group_id),
    "preview": lambda s: lambda: s.engine.preview(s.worker_id, s.hit_id),
    "accept": lambda s: lambda: s.engine.accept(s.worker_id, s.hit_id),
    "accept the next": lambda s: lambda: s.engine.accept_next(s.worker_id, s.group_id),
    "submit": lambda s: lambda: s.engine.external_submit(s.market.accepted(s.hit_id, s.worker_id), {"a": ["1"]}),
    "history": lambda s: lambda: s.engine.work_history(s.worker_id),
    "all history": lambda s: lambda: list(s.engine.all_work(s.worker_id)),
    "earnings": lambda s: lambda: s.engine.earnings(s.worker_id),
    "console's HITs": lambda s: lambda: s.engine.requester_hits(s.requester_id),
    "console's HITs of a status": lambda s: lambda: s.engine.requester_hits(s.requester_id, status="Reviewable"),
    "console's reviews": lambda s: lambda: s.engine.waiting_assignments(s.requester_id),
    "console's assignments": lambda s: lambda: s.engine.hit_assignments(s.requester_id, s.done),
    "console's lines": lambda s: lambda: s.engine.account_lines(s.requester_id),
    "settle": lambda s: s.settles(),
}


@pytest.mark.parametrize("name", DEEDS)
def test_everything_is_found_along_an_index(market: Market, name: str) -> None:
    scene = Scene(market)
    deed = DEEDS[name](scene)
    statements: list[tuple[str, Any]] = []

    def keep(_connection: object, _cursor: object, statement: str, parameters: Any, *_rest: object) -> None:
        statements.append((statement, parameters))

    event.listen(market.engine.store.engine, "before_cursor_execute", keep)
    deed()
    event.remove(market.engine.store.engine, "before_cursor_execute", keep)

    plans = []
    with market.engine.store.session(writes=False) as session:
        for statement, parameters in statements:
            if statement.startswith(("SELECT", "UPDATE", "DELETE")):
                rows = session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans.append((statement, [row.detail for row in rows]))
    assert plans
    assert [plan for plan in plans if any(_READS_ALL.search(step) or _SORTS.search(step) for step in plan[1])] == []


def test_the_check_sees_what_it_is_for(market: Market) -> None:
    with market.engine.store.session(writes=False) as session:
        for statement, pattern in (
            ("SELECT * FROM mp_hit WHERE frame_height = 3", _READS_ALL),
            ("SELECT * FROM mp_hit WHERE hit_type_id = '3T' ORDER BY frame_height", _SORTS),
        ):
            steps = session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}").all()
            assert any(pattern.search(step.detail) for step in steps)
