"""Every page of the requester console, on its blueprint."""

from __future__ import annotations

from app.marketplace.requester import account, entry, hits, layouts, notifications, qualifications, review, workers
from app.marketplace.requester.console import requester

MODULES = (account, entry, hits, layouts, notifications, qualifications, review, workers)

__all__ = ["MODULES", "requester"]
