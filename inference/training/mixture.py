"""Which rows a training learns in each epoch, from how many sources, and which it is watched and tested by."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hits.errors import InvalidInput
from hits.splits import normalised
from inference.training.corpora import Asked, Row
from inference.training.splits import place_of, sample

Rows = Sequence[Row | Asked]
BALANCED: Final = "balanced"


@dataclass(frozen=True)
class Source:
    """Rows of one origin by split. ``weight`` is how often an epoch learns each of them on average.

    ``facts`` tell the model's card what it is: hashes, licence, manifest. ``families`` says that a row's group means
    the same in every source that says so: an original and what was made of it may stand in different rounds.
    """

    name: str
    train: Rows
    dev: Rows = ()
    test: Rows = ()
    weight: float = 1.0
    licence: str = "not stated"
    facts: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    families: bool = False


def held_back(source: Source, percent: float) -> Source:
    """Return the source with about ``percent`` of its groups moved from train to dev, the same on every machine."""
    kept: list[Row | Asked] = []
    held: list[Row | Asked] = []
    for row in source.train:
        (held if place_of(_group(row)) < round(percent * 100) else kept).append(row)
    return replace(source, train=kept, dev=[*source.dev, *held])


def limited(source: Source, most: int | None) -> Source:
    """Return the source with at most so many rows of each split, spread evenly."""
    if most is None:
        return source
    return replace(
        source,
        train=sample(source.train, most),
        dev=sample(source.dev, most),
        test=sample(source.test, most),
    )


def without_leaks(sources: Sequence[Source]) -> list[Source]:
    """Return the sources without training rows that share a text, a context or a family with any dev or test row.

    Nor has a dev row anything in common with a test row. How many were taken out stands in ``left_out``.
    """
    test = {key for source in sources for row in source.test for key in _keys(source, row)}
    shares = "row that shares a text or a family with a"
    cleaned = [_without(source, "dev", test, f"dev {shares} test row") for source in sources]
    held = test | {key for source in cleaned for row in source.dev for key in _keys(source, row)}
    return [_without(source, "train", held, f"{shares} dev or test row") for source in cleaned]


def class_weights(
    said: str | Mapping[str, float] | None, sources: Sequence[Source], labels: Sequence[str]
) -> list[float] | None:
    """Return how much a row of each label counts, None when all count alike.

    "balanced" lets every label count the same in total. Raises InvalidInput for labels that there are not.
    """
    if said is None or not labels:
        if said is not None:
            raise InvalidInput("A task whose answers are stretches of a passage has no classes to weigh.")
        return None
    if isinstance(said, str):
        if said != BALANCED:
            raise InvalidInput(f"{said!r} are no class weights. Write balanced, or LABEL=FACTOR.")
        counts = Counter[str]()
        for source in sources:
            for row in source.train:
                if isinstance(row, Row):
                    counts[row.label] += 1
        total = sum(counts.values())
        return [total / (len(labels) * counts[label]) if counts[label] else 1.0 for label in labels]
    if unknown := sorted(set(said) - set(labels)):
        raise InvalidInput(f"{unknown[0]!r} is no label of this task. The labels are {', '.join(labels)}.")
    if any(not 0 < weight <= 1000 for weight in said.values()):
        raise InvalidInput(f"The class weights {dict(said)} must be more than 0 and at most 1000.")
    return [said.get(label, 1.0) for label in labels]


def learned_in(sources: Sequence[Source], epoch: int) -> list[int]:
    """Return the places of the rows that an epoch learns, in all training rows of the sources one after the other.

    A weight of 2 gives every row twice, one of 0.5 half of the rows, other ones in the next epoch.
    """
    chosen: list[int] = []
    before = 0
    for source in sources:
        count = len(source.train)
        whole, part = int(source.weight), round((source.weight % 1) * count)
        places = list(range(before, before + count))
        chosen += places * whole
        # Shuffled by the name, so that the order of a file decides nothing.
        mixed = sorted(places)
        random.Random(source.name).shuffle(mixed)  # noqa: S311, shuffling is no secret
        chosen += [mixed[(epoch * part + index) % count] for index in range(part)]
        before += count
    return chosen


def watched(sources: Sequence[Source], most: int) -> list[Row | Asked]:
    """Return at most so many dev rows, of every source its share, but none less than a tenth of the room."""
    total = sum(len(source.dev) for source in sources)
    rows: list[Row | Asked] = []
    for source in sources:
        share = max(most * len(source.dev) // max(total, 1), most // 10)
        rows += sample(source.dev, share)
    return rows


def _without(source: Source, split: str, held: set[bytes], reason: str) -> Source:
    rows = getattr(source, split)
    kept = [row for row in rows if not any(key in held for key in _keys(source, row))]
    if len(kept) == len(rows):
        return source
    left_out: dict[str, int] = {**source.left_out, reason: len(rows) - len(kept)}
    changed: dict[str, Any] = {split: kept, "left_out": left_out}
    return replace(source, **changed)


def _group(row: Row | Asked) -> str:
    """Return what the row belongs to; a row of no group stands for itself."""
    return row.group or (" ".join(row.texts) if isinstance(row, Row) else row.passage)


def _keys(source: Source, row: Row | Asked) -> list[bytes]:
    texts = row.texts if isinstance(row, Row) else (row.passage, row.question)
    said = [f"{place} {normalised(text)}" for place, text in enumerate(texts)]
    if source.families and row.group:
        said.append(f"family {row.group}")
    return [hashlib.blake2b(one.encode(), digest_size=12).digest() for one in said]
