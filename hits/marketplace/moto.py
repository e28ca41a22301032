"""Serves `mturk` in moto's mock_aws and servers on an engine in memory; importing this module is all it takes.

Everything is kept per region and shared by the accounts in it, each account being one requester with a balance of
$10,000.00, and is wiped when moto resets. `marketplace()` gives a test the engine behind the mock, to play workers.
"""

from __future__ import annotations

import re
import sys
import threading
from decimal import Decimal
from types import ModuleType
from typing import Any, Final

import moto.backend_index
from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.responses import BaseResponse

from hits.marketplace import wire
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings

DEFAULT_ACCOUNT: Final = "123456789012"
STARTING_BALANCE: Final = Decimal("10000.00")
url_bases = [r"https?://mturk-requester(-sandbox)?\.(.+)\.amazonaws\.com"]


class _Market:
    """The engine of one region, with the requester of each account."""

    def __init__(self) -> None:
        self.engine = Marketplace("sqlite://", settings=MarketplaceSettings.for_tests())
        self._requesters: dict[str, str] = {}
        self._lock = threading.Lock()

    def requester_of(self, account_id: str) -> str:
        with self._lock:
            if account_id not in self._requesters:
                requester = self.engine.create_requester(f"AWS account {account_id}")
                self.engine.top_up(requester.requester_id, STARTING_BALANCE, "what a sandbox starts with")
                self._requesters[account_id] = requester.requester_id
            return self._requesters[account_id]


_markets: dict[str, _Market] = {}
_markets_lock = threading.Lock()


class MTurkBackend(BaseBackend):  # type: ignore[misc]  # moto is not followed
    """moto's handle on one account in one region; the data is the region's."""

    @property
    def market(self) -> _Market:
        """The region's market, opened at first use."""
        with _markets_lock:
            if self.region_name not in _markets:
                _markets[self.region_name] = _Market()
            return _markets[self.region_name]

    def reset(self) -> None:
        """Wipe the region."""
        with _markets_lock:
            market = _markets.pop(self.region_name, None)
        if market is not None:
            market.engine.close()
        super().reset()

    @property
    def _url_module(self) -> ModuleType:
        return sys.modules[__name__]


class MTurkResponse(BaseResponse):  # type: ignore[misc]  # moto is not followed
    """Hands the raw request to the engine and its answer back, past moto's own serialisers."""

    def __init__(self) -> None:
        """Name the service for moto."""
        super().__init__(service_name="mturk")

    def _dispatch(self, request: Any, full_url: Any = None, headers: Any = None) -> Any:
        self.setup_class(request, full_url, headers, use_raw_body=True)
        # The sandbox's host names us-east-1 too, yet its HITs and workers are its own.
        region = "sandbox" if "mturk-requester-sandbox." in self.uri else self.region
        market = mturk_backends[self.current_account][region].market
        body = self.raw_body or b""
        return wire.handle(
            market.engine,
            self.method,
            dict(self.headers),
            body.encode() if isinstance(body, str) else body,
            authenticate=lambda: market.requester_of(self.current_account),
        )


url_paths = {"{0}/$": MTurkResponse.dispatch}
mturk_backends: BackendDict[MTurkBackend] = BackendDict(MTurkBackend, "mturk", additional_regions=["sandbox"])


def marketplace(region: str = "us-east-1", account_id: str = DEFAULT_ACCOUNT) -> Marketplace:
    """Return the engine behind the mock of one region; call it inside mock_aws, since moto wipes it outside."""
    market: _Market = mturk_backends[account_id][region].market
    return market.engine


def requester_id(region: str = "us-east-1", account_id: str = DEFAULT_ACCOUNT) -> str:
    """Return the requester that an account of the mock is."""
    market: _Market = mturk_backends[account_id][region].market
    return market.requester_of(account_id)


def register() -> None:
    """Make moto find this module as its `mturk` service; doing it again changes nothing."""
    sys.modules.setdefault("moto.mturk", sys.modules[__name__])
    if all(name != "mturk" for name, _pattern in moto.backend_index.backend_url_patterns):
        moto.backend_index.backend_url_patterns.extend(("mturk", re.compile(base)) for base in url_bases)


register()
