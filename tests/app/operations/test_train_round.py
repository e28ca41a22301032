"""Training a round: frozen examples are what is learned, the model is registered once, and the round is trained."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.freeze import freeze_round
from app.operations.import_dataset import ImportTerms, import_dataset
from app.operations.train_round import Machine, TrainTerms, plan_training, register_trained, round_source, train_round
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound, Refused
from hits.export import find_round
from hits.manifest import SplitTerms
from hits.models import ModelVersion, Worker
from hits.rounds import moves_of
from hits.states import RoundState
from hits.tasks import task
from inference.training.base_files import BaseFile
from inference.training.corpora import Row
from inference.training.round_model import Settings
from tests import factories as make
from tests.inference.published import save_model
from tests.rounds import collected, dynasent_file

pytest.importorskip("torch")
pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

SPLIT = SplitTerms(seed=1, shares=(0.5, 0.25, 0.25))
FAST = Settings(epochs=1, batch_size=16, length=16, watched_rows=9)


@contextmanager
def no_bar(title: str, total: int | None) -> Iterator[Callable[[int, str], None]]:
    yield lambda count, word: None


def frozen(session: Session, clock: FixedClock, files: Path, number: int = 1, count: int = 60) -> None:
    path = dynasent_file(files, count)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    # Writers and contexts of their own, so that no split has to withhold anything.
    apart = [row | {"sentence_author": f"a{n}", "has_prompt": False} for n, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in apart))
    terms = ImportTerms("dynasent", (path,), number)
    import_dataset(session, clock, terms, key="pseudonyms of the tests", by="Ada")
    freeze_round(session, clock, "sentiment", number, SPLIT, by="Ada")
    find_round(session, "sentiment", number).state = RoundState.FROZEN
    session.commit()


def machine(folder: Path) -> Machine:
    return Machine(folder / "out", threads=1, local_files_only=True)


def terms_of(folder: Path, **more: object) -> TrainTerms:
    encoder = folder / "tiny-bert"
    if not encoder.is_dir():
        save_model(encoder, "bert", ("positive", "negative", "neutral"))
    return replace(TrainTerms("sentiment", 1, models=(f"dir:{encoder}",), settings=FAST), **more)  # type: ignore[arg-type]


def test_what_was_frozen_is_learned_and_the_model_registered_once(
    session: Session, clock: FixedClock, tmp_path: Path
) -> None:
    for number in (1, 2):
        frozen(session, clock, tmp_path, number)
    terms = terms_of(tmp_path, number=2)
    plan = plan_training(session, terms, machine(tmp_path))

    done = train_round(session, clock, terms, machine(tmp_path), by="Ada", bar=no_bar)
    again = train_round(session, clock, terms, machine(tmp_path), by="Ada", bar=no_bar)

    (model,) = done.models
    assert (model.fresh, again.models[0].fresh) == (True, False)
    assert plan.names == (model.folder.name,)
    assert plan.start == "tuned"
    assert plan.seconds is not None
    row = session.scalars(select(ModelVersion)).one()
    assert (row.model_id, row.revision) == (f"dir:{model.folder.name}", model.card.revision)
    assert sorted(row.labels) == ["negative", "neutral", "positive"]
    assert row.card["folder"] == str(model.folder)
    round_ = find_round(session, "sentiment", 2)
    assert plan.rounds == (1, 2)
    assert find_round(session, "sentiment", 1).state is RoundState.FROZEN
    assert round_.state is RoundState.TRAINED
    assert [one.note for one in moves_of(session, round_.id) if one.to_state is RoundState.TRAINED] == [
        model.folder.name
    ]
    assert len(session.scalars(select(AuditEntry).where(AuditEntry.action == "round.train")).all()) == 1
    source = plan.sources[1]
    assert source.facts == {"manifest_sha256": round_.manifest_sha256}
    assert done.reference == f"dir:{model.folder}"
    # Nobody is named in what is passed on.
    said = (model.folder / "dynahit.json").read_text() + (model.folder / "README.md").read_text()
    for worker in session.scalars(select(Worker)):
        assert worker.mturk_worker_id not in said
        assert worker.pseudonym not in said


def test_examples_come_by_split_with_their_votes_and_a_changed_round_is_refused(
    session: Session, clock: FixedClock, tmp_path: Path
) -> None:
    frozen(session, clock, tmp_path)
    spec = task("sentiment")

    source = round_source(session, spec, find_round(session, "sentiment", 1))

    rows = [*source.train, *source.dev, *source.test]
    assert len(rows) + sum(source.left_out.values()) == 60
    assert all(isinstance(row, Row) and max(row.votes) == row.votes[spec.label_codes.index(row.label)] for row in rows)
    assert {len(row.texts) for row in rows if isinstance(row, Row)} == {1}
    assert source.licence == "cc-by-4.0"
    for trigger in ("example_frozen_update", "example_frozen_move"):
        session.execute(text(f"DROP TRIGGER {trigger}"))
    session.execute(text("UPDATE example SET goal_label = 'neutral' WHERE id = 1"))
    session.execute(text("UPDATE example SET goal_label = 'positive' WHERE id = 2"))
    session.commit()
    with pytest.raises(Refused, match="not those of its manifest"):
        round_source(session, spec, find_round(session, "sentiment", 1))


def test_base_data_alone_makes_the_model_of_round_zero(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    path = tmp_path / "base.csv"
    lines = [f"the food of day {n} was {word},{label}" for n in range(9) for word, label in
             (("good", "positive"), ("bad", "negative"), ("there", "neutral"))]  # fmt: skip
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    terms = terms_of(tmp_path, number=0, base=(BaseFile(path, "mit"),), seeds=(1, 2), weights={"base": 2.0})

    done = train_round(session, clock, terms, machine(tmp_path), by="Ada", bar=no_bar)

    assert done.reference.startswith("ensemble:mean(dir:")
    assert [one.facts["start"]["kind"] for one in done.models] == ["pretrained", "pretrained"]
    assert done.models[0].facts["data"][0]["name"] == "base base.csv"
    assert done.models[0].facts["rounds"] == []
    assert len(session.scalars(select(ModelVersion)).all()) == 2


def test_a_model_with_other_labels_is_not_registered(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    frozen(session, clock, tmp_path, count=30)
    (model,) = train_round(session, clock, terms_of(tmp_path), machine(tmp_path), by="Ada", bar=no_bar).models

    with pytest.raises(Refused, match=r"knows the labels .* but the hate task has"):
        register_trained(session, clock, task("hate"), model)
    with pytest.raises(Refused):
        register_trained(session, clock, task("qa"), model)


def test_what_can_not_be_trained_is_said(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    collected(session, 4, round=make.make_round(session))
    session.commit()
    where = machine(tmp_path)

    with pytest.raises(Refused, match="is not frozen"):
        plan_training(session, terms_of(tmp_path), where)
    with pytest.raises(NotFound):
        plan_training(session, terms_of(tmp_path, number=7), where)
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        plan_training(session, terms_of(tmp_path, number=0), where)
    with pytest.raises(InvalidInput, match="no source '3' to weigh"):
        plan_training(session, terms_of(tmp_path, number=0, weights={"3": 2.0}), where)
    with pytest.raises(InvalidInput, match="lacks sentiment_dynasent"):
        plan_training(session, terms_of(tmp_path, number=0, data=tmp_path), where)
