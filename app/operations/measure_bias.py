"""Looks for what the data of a frozen round give away, and stores it. Commits.

A round's examples are read once, a page at a time; what is kept of them are counts and features, not texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.clock import Clock
from hits.errors import Refused
from hits.export import find_round
from hits.export.stored import StoredExample
from hits.frozen import is_frozen
from hits.measures.baselines import HashedTexts, learn, most_frequent
from hits.measures.intervals import Estimate, mean, share
from hits.measures.profiles import Lengths, Repeats
from hits.measures.sets import row_of, split_examples
from hits.measures.skew import FALSE_FINDS, LEAST_TEXTS, WordCounts
from hits.measures.span_baselines import WithoutPassage, WithoutQuestion, marked, overlaps
from hits.models import BiasReport, Round
from hits.rates import Rate
from hits.states import Split
from hits.tasks import RIGHT_FROM_F1, TaskSpec, task

#: Rises when a part of the report changes its meaning; reports of earlier formats are made anew.
FORMAT: Final = 1
#: With fewer examples to learn from, or to be scored on, a baseline says nothing.
LEAST_ROWS: Final = 20

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Bias:
    """The report of a round; ``fresh`` is False where it was stored before."""

    task_code: str
    number: int
    report: dict[str, Any]
    fresh: bool


def stored_bias(session: Session, task_code: str, number: int, *, seed: int | None = 0) -> dict[str, Any] | None:
    """Return the stored report of a round, None when there is none; without a seed the latest. Reads only.

    Raises NotFound for an unknown round.
    """
    round_ = find_round(session, task_code, number)
    wanted = select(BiasReport.report).where(
        BiasReport.round_id == round_.id,
        BiasReport.manifest_sha256 == round_.manifest_sha256,
        BiasReport.format == FORMAT,
    )
    if seed is not None:
        wanted = wanted.where(BiasReport.seed == seed)
    return session.scalar(wanted.order_by(BiasReport.id.desc()).limit(1))


def measure_bias(
    session: Session,
    clock: Clock,
    task_code: str,
    number: int,
    *,
    seed: int = 0,
    advance: Advance = lambda count: None,
) -> Bias:
    """Look at a frozen round's data and store what was found, or return what was stored before.

    ``advance`` is told how many more examples were read. Raises NotFound, and Refused for a round that is not frozen.
    """
    round_ = _frozen(session, task_code, number)
    if (known := stored_bias(session, task_code, number, seed=seed)) is not None:
        session.rollback()
        return Bias(task_code, number, known, fresh=False)
    round_id, manifest = round_.id, round_.manifest_sha256 or ""
    session.rollback()
    reading = _Reading(task(task_code))
    for stored in split_examples(session, round_id):
        reading.add(stored)
        advance(1)
    report = {"task": task_code, "round": number, "manifest_sha256": manifest, "seed": seed} | reading.report(seed)
    session.add(
        BiasReport(round_id=round_id, manifest_sha256=manifest, format=FORMAT, seed=seed, report=report, at=clock.now())
    )
    try:
        session.commit()
    except IntegrityError:
        # Somebody else has looked at the same time, and found the same.
        session.rollback()
    return Bias(task_code, number, report, fresh=True)


def _frozen(session: Session, task_code: str, number: int) -> Round:
    round_ = find_round(session, task_code, number)
    if not is_frozen(round_):
        raise Refused(
            f"Round {number} of the {task_code} task is not frozen, so that its data may still change and it has no"
            f" splits. `dynahit round freeze {task_code} {number}` freezes it."
        )
    return round_


@dataclass
class _View:
    """A part of the input, and what was read of it for learning and for scoring."""

    name: str
    fields: tuple[str, ...]
    train: HashedTexts = field(default_factory=HashedTexts)
    test: HashedTexts = field(default_factory=HashedTexts)


class _Reading:
    """What is gathered while the examples of a round go by."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.labels = spec.label_codes
        self.written = tuple(item.name for item in spec.text_inputs)
        self.skew = {name: WordCounts(self.labels) for name in self.written}
        self.lengths = {name: Lengths() for name in self.written}
        self.repeats = Repeats()
        self.used = self.left_out = 0
        self.parts: dict[str, Counter[str]] = {}
        self.fooled: dict[str, Counter[str]] = {}
        self.asked = Counter[str]()
        self.views = views_of(spec) if spec.span_input is None else []
        self.right: dict[Split, list[int]] = {Split.TRAIN: [], Split.TEST: []}
        self.spans = _Spans(spec)

    def add(self, stored: StoredExample) -> None:
        """Take one more example in."""
        row = row_of(self.spec, stored)
        if row is None:
            self.left_out += 1
            return
        self.used += 1
        label = row.right[0] if self.spec.span_input is None else self._seen_as(stored)
        for name in self.written:
            self.lengths[name].add(stored.answer[name], label)
            if self.spec.span_input is None:
                self.skew[name].add(stored.answer[name], label)
        self.repeats.add(tuple(stored.answer[name] for name in self.written), row.right[0])
        self._count_errors(stored, row.parts)
        if self.spec.span_input is not None:
            self.spans.add(stored)
        elif stored.split in self.right:
            self.right[stored.split].append(self.labels.index(label))
            known = {**stored.context, **stored.answer}
            for view in self.views:
                texts = view.train if stored.split is Split.TRAIN else view.test
                texts.add(tuple(known[name] for name in view.fields))

    def report(self, seed: int) -> dict[str, Any]:
        """Return what was found, as JSON."""
        shown = {name: counts.skewed() for name, counts in self.skew.items()} if self.spec.span_input is None else {}
        labels = self.labels if self.spec.span_input is None else ("fooled the model", "did not", "not known")
        return {
            "format": FORMAT,
            "examples": self.used,
            "left_out": self.left_out,
            "baselines": self._baselines(seed),
            "skew": {
                name: {
                    "words": [one.as_json() for one in words],
                    "found": found,
                    "tests": tests,
                    "false_finds": FALSE_FINDS,
                    "least_texts": LEAST_TEXTS,
                }
                for name, (words, found, tests) in shown.items()
            },
            "errors_by_part": self._errors(),
            "lengths": {name: lengths.profile(labels) for name, lengths in self.lengths.items()},
            "repeats": self.repeats.profile(),
        }

    def _seen_as(self, stored: StoredExample) -> str:
        return "not known" if stored.fooled is None else "fooled the model" if stored.fooled else "did not"

    def _count_errors(self, stored: StoredExample, parts: Mapping[str, tuple[str, ...]]) -> None:
        if stored.fooled is None:
            return
        for kind, names in parts.items():
            self.parts.setdefault(kind, Counter()).update(names)
            self.fooled.setdefault(kind, Counter()).update(names if stored.fooled else ())
        self.asked.update(["all"] + (["fooled"] if stored.fooled else []))

    def _errors(self) -> dict[str, Any]:
        if not self.parts:
            return {}
        return {
            "all": _rate(Rate(self.asked["fooled"], self.asked["all"])),
            "by": {
                kind: {name: _rate(Rate(self.fooled[kind][name], rows)) for name, rows in sorted(names.items())}
                for kind, names in self.parts.items()
            },
        }

    def _baselines(self, seed: int) -> dict[str, Any]:
        if self.spec.span_input is not None:
            return self.spans.report(seed)
        train, test = self.right[Split.TRAIN], self.right[Split.TEST]
        head = {"figure": "accuracy", "train": len(train), "test": len(test)}
        if why := too_few(len(train), len(test)):
            return head | {"why_none": why, "majority": None, "views": []}
        # The best that one answer for everything reaches on these examples, so that no baseline looks good too easily.
        usual = most_frequent(test, len(self.labels))
        guessed = [float(usual == right) for right in test]
        views = []
        for view in self.views:
            said = learn(view.train, train, len(self.labels), seed=seed).classify(view.test)
            hits = [float(one == right) for one, right in zip(said, test, strict=True)]
            views.append(_view_report(view.name, view.fields, hits, guessed, seed))
        majority = {"label": self.labels[usual], **share(int(sum(guessed)), len(guessed), seed=seed).as_json()}
        return head | {"why_none": None, "majority": majority, "views": views}


