"""Loads the fine-tunings that come with the repository: shared base plus one small difference per task."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from inference.base_weights import BASE_SHA256, file_sha256, locate_base_weights
from inference.bert import LoadedModel, load_tokenizer, read_base_state
from inference.emoji_names import PREPROCESSING
from inference.errors import FineTuningUnusable, LabelMismatch, ModelNotLoaded
from inference.heads import model_of
from inference.low_rank import merge, read_delta
from inference.target import ModelCard

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

EMBEDDED = Path(__file__).parent
DELTA, CARD = "delta.safetensors", "card.json"

Head = Literal["text", "pair", "span"]
DEFAULT_STRIDE = 64

_embeddings: dict[str, dict[str, Tensor]] = {}
_tokenizers: dict[str, tuple[Tokenizer, str]] = {}
_shared_lock = threading.Lock()


@dataclass(frozen=True)
class Card:
    """What a fine-tuning says of itself; ``labels`` is in the order of the head's rows, empty for a reader of spans.

    ``stride`` is what two windows of a reader share; ``emoji_names`` tells whether emoji are read as words.
    """

    model_id: str
    task: str
    head: Head
    labels: tuple[str, ...]
    base_sha256: str
    vocabulary_sha256: str
    delta_sha256: str
    max_length: int
    stride: int
    emoji_names: bool
    details: dict[str, Any]


def read_card(folder: Path) -> Card:
    """Read and check the card of a fine-tuning. Raises FineTuningUnusable."""
    path = folder / CARD
    try:
        details = json.loads(path.read_text(encoding="utf-8"))
        return Card(
            model_id=str(details["model_id"]),
            task=str(details["task"]),
            head=_head_of(details),
            labels=tuple(str(label) for label in details["labels"]),
            base_sha256=str(details["base"]["sha256"]),
            vocabulary_sha256=str(details["base"]["vocabulary_sha256"]),
            delta_sha256=str(details["delta"]["sha256"]),
            max_length=int(details["max_length"]),
            stride=int(details.get("stride", DEFAULT_STRIDE)),
            emoji_names=_reads_emoji_names(details),
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
    """Load the task's own model: base weights and difference merged into an ordinary BERT with the head it needs.

    ``labels`` is empty for a task that is answered with spans. All models of a process share the tokenizer and
    the base's embeddings. ``base`` is the configured folder of base weights, ``folder`` another place of delta and
    card. The network is asked only when the base weights are nowhere on this machine.
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
    tokenizer, found = _shared_tokenizer(base_folder / "tokenizer.json")
    if found != card.vocabulary_sha256:
        raise FineTuningUnusable(folder, f"the tokenizer in {base_folder} has another vocabulary ({found})")
    try:
        state = merge(_with_shared_embeddings(read_base_state(base_folder)), read_delta(delta_path))
        model = model_of(base_folder, state, card.labels)
    except ValueError as error:
        raise FineTuningUnusable(folder, str(error)) from error
    revision = revision_of(card.base_sha256, delta_sha256)
    return LoadedModel(
        model_id=card.model_id,
        revision=revision,
        labels=card.labels,
        model=model,
        tokenizer=tokenizer,
        max_length=card.max_length,
        pad_token_id=int(model.config.pad_token_id),
        head="span" if card.head == "span" else "classification",
        emoji_names=card.emoji_names,
        stride=card.stride,
        card=ModelCard(
            model_id=card.model_id,
            revision=revision,
            labels=card.labels,
            label_map={label: label for label in card.labels},
            weights_sha256=delta_sha256,
            licence=card.details.get("licence"),
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            seed=card.details.get("seed"),
        ),
    )


def _head_of(details: Mapping[str, Any]) -> Head:
    head: Head = details.get("head", "text")
    if head not in get_args(Head):
        raise ValueError(f"head is {head!r}, not one of {list(get_args(Head))}")
    if (head == "span") != (not details["labels"]):
        raise ValueError(f"a model with head {head!r} can't have the labels {details['labels']}")
    return head


def _reads_emoji_names(details: Mapping[str, Any]) -> bool:
    preprocessing = details.get("preprocessing")
    if preprocessing not in (None, PREPROCESSING):
        raise ValueError(f"preprocessing is {preprocessing!r}; only {PREPROCESSING!r} is known")
    return preprocessing is not None


def _with_shared_embeddings(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    # The base's content is checked before, so one hash means one set of tensors.
    with _shared_lock:
        shared = _embeddings.setdefault(BASE_SHA256, {})
        for name, value in state.items():
            if name.endswith("_embeddings.weight"):
                shared.setdefault(name, value.clone())
        return {**state, **shared}


def _shared_tokenizer(path: Path) -> tuple[Tokenizer, str]:
    """Return the file's tokenizer, which nobody changes and any thread may ask, and the hash of its vocabulary."""
    content = file_sha256(path)
    with _shared_lock:
        if content not in _tokenizers:
            tokenizer = load_tokenizer(path)
            _tokenizers[content] = tokenizer, vocabulary_sha256(tokenizer.get_vocab())
        return _tokenizers[content]


def revision_of(base_sha256: str, delta_sha256: str) -> str:
    """Return the version of a merged model: it changes when either part changes."""
    return hashlib.sha256(f"{base_sha256}+{delta_sha256}".encode()).hexdigest()[:16]


def vocabulary_sha256(vocabulary: dict[str, int]) -> str:
    """Return a hash over a tokenizer's word pieces and their ids, whatever its file looks like."""
    listed = sorted(vocabulary.items(), key=lambda item: item[1])
    return hashlib.sha256("\n".join(f"{index}\t{piece}" for piece, index in listed).encode()).hexdigest()
