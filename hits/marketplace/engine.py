"""The marketplace as one object: every door (HTTP, moto, launcher, tests) goes through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from hits.marketplace import (
    access_keys,
    accounts,
    admission,
    database,
    deliveries,
    layouts,
    operations,
    sigv4,
)
from hits.marketplace.clock import Clock
from hits.marketplace.console_views import Actor
from hits.marketplace.deliveries import DeliveryReport, Transport
from hits.marketplace.engine_operators import OperatorSide
from hits.marketplace.engine_requesters import RequesterSide
from hits.marketplace.engine_workers import WorkerSide
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.listing import Sort
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.views import (
    AccessKey,
    AccessKeyInfo,
    AccountEntry,
    Balance,
    HitLayout,
    Requester,
)

__all__ = ["Marketplace", "Sort", "open_marketplace"]


class Marketplace(WorkerSide, RequesterSide, OperatorSide):
    """One marketplace over one database; safe to share between threads, and between processes over one database."""

    # The Requester API

    def call(self, requester_id: str, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out one operation of the Requester API and return its output, times as aware datetimes.

        Timers that are due are settled first. Raises MarketplaceError.
        """
        try:
            row, checked = operations.prepare(operation, params)
            look = partial(admission.admit, requester_id=requester_id, lock=row.writes and row.locks)
            function = partial(row.function, requester_id=requester_id, params=checked)
            if row.writes:
                return self._write(requester_id, look, function)
            with self._transaction(writes=False, look=look) as transaction:
                return function(transaction)
        except MarketplaceError as error:
            raise error.stamped(self.clock.now()) from error.__cause__

    def authenticate_request(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> str:
        """Return the id of the requester whose access key signed this request.

        Raises MarketplaceError in AWS' own types.
        """
        owners: dict[str, str] = {}

        def lookup(access_key_id: str) -> str:
            secret, owners[access_key_id] = self.access_key(access_key_id)
            return secret

        key = sigv4.verify(method, path, query, headers, body, lookup_secret=lookup, now=self.signing_clock.now())
        return owners[key]

    def deliver_due(
        self, transports: Mapping[str, Transport], *, limit: int = 500, stop: Callable[[], bool] = deliveries.never
    ) -> DeliveryReport:
        """Hand events that are due to their transports (see `transports.transports`); a server calls it by and by.

        At least once, in order per HIT and destination, with growing delays between attempts for three days. Timers
        that are due are settled first, since they make events. Once `stop` says so, nothing more is begun.
        """
        self.settle()
        return deliveries.deliver_due(self.store, self.clock, self.settings, transports, limit=limit, stop=stop)

    def webhook_secret(self, requester_id: str) -> str:
        """Return the secret that webhooks to a requester are signed with."""
        return deliveries.webhook_secret(self.settings, self.requester(requester_id).requester_id)

    # Requesters, money, keys

    def create_requester(self, name: str, *, email: str | None = None, password: str | None = None) -> Requester:
        """Create an account that can hold money, keys and HITs.

        Raises OperatorError if the e-mail address is in use.
        """
        with self._transaction() as transaction:
            return accounts.create(transaction, name, email=email, password=password)

    def requester(self, requester_id: str) -> Requester:
        """Return one requester.

        Raises OperatorError if there is none.
        """
        with self._transaction(writes=False) as transaction:
            return accounts.view(accounts.find(transaction, requester_id))

    def requesters(self) -> list[Requester]:
        """Return all requesters, oldest first."""
        with self._transaction(writes=False) as transaction:
            return accounts.every(transaction)

    def top_up(self, requester_id: str, amount: Decimal, note: str = "") -> Balance:
        """Add dollars to a requester's account and return the new balance.

        Raises OperatorError for an amount that is not a positive number of cents.
        """
        with self._transaction() as transaction:
            return accounts.top_up(transaction, requester_id, amount, note)

    def balance(self, requester_id: str) -> Balance:
        """Return a requester's money."""
        with self._transaction(writes=False) as transaction:
            return accounts.balance(transaction, requester_id)

    def account_entries(self, requester_id: str) -> list[AccountEntry]:
        """Return every line of a requester's account, oldest first."""
        with self._transaction(writes=False) as transaction:
            return accounts.entries(transaction, requester_id)

    def create_access_key(self, requester_id: str, *, by: Actor | None = None) -> AccessKey:
        """Create an access key; its secret is returned here and never again. `by` is the requester unless given."""
        with self._transaction() as transaction:
            return access_keys.create(transaction, requester_id, by or Actor.requester(requester_id))

    def access_key(self, access_key_id: str) -> tuple[str, str]:
        """Return (secret, requester id) of a key that is in force.

        Raises MarketplaceError (UnrecognizedClientException) for an unknown or revoked key.
        """
        return access_keys.reveal(self.store, self.settings, access_key_id)

    def access_keys(self, requester_id: str) -> list[AccessKeyInfo]:
        """Return a requester's keys, without secrets."""
        with self._transaction(writes=False) as transaction:
            return access_keys.every(transaction, requester_id)

    def revoke_access_key(self, requester_id: str, access_key_id: str, *, by: Actor | None = None) -> None:
        """End a key at once; revoking it again changes nothing.

        Raises OperatorError if the requester has no such key.
        """
        with self._transaction() as transaction:
            access_keys.revoke(transaction, requester_id, access_key_id, by or Actor.requester(requester_id))

    def create_layout(self, requester_id: str, name: str, html: str, *, frame_height: int = 0) -> HitLayout:
        """Register a page with `${placeholders}` that HITs can be made from by its id.

        Raises OperatorError for an unknown requester, a blank name, or a page that is not HTML with a form.
        """
        with self._transaction() as transaction:
            return layouts.create(transaction, requester_id, name, html, frame_height)

    def layouts(self, requester_id: str) -> list[HitLayout]:
        """Return a requester's layouts, oldest first."""
        with self._transaction(writes=False) as transaction:
            return layouts.every(transaction, requester_id)


def open_marketplace(database_url: str, *, settings: MarketplaceSettings, clock: Clock | None = None) -> Marketplace:
    """Bring the database up to the newest schema and open the marketplace on it."""
    database.upgrade(database_url)
    return Marketplace(database_url, settings=settings, clock=clock)
