"""Trains the next target model on base data and all frozen rounds up to one, and registers it. Commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.export_dataset import DEFAULT_LICENCE
from app.operations.freeze import code_in_use
from hits.clock import Clock
from hits.errors import HitsError, InvalidInput, Refused
from hits.export import find_round
from hits.export.rows import settled_label
from hits.export.stored import StoredExample, id_pages, order_of, stored_examples
from hits.frozen import is_frozen
from hits.manifest import Digest, require_unchanged
from hits.models import ModelVersion, Round
from hits.predictions import AnswerSpan
from hits.rounds import move
from hits.states import RoundState, Split
from hits.tasks import TaskSpec, task
from inference.runtime import is_first_process
from inference.training.base_files import BaseFile, read_base
from inference.training.cards import described
from inference.training.corpora import Asked, Row, one_vote
from inference.training.mixture import Source
from inference.training.recipes import RECIPES
from inference.training.round_model import (
    Prepared,
    Settings,
    Trained,
    Wanted,
    begin,
    identity_of,
    name_of,
    prepare,
    reference_of,
    seconds_of,
    train_model,
)
from inference.training.starts import Kind

BASE: Final = "base"
_SPLITS: Final = {Split.TRAIN: "train", Split.DEV: "dev", Split.TEST: "test"}

#: Told (title, total); yields what is told how many more are done, and a word about it.
Bar = Callable[[str, int | None], AbstractContextManager[Callable[[int, str], None]]]


@dataclass(frozen=True)
class TrainTerms:
    """What is trained: on the frozen rounds up to ``number`` (0: on base data alone) and on which base data.

    ``base`` are files, ``data`` the folder with what the task's own model learned from. ``weights`` say how often an
    epoch learns a row: of the base data under "base", of a round under its number; 1 unless said. Every model is
    trained with every seed. ``start`` None: a new head on the pretrained encoder when there is base data, else the
    model as it is tuned already.
    """

    task_code: str
    number: int
    base: tuple[BaseFile, ...] = ()
    data: Path | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1,)
    start: Kind | None = None
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Machine:
    """Where and how it is computed: the folder for models, threads, base weights, whether the hub may be asked."""

    out: Path
    threads: int
    base_weights: Path | None = None
    local_files_only: bool = False


@dataclass(frozen=True)
class TrainingPlan:
    """What a training would do. ``seconds`` is None where a model is not on this machine yet."""

    task_code: str
    rounds: tuple[int, ...]
    start: Kind
    sources: tuple[Source, ...]
    steps: int
    models: tuple[str, ...]
    names: tuple[str, ...]
    seconds: float | None

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.task_code,
            "rounds": list(self.rounds),
            "start": self.start,
            "sources": [
                {
                    "name": one.name,
                    "train": len(one.train),
                    "dev": len(one.dev),
                    "test": len(one.test),
                    "weight": one.weight,
                    "licence": one.licence,
                    "left_out": dict(one.left_out),
                }
                for one in self.sources
            ],
            "steps": self.steps,
            "models": list(self.models),
            "names": list(self.names),
            "seconds": None if self.seconds is None else round(self.seconds),
        }


@dataclass(frozen=True)
class TrainedRound:
    """The trained models and how DYNAHIT_MODELS calls them together."""

    task_code: str
    rounds: tuple[int, ...]
    models: tuple[Trained, ...]
    reference: str

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.task_code,
            "rounds": list(self.rounds),
            "reference": self.reference,
            "models": [
                {
                    "folder": str(one.folder),
                    "model_id": one.card.model_id,
                    "revision": one.card.revision,
                    "weights_sha256": one.card.weights_sha256,
                    "fresh": one.fresh,
                    "training": one.facts["training"],
                    "scores": one.facts["scores"],
                    "consequences": one.facts["consequences"],
                }
                for one in self.models
            ],
        }


def plan_training(session: Session, terms: TrainTerms, machine: Machine) -> TrainingPlan:
    """Return what a training would do; the time is that of a few real steps. Changes nothing. Raises as train_round."""
    rounds, prepared = _prepared(session, terms)
    wanted = _wanted(terms, rounds)
    names, seconds = [], 0.0
    known = True
    for one in wanted:
        try:
            start = begin(one, base=machine.base_weights, local_files_only=True)
        except InvalidInput:
            raise
        except HitsError:
            known = False
            continue
        names.append(name_of(one, start, identity_of(one, prepared, start)))
        seconds += seconds_of(one, prepared, start)
    return TrainingPlan(
        task_code=terms.task_code,
        rounds=rounds,
        start=wanted[0].kind,
        sources=prepared.sources,
        steps=prepared.steps,
        models=tuple(dict.fromkeys(one.reference for one in wanted)),
        names=tuple(names),
        seconds=seconds if known else None,
    )


def train_round(
    session: Session, clock: Clock, terms: TrainTerms, machine: Machine, *, by: str, bar: Bar
) -> TrainedRound:
    """Train, write and register the models, and say of the round that it is trained.

    Killed, it goes on where it was when it is asked again; done, it does nothing twice. Of several processes that a
    launcher started, all learn, and the first one writes and registers.
    Raises NotFound, InvalidInput, Refused for a round that is not frozen or was changed since, ModelNotLoaded.
    """
    rounds, prepared = _prepared(session, terms)
    code = code_in_use()
    trained = []
    for one in _wanted(terms, rounds):
        title = f"{one.reference}, seed {one.seed}"
        rows = sum(len(source.dev) + len(source.test) for source in prepared.sources)
        with bar(title, prepared.steps) as stepped, bar("measuring", rows) as measured:
            trained.append(
                train_model(
                    one,
                    prepared,
                    machine.out,
                    threads=machine.threads,
                    code=code,
                    base=machine.base_weights,
                    local_files_only=machine.local_files_only,
                    advance=_smoothed(stepped),
                    resumed=lambda steps, told=stepped: told(steps, "going on"),  # type: ignore[misc]
                    measured=lambda rows, told=measured: told(rows, ""),  # type: ignore[misc]
                )
            )
    found = TrainedRound(terms.task_code, rounds, tuple(trained), reference_of(trained))
    if is_first_process():
        for model in trained:
            register_trained(session, clock, task(terms.task_code), model)
        _say_trained(session, clock, terms, found, by=by)
        session.commit()
    return found


def register_trained(session: Session, clock: Clock, spec: TaskSpec, trained: Trained) -> ModelVersion:
    """Add the model to the registry, or what is known now to its row. Flushes, never commits.

    Raises Refused when its labels are not the task's by name.
    """
    card = trained.card
    wanted = () if spec.span_input is not None else spec.label_codes
    if sorted(card.labels) != sorted(wanted):
        raise Refused(
            f"{trained.folder} knows the labels {sorted(card.labels)}, but the {spec.code} task has {sorted(wanted)}."
            " It was not registered; train it for this task."
        )
    known = select(ModelVersion).where(ModelVersion.model_id == card.model_id, ModelVersion.revision == card.revision)
    row = session.scalar(known)
    if row is None:
        row = ModelVersion(
            task_code=spec.code, model_id=card.model_id, revision=card.revision, first_seen_at=clock.now()
        )
        session.add(row)
    row.labels = list(card.labels) or list(spec.label_codes)
    row.label_map = dict(card.label_map) or None
    row.weights_sha256 = card.weights_sha256
    row.licence = card.licence
    row.parameters = card.parameters
    row.seed = card.seed
    row.card = {"folder": str(trained.folder.resolve()), **trained.facts}
    session.flush()
    return row


def round_source(session: Session, spec: TaskSpec, round_: Round) -> Source:
    """Return the settled examples of a frozen round by split. Ends the transaction after each page.

    Raises Refused when they are not those that were frozen.
    """
    rows: dict[str, list[Row | Asked]] = {"train": [], "dev": [], "test": []}
    left_out: dict[str, int] = {}
    passages: dict[str, str] = {}
    digest = Digest()
    if round_ in session:
        session.expunge(round_)
    for page in order_of(id_pages(session, round_.id)).pages():
        for stored in stored_examples(session, page):
            digest.add(stored)
            row = _row(spec, stored, passages)
            if isinstance(row, str):
                left_out[row] = left_out.get(row, 0) + 1
            else:
                rows[_SPLITS[stored.split or Split.TRAIN]].append(row)
        # On SQLite an open transaction keeps everybody else from writing.
        session.rollback()
    require_unchanged(round_, digest)
    licences = [one["licence"] for one in round_.origin or ()] or [DEFAULT_LICENCE]
    return Source(
        name=f"round {round_.number}",
        train=rows["train"],
        dev=rows["dev"],
        test=rows["test"],
        licence=", ".join(dict.fromkeys(licences)),
        facts={"manifest_sha256": round_.manifest_sha256},
        left_out=left_out,
        families=True,
    )


def _row(spec: TaskSpec, stored: StoredExample, passages: dict[str, str]) -> Row | Asked | str:
    """Return the example as a model learns it, or why it is of no use."""
    label, _ = settled_label(stored)
    if stored.split not in _SPLITS:
        return "withheld from all splits"
    if label is None or label not in (spec.goals if spec.span_input is not None else spec.label_codes):
        return "no label that counts"
    texts = tuple(spec.model_input(stored.context, stored.answer).values())
    if not all(text.strip() for text in texts):
        return "an empty text"
    group = (stored.published or {}).get("family") or stored.public_id
    if spec.span_input is not None:
        answer, start = stored.answer[spec.span_input.name], int(stored.answer[spec.span_input.start_name])
        # Many questions are about one passage, which is kept once.
        passage = passages.setdefault(texts[0], texts[0])
        return Asked(passage, texts[1], (AnswerSpan(start, start + len(answer), answer),), group)
    counts = [sum(vote.label == code for vote in stored.votes) for code in spec.label_codes]
    if sum(counts) and counts[spec.label_codes.index(label)] == max(counts):
        votes = tuple(count / sum(counts) for count in counts)
    else:
        votes = one_vote(label, spec.label_codes)
    return Row(tuple(passages.setdefault(text, text) for text in texts), label, votes, group)


def _prepared(session: Session, terms: TrainTerms) -> tuple[tuple[int, ...], Prepared]:
    spec = task(terms.task_code)
    rounds = _rounds(session, spec, terms.number)
    numbers = tuple(one.number for one in rounds)
    known = {BASE, *map(str, numbers)}
    if unknown := sorted(set(terms.weights) - known):
        raise InvalidInput(f"There is no source {unknown[0]!r} to weigh. The sources are {', '.join(sorted(known))}.")
    if any(not 0 <= weight <= 1000 for weight in terms.weights.values()):
        raise InvalidInput(f"The weights {dict(terms.weights)} must be from 0 to 1000.")
    sources = [replace(one, weight=terms.weights.get(BASE, 1.0)) for one in _base(spec, terms)]
    for round_ in rounds:
        weight = terms.weights.get(str(round_.number), 1.0)
        sources.append(replace(round_source(session, spec, round_), weight=weight))
    session.rollback()
    if not sources:
        raise InvalidInput(
            "There is nothing to learn from. Give base data with --base or --data, or a round from 1 on."
        )
    return numbers, prepare(spec, sources, terms.settings)


def _rounds(session: Session, spec: TaskSpec, number: int) -> list[Round]:
    """Return the frozen rounds up to this one, which must be frozen itself."""
    if number == 0:
        return []
    last = find_round(session, spec.code, number)
    if not is_frozen(last):
        raise Refused(
            f"Round {number} of the {spec.code} task is not frozen, so that its data may still change. Freeze it"
            f" (`dynahit round freeze {spec.code} {number}`), or train on fewer rounds."
        )
    earlier = select(Round).where(Round.task_code == spec.code, Round.number <= number).order_by(Round.number)
    found = [one for one in session.scalars(earlier) if is_frozen(one)]
    for one in found:
        # Reading one ends the transaction, with which the others would be forgotten.
        session.expunge(one)
    return found


def _base(spec: TaskSpec, terms: TrainTerms) -> Iterator[Source]:
    for file in terms.base:
        found = read_base(spec, file)
        left_out = {"no label, or an empty text": found.without_label} if found.without_label else {}
        yield Source(
            name=f"base {file.path.name}",
            train=found.train,
            dev=found.dev,
            test=found.test,
            licence=file.licence,
            facts={"file": file.path.name, "sha256": found.sha256},
            left_out=left_out,
        )
    if terms.data is not None:
        yield _own_data(spec, terms.data)


def _own_data(spec: TaskSpec, data: Path) -> Source:
    """Return what the task's own model learned from. Raises InvalidInput for a task without, or a missing file."""
    recipe = RECIPES.get(spec.code)
    if recipe is None:
        raise InvalidInput(f"No model of the {spec.code} task comes with dynahit, so --data has nothing. Use --base.")
    if absent := [file.path for file in recipe.train.files if not (data / file.path).is_file()]:
        raise InvalidInput(f"{data} lacks {', '.join(absent)}. docs/models.md says where they are from.")
    every = recipe.train.rows(data)
    learned = [recipe.learned_in(every, epoch) for epoch in range(len(recipe.lengths))]
    order = [recipe.labels.index(label) for label in spec.label_codes] if recipe.labels else []
    rows = [
        replace(row, votes=tuple(row.votes[at] for at in order)) if isinstance(row, Row) else row
        for row in dict.fromkeys(row for some in learned for row in some)
    ]
    licences = dict.fromkeys(file.licence for file in recipe.train.files)
    return Source(
        name=f"base data of {recipe.model_id.rpartition('/')[2]}",
        train=rows,
        licence=", ".join(licences),
        facts=described(recipe.train, data),
    )


