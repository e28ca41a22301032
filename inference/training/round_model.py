"""Trains one model on base data and frozen rounds, and writes it as a folder with a card: planned, resumable, whole."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import shutil
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from hits.errors import InvalidInput, Refused
from hits.tasks import AnswerKind, TaskSpec
from inference.errors import NothingToRead
from inference.loading import asked_as, load_model
from inference.runtime import is_first_process, single_threaded_torch
from inference.target import ModelCard, TargetModel
from inference.training.checkpoints import Checkpoints
from inference.training.corpora import Asked, Row
from inference.training.fine_tune import OnDemand, Schedule, Tuned, Watch, fine_tune
from inference.training.items import places_of, votes_of
from inference.training.measures import measure
from inference.training.mixture import (
    Source,
    class_weights,
    held_back,
    learned_in,
    limited,
    watched,
    without_leaks,
)
from inference.training.model_folder import consequences, publish, serving_facts, write_facts, write_model
from inference.training.starts import Kind, Start, start_from

Rows = Sequence[Row | Asked]
#: What the weights depend on besides the data and the settings.
PACKAGES: Final = ("accelerate", "tokenizers", "torch", "transformers")
CHECKPOINT_STEPS: Final = 50
_TIMED_STEPS: Final = 3
#: What looking at a row costs in terms of learning from it.
_LOOKING: Final = 0.3


@dataclass(frozen=True)
class Settings:
    """How a model learns. ``length`` are the most positions of an input, ``dev_percent`` what of base data is dev.

    ``class_weights`` is "balanced", label -> factor, or None. Of the dev rows at most ``watched_rows`` are looked at,
    ``looks`` times in an epoch; training ends after ``patience`` looks that were no better, or ``max_minutes``.
    """

    epochs: int = 3
    batch_size: int = 16
    length: int = 128
    body_rate: float = 1e-4
    head_rate: float = 6e-4
    dropout: float = 0.1
    class_weights: str | Mapping[str, float] | None = None
    dev_percent: float = 5.0
    watched_rows: int = 1000
    looks: int = 2
    patience: int = 3
    limit_per_source: int | None = None
    max_minutes: float | None = None
    bfloat16: bool = False

    def __post_init__(self) -> None:
        bounds: dict[str, tuple[float, float]] = {
            "epochs": (1, 100),
            "batch_size": (1, 1024),
            "length": (16, 512),
            "body_rate": (1e-8, 1),
            "head_rate": (1e-8, 1),
            "dropout": (0, 0.9),
            "dev_percent": (0, 50),
            "watched_rows": (1, 1_000_000),
            "looks": (1, 100),
            "patience": (1, 100),
        }
        for name, (least, most) in bounds.items():
            if not least <= getattr(self, name) <= most:
                raise InvalidInput(f"{name} is {getattr(self, name):g}; it must be from {least:g} to {most:g}.")


@dataclass(frozen=True)
class Prepared:
    """The rows of a training, cleaned, and what follows from them. ``learned`` are the row places of each epoch."""

    sources: tuple[Source, ...]
    learned: tuple[tuple[int, ...], ...]
    watched: Rows
    weights: list[float] | None
    steps: int

    @property
    def rows(self) -> list[Row | Asked]:
        return [row for source in self.sources for row in source.train]


@dataclass(frozen=True)
class Wanted:
    """Which model is to be trained: of which task and rounds, from what, with which seed."""

    spec: TaskSpec
    rounds: tuple[int, ...]
    reference: str
    kind: Kind
    seed: int
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Trained:
    """A finished model: its folder, its facts (as in dynahit.json) and its card for the registry.

    ``fresh`` is False when the same training had been finished before.
    """

    folder: Path
    facts: dict[str, Any]
    card: ModelCard
    fresh: bool


def prepare(spec: TaskSpec, sources: Sequence[Source], settings: Settings) -> Prepared:
    """Return the rows as they are learned: base data with a part held back as dev, without leaks, limited.

    Sources without any dev rows of their own get some. Raises InvalidInput when nothing is left to learn, or a label
    is missing among what is learned.
    """
    labels = () if spec.kind is AnswerKind.SPAN else spec.label_codes
    chosen = [source if source.dev else held_back(source, settings.dev_percent) for source in sources]
    # Whole splits are measured on later, so that a limit must not hide what is in them.
    cleaned = tuple(limited(one, settings.limit_per_source) for one in without_leaks(chosen))
    if not any(source.train for source in cleaned):
        raise InvalidInput("There is nothing to learn from: no source has a training row. Name base data or a round.")
    met = {row.label for source in cleaned for row in source.train if isinstance(row, Row)}
    if missing := [label for label in labels if label not in met]:
        raise InvalidInput(f"No training row has the label {missing[0]!r}. Add base data that has it.")
    learned = tuple(tuple(learned_in(cleaned, epoch)) for epoch in range(settings.epochs))
    if not all(learned):
        raise InvalidInput("The weights leave an epoch without rows. Give a source a greater weight.")
    return Prepared(
        sources=cleaned,
        learned=learned,
        watched=watched(cleaned, settings.watched_rows),
        weights=class_weights(settings.class_weights, cleaned, labels),
        steps=sum(math.ceil(len(places) / settings.batch_size) for places in learned),
    )


def begin(wanted: Wanted, *, base: Path | None = None, local_files_only: bool = False) -> Start:
    """Return the model that is about to learn. Raises as start_from does."""
    return start_from(
        wanted.spec, wanted.reference, wanted.kind, seed=wanted.seed, base=base, local_files_only=local_files_only
    )


def identity_of(wanted: Wanted, prepared: Prepared, start: Start) -> str:
    """Return a hash over all that decides the weights but machine, threads and processes."""
    said = {
        "task": wanted.spec.code,
        "labels": list(wanted.spec.label_codes),
        "rounds": list(wanted.rounds),
        "sources": [[one.name, one.weight, _rows_sha256(one)] for one in prepared.sources],
        "start": [start.kind, start.weights, start.revision],
        "seed": wanted.seed,
        "settings": _stated(wanted.settings),
        "versions": _versions(),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def name_of(wanted: Wanted, start: Start, identity: str) -> str:
    """Return the name of the model's folder: task, last round, start, seed, identity."""
    last = max(wanted.rounds, default=0)
    return f"{wanted.spec.code}-r{last}-{start.name[:40]}-s{wanted.seed}-{identity[:10]}"


