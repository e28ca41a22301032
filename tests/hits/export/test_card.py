"""Card and datasheet: the head is YAML that names the files, and the figures are those of the data."""

from __future__ import annotations

from typing import Any

import yaml

from hits.export.card import card, datasheet
from hits.export.folder import edition_of
from hits.export.rows import columns
from hits.export.statistics import Statistics
from hits.states import Split, Verdict
from hits.tasks import task
from tests.hits.export.published import published

MANIFEST: dict[str, Any] = {
    "round": 1,
    "frozen_at": "2026-11-15T12:00:00+00:00",
    "examples": {"count": 2},
    "models": [{"id": "embedded:hate", "revision": "r1|2"}],
    "batches": [
        {"kind": "creation", "reward": "0.30", "tries": 5, "minutes": 6, "bonus": "0.40", "items": None},
        {"kind": "validation", "reward": "0.25", "tries": 1, "minutes": 6, "bonus": "0.00", "items": 10},
    ],
    "configuration": {"agreeing_votes": 2, "max_votes": 3, "non_fooling_percent": 10},
    "origin": None,
}
IMPORTED = MANIFEST | {
    "round": 2,
    "batches": [],
    "origin": [
        {"title": "HatemojiBuild", "licence": "cc-by-4.0", "files": [{"name": "train.csv"}], "note": "No votes."}
    ],
}


def figures() -> Statistics:
    found = Statistics()
    said = {"answer": {"message": "Words."}, "goal_label": "hateful", "model": None, "fooled": None}
    found.add(published("hate", final_label="hateful", split=Split.TRAIN, **said))
    found.add(published("hate", verdict=Verdict.INVALID, split=Split.WITHHELD, round=2, **said))
    return found


def test_the_head_of_the_card_names_files_features_and_licences() -> None:
    edition = edition_of(
        task("hate"), [(MANIFEST, "a" * 64)], licences=["cc-by-4.0", "not: stated"], with_attributions=False
    )
    described = columns(task("hate"), with_attributions=False)

    text = card(edition, figures(), described)

    head = yaml.safe_load(text.split("---\n")[1])
    assert head["license"] == ["cc-by-4.0", "not: stated"]
    assert [one["config_name"] for one in head["configs"]] == ["default", "withheld"]
    assert head["configs"][0]["data_files"] == [{"split": "train", "path": "data/train.parquet"}]
    features = {one["name"] for one in head["dataset_info"][0]["features"]}
    assert features == set(described)
    assert "hateful language" in text or (task("hate").content_warning or "") in text
    assert "| train | 1 | 1 | 0 | 1 |" in text
    assert r"embedded:hate (r1\|2)" in text
    assert "`invalid` | 1 | readers were against it" in text


def test_the_datasheet_tells_pay_rules_and_where_imported_rounds_come_from() -> None:
    manifests = [(MANIFEST, "a" * 64), (IMPORTED, "b" * 64)]
    edition = edition_of(task("hate"), manifests, licences=["cc-by-4.0"], with_attributions=False)

    text = datasheet(edition, figures())

    assert "$0.30 for 5 tries" in text
    assert "readers: $0.25 for up to 10 examples" in text
    assert "imported from HatemojiBuild (cc-by-4.0), files train.csv. No votes." in text
    assert task("hate").rules[0] in text
