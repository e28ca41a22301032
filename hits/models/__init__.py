"""The tables of the work. Importing this package registers all of them on ``hits.db.Base.metadata``."""

import hits.models.frozen  # noqa: F401 - registers its triggers
from hits.models.arms import ArmAssignment, ArmPlan
from hits.models.care import Consent, ConsentText, Exposure, Rejection
from hits.models.contexts import ContextScore, ContextUpload, RetiredContext, UploadedContext
from hits.models.likeness import Likeness, TextBand, Writing
from hits.models.measures import BiasReport, MeasuredSet, ModelAnswers, ModelScore
from hits.models.people import Worker
from hits.models.rounds import Context, GoldItem, Hit, HitBatch, ModelVersion, Round, RoundMove
from hits.models.work import Assignment, Attempt, Example, Lease, Vote

__all__ = [
    "ArmAssignment",
    "ArmPlan",
    "Assignment",
    "Attempt",
    "BiasReport",
    "Consent",
    "ConsentText",
    "Context",
    "ContextScore",
    "ContextUpload",
    "Example",
    "Exposure",
    "GoldItem",
    "Hit",
    "HitBatch",
    "Lease",
    "Likeness",
    "MeasuredSet",
    "ModelAnswers",
    "ModelScore",
    "ModelVersion",
    "Rejection",
    "RetiredContext",
    "Round",
    "RoundMove",
    "TextBand",
    "UploadedContext",
    "Vote",
    "Worker",
    "Writing",
]
