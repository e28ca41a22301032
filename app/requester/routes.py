"""Every page of the requester, on one blueprint."""

from __future__ import annotations

from app.requester import batches, matrix, practice, readers, views
from app.requester.views import bp

__all__ = ["batches", "bp", "matrix", "practice", "readers", "views"]
