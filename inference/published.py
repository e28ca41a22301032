"""Loads a published classifier or reader of passages from a folder of the transformers library's form."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.base_weights import file_sha256
from inference.bert import LoadedModel
from inference.emoji_names import PREPROCESSING
from inference.errors import ModelUnusable
from inference.labels import by_name, by_order
from inference.runtime import finite, single_threaded_torch
from inference.target import ModelCard

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OWN_FACTS = "dynahit.json"
"""In the folder of a model that was trained here: how its texts are prepared, and how it came about."""

LONGEST = 512
"""Most positions of one input, also for models that would take more: time rises with the square of it."""


def load_published(
    folder: Path,
    labels: Sequence[str],
    *,
    source: str,
    model_id: str,
    revision: str | None = None,
    stated_labels: Sequence[str] = (),
) -> LoadedModel:
    """Return the model in the folder, in single precision and frozen; a reader of passages if ``labels`` is empty.

    ``source`` is how it is called in messages, ``revision`` its version (None: made from its weights),
    ``stated_labels`` what the operator says its outputs mean. Only safetensors are read and no code of the folder runs.
    Raises ModelUnusable, LabelsUnknown.
    """
    config = _read_config(folder, source)
    weights = _weights_of(folder, source)
    names = [str(name) for name in _own_labels(config)] if labels else []
    own = read_own_facts(folder, source)
    order: tuple[str, ...] = ()
    if labels:
        order = (
            by_order(stated_labels, names, labels, source=source)
            if stated_labels
            else by_name(names, labels, source=source)
        )
    model = _load_weights(folder, source, reads_passages=not labels)
    tokenizer = load_tokenizer_of(folder, source)
    sha256 = weights_sha256(weights)
    pad = model.config.pad_token_id
    if pad is None:
        raise ModelUnusable(source, "it has no padding token", "Choose another model.")
    card = ModelCard(
        model_id=model_id,
        revision=revision or sha256[:16],
        labels=order,
        label_map=dict(zip(names, order, strict=True)),
        weights_sha256=sha256,
        licence=own.licence or licence_of(folder),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        seed=own.seed,
    )
    return LoadedModel(
        model_id=card.model_id,
        revision=card.revision,
        labels=order,
        model=model,
        tokenizer=tokenizer,
        max_length=longest_of(model.config, folder),
        pad_token_id=int(pad),
        head="classification" if labels else "span",
        takes_type_ids=takes_type_ids(model),
        emoji_names=own.emoji_names,
        stride=own.stride,
        card=card,
    )


@dataclass(frozen=True)
class OwnFacts:
    """What a model that was trained here says of itself besides what the library's files hold."""

    emoji_names: bool = False
    stride: int = 128
    licence: str | None = None
    seed: int | None = None


def read_own_facts(folder: Path, source: str) -> OwnFacts:
    """Return what the folder's OWN_FACTS say, the defaults where there are none. Raises ModelUnusable."""
    try:
        said = json.loads((folder / OWN_FACTS).read_text(encoding="utf-8"))
        preprocessing = said.get("preprocessing")
        if preprocessing not in (None, PREPROCESSING):
            raise ValueError(f"preprocessing is {preprocessing!r}; only {PREPROCESSING!r} is known")
        seed = said.get("seed")
        return OwnFacts(
            emoji_names=preprocessing is not None,
            stride=int(said.get("stride", OwnFacts.stride)),
            licence=str(said["licence"])[:200] if said.get("licence") else None,
            seed=None if seed is None else int(seed),
        )
    except FileNotFoundError:
        return OwnFacts()
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelUnusable(source, f"its {OWN_FACTS} can't be read ({error})", "Train it again.") from error


@contextmanager
def quiet_library() -> Iterator[None]:
    """Keep the library from telling on the terminal what it loads; what matters of it is raised here."""
    from transformers.utils import logging as library_logging

    speaks = library_logging.get_verbosity()
    library_logging.set_verbosity_error()
    library_logging.disable_progress_bar()
    try:
        yield
    finally:
        library_logging.set_verbosity(speaks)
        library_logging.enable_progress_bar()


