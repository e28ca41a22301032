"""Loads the fine-tunings that come with the repository: shared base plus one small difference per task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.base_weights import BASE_SHA256, file_sha256, locate_base_weights
from inference.bert import LoadedModel, build_classifier, load_tokenizer, read_base_state
from inference.errors import FineTuningUnusable, LabelMismatch, ModelNotLoaded
from inference.low_rank import merge, read_delta

EMBEDDED = Path(__file__).parent
DELTA, CARD = "delta.safetensors", "card.json"


@dataclass(frozen=True)
class Card:
    """What a fine-tuning says of itself; ``labels`` is in the order of the head's rows."""

    model_id: str
    task: str
    labels: tuple[str, ...]
    base_sha256: str
    vocabulary_sha256: str
    delta_sha256: str
    max_length: int
    details: dict[str, Any]


def read_card(folder: Path) -> Card:
    """Read and check the card of a fine-tuning. Raises FineTuningUnusable."""
    path = folder / CARD
    try:
        details = json.loads(path.read_text(encoding="utf-8"))
        return Card(
            model_id=str(details["model_id"]),
            task=str(details["task"]),
            labels=tuple(str(label) for label in details["labels"]),
            base_sha256=str(details["base"]["sha256"]),
            vocabulary_sha256=str(details["base"]["vocabulary_sha256"]),
            delta_sha256=str(details["delta"]["sha256"]),
            max_length=int(details["max_length"]),
            details=details,
        )
    except FileNotFoundError as error:
        raise FineTuningUnusable(folder, f"there is no {CARD}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise FineTuningUnusable(folder, f"{CARD} can't be read ({type(error).__name__}: {error})") from error


def load_embedded(
    task_code: str,
    labels: Sequence[str],
    *,
    base: Path | None = None,
    folder: Path | None = None,
    local_files_only: bool = False,
) -> LoadedModel:
    """Load the task's own model: base weights and difference merged into an ordinary BertForSequenceClassification.

    ``base`` is the configured folder of base weights, ``folder`` another place of delta and card. The network is asked
    only when the base weights are nowhere on this machine.
    Raises ModelNotLoaded when the task has no embedded model, BaseWeightsMissing, BaseWeightsWrong, LabelMismatch when
    labels (in any order) are not the model's by name, FineTuningUnusable.
    """
    folder = folder or EMBEDDED / task_code
    if not (folder / CARD).is_file() and folder.parent == EMBEDDED:
        known = sorted(path.parent.name for path in EMBEDDED.glob(f"*/{CARD}"))
        raise ModelNotLoaded(f"There is no embedded model for the task {task_code!r}; there are models for {known}.")
    card = read_card(folder)
    if sorted(card.labels) != sorted(labels):
        raise LabelMismatch(folder, card.labels, labels)
    if card.base_sha256 != BASE_SHA256:
        raise FineTuningUnusable(folder, f"it was made for base weights {card.base_sha256}, not {BASE_SHA256}")
    delta_path = folder / DELTA
    if not delta_path.is_file():
        raise FineTuningUnusable(folder, f"there is no {DELTA}")
    delta_sha256 = file_sha256(delta_path)
    if delta_sha256 != card.delta_sha256:
        raise FineTuningUnusable(folder, f"{DELTA} has SHA-256 {delta_sha256}, the card says {card.delta_sha256}")
    base_folder = locate_base_weights(base, local_files_only=local_files_only)
    tokenizer = load_tokenizer(base_folder / "tokenizer.json")
    found = vocabulary_sha256(tokenizer.get_vocab())
    if found != card.vocabulary_sha256:
        raise FineTuningUnusable(folder, f"the tokenizer in {base_folder} has another vocabulary ({found})")
    try:
        state = merge(read_base_state(base_folder), read_delta(delta_path))
        model = build_classifier(base_folder, state, card.labels)
    except ValueError as error:
        raise FineTuningUnusable(folder, str(error)) from error
    return LoadedModel(
        model_id=card.model_id,
        revision=revision_of(card.base_sha256, delta_sha256),
        labels=card.labels,
        model=model,
        tokenizer=tokenizer,
        max_length=card.max_length,
        pad_token_id=int(model.config.pad_token_id),
    )


def revision_of(base_sha256: str, delta_sha256: str) -> str:
    """Return the version of a merged model: it changes when either part changes."""
    return hashlib.sha256(f"{base_sha256}+{delta_sha256}".encode()).hexdigest()[:16]


def vocabulary_sha256(vocabulary: dict[str, int]) -> str:
    """Return a hash over a tokenizer's word pieces and their ids, whatever its file looks like."""
    listed = sorted(vocabulary.items(), key=lambda item: item[1])
    return hashlib.sha256("\n".join(f"{index}\t{piece}" for piece, index in listed).encode()).hexdigest()
