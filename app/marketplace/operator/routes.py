"""Every page of the operator console, on its blueprint."""

from __future__ import annotations

from app.marketplace.operator import accounts, complaints, entry, payouts
from app.marketplace.operator.console import operator

MODULES = (accounts, complaints, entry, payouts)

__all__ = ["MODULES", "operator"]
