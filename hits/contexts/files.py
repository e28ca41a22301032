"""Files of contexts: JSON lines or CSV of the task's context fields, checked whole before anything is stored."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hits.errors import Finding, InvalidAnswer, InvalidContexts, InvalidInput
from hits.tasks import TaskSpec, digest_of

#: A larger file is read no further, whatever it is.
MAX_BYTES = 200 * 1024 * 1024
#: More lines than any round needs; a larger file is a mistake that should not fill memory.
MAX_LINES = 100_000
#: Of a refused value so much is shown.
_SHOWN: Final = 60


@dataclass(frozen=True)
class ContextsFile:
    """A file of contexts that are all sound; ``lines`` holds the number of each one's line with its fields."""

    sha256: str
    lines: tuple[tuple[int, dict[str, str]], ...]


def read_contexts(path: Path, spec: TaskSpec) -> list[dict[str, str]]:
    """Return the contexts of a file in order. Raises as read_lines, and InvalidContexts for repeats as well."""
    found, findings = _read(path, spec)
    first_seen: dict[str, int] = {}
    for number, context in found.lines:
        known = first_seen.setdefault(digest_of(context), number)
        if known != number:
            findings.append(Finding(number, f"the same context as line {known}"))
    _require_sound(path, findings)
    return [context for _, context in found.lines]


def read_lines(path: Path, spec: TaskSpec) -> ContextsFile:
    """Return the contexts of a UTF-8 file, of which a name that ends in .csv says that it has columns.

    Blank lines are skipped. Raises InvalidContexts with every broken line, its value and what is wrong with it, and
    InvalidInput when the file can't be read at all.
    """
    found, findings = _read(path, spec)
    _require_sound(path, findings)
    return found


def _require_sound(path: Path, findings: list[Finding]) -> None:
    if findings:
        raise InvalidContexts(str(path), sorted(findings, key=lambda one: one.line))


def _read(path: Path, spec: TaskSpec) -> tuple[ContextsFile, list[Finding]]:
    try:
        with path.open("rb") as file:
            written = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror or error}. Nothing was done.") from error
    if len(written) > MAX_BYTES:
        raise InvalidInput(f"{path} holds more than {MAX_BYTES // 1024**2} MB. Split it. Nothing was done.")
    lines = written.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if len(lines) > MAX_LINES:
        raise InvalidContexts(str(path), [Finding(MAX_LINES, f"more than {MAX_LINES:,} lines; split the file")])
    findings: list[Finding] = []
    texts = [_decoded(number, line, findings) for number, line in enumerate(lines, start=1)]
    broken = {finding.line for finding in findings}
    names = [item.name for item in spec.context_fields]
    is_csv = path.suffix.lower() == ".csv"
    found = []
    for first, last, raw in _csv_rows(texts, names, findings) if is_csv else _json_rows(texts, broken, findings):
        if broken.intersection(range(first, last + 1)):
            continue
        try:
            found.append((first, spec.check_context(raw)))
        except InvalidAnswer as error:
            findings.append(Finding(first, f"{error}{_value(raw, error.field)}"))
    if not found and not findings:
        findings.append(Finding(1, "no contexts in this file"))
    return ContextsFile(hashlib.sha256(written).hexdigest(), tuple(found)), findings


#: First and last line of a row, and what stands there.
_Rows = Iterator[tuple[int, int, Any]]


def _decoded(number: int, line: bytes, findings: list[Finding]) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = line[max(error.start - 20, 0) : error.start + 10].decode("utf-8", "backslashreplace")
        findings.append(Finding(number, f"not UTF-8 text: byte {error.start + 1} in “{shown}”"))
        return line.decode("utf-8", "replace")


def _json_rows(texts: list[str], broken: set[int], findings: list[Finding]) -> _Rows:
    for number, content in enumerate(texts, start=1):
        if not content.strip() or number in broken:
            continue
        try:
            yield number, number, json.loads(content)
        except json.JSONDecodeError as error:
            shown = content.strip()[:_SHOWN]
            findings.append(Finding(number, f"not JSON: {error.msg} at column {error.colno} of “{shown}”"))
        except ValueError:
            # Python reads no whole number of thousands of digits.
            findings.append(Finding(number, "not a context: a number of too many digits"))
        except RecursionError:
            findings.append(Finding(number, "not a context: nested too deeply"))


def _csv_rows(texts: list[str], wanted: list[str], findings: list[Finding]) -> _Rows:
    """Yield the rows after the first, which names the columns; quoted fields may hold line ends."""
    reader = csv.reader(io.StringIO("\n".join(texts), newline=""), strict=True)
    names: list[str] | None = None
    before = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            findings.append(Finding(before + 1, f"not CSV: {error}; what follows was not read"))
            return
        first, before = before + 1, reader.line_num
        if not any(cell.strip() for cell in row):
            continue
        if names is None:
            names = [name.strip() for name in row]
            if sorted(names) != sorted(wanted):
                shown = ", ".join(map(repr, names))
                expected = ", ".join(map(repr, wanted))
                findings.append(Finding(first, f"the columns are {shown}; this task's contexts have {expected}"))
                return
            continue
        if len(row) != len(names):
            shown = ",".join(row)[:_SHOWN]
            findings.append(Finding(first, f"{len(row)} columns instead of the first line's {len(names)}: “{shown}”"))
            continue
        yield first, before, dict(zip(names, row, strict=True))


def _value(raw: Any, field: str) -> str:
    value = raw.get(field) if isinstance(raw, dict) else raw
    if value is None or value == "":
        return ""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    cut = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return " " + "“" + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in cut) + "”"
