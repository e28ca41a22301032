"""The side of the engine that the requester console reads; what it changes goes through `Marketplace.call`."""

from __future__ import annotations

from hits.marketplace import requester_site
from hits.marketplace.console_views import (
    AssignmentSummary,
    HeldQualification,
    HitSummary,
    HitTypeView,
    Page,
    WaitingAssignment,
)
from hits.marketplace.engine_core import EngineCore
from hits.marketplace.views import AccountEntry


class RequesterSide(EngineCore):
    """The lists of the requester console, page by page."""

    def account_lines(self, requester_id: str, *, kind: str = "", page: int = 1) -> Page[AccountEntry]:
        """Return the lines of a requester's account, newest first; of one kind if asked for."""
        with self._transaction(writes=False) as transaction:
            return requester_site.account_lines(transaction, requester_id, kind=kind, page=page)

    def hit_types(self, requester_id: str, *, page: int = 1) -> Page[HitTypeView]:
        """Return a requester's HIT types, newest first."""
        with self._transaction(writes=False) as transaction:
            return requester_site.hit_types(transaction, requester_id, page=page)

    def hit_type(self, requester_id: str, hit_type_id: str) -> HitTypeView:
        """Return one of a requester's HIT types.

        Raises MarketplaceError: another requester's type does not exist.
        """
        with self._transaction(writes=False) as transaction:
            return requester_site.hit_type(transaction, requester_id, hit_type_id)

    def requester_hits(
        self, requester_id: str, *, status: str = "", hit_type_id: str = "", page: int = 1
    ) -> Page[HitSummary]:
        """Return a requester's HITs, newest first; without a status all but disposed ones."""
        with self._transaction(writes=False) as transaction:
            return requester_site.hits(transaction, requester_id, status=status, hit_type_id=hit_type_id, page=page)

    def requester_hit(self, requester_id: str, hit_id: str) -> HitSummary:
        """Return one of a requester's HITs.

        Raises MarketplaceError: another requester's HIT does not exist.
        """
        with self._transaction(writes=False) as transaction:
            return requester_site.hit(transaction, requester_id, hit_id)

    def any_hit(self, hit_id: str) -> HitSummary:
        """Return a HIT of any requester's, for an operator.

        Raises NothingThere if there is none.
        """
        with self._transaction(writes=False) as transaction:
            return requester_site.any_hit(transaction, hit_id)

    def waiting_assignments(self, requester_id: str, *, hit_id: str = "", page: int = 1) -> Page[WaitingAssignment]:
        """Return the submitted assignments that wait for a requester, the first to be approved by itself first."""
        with self._transaction(writes=False) as transaction:
            return requester_site.waiting(transaction, requester_id, hit_id=hit_id, page=page)

    def hit_assignments(
        self, requester_id: str, hit_id: str, *, state: str = "", page: int = 1
    ) -> Page[AssignmentSummary]:
        """Return what was submitted for one of a requester's HITs, newest first; of one state if asked for.

        Raises MarketplaceError: another requester's HIT does not exist.
        """
        with self._transaction(writes=False) as transaction:
            return requester_site.assignments(transaction, requester_id, hit_id, state=state, page=page)

    def layout_preview_url(self, requester_id: str, layout_id: str) -> str | None:
        """Return the address at which a requester's layout is shown for a day, None without a second origin.

        Raises NothingThere: another requester's layout does not exist.
        """
        with self._transaction(writes=False) as transaction:
            return requester_site.layout_preview_url(transaction, requester_id, layout_id)

    def qualification_holders(
        self, requester_id: str, qualification_type_id: str, *, page: int = 1
    ) -> Page[HeldQualification]:
        """Return who holds or held a requester's qualification type, newest grant first.

        Raises MarketplaceError: another requester's type does not exist.
        """
        with self._transaction(writes=False) as transaction:
            return requester_site.holders(transaction, requester_id, qualification_type_id, page=page)