def _wanted(terms: TrainTerms, rounds: tuple[int, ...]) -> list[Wanted]:
    spec = task(terms.task_code)
    kind: Kind = terms.start or ("pretrained" if terms.base or terms.data is not None else "tuned")
    models = tuple(dict.fromkeys(terms.models)) or (spec.default_model,)
    seeds = tuple(dict.fromkeys(terms.seeds))
    return [Wanted(spec, rounds, model, kind, seed, terms.settings) for model in models for seed in seeds]


def _say_trained(session: Session, clock: Clock, terms: TrainTerms, found: TrainedRound, *, by: str) -> None:
    names = ", ".join(one.folder.name for one in found.models)
    if terms.number:
        round_ = find_round(session, terms.task_code, terms.number)
        if round_.state is RoundState.FROZEN:
            move(session, round_, RoundState.TRAINED, by=by, now=clock.now(), note=names[:500])
    if not any(one.fresh for one in found.models):
        return
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by[:80],
            action="round.train",
            subject=f"{terms.task_code} round {terms.number}",
            detail={
                "models": [
                    {"model_id": one.card.model_id, "revision": one.card.revision, "identity": one.facts["identity"]}
                    for one in found.models
                ]
            },
        )
    )


def _smoothed(told: Callable[[int, str], None]) -> Callable[[float], None]:
    smooth: list[float] = []

    def advance(loss: float) -> None:
        smooth[:] = [loss if not smooth else 0.98 * smooth[0] + 0.02 * loss]
        told(1, f"loss {smooth[0]:.3f}")

    return advance