class _Spans:
    """What is gathered for the baselines of a task whose answers are marked in a passage."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.without_passage = WithoutPassage()
        self.without_question = WithoutQuestion()
        self.answers: Counter[str] = Counter()
        self.test: list[tuple[str, str, str]] = []

    def add(self, stored: StoredExample) -> None:
        """Take one more example in."""
        span = self.spec.span_input
        if span is None or stored.split not in (Split.TRAIN, Split.TEST):
            return
        passage = stored.context[span.of]
        question = " ".join(stored.answer[item.name] for item in self.spec.text_inputs)
        answer = stored.answer[span.name]
        if stored.split is Split.TEST:
            self.test.append((passage, question, answer))
            return
        self.answers[answer] += 1
        self.without_passage.add(question, answer)
        self.without_question.add(passage, int(stored.answer[span.start_name]), answer)

    def report(self, seed: int) -> dict[str, Any]:
        """Return how far one gets without the passage, and without the question, by the share of right answers."""
        train = self.answers.total()
        head = {"figure": f"answers with a token F1 of {RIGHT_FROM_F1} or more", "train": train, "test": len(self.test)}
        if why := too_few(train, len(self.test)):
            return head | {"why_none": why, "majority": None, "views": []}
        right = [answer for _, _, answer in self.test]
        usual = self.answers.most_common(1)[0][0]
        guessed = _right(overlaps([usual] * len(right), right))
        classifier, common = self.without_passage.learned(seed=seed)
        questions = HashedTexts(classifier.weights.shape[0])
        for _, question, _ in self.test:
            questions.add((question,))
        closed_book = _right(overlaps([common[one] for one in classifier.classify(questions)], right))
        first_word, length = self.without_question.learned(seed=seed)
        unasked = _right(overlaps([marked(first_word, length, passage) for passage, _, _ in self.test], right))
        names = [item.name for item in self.spec.text_inputs]
        span = self.spec.span_input
        views = [
            _view_report("the question alone", names, closed_book, guessed, seed),
            _view_report("the passage alone", [span.of if span is not None else ""], unasked, guessed, seed),
        ]
        majority = {"label": usual, **share(int(sum(guessed)), len(guessed), seed=seed).as_json()}
        return head | {"why_none": None, "majority": majority, "views": views}


def views_of(spec: TaskSpec) -> list[_View]:
    """Return the parts of the input by which a label might be told: each field alone, then all that the model reads."""
    context = [(item.name, item.label) for item in spec.context_fields]
    written = [(item.name, item.label) for item in spec.text_inputs]
    found = [_View(f"{name} alone", (name,)) for name, _ in (*written, *context)]
    if len(spec.model_fields) > 1:
        found.append(_View(f"words of {' and '.join(spec.model_fields)}", spec.model_fields))
    return found


def too_few(train: int, test: int) -> str:
    """Return why a baseline says nothing, empty when it does."""
    if train < LEAST_ROWS or test < LEAST_ROWS:
        return (
            f"There are {train} examples to learn from and {test} to be scored on; {LEAST_ROWS} of each are the least."
        )
    return ""


def _right(overlap: Sequence[float]) -> list[float]:
    return [float(one >= RIGHT_FROM_F1) for one in overlap]


def _view_report(
    name: str, fields: Sequence[str], hits: Sequence[float], guessed: Sequence[float], seed: int
) -> dict[str, Any]:
    above = mean([one - other for one, other in zip(hits, guessed, strict=True)], seed=seed, least=-1.0)
    reached: Estimate = share(int(sum(hits)), len(hits), seed=seed)
    return {"view": name, "fields": list(fields), **reached.as_json(), "above_majority": asdict(above)}


def _rate(rate: Rate) -> dict[str, Any]:
    bounds = rate.bounds
    return {
        "rows": rate.of,
        "wrong": rate.hits,
        "share": rate.hits / rate.of if rate.of else None,
        "low": bounds[0] if bounds else None,
        "high": bounds[1] if bounds else None,
    }
