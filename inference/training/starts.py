"""What a training starts from: a task's own model, one of the hub or one in a folder, with its head or a new one."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from hits.errors import InvalidInput
from hits.tasks import AnswerKind, TaskSpec
from inference.base_weights import BASE_SHA256, HUB_ID, HUB_REVISION, locate_base_weights
from inference.bert import LoadedModel, load_tokenizer, read_base_state
from inference.embedded import EMBEDDED, load_embedded, read_card, revision_of
from inference.errors import ModelUnusable
from inference.heads import model_of, untrained_state
from inference.hub import fetch
from inference.published import (
    licence_of,
    load_published,
    load_tokenizer_of,
    longest_of,
    quiet_library,
    read_own_facts,
    takes_type_ids,
    weights_sha256,
)
from inference.references import EmbeddedReference, FolderReference, HubReference, parse_reference
from inference.runtime import single_threaded_torch

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Kind = Literal["pretrained", "tuned"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
TOKENIZER_FILES: Final = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
)


@dataclass(frozen=True)
class Start:
    """A model that is about to learn, with the task's labels in the order of its outputs (none for a reader).

    ``name`` is a short one for folders, ``weights`` the hash of what it starts from, ``folder`` holds its tokenizer's
    files. ``embeddings_learn`` is False where half of all parameters are embeddings that do well as they are.
    """

    reference: str
    kind: Kind
    name: str
    revision: str
    weights: str
    licence: str
    labels: tuple[str, ...]
    model: Any
    tokenizer: Tokenizer
    folder: Path
    max_length: int
    stride: int
    emoji_names: bool
    embeddings_learn: bool

    def as_loaded(self) -> LoadedModel:
        """Return it as something that can be asked while it learns."""
        return LoadedModel(
            model_id=self.name,
            revision="learning",
            labels=self.labels,
            model=self.model,
            tokenizer=self.tokenizer,
            max_length=self.max_length,
            pad_token_id=int(self.model.config.pad_token_id),
            head="classification" if self.labels else "span",
            takes_type_ids=takes_type_ids(self.model),
            emoji_names=self.emoji_names,
            stride=self.stride,
            learning=True,
        )


def start_from(
    spec: TaskSpec,
    reference: str,
    kind: Kind,
    *,
    seed: int,
    base: Path | None = None,
    local_files_only: bool = False,
) -> Start:
    """Return the model that the reference names, ready to learn; ``pretrained`` gives it a new head, drawn by the seed.

    ``base`` is the folder of the embedded models' base weights. Raises InvalidInput for an ensemble or a served model,
    LabelsUnknown for a tuned model with other labels, and what finding the model raises.
    """
    parsed = parse_reference(reference)
    single_threaded_torch()
    if isinstance(parsed, EmbeddedReference):
        return _embedded(spec, parsed, kind, seed, base=base, local_files_only=local_files_only)
    if isinstance(parsed, HubReference):
        snapshot = fetch(parsed, local_files_only=local_files_only)
        name = parsed.repository.rpartition("/")[2]
        return _published(spec, snapshot.folder, reference, kind, seed, name, snapshot.commit, parsed.labels)
    if isinstance(parsed, FolderReference):
        # Where it lies on this machine is nobody else's business.
        name = parsed.folder.name
        return _published(spec, parsed.folder, f"dir:{name}", kind, seed, name, None, parsed.labels)
    raise InvalidInput(
        f"{reference!r} can't be trained. Name a single model: embedded:TASK, hub:NAME@COMMIT, dir:PATH."
    )


def _embedded(
    spec: TaskSpec,
    parsed: EmbeddedReference,
    kind: Kind,
    seed: int,
    *,
    base: Path | None,
    local_files_only: bool,
) -> Start:
    torch = single_threaded_torch()
    labels = () if spec.kind is AnswerKind.SPAN else spec.label_codes
    folder = locate_base_weights(base, local_files_only=local_files_only)
    if kind == "tuned":
        loaded = load_embedded(parsed.task_code, labels, base=base, local_files_only=local_files_only)
        # Its embeddings are shared by all models of the process.
        model, labels, revision = copy.deepcopy(loaded.model), loaded.labels, loaded.revision
        licence = loaded.described().licence or "not stated"
    else:
        torch.manual_seed(seed)
        model = model_of(folder, untrained_state(folder, read_base_state(folder), labels), labels)
        revision, licence = HUB_REVISION, "Apache-2.0"
    card = read_card(EMBEDDED / parsed.task_code) if (EMBEDDED / parsed.task_code).is_dir() else None
    return Start(
        reference=str(parsed) if kind == "tuned" else f"{parsed} ({HUB_ID})",
        kind=kind,
        name="minilm-l6",
        revision=revision,
        weights=BASE_SHA256 if card is None or kind == "pretrained" else revision_of(BASE_SHA256, card.delta_sha256),
        licence=licence,
        labels=labels,
        model=model,
        tokenizer=load_tokenizer(folder / "tokenizer.json"),
        folder=folder,
        max_length=card.max_length if card is not None else 256,
        stride=card.stride if card is not None else 64,
        emoji_names=card.emoji_names if card is not None else False,
        embeddings_learn=False,
    )


def _published(
    spec: TaskSpec,
    folder: Path,
    reference: str,
    kind: Kind,
    seed: int,
    name: str,
    commit: str | None,
    stated_labels: tuple[str, ...],
) -> Start:
    labels = () if spec.kind is AnswerKind.SPAN else spec.label_codes
    facts = read_own_facts(folder, reference)
    if kind == "tuned":
        loaded = load_published(folder, labels, source=reference, model_id=name, stated_labels=stated_labels)
        model, labels, tokenizer = loaded.model, loaded.labels, loaded.tokenizer
    else:
        model = _with_new_head(folder, labels, seed, source=reference)
        tokenizer = load_tokenizer_of(folder, reference)
    if model.config.pad_token_id is None:
        raise ModelUnusable(reference, "it has no padding token", "Choose another model.")
    weights = weights_sha256(sorted(folder.glob("model*.safetensors")))
    return Start(
        reference=reference,
        kind=kind,
        name=name,
        revision=commit or weights[:16],
        weights=weights,
        licence=facts.licence or licence_of(folder) or "not stated",
        labels=labels,
        model=model,
        tokenizer=tokenizer,
        folder=folder,
        max_length=longest_of(model.config, folder),
        stride=facts.stride,
        emoji_names=facts.emoji_names,
        embeddings_learn=True,
    )


def _with_new_head(folder: Path, labels: tuple[str, ...], seed: int, *, source: str) -> Any:
    """Return the folder's encoder with a head drawn by the seed. Raises ModelUnusable."""
    torch = single_threaded_torch()
    from transformers import AutoConfig, AutoModel, AutoModelForQuestionAnswering, AutoModelForSequenceClassification

    torch.manual_seed(seed)
    if not any(folder.glob("model*.safetensors")):
        raise ModelUnusable(source, "it has no safetensors, and other forms can run code", "Choose another revision.")
    try:
        config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        with quiet_library():
            encoder = AutoModel.from_pretrained(
                str(folder), use_safetensors=True, local_files_only=True, trust_remote_code=False, dtype=torch.float32
            )
        config.num_labels = len(labels) or 2
        if labels:
            config.id2label = dict(enumerate(labels))
            config.label2id = {label: index for index, label in enumerate(labels)}
            config.problem_type = "single_label_classification"
        kind = AutoModelForSequenceClassification if labels else AutoModelForQuestionAnswering
        model = kind.from_config(config, dtype=torch.float32)
        body = getattr(model, model.base_model_prefix)
        result = body.load_state_dict(encoder.state_dict(), strict=False)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelUnusable(
            source, f"the transformers library can't load it ({reason})", "Choose another model or revision."
        ) from error
    if missing := [name for name in result.missing_keys if "pooler" not in name]:
        raise ModelUnusable(source, f"its weights lack {', '.join(missing[:4])}", "Choose another model or revision.")
    return model.eval().requires_grad_(False)
