"""What can go wrong with who may work, in the caller's words.

HitsError
└── QualificationError
    ├── NoSuchQuiz           the task has no such quiz, or its pool is too small
    └── Refused (too)
        ├── QuizNotOpen      the quiz can't be taken now: passed, too soon, no tries left, taken away
        └── NotAdmitted      somebody may not work on a HIT; says why in plain words
"""

from __future__ import annotations

from datetime import datetime

from hits.errors import HitsError, InvalidInput, Refused


class QualificationError(HitsError):
    """Base of the errors of this package; its text is fit to be shown to people."""


class NoSuchQuiz(QualificationError, InvalidInput):
    """The task has no such quiz, or its pool is too small to draw from twice."""


class QuizNotOpen(QualificationError, Refused):
    """Somebody can't take a quiz now. ``again_at`` is when that changes by itself, None if it doesn't."""

    def __init__(self, why: str, again_at: datetime | None = None) -> None:
        super().__init__(why)
        self.again_at = again_at


class NotAdmitted(QualificationError, Refused):
    """Somebody may not work on a HIT; the message says why in plain words, and nothing was stored."""
