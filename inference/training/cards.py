"""Writes the card of a fine-tuning: where it comes from, how it was made, and what it reaches as it is served."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hits.tasks import task
from inference.base_weights import BASE_SHA256, HUB_ID, HUB_REVISION, file_sha256
from inference.bert import load_tokenizer
from inference.embedded import CARD, DELTA, load_embedded, revision_of, vocabulary_sha256
from inference.emoji_names import PREPROCESSING
from inference.loading import asked_as
from inference.runtime import single_threaded_torch
from inference.training.measures import measure
from inference.training.recipes import DataFile, Part, Recipe

Advance = Callable[[int], None]


def write_card(
    recipe: Recipe,
    data: Path,
    out: Path,
    *,
    seed: int,
    folder: Path,
    training_cpu_seconds: int,
    advance: Advance = lambda rows: None,
) -> dict[str, Any]:
    """Measure the delta in ``out`` on the recipe's rows, write its card beside it and return the card.

    ``folder`` holds the base weights. ``advance`` is told how many more rows were measured.
    """
    card = _unmeasured(recipe, data, out, seed=seed, folder=folder) | {"training_cpu_seconds": training_cpu_seconds}
    _write(out, card)
    model = asked_as(task(recipe.task), load_embedded(recipe.task, recipe.labels, base=folder, folder=out))
    for title, parts in _measured(recipe).items():
        card[title] = {
            name: described(part, data) | measure(model, part.rows(data), advance=advance)
            for name, part in parts.items()
        }
    key = "f1" if recipe.head == "span" else "accuracy"
    card["aims"] = dict(recipe.aims)
    card["below_aim"] = [name for name, aim in recipe.aims.items() if card["evaluation"][name][key] < aim]
    _write(out, card)
    return card


def rows_to_measure(recipe: Recipe, data: Path) -> int:
    """Return how many rows write_card measures on."""
    return sum(len(part.rows(data)) for parts in _measured(recipe).values() for part in parts.values())


def described(part: Part, data: Path) -> dict[str, Any]:
    """Return a part of the published data by public source, licence and hash."""
    return {"which": part.which, "files": [_file(file, data) for file in part.files]}


def _measured(recipe: Recipe) -> dict[str, Mapping[str, Part]]:
    return {"evaluation": recipe.tests, "chosen_on": {} if recipe.chosen_on is None else {"rows": recipe.chosen_on}}


def _unmeasured(recipe: Recipe, data: Path, out: Path, *, seed: int, folder: Path) -> dict[str, Any]:
    torch = single_threaded_torch()
    delta_sha256 = file_sha256(out / DELTA)
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    settings = {key: value for key, value in asdict(recipe.schedule).items() if not isinstance(value, bool)}
    card: dict[str, Any] = {
        "model_id": recipe.model_id,
        "revision": revision_of(BASE_SHA256, delta_sha256),
        "task": recipe.task,
        "head": recipe.head,
        "labels": list(recipe.labels),
        "max_length": recipe.max_length,
        "licence": recipe.licence,
        "base": {
            "hub_id": HUB_ID,
            "hub_revision": HUB_REVISION,
            "sha256": BASE_SHA256,
            "vocabulary_sha256": vocabulary_sha256(tokenizer.get_vocab()),
            "licence": "Apache-2.0",
        },
        "delta": {"file": DELTA, "sha256": delta_sha256, "bytes": (out / DELTA).stat().st_size},
        "training_data": described(recipe.train, data) | _learned(recipe, data),
        "command": f"dynahit model train {recipe.task} --data DIR --out DIR --seed {seed}",
        "seed": seed,
        "recipe": {
            "rank": recipe.rank,
            "members": recipe.members,
            "epochs": len(recipe.lengths),
            "lengths": list(recipe.lengths),
            **settings,
            "loss": "cross-entropy on the answers' places" if recipe.head == "span" else "cross-entropy on the votes",
            "arithmetic": "bfloat16 autocast" if recipe.schedule.bfloat16 else "single precision",
        },
        "choice": recipe.choice,
        "evaluation_of": "the merged low-rank model in single precision, as it is served",
        "processor": torch.backends.cpu.get_cpu_capability(),
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers", "emoji")},
    }
    if recipe.head == "span":
        card["stride"] = recipe.stride
    if recipe.emoji_names:
        card["preprocessing"] = PREPROCESSING
    return card


def _learned(recipe: Recipe, data: Path) -> dict[str, Any]:
    rows = recipe.train.rows(data)
    epochs = [recipe.learned_in(rows, epoch) for epoch in range(len(recipe.lengths))]
    return {"rows": len({row for learned in epochs for row in learned}), "rows_by_epoch": [*map(len, epochs)]}


def _file(file: DataFile, data: Path) -> dict[str, str]:
    content = hashlib.sha256((data / file.path).read_bytes()).hexdigest()
    return {"source": file.source, "licence": file.licence, "file": Path(file.path).name, "sha256": content}


def _write(out: Path, card: dict[str, Any]) -> None:
    (out / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
