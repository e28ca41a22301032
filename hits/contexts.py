"""Contexts files: JSON lines, each an object of the task's context fields, checked whole before anything is stored."""

from __future__ import annotations

import json
from pathlib import Path

from hits.errors import Finding, InvalidAnswer, InvalidContexts, InvalidInput
from hits.tasks import TaskSpec, digest_of

#: A larger file is read no further, whatever it is.
MAX_BYTES = 200 * 1024 * 1024
#: More lines than any round needs; a larger file is a mistake that should not fill memory.
MAX_LINES = 100_000


def read_contexts(path: Path, spec: TaskSpec) -> list[dict[str, str]]:
    """Return the contexts of a UTF-8 JSON lines file in order; blank lines are skipped, repeats are an error.

    Raises InvalidContexts with every broken line and its reason, InvalidInput when the file can't be read at all.
    """
    try:
        with path.open("rb") as file:
            written = file.read(MAX_BYTES + 1)
        text = written.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror or error}. Nothing was launched.") from error
    except UnicodeDecodeError as error:
        line = written[: error.start].count(b"\n") + 1
        raise InvalidContexts(str(path), [Finding(line, "not UTF-8 text")]) from error
    if len(written) > MAX_BYTES:
        raise InvalidInput(f"{path} holds more than {MAX_BYTES // 1024**2} MB. Split it. Nothing was launched.")
    contexts: list[dict[str, str]] = []
    findings: list[Finding] = []
    first_seen: dict[str, int] = {}
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise InvalidContexts(str(path), [Finding(MAX_LINES, f"more than {MAX_LINES:,} lines; split the file")])
    for number, content in enumerate(lines, start=1):
        if not content.strip():
            continue
        try:
            context = spec.check_context(json.loads(content))
        except InvalidAnswer as error:
            findings.append(Finding(number, str(error)))
        except json.JSONDecodeError as error:
            findings.append(Finding(number, f"not JSON: {error.msg} at column {error.colno}"))
        except ValueError:
            # Python reads no whole number of thousands of digits.
            findings.append(Finding(number, "not a context: a number of too many digits"))
        except RecursionError:
            findings.append(Finding(number, "not a context: nested too deeply"))
        else:
            digest = digest_of(context)
            if digest in first_seen:
                findings.append(Finding(number, f"the same context as line {first_seen[digest]}"))
            else:
                first_seen[digest] = number
                contexts.append(context)
    if not contexts and not findings:
        findings.append(Finding(1, "no contexts in this file"))
    if findings:
        raise InvalidContexts(str(path), findings)
    return contexts
