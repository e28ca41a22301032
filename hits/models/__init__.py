"""The tables of the work. Importing this package registers all of them on ``hits.db.Base.metadata``."""

from hits.models.people import Worker
from hits.models.rounds import Context, Hit, HitBatch, HitItem, ModelVersion, Round
from hits.models.work import Assignment, Attempt, Example, Vote

__all__ = [
    "Assignment",
    "Attempt",
    "Context",
    "Example",
    "Hit",
    "HitBatch",
    "HitItem",
    "ModelVersion",
    "Round",
    "Vote",
    "Worker",
]
