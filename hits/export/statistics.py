"""The figures that card and datasheet state, counted while the examples pass by."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from hits.export.rows import ExportedExample


@dataclass
class SplitFigures:
    """Counts of one split, or of one round; ``votes`` counts examples by how many readers judged them."""

    examples: int = 0
    verified: int = 0
    fooled: int = 0
    model_known: int = 0
    words: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    settled_by: Counter[str] = field(default_factory=Counter)
    votes: Counter[int] = field(default_factory=Counter)
    unanimous: int = 0
    judged: int = 0
    flags: int = 0
    writers: set[str] = field(default_factory=set)
    validators: set[str] = field(default_factory=set)

    def add(self, example: ExportedExample) -> None:
        """Count an example."""
        self.examples += 1
        self.verified += example.verified
        self.fooled += example.fooled is True
        self.model_known += example.fooled is not None
        self.words += sum(len(text.split()) for text in example.texts.values() if isinstance(text, str))
        self.labels[example.label or "none"] += 1
        self.verdicts[example.verdict] += 1
        self.settled_by[example.label_from or "nobody"] += 1
        given = [vote["label"] for vote in example.votes if vote["label"] is not None]
        self.votes[len(given)] += 1
        self.judged += bool(given)
        self.unanimous += bool(given) and len(set(given)) == 1
        self.flags += example.flags
        if example.writer is not None:
            self.writers.add(example.writer)
        self.validators.update(vote["validator"] for vote in example.votes if vote["validator"] is not None)


@dataclass
class Statistics:
    """Figures of an export: whole, by split, and by round."""

    whole: SplitFigures = field(default_factory=SplitFigures)
    by_split: defaultdict[str, SplitFigures] = field(default_factory=lambda: defaultdict(SplitFigures))
    by_round: defaultdict[int, SplitFigures] = field(default_factory=lambda: defaultdict(SplitFigures))

    def add(self, example: ExportedExample) -> None:
        """Count an example."""
        self.whole.add(example)
        self.by_split[example.split].add(example)
        self.by_round[example.round].add(example)
