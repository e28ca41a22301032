"""A data set as a folder: Parquet and JSON lines by split, card, datasheet, Croissant, manifests, checksums."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hits.errors import InvalidInput
from hits.export.card import Edition, card, datasheet
from hits.export.croissant import ExportedFile, croissant
from hits.export.files import SplitFiles, sha256_of_file
from hits.export.rows import SCHEMA_VERSION, ExportedExample, columns
from hits.export.statistics import Statistics
from hits.tasks import TaskSpec


def edition_of(
    spec: TaskSpec,
    manifests: Sequence[tuple[Mapping[str, Any], str]],
    *,
    licences: Sequence[str],
    with_attributions: bool,
) -> Edition:
    """Return what an export of these frozen rounds is; its identity follows from their manifests and the options."""
    told = json.dumps([SCHEMA_VERSION, [digest for _, digest in manifests], list(licences), with_attributions])
    rounds = "-".join(str(manifest["round"]) for manifest, _ in manifests)
    version = f"{SCHEMA_VERSION}.{max((manifest['round'] for manifest, _ in manifests), default=0)}.0"
    identity = hashlib.sha256(told.encode()).hexdigest()[:16]
    return Edition(f"{spec.code}-rounds-{rounds}", spec, manifests, licences, with_attributions, version, identity)


def require_free(folder: Path) -> None:
    """Raise InvalidInput unless an export can be written to ``folder``: nothing is there yet, or it is empty."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InvalidInput(f"{folder} is not a folder. Name one that is empty, or that is not there yet.")
    if folder.is_dir() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} holds something already. Nothing was written; name a folder that is empty.")
    if not folder.absolute().parent.is_dir():
        raise InvalidInput(f"There is no folder {folder.absolute().parent}. Make it first; nothing was written.")


class DatasetFolder:
    """Takes the examples of an edition; leaving the ``with`` block after ``finish`` puts the whole folder in its place.

    Left by an error, or without ``finish``, nothing stays. Raises InvalidInput as require_free does.
    """

    def __init__(self, folder: Path, edition: Edition) -> None:
        require_free(folder)
        self._folder = folder.absolute()
        self._edition = edition
        self._columns = columns(edition.spec, with_attributions=edition.with_attributions)
        self.statistics = Statistics()
        self._part = Path()
        self._finished = False

    def __enter__(self) -> Self:
        try:
            part = tempfile.mkdtemp(prefix=f".{self._folder.name}.part-", dir=self._folder.parent)
        except OSError as error:
            raise InvalidInput(
                f"Nothing can be written to {self._folder.parent}: {error.strerror or error}."
            ) from error
        self._part = Path(part)
        self._files = SplitFiles(self._part, self._columns)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._files.__exit__(kind, error, trace)
            if kind is None and self._finished:
                self._describe()
                self._part.chmod(0o755)
                # In one step, and only onto nothing or an empty folder.
                self._part.rename(self._folder)
        except OSError as failure:
            raise InvalidInput(f"{self._folder} can't be written: {failure.strerror or failure}.") from failure
        finally:
            if self._part.exists():
                shutil.rmtree(self._part, ignore_errors=True)

    def add(self, example: ExportedExample) -> None:
        """Write an example."""
        self._files.add(example)
        self.statistics.add(example)

    def finish(self) -> None:
        """Say that all examples were added."""
        self._finished = True

    def _describe(self) -> None:
        edition = self._edition
        data = [self._described(path) for path in sorted(self._part.glob("*/*"))]
        spec = edition.spec
        metadata = croissant(
            name=edition.name,
            description=f"{spec.summary} Written against a language model, verified by people.",
            version=edition.version,
            identity=edition.identity,
            licences=edition.licences,
            published=max(_moment(manifest) for manifest, _ in edition.manifests),
            files=data,
            columns=self._columns,
        )
        listed = [{"sha256": digest, "manifest": manifest} for manifest, digest in edition.manifests]
        self._write("README.md", card(edition, self.statistics, self._columns))
        self._write("DATASHEET.md", datasheet(edition, self.statistics))
        self._write("croissant.json", json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")
        self._write("manifest.json", json.dumps(listed, indent=2, ensure_ascii=False, sort_keys=True) + "\n")
        every = [*data, *(self._described(path) for path in sorted(self._part.iterdir()) if path.is_file())]
        self._write("checksums.txt", "".join(f"{file.sha256}  {file.path}\n" for file in every))
        for path in (*self._part.rglob("*"), self._part):
            _to_disk(path)

    def _described(self, path: Path) -> ExportedFile:
        return ExportedFile(path.relative_to(self._part).as_posix(), path.stat().st_size, sha256_of_file(path))

    def _write(self, name: str, text: str) -> None:
        (self._part / name).write_text(text, encoding="utf-8", newline="\n")


def _moment(manifest: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(manifest["frozen_at"])


def _to_disk(path: Path) -> None:
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
