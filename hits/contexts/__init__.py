"""Contexts: files of them, what of a file is new, what became of those of a round, and how a launch chooses."""

from hits.contexts.files import ContextsFile, read_contexts, read_lines
from hits.contexts.selection import STRATEGIES, Candidate, choose, strategy
from hits.contexts.usage import Usage, lock_contexts, usage_of

__all__ = [
    "STRATEGIES",
    "Candidate",
    "ContextsFile",
    "Usage",
    "choose",
    "lock_contexts",
    "read_contexts",
    "read_lines",
    "strategy",
    "usage_of",
]
