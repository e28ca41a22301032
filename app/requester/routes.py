"""Every page of the requester, on one blueprint."""

from __future__ import annotations

from app.requester import arms, batches, matrix, practice, readers, views, writers
from app.requester.views import bp

__all__ = ["arms", "batches", "bp", "matrix", "practice", "readers", "views", "writers"]
