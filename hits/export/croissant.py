"""Croissant metadata (MLCommons, 1.0) of an export: what the files are, and what their columns hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hits.export.rows import NUMBER, TEXT, WHOLE, YES_NO, Column, Shape

_CONTEXT: Final = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "equivalentProperty": "cr:equivalentProperty",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES: Final = {TEXT: "sc:Text", WHOLE: "sc:Integer", NUMBER: "sc:Float", YES_NO: "sc:Boolean"}


@dataclass(frozen=True)
class ExportedFile:
    """A file of the export, by its path below the folder."""

    path: str
    bytes: int
    sha256: str


def croissant(
    *,
    name: str,
    description: str,
    version: str,
    identity: str,
    licences: Sequence[str],
    published: datetime,
    files: Sequence[ExportedFile],
    columns: Mapping[str, Column],
) -> dict[str, Any]:
    """Return the metadata as JSON-LD. Each Parquet file is a record set, named for its split."""
    parquet = [file for file in files if file.path.endswith(".parquet")]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": name,
        "description": description,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": list(licences),
        "version": version,
        "identifier": identity,
        "datePublished": f"{published:%Y-%m-%d}",
        "url": f"urn:dynahit:{name}:{identity}",
        "citeAs": f"@misc{{{name}, title={{{name}}}, year={{{published:%Y}}}, version={{{version}}}}}",
        "rai:dataCollection": "Written by paid people against a language model, judged by other people.",
        "rai:personalSensitiveInformation": "People stand under names made for this export alone.",
        "distribution": [_file_object(file) for file in files],
        "recordSet": [_record_set(_split(file.path), file.path, columns) for file in parquet],
    }


def _split(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".parquet")


def _file_object(file: ExportedFile) -> dict[str, Any]:
    parquet = file.path.endswith(".parquet")
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": "application/x-parquet" if parquet else "application/jsonlines",
        "sha256": file.sha256,
    }


def _record_set(split: str, path: str, columns: Mapping[str, Column]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "description": f"The {split} examples.",
        "field": [_field(split, path, name, column) for name, column in columns.items()],
    }


def _field(split: str, path: str, name: str, column: Column) -> dict[str, Any]:
    source = {"fileObject": {"@id": path}, "extract": {"column": name}}
    found: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{split}/{name}",
        "name": f"{split}/{name}",
        "description": column.meaning,
    }
    shape = column.shape
    if isinstance(shape, list):
        found["repeated"] = True
        shape = shape[0]
    if isinstance(shape, str):
        return {**found, "dataType": _TYPES[shape], "source": source}
    parts = [
        {
            "@type": "cr:Field",
            "@id": f"{split}/{name}/{inner}",
            "name": f"{split}/{name}/{inner}",
            "dataType": _TYPES[kind],
            "source": {**source, "transform": {"jsonPath": inner}},
            **({"repeated": True} if repeated else {}),
        }
        for inner, kind, repeated in _leaves(shape)
    ]
    return {**found, "subField": parts}


def _leaves(shape: Mapping[str, Shape], before: str = "") -> Iterator[tuple[str, str, bool]]:
    """Yield the single values that hang below a column: where each stands, its kind, and whether there are several.

    Croissant has no words for several records within a record of a column; they stand in the files alone.
    """
    for name, part in shape.items():
        if isinstance(part, str):
            yield f"{before}{name}", part, False
        elif isinstance(part, dict):
            yield from _leaves(part, f"{before}{name}.")
        elif isinstance(part[0], str):
            yield f"{before}{name}", part[0], True
