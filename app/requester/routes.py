"""Every page of the requester, on one blueprint."""

from __future__ import annotations

from app.requester import arms, batches, browse, compare, dashboard, matrix, practice, readers, views, writers
from app.requester.views import bp

__all__ = [
    "arms",
    "batches",
    "bp",
    "browse",
    "compare",
    "dashboard",
    "matrix",
    "practice",
    "readers",
    "views",
    "writers",
]
