"""Fetches the files of a published model: one commit, safetensors only, no code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inference.errors import ModelUnusable
from inference.references import HubReference

PATTERNS = (
    "README.md",
    "config.json",
    "dynahit.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "*.model",
)
"""What is fetched: weights as safetensors, configuration, tokenizer, the card with its licence; never a program."""


@dataclass(frozen=True)
class Snapshot:
    """A model's files in a folder, as they were at a commit of its repository."""

    folder: Path
    commit: str


Fetch = Callable[[HubReference, bool], Path]
"""Returns the folder of a revision from the cache (True) or the hub (False); raises OSError when it can't."""


def fetch(reference: HubReference, *, local_files_only: bool = False, get: Fetch | None = None) -> Snapshot:
    """Return the files of a published model, from the cache if they are there, else from the hub.

    The hub is asked for a tag even if the cache knows it, since a tag can move; without the hub the cache's stands.
    Raises ModelUnusable that says what was tried.
    """
    get = get or _snapshot
    tried = []
    pinned = _is_commit(reference.revision)
    for offline in (True,) if local_files_only else (True, False) if pinned else (False, True):
        try:
            folder = get(reference, offline)
        except (OSError, ValueError) as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else ""
            tried.append(f"{'cache' if offline else 'hub'}: {type(error).__name__}: {first}")
            continue
        if not offline or any(folder.glob("*.safetensors")):
            return Snapshot(folder, folder.name if _is_commit(folder.name) else reference.revision)
        tried.append("cache: incomplete, without weights")
    step = (
        "Only local files may be used: fetch it once with hf download"
        if local_files_only
        else "Check the name and revision on the model's page, and that this machine reaches the hub, or fetch it with"
        " hf download"
    )
    raise ModelUnusable(
        str(reference), "; ".join(tried), f"{step} {reference.repository} --revision {reference.revision}."
    )


def _is_commit(revision: str) -> bool:
    return len(revision) == 40 and all(character in "0123456789abcdef" for character in revision)


def _snapshot(reference: HubReference, offline: bool) -> Path:
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            reference.repository,
            revision=reference.revision,
            allow_patterns=list(PATTERNS),
            local_files_only=offline,
        )
    )
