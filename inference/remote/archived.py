"""Puts a model with the code that serves it into one archive (.mar), and loads it again where TorchServe unpacks it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hits.errors import HitsError, InvalidInput
from hits.tasks import TaskSpec, register_package, task
from inference.base_weights import locate_base_weights
from inference.errors import EngineRefused
from inference.hub import PATTERNS, fetch
from inference.loading import load_model, published_model
from inference.references import EmbeddedReference, FolderReference, HubReference, parse_reference
from inference.remote.torchserve_handler import MODEL_FILE

if TYPE_CHECKING:
    from inference.target import TargetModel

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = ("hits/__init__.py", "hits/errors.py", "hits/predictions.py", "hits/tasks", "inference")
"""What the handler imports; none of it needs more than torch, transformers, captum and what they bring."""
BASE_FILES = ("config.json", "model.safetensors", "tokenizer.json")
WEIGHTS = "weights"
HANDLER = "handler.py"
EPOCH = (2026, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class ModelFiles:
    """Where a model's files lie, and what it is called wherever it is loaded.

    ``model_id`` None means the embedded model of the task, whose difference travels with the code.
    """

    folder: Path
    names: tuple[str, ...]
    model_id: str | None = None
    revision: str | None = None
    labels: tuple[str, ...] = ()


def files_of(spec: TaskSpec, reference: str, *, base: Path | None = None, local_files_only: bool = False) -> ModelFiles:
    """Return the files of a single model: fetched, if it is on the hub.

    Raises InvalidInput for an ensemble, whose members are archived one by one, and what finding the files raises.
    """
    parsed = parse_reference(reference)
    if isinstance(parsed, EmbeddedReference):
        if parsed.task_code != spec.code:
            raise InvalidInput(f"{reference!r} is not a model of the task {spec.code!r}.")
        return ModelFiles(locate_base_weights(base, local_files_only=local_files_only), BASE_FILES)
    if isinstance(parsed, HubReference):
        snapshot = fetch(parsed, local_files_only=local_files_only)
        return ModelFiles(
            snapshot.folder, _files_in(snapshot.folder), parsed.repository, snapshot.commit, parsed.labels
        )
    if isinstance(parsed, FolderReference):
        name = f"dir:{parsed.folder.name}"
        return ModelFiles(parsed.folder, _files_in(parsed.folder), name, None, parsed.labels)
    raise InvalidInput(f"{reference!r} can't be archived. Archive its members one by one, or name a single model.")


def _files_in(folder: Path) -> tuple[str, ...]:
    return tuple(sorted({path.name for pattern in PATTERNS for path in folder.glob(pattern) if path.is_file()}))


def write_archive(
    spec: TaskSpec, files: ModelFiles, out: Path, *, name: str, version: str = "1.0", packages: Sequence[str] = ()
) -> Path:
    """Write ``out/NAME.mar`` and return its path: the same model and code give the same bytes.

    The form is TorchServe's: a zip with MAR-INF/MANIFEST.json that names the handler. ``packages`` hold tasks of others
    and must be installed where TorchServe runs. Raises EngineRefused for a name
    that TorchServe would not take and for missing files.
    """
    if not name or not all(part.isalnum() for part in name.replace("_", "-").split("-")):
        raise EngineRefused(name, "a model's name has letters, digits, - and _ only")
    if missing := [file for file in files.names if not (files.folder / file).is_file()]:
        raise EngineRefused(str(files.folder), f"it lacks {', '.join(missing)}")
    manifest = {
        "createdOn": "01/01/2026 00:00:00",
        "runtime": "python",
        "model": {"modelName": name, "handler": HANDLER, "modelVersion": version},
        "archiverVersion": "0.12.0",
    }
    described = {
        "task": spec.code,
        "model_id": files.model_id,
        "revision": files.revision,
        "labels": list(files.labels),
        "packages": list(packages),
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.mar"
    unfinished = path.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        _write(archive, "MAR-INF/MANIFEST.json", json.dumps(manifest, indent=2).encode())
        _write(archive, MODEL_FILE, json.dumps(described).encode())
        _write(archive, HANDLER, (ROOT / "inference/remote/torchserve_handler.py").read_bytes())
        for source in code_files():
            _write(archive, str(source.relative_to(ROOT)), source.read_bytes())
        for file in files.names:
            _write(archive, f"{WEIGHTS}/{file}", (files.folder / file).read_bytes())
    unfinished.replace(path)
    return path


def code_files() -> Iterator[Path]:
    """Yield the source files that an archive carries, in a fixed order."""
    for entry in CODE:
        path = ROOT / entry
        if path.is_file():
            yield path
        else:
            yield from sorted(
                file
                for file in path.rglob("*")
                if file.is_file() and "__pycache__" not in file.parts and file.suffix not in (".pyc", ".md")
            )


def load_archived(folder: Path) -> tuple[TargetModel, int]:
    """Return the model that an unpacked archive holds, and how many texts its task's model reads.

    Raises EngineRefused, and what loading the model raises.
    """
    try:
        described = json.loads((folder / MODEL_FILE).read_text(encoding="utf-8"))
        for package in described["packages"]:
            register_package(package)
        spec, model_id, revision = task(described["task"]), described["model_id"], described["revision"]
        stated = tuple(described["labels"])
    except (HitsError, OSError, ValueError, KeyError, TypeError) as error:
        raise EngineRefused(str(folder), f"{MODEL_FILE} can't be read ({type(error).__name__}: {error})") from error
    weights = folder / WEIGHTS
    if model_id is None:
        model = load_model(spec, f"embedded:{spec.code}", base=weights, local_files_only=True)
    else:
        model = published_model(spec, weights, model_id=model_id, revision=revision, stated_labels=stated)
    return model, len(spec.model_fields)


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    # A fixed time makes equal content equal archives.
    archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED, 1)
