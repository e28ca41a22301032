"""Exports: the same manifest gives the same bytes, others can load them, and nobody's id or pseudonym is in them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session, sessionmaker

from app.operations import freeze as freezing
from app.operations.export_dataset import DEFAULT_LICENCE, ExportPlan, export_dataset, plan_export
from app.operations.freeze import LOOKALIKE, freeze_round
from app.operations.import_dataset import ImportTerms, import_dataset
from hits.clock import FixedClock
from hits.db import engine_for
from hits.errors import InvalidInput, NotFound, Refused
from hits.manifest import SplitTerms
from hits.models import Assignment, Example, Hit, Worker
from hits.splits import normalised
from tests import factories as make
from tests.conftest import make_service_tables
from tests.rounds import collected, dynasent_file

ROOT = Path(__file__).resolve().parents[3]
#: What does not depend on the database.
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
TERMS = SplitTerms(seed=1, shares=(0.5, 0.25, 0.25))


def exported(session: Session, folder: Path, *rounds: int, **options: Any) -> ExportPlan:
    given = {"licence": DEFAULT_LICENCE, "with_attributions": False, "secret": "a secret of the tests"} | options
    return export_dataset(session, "sentiment", rounds, folder, **given)


def frozen_import(session: Session, files: Path, count: int = 60, number: int = 2) -> None:
    """An imported round, which is the same whatever the database."""
    clock = FixedClock(make.NOON)
    terms = ImportTerms("dynasent", (dynasent_file(files, count),), number)
    import_dataset(session, clock, terms, key="pseudonyms of the tests", by="Ada")
    freeze_round(session, clock, "sentiment", number, TERMS, by="Ada")


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / "jsonl").iterdir()):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


#: In the place of the commit, which may change while the test runs.
CODE = {"git_commit": "0" * 40, "modified": False, "python": "3.11", "packages": {}}


def alone(folder: Path) -> None:
    """Import, freeze and export in a process and a database of its own."""
    freezing.code_in_use = lambda: CODE
    url = f"sqlite:///{folder / 'alone.db'}"
    make_service_tables(url)
    with sessionmaker(engine_for(url), expire_on_commit=False)() as session:
        frozen_import(session, folder)
        exported(session, folder / "data")


def test_the_same_manifest_gives_the_same_bytes_in_another_process_and_database(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezing, "code_in_use", lambda: CODE)
    frozen_import(session, tmp_path)
    exported(session, tmp_path / "first")
    exported(session, tmp_path / "second")
    other = tmp_path / "other"
    other.mkdir()
    program = f"from pathlib import Path; from {__name__} import alone; alone(Path({str(other)!r}))"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True)

    first = hashes(tmp_path / "first")
    assert {"README.md", "DATASHEET.md", "croissant.json", "manifest.json", "checksums.txt"} < set(first)
    assert hashes(tmp_path / "second") == first
    assert hashes(other / "data") == first


@pytest.fixture
def round_of_all_kinds(session: Session, clock: FixedClock, tmp_path: Path) -> Session:
    """Round 1 was collected, with attributions, remarks and odd characters; round 2 is imported."""
    examples = collected(
        session, 12, writers=6, why="Any reader sees “that”.", answer={"statement": "Kühl — 你好\u2028🙂"}
    )
    for number, example in enumerate(examples):
        example.attempt.answer = {"statement": f"Kühl — 你好\u2028🙂 {number}"}
        example.attempt.attribution = {
            "model_id": "embedded:sentiment",
            "revision": "test",
            "method": "integrated gradients",
            "steps": 12,
            "target": "positive",
            "words": [{"start": 0, "end": 4, "text": "Kühl", "score": 0.5, "field": "statement"}],
            "convergence_delta": 0.01,
            "converged": True,
            "seconds": 0.2,
        }
    session.commit()
    freeze_round(session, clock, "sentiment", 1, TERMS, by="Ada")
    frozen_import(session, tmp_path)
    return session


@ON_SQLITE
def test_others_can_load_what_was_exported(round_of_all_kinds: Session, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    croissant = pytest.importorskip("mlcroissant")
    datasets.disable_progress_bars()
    folder = tmp_path / "data"

    plan = exported(round_of_all_kinds, folder, with_attributions=True)

    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {name: len(part) for name, part in loaded.items()} == {
        name: count for name, count in plan.splits.items() if name != "withheld"
    }
    every = {row["id"]: row for row in rows(folder)}
    for part in loaded.values():
        for row in part:
            assert row == every[row["id"]]
    one = next(row for row in loaded["train"] if row["attribution"] is not None)
    assert one["attribution"]["words"][0]["text"] == "Kühl"
    assert one["why"] == "Any reader sees “that”."
    lines = datasets.load_dataset(
        "json", data_files={"train": str(folder / "jsonl" / "train.jsonl")}, cache_dir=str(tmp_path / "cache")
    )
    assert lines["train"]["id"] == loaded["train"]["id"]

    with warnings.catch_warnings():
        # rdflib's own, about itself.
        warnings.simplefilter("ignore")
        described = croissant.Dataset(jsonld=str(folder / "croissant.json"))
        records = list(described.records("dev"))
    assert described.metadata.issues.report() == ""
    assert [record["dev/id"].decode() for record in records] == loaded["dev"]["id"]


def test_nothing_leaks_and_nobody_is_named(round_of_all_kinds: Session, tmp_path: Path) -> None:
    session, folder = round_of_all_kinds, tmp_path / "data"
    exported(session, folder, with_attributions=True)

    secrets = [
        *session.scalars(select(Worker.mturk_worker_id)),
        *session.scalars(select(Worker.pseudonym)),
        *session.scalars(select(Assignment.mturk_assignment_id)),
        *(name for name in session.scalars(select(Hit.mturk_hit_id)) if name),
    ]
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert [secret for secret in secrets if secret.encode() in content] == [], path
            if path.suffix != ".parquet":
                assert not LOOKALIKE.search(content.decode()), path

    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows(folder):
        if row["split"] != "withheld":
            seen["words", normalised(row["statement"])].add(row["split"])
            seen["words", normalised(row["prompt"])].add(row["split"])
            seen["writer", row["writer"]].add(row["split"])
    assert {key: found for key, found in seen.items() if len(found) > 1} == {}
    assert len(seen) > 50


@ON_SQLITE
def test_people_have_other_names_in_another_export(round_of_all_kinds: Session, tmp_path: Path) -> None:
    exported(round_of_all_kinds, tmp_path / "both")
    exported(round_of_all_kinds, tmp_path / "one", 1)
    exported(round_of_all_kinds, tmp_path / "other", licence="cc0-1.0")

    people = [
        {row["writer"] for row in rows(tmp_path / name)}
        | {v["validator"] for row in rows(tmp_path / name) for v in row["votes"]}
        for name in ("both", "one", "other")
    ]
    assert all(len(one) >= 8 for one in people)
    assert not people[0] & people[1]
    assert not people[0] & people[2]


@ON_SQLITE
def test_what_is_exported_tells_whence_a_label_comes(round_of_all_kinds: Session, tmp_path: Path) -> None:
    plan = exported(round_of_all_kinds, tmp_path / "data")

    found = {row["id"]: row for row in rows(tmp_path / "data")}
    assert plan.rounds == (1, 2)
    assert sum(plan.splits.values()) == len(found) == 72
    imported = next(row for row in found.values() if row["published_id"] == "r2-00001")
    assert (imported["label"], imported["label_from"], imported["verified"]) == ("positive", "readers", True)
    assert imported["label_distribution"] == {"negative": 0, "positive": 4, "neutral": 0}
    assert imported["collected_on"] is None
    assert imported["published_split"] == "dev"
    assert len(imported["votes"]) == 5
    here = next(row for row in found.values() if row["round"] == 1)
    assert here["collected_on"] == "2026-11-15"
    card = (tmp_path / "data" / "README.md").read_text(encoding="utf-8")
    assert "| train |" in card
    assert "cc-by-4.0" in card


@ON_SQLITE
def test_a_round_that_is_not_frozen_is_not_published(session: Session, tmp_path: Path) -> None:
    collected(session, 4)
    session.commit()

    with pytest.raises(Refused, match="`dynahit round freeze sentiment 1`"):
        exported(session, tmp_path / "data", 1)
    with pytest.raises(NotFound, match="No round of the sentiment task is frozen"):
        exported(session, tmp_path / "data")
    assert not (tmp_path / "data").exists()


@ON_SQLITE
def test_a_folder_that_holds_something_is_left_alone(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    collected(session, 4)
    session.commit()
    freeze_round(session, clock, "sentiment", 1, TERMS, by="Ada")
    (tmp_path / "data").mkdir()
    exported(session, tmp_path / "data")

    with pytest.raises(InvalidInput, match="holds something already"):
        exported(session, tmp_path / "data")
    with pytest.raises(InvalidInput, match="There is no folder"):
        exported(session, tmp_path / "missing" / "data")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_data_that_were_changed_behind_our_back_are_not_exported(
    session: Session, clock: FixedClock, tmp_path: Path
) -> None:
    example = collected(session, 4)[0]
    session.commit()
    freeze_round(session, clock, "sentiment", 1, TERMS, by="Ada")
    on = " ON example" if session.get_bind().dialect.name == "postgresql" else ""
    for trigger in ("example_frozen_update", "example_frozen_move"):
        session.execute(text(f"DROP TRIGGER {trigger}{on}"))
    session.execute(update(Example).where(Example.id == example.id).values(final_label="positive"))
    session.commit()

    with pytest.raises(Refused, match="are not those of its manifest"):
        exported(session, tmp_path / "data")

    assert not (tmp_path / "data").exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".data")] == []


@ON_SQLITE
def test_a_plan_writes_nothing_and_names_what_the_export_will_be(
    session: Session, clock: FixedClock, tmp_path: Path
) -> None:
    collected(session, 4)
    session.commit()
    freeze_round(session, clock, "sentiment", 1, TERMS, by="Ada")

    plan = plan_export(session, "sentiment", [], licence=DEFAULT_LICENCE, with_attributions=False)

    assert plan == exported(session, tmp_path / "data")
    assert plan.identity in (tmp_path / "data" / "README.md").read_text(encoding="utf-8")


@ON_SQLITE
@pytest.mark.parametrize("licence", ["", "  ", "a\nb", "x" * 81])
def test_a_licence_needs_a_name(session: Session, clock: FixedClock, licence: str) -> None:
    collected(session, 4)
    session.commit()
    freeze_round(session, clock, "sentiment", 1, TERMS, by="Ada")

    with pytest.raises(InvalidInput, match="not the name of a licence"):
        plan_export(session, "sentiment", [], licence=licence, with_attributions=False)