def weights_sha256(files: Sequence[Path]) -> str:
    """Return one hash over a model's weight files: the file's own, or of several that of their names and hashes."""
    if len(files) == 1:
        return file_sha256(files[0])
    listed = "\n".join(f"{file_sha256(file)}  {file.name}" for file in sorted(files, key=lambda file: file.name))
    return hashlib.sha256(listed.encode()).hexdigest()


def takes_type_ids(model: Any) -> bool:
    """Tell whether the model has token types to tell two texts apart by (BERT and ELECTRA have, RoBERTa has not)."""
    types = getattr(model.config, "type_vocab_size", 0) or 0
    return types > 1 and "token_type_ids" in inspect.signature(model.forward).parameters


def _read_config(folder: Path, source: str) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnusable(
            source, f"its config.json can't be read ({type(error).__name__})", "Give a folder of the transformers form."
        ) from error
    if not isinstance(config, dict):
        raise ModelUnusable(source, "its config.json is no object", "Give a folder of the transformers form.")
    return config


def _weights_of(folder: Path, source: str) -> list[Path]:
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        others = sorted(path.name for path in folder.glob("*.bin")) or ["none"]
        raise ModelUnusable(
            source,
            f"it has no safetensors (other weights: {', '.join(others)}), and other forms can run code when loaded",
            "Choose a revision with model.safetensors, or convert it yourself and give the folder as dir:PATH.",
        )
    return files


def _own_labels(config: dict[str, Any]) -> list[Any]:
    names = config.get("id2label")
    if isinstance(names, dict) and sorted(names) == sorted(str(index) for index in range(len(names))) and names:
        return [names[str(index)] for index in range(len(names))]
    return [f"LABEL_{index}" for index in range(int(config.get("num_labels", 2)))]


def _load_weights(folder: Path, source: str, *, reads_passages: bool) -> Any:
    torch = single_threaded_torch()
    from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification

    kind = AutoModelForQuestionAnswering if reads_passages else AutoModelForSequenceClassification
    try:
        with quiet_library():
            model, report = kind.from_pretrained(
                str(folder),
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
            )
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelUnusable(
            source, f"the transformers library can't load it ({reason})", "Choose another model or revision."
        ) from error
    missing = sorted({*report["missing_keys"], *(str(one[0]) for one in report["mismatched_keys"])})
    if missing:
        what = "answers" if reads_passages else "labels"
        raise ModelUnusable(
            source,
            f"its weights lack {', '.join(missing[:4])}{' ...' if len(missing) > 4 else ''}, so it would guess",
            f"Choose a model that was trained to give {what}.",
        )
    if not all(finite(parameter) for parameter in model.parameters()):
        raise ModelUnusable(source, "its weights hold numbers that are not finite", "Choose another revision.")
    return model.eval().requires_grad_(False)


def load_tokenizer_of(folder: Path, source: str) -> Tokenizer:
    """Return the folder's tokenizer, which neither cuts nor pads. Raises ModelUnusable."""
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    step = "Choose a revision with tokenizer.json."
    try:
        found = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        # A copy of its own: the wrapper changes truncation per call, which two threads can't do to one tokenizer.
        tokenizer = Tokenizer.from_str(found.backend_tokenizer.to_str())
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelUnusable(source, f"its tokenizer can't be loaded ({reason})", step) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def longest_of(config: Any, folder: Path) -> int:
    """Return the most positions of one input to a model of this configuration."""
    # RoBERTa and its kin count positions from the padding token's id on, and MPNet does the same.
    offset = 2 if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer") else 0
    limits = [LONGEST]
    if positions := int(getattr(config, "max_position_embeddings", 0) or 0):
        limits.append(positions - offset)
    try:
        stated = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("model_max_length")
    except (OSError, ValueError):
        stated = None
    if isinstance(stated, int | float) and stated >= 8:
        limits.append(int(min(stated, LONGEST)))
    return min(limits)


def licence_of(folder: Path) -> str | None:
    """Return the licence that the folder's card states."""
    from huggingface_hub import metadata_load

    try:
        stated = (metadata_load(folder / "README.md") or {}).get("license")
    except Exception:  # whatever is wrong with a card's header, it states no licence that could be read
        return None
    if isinstance(stated, list):
        stated = ", ".join(str(one) for one in stated)
    return str(stated)[:200] if stated else None