def seconds_of(wanted: Wanted, prepared: Prepared, start: Start) -> float:
    """Return about how many seconds the training takes, by a few steps; the start is of no use afterwards."""
    settings = wanted.settings
    rows = prepared.rows
    some = [rows[place] for place in prepared.learned[0]]
    some = [some[index * len(some) // 64] for index in range(min(64, len(some)))]
    lengths = sorted(range(len(some)), key=lambda at: len(str(some[at])))
    middle = [some[at] for at in lengths[len(lengths) // 4 :]][: settings.batch_size] or some
    items = _items(wanted.spec, start, middle, list(range(len(middle))), settings.length, with_empty=False)
    _require_items([items], settings)
    started: list[float] = []
    fine_tune(
        start.model,
        [items] * (_TIMED_STEPS + 1),
        _schedule(settings, start),
        seed=wanted.seed,
        advance=lambda loss: started.append(time.monotonic()),
    )
    # The first step also pays for what is set up once.
    each = (started[-1] - started[0]) / _TIMED_STEPS
    looked_at = settings.looks * settings.epochs * len(prepared.watched)
    return each * (prepared.steps + _LOOKING * looked_at / settings.batch_size)


def train_model(
    wanted: Wanted,
    prepared: Prepared,
    out: Path,
    *,
    threads: int,
    code: Mapping[str, Any],
    base: Path | None = None,
    local_files_only: bool = False,
    start: Start | None = None,
    advance: Callable[[float], None] = lambda loss: None,
    resumed: Callable[[int], None] = lambda steps: None,
    measured: Callable[[int], None] = lambda rows: None,
) -> Trained:
    """Train the model, write it to a folder of its own in ``out`` and return it.

    The folder appears whole or not at all. Killed, the training goes on where it was when it is asked for again;
    finished, the model is returned as it is. Of several processes the first one writes. Raises Refused while another
    command trains the same model.
    """
    start = start or begin(wanted, base=base, local_files_only=local_files_only)
    identity = identity_of(wanted, prepared, start)
    folder = out / name_of(wanted, start, identity)
    fresh = not folder.is_dir()
    if fresh:
        work = folder.with_name(f"{folder.name}.part")
        with _alone_in(work) if is_first_process() else nullcontext():
            checkpoints = Checkpoints(work / "checkpoints", every=CHECKPOINT_STEPS)
            resumed(checkpoints.steps_done())
            tuned = _tuned(wanted, prepared, start, checkpoints, advance)
            if is_first_process():
                _write(wanted, prepared, start, tuned, work / "model", folder, identity, threads, code, measured)
    if not is_first_process():
        return Trained(folder, {}, ModelCard(f"dir:{folder.name}", "", start.labels), fresh)
    facts = json.loads((folder / "dynahit.json").read_text(encoding="utf-8"))
    return Trained(folder, facts, load_trained(wanted.spec, folder).card, fresh)


@contextmanager
def _alone_in(work: Path) -> Iterator[None]:
    """Keep others out of a training's folder; the lock ends with the process, however that ends."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"{work.stem} is being trained by another command. Wait for it; this command returns its model then."
            ) from None
        yield


def load_trained(spec: TaskSpec, folder: Path) -> TargetModel:
    """Return the model in the folder as the service loads it. Raises LabelsUnknown, ModelUnusable."""
    return load_model(spec, f"dir:{folder}", local_files_only=True)


def reference_of(trained: Sequence[Trained]) -> str:
    """Return what DYNAHIT_MODELS calls the model, or the ensemble of several."""
    names = [f"dir:{one.folder}" for one in trained]
    return names[0] if len(names) == 1 else f"ensemble:mean({', '.join(names)})"


def _tuned(
    wanted: Wanted, prepared: Prepared, start: Start, checkpoints: Checkpoints, advance: Callable[[float], None]
) -> Tuned:
    settings, rows = wanted.settings, prepared.rows
    last = len(prepared.learned) - 1
    epochs = [
        _items(wanted.spec, start, rows, places, settings.length, with_empty=epoch == last)
        for epoch, places in enumerate(prepared.learned)
    ]
    _require_items(epochs, settings)
    asked = asked_as(wanted.spec, start.as_loaded())
    looked_at = _readable(asked, prepared.watched)
    key = "f1" if wanted.spec.kind is AnswerKind.SPAN else "macro_f1"
    watch = None
    if looked_at:
        per_epoch = sum(math.ceil(len(items) / settings.batch_size) for items in epochs) / len(epochs)
        watch = Watch(
            score=lambda model: float(measure(asked, looked_at)[key]),
            every=max(1, math.ceil(per_epoch / settings.looks)),
            patience=settings.patience,
            deadline=None if settings.max_minutes is None else time.monotonic() + 60 * settings.max_minutes,
        )
    return fine_tune(
        start.model,
        epochs,
        _schedule(settings, start),
        seed=wanted.seed,
        advance=advance,
        class_weights=_in_order(prepared.weights, wanted.spec.label_codes, start.labels),
        watch=watch,
        checkpoints=checkpoints,
    )


def _write(
    wanted: Wanted,
    prepared: Prepared,
    start: Start,
    tuned: Tuned,
    made: Path,
    out: Path,
    identity: str,
    threads: int,
    code: Mapping[str, Any],
    measured: Callable[[int], None],
) -> None:
    shutil.rmtree(made, ignore_errors=True)
    write_model(made, start, tuned.state)
    licences = {"the model that it started from": start.licence}
    licences |= {source.name: source.licence for source in prepared.sources}
    facts: dict[str, Any] = {
        "format": 1,
        "name": out.name,
        "task": wanted.spec.code,
        "task_version": wanted.spec.version,
        "labels": list(start.labels),
        "rounds": list(wanted.rounds),
        "identity": identity,
        "seed": wanted.seed,
        "start": {
            "reference": start.reference,
            "kind": start.kind,
            "revision": start.revision,
            "weights_sha256": start.weights,
            "licence": start.licence,
        },
        "licence": "; ".join(dict.fromkeys(licences.values()))[:200],
        "consequences": consequences(licences),
        "data": [_described(source) for source in prepared.sources],
        "settings": _stated(wanted.settings),
        "class_weights": prepared.weights,
        "training": {
            "steps": tuned.steps,
            "planned_steps": tuned.planned,
            "best_step": tuned.best_step,
            "ended": tuned.ended,
            "looks": [list(look) for look in tuned.looks],
            "watched_rows": len(prepared.watched),
            "processes": tuned.workers,
            "threads": threads,
            "processor": single_threaded_torch().backends.cpu.get_cpu_capability(),
        },
        "code": dict(code),
        "versions": _versions(),
        "scores": {},
    } | serving_facts(start)
    write_facts(made, facts)
    # What is measured is what will be served: the files, through the same loader, labels found by name.
    model = load_trained(wanted.spec, made)
    facts["weights_sha256"] = model.card.weights_sha256
    for source in prepared.sources:
        for split in ("dev", "test"):
            if rows := _readable(model, getattr(source, split)):
                facts["scores"][f"{source.name}, {split}"] = measure(model, rows, advance=measured)
    write_facts(made, facts)
    publish(made, out)


def _items(
    spec: TaskSpec, start: Start, rows: Rows, places: Sequence[int], length: int, *, with_empty: bool
) -> OnDemand:
    """Return what is learned of the rows at these places; a question may give two windows or none."""
    length = min(length, start.max_length)
    # Rows have their votes in the task's order, the model its outputs in one of its own.
    order = [spec.label_codes.index(label) for label in start.labels]

    def made(row: Row | Asked) -> list[Any]:
        if isinstance(row, Asked):
            return list(places_of([row], start.tokenizer, length, with_empty=with_empty))
        votes = votes_of([row], start.tokenizer, length, emoji_names=start.emoji_names)
        return [replace(one, parts=tuple(one.parts[at] for at in order)) for one in votes]

    owners, parts, lengths = array("l"), array("b"), array("i")
    known: dict[int, list[int]] = {}
    for place in places:
        if place not in known:
            known[place] = [len(item.encoded.ids) for item in made(rows[place])]
        for part, positions in enumerate(known[place]):
            owners.append(place)
            parts.append(part)
            lengths.append(positions)
    return OnDemand(lambda index: made(rows[owners[index]])[parts[index]], lengths)


def _require_items(epochs: Sequence[OnDemand], settings: Settings) -> None:
    if not all(len(items) for items in epochs):
        raise InvalidInput(f"No answer fits into {settings.length} word pieces with its question. Raise --length.")


def _in_order(weights: Sequence[float] | None, labels: Sequence[str], outputs: Sequence[str]) -> list[float] | None:
    """Return the labels' weights in the order of the model's outputs."""
    return None if weights is None else [weights[list(labels).index(label)] for label in outputs]


def _readable(model: TargetModel, rows: Rows) -> list[Row | Asked]:
    """Return the rows of which the model sees a word of every text."""
    encode: Any = getattr(model, "encode", None) or model.windows  # type: ignore[attr-defined]
    found = []
    for row in rows:
        try:
            encode(row.texts if isinstance(row, Row) else (row.passage, row.question))
        except NothingToRead:
            continue
        found.append(row)
    return found


def _schedule(settings: Settings, start: Start) -> Schedule:
    return Schedule(
        batch_size=settings.batch_size,
        body_rate=settings.body_rate,
        head_rate=settings.head_rate,
        dropout=settings.dropout,
        bfloat16=settings.bfloat16,
        embeddings_learn=start.embeddings_learn,
    )


def _described(source: Source) -> dict[str, Any]:
    return {
        "name": source.name,
        "train": len(source.train),
        "dev": len(source.dev),
        "test": len(source.test),
        "weight": source.weight,
        "licence": source.licence,
        "left_out": dict(source.left_out),
        "facts": {**source.facts, "rows_sha256": _rows_sha256(source)},
    }


def _rows_sha256(source: Source) -> str:
    """Return a hash over what is learned and looked at, as it is read: texts, labels, votes, places of answers."""
    digest = hashlib.sha256()
    for split, rows in (("train", source.train), ("dev", source.dev)):
        digest.update(split.encode())
        for row in rows:
            digest.update(json.dumps(asdict(row), sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def _stated(settings: Settings) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if name != "max_minutes" or value is not None}


def _versions() -> dict[str, str]:
    return {name: version(name) for name in PACKAGES}
