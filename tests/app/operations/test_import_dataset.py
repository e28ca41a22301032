"""Imports: checked whole before anything is stored, once however often they are asked for; votes decide."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations import import_dataset as importing
from app.operations.freeze import freeze_round
from app.operations.import_dataset import Imported, ImportTerms, import_dataset, plan_import
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound, Refused
from hits.imports.rows import InvalidRows
from hits.manifest import SplitTerms
from hits.models import Assignment, Attempt, Context, Example, Hit, Round, Vote, Worker
from hits.rounds import NotReady
from hits.states import AssignmentState, HitState, Split, Verdict
from payments.models import Payout
from tests import factories as make
from tests.rounds import dynasent_file

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("DYNAHIT_DATA", ROOT.parent / "shared/data"))
#: What does not depend on the database.
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def imported(session: Session, form: str, *files: Path, number: int = 1, **options: Any) -> Imported:
    terms = ImportTerms(form, files, number, options.pop("published_round", None), options.pop("licence", None))
    return import_dataset(session, FixedClock(make.NOON), terms, key="a key", by="Ada", **options)


def count(session: Session, table: Any) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


def published(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {path}: set DYNAHIT_DATA to the folder with the published data")
    return path


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "published" not in request.node.name:
        monkeypatch.setattr(importing, "CHUNK", 8)


def test_rows_become_examples_with_their_votes_writers_and_verdicts(session: Session, tmp_path: Path) -> None:
    found = imported(session, "dynasent", dynasent_file(tmp_path, 30))

    assert (found.rows, found.stored.examples, found.stored.votes, found.stored.differs) == (30, 30, 150, 0)
    examples = session.scalars(select(Example).order_by(Example.origin)).all()
    assert [example.origin for example in examples] == [f"r2-{number:05d}" for number in range(30)]
    verdicts = Counter(example.verdict for example in examples)
    assert verdicts == {Verdict.VALID_AND_MODEL_WRONG: 20, Verdict.VALID_AND_MODEL_RIGHT: 10}
    assert all(example.final_label == example.goal_label for example in examples)
    assert all(example.fooled == (example.model_label != example.goal_label) for example in examples)
    assert len({example.writer_id for example in examples}) == 5
    assert examples[0].context_id == examples[1].context_id != examples[2].context_id
    assert (count(session, Context), count(session, Vote)) == (15, 150)
    round_ = session.scalars(select(Round)).one()
    assert (round_.agreeing_votes, round_.max_votes) == (3, 5)
    assert round_.origin is not None
    assert round_.origin[0]["complete"]
    assert session.scalars(select(AuditEntry.action)).all() == ["round.import"]


def test_nobody_is_paid_for_what_was_imported_and_nothing_waits(session: Session, tmp_path: Path) -> None:
    imported(session, "dynasent", dynasent_file(tmp_path, 12))

    assert set(session.scalars(select(Hit.state))) == {HitState.CLOSED}
    assert set(session.scalars(select(Assignment.state))) == {AssignmentState.APPROVED}
    assert {worker[:7] for worker in session.scalars(select(Worker.mturk_worker_id))} == {"import:"}
    assert set(session.scalars(select(Example.votes_wanted))) == {0}
    assert count(session, Payout) == 0


def test_importing_again_changes_nothing(session: Session, tmp_path: Path) -> None:
    path = dynasent_file(tmp_path, 20)
    imported(session, "dynasent", path)

    again = imported(session, "dynasent", path)

    assert (again.fresh, again.rows, count(session, Example)) == (False, 20, 20)


def test_an_interrupted_import_goes_on_and_is_not_frozen_before(session: Session, tmp_path: Path) -> None:
    path = dynasent_file(tmp_path, 30)
    stored = 0

    def killed(rows: int) -> None:
        nonlocal stored
        stored += rows
        if stored > 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        imported(session, "dynasent", path, advance=killed)
    session.rollback()
    assert 0 < count(session, Example) < 30
    with pytest.raises(NotReady, match=r"import of made-up-dev\.jsonl was interrupted"):
        freeze_round(session, FixedClock(make.NOON), "sentiment", 1, SplitTerms(), by="Ada")
    session.rollback()

    imported(session, "dynasent", path)

    assert (count(session, Example), count(session, Vote)) == (30, 150)
    assert freeze_round(session, FixedClock(make.NOON), "sentiment", 1, SplitTerms(), by="Ada").fresh


@ON_SQLITE
def test_every_wrong_row_is_listed_with_its_line_and_nothing_is_stored(session: Session, tmp_path: Path) -> None:
    path = dynasent_file(tmp_path, 20)
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[3] = json.dumps(json.loads(lines[3]) | {"gold_label": "great"})
    lines[9] = lines[2]
    lines[15] = json.dumps(json.loads(lines[15]) | {"sentence": " "})
    path.write_text("\n".join(lines), encoding="utf-8")

    with pytest.raises(InvalidRows) as refused:
        imported(session, "dynasent", path)

    said = str(refused.value)
    assert refused.value.count == 3
    assert "line 4: gold_label 'great' is none of negative, positive, neutral" in said
    assert "line 10: the name 'r2-00002' stands at made-up-dev.jsonl, line 3 as well" in said
    assert "line 16: Your statement is empty" in said
    assert (count(session, Round), count(session, Example)) == (0, 0)


@ON_SQLITE
def test_further_files_join_the_round_and_a_row_that_is_there_is_wrong(session: Session, tmp_path: Path) -> None:
    imported(session, "dynasent", dynasent_file(tmp_path, 10))
    more = dynasent_file(tmp_path, 11, name="made-up-test.jsonl")

    with pytest.raises(InvalidRows, match="the row 'r2-00000' is in the round already"):
        imported(session, "dynasent", more)

    more.write_text(more.read_text(encoding="utf-8").replace("r2-0", "r2-9"), encoding="utf-8")
    imported(session, "dynasent", more)
    assert count(session, Example) == 21
    assert len(session.scalars(select(Round)).one().origin or []) == 2


@ON_SQLITE
def test_what_was_collected_or_frozen_is_not_imported_into(session: Session, tmp_path: Path) -> None:
    make.make_round(session)
    session.commit()
    path = dynasent_file(tmp_path, 10)

    with pytest.raises(Refused, match="was collected here"):
        imported(session, "dynasent", path)
    session.rollback()
    imported(session, "dynasent", path, number=2)
    freeze_round(session, FixedClock(make.NOON), "sentiment", 2, SplitTerms(), by="Ada")
    assert not imported(session, "dynasent", path, number=2).fresh
    with pytest.raises(Refused, match="is frozen"):
        imported(session, "dynasent", dynasent_file(tmp_path, 3, name="other.jsonl"), number=2)


@ON_SQLITE
def test_rows_of_no_use_are_counted_with_the_reason(session: Session, tmp_path: Path) -> None:
    path = dynasent_file(tmp_path, 4)
    path.write_text(path.read_text(encoding="utf-8").replace('"gold_label": "neutral"', '"gold_label": null'))

    found = imported(session, "dynasent", path)

    assert (found.rows, found.left_out) == (3, {"readers settled on no label of the task (none, or mixed)": 1})
    with pytest.raises(InvalidInput, match="no row that can be imported"):
        imported(session, "dynasent", dynasent_file(tmp_path, 3, name="none.jsonl", gold_label=None), number=2)


@ON_SQLITE
def test_a_plan_changes_nothing(session: Session, tmp_path: Path) -> None:
    found = plan_import(session, ImportTerms("dynasent", (dynasent_file(tmp_path, 10),), 1))

    assert (found.rows, count(session, Round)) == (10, 0)
    with pytest.raises(NotFound, match="The forms are anli"):
        plan_import(session, ImportTerms("squad", (tmp_path / "a.json",), 1))


@ON_SQLITE
def test_without_a_models_answer_the_published_label_stands_and_nobody_fooled_anything(
    session: Session, tmp_path: Path
) -> None:
    head = "entry_id,text,type,target,round.base,round.set,set,split,label_gold,matched_text,matched_id\n"
    rows = [
        f"{n},Message {n} 🙂,none,['none'],{5 + n % 2},5a,original,train,{n % 2},Other {n},{n + 1}" for n in range(8)
    ]
    path = tmp_path / "build.csv"
    path.write_text(head + "\n".join(rows), encoding="utf-8")

    imported(session, "hatemoji", path, number=1, published_round=5)

    examples = session.scalars(select(Example)).all()
    assert [example.origin for example in examples] == ["0", "2", "4", "6"]
    assert {(one.verdict, one.final_label, one.fooled) for one in examples} == {
        (Verdict.NOT_VALIDATED, "not_hateful", False)
    }
    assert set(session.scalars(select(Attempt.fooled))) == {None}


@ON_SQLITE
@pytest.mark.parametrize(
    ("number", "agreed", "tie_broken"), [pytest.param(1, 702, 298, marks=pytest.mark.slow), (2, 710, 290)]
)
def test_published_anli_is_decided_by_its_verifiers(
    session: Session, number: int, agreed: int, tie_broken: int
) -> None:
    files = [published(f"nli_anli/anli_r{number}_dev_annotated.csv"), published("nli_anli/verifier_labels_dev.jsonl")]

    found = imported(session, "anli", *files, number=number)

    assert (found.rows, found.stored.differs) == (1000, 0)
    assert found.stored.verdicts == {"valid_and_model_wrong": 1000}
    by_votes = Counter(session.scalars(select(func.count()).select_from(Vote).group_by(Vote.example_id)))
    assert by_votes == {2: agreed, 3: tie_broken}


@ON_SQLITE
def test_published_hatemoji_pairs_stay_in_one_split(session: Session) -> None:
    files = [published(f"hate_hatemoji/HatemojiBuild_{part}.csv") for part in ("train", "validation", "test")]
    imported(session, "hatemoji", *files, number=5)

    frozen = freeze_round(session, FixedClock(make.NOON), "hate", 5, SplitTerms(seed=1), by="Ada")

    assert frozen.manifest["splits"]["counts"] == {"dev": 200, "test": 200, "train": 1594}
    families: dict[str, set[Split | None]] = {}
    for split, said in session.execute(select(Example.split, Example.published)):
        families.setdefault((said or {})["family"], set()).add(split)
    assert all(len(found) == 1 for found in families.values())
    assert len(families) < 1100
