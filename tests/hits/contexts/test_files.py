"""Contexts files are read whole or not at all."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hits.contexts import files, read_contexts, read_lines
from hits.errors import InvalidContexts, InvalidInput
from hits.tasks import task
from tests.launched import ROOT

SPEC = task("sentiment")


def written(folder: Path, content: bytes) -> Path:
    path = folder / "contexts.jsonl"
    path.write_bytes(content)
    return path


def test_contexts_come_back_in_order(tmp_path: Path) -> None:
    path = written(tmp_path, '\ufeff{"prompt": "Un café."}\r\n\r\n{"prompt": "A bus 🚌."}\n'.encode())

    assert read_contexts(path, SPEC) == [{"prompt": "Un café."}, {"prompt": "A bus 🚌."}]


@pytest.mark.parametrize(
    ("name", "code"),
    [("prompts", "sentiment"), ("hate_prompts", "hate"), ("premises", "nli"), ("passages", "qa")],
)
def test_every_task_has_contexts_to_begin_with(name: str, code: str) -> None:
    assert len(read_contexts(ROOT / f"docs/examples/{name}.jsonl", task(code))) >= 8


def test_a_line_of_a_task_without_contexts_is_an_empty_object(tmp_path: Path) -> None:
    assert read_contexts(written(tmp_path, b"{}"), replace(SPEC, context_fields=())) == [{}]


def test_every_broken_line_is_named_with_its_reason(tmp_path: Path) -> None:
    lines = [
        '{"prompt": "good"}',
        '{"prompt": "open',
        '{"text": "x"}',
        '["prompt"]',
        '{"prompt": ""}',
        '{"prompt": "good"}',
        '{"prompt": 3}',
        '{"prompt": "nul \\u0000"}',
        "[" * 100_000,
        '{"prompt": ' + "9" * 6000 + "}",
    ]
    with pytest.raises(InvalidContexts) as caught:
        read_contexts(written(tmp_path, "\n".join(lines).encode()), SPEC)

    found = {finding.line: finding.reason for finding in caught.value.findings}
    assert sorted(found) == [2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert "not JSON" in found[2]
    assert "unknown field 'text'" in found[3]
    assert "not list" in found[4]
    assert "empty" in found[5]
    assert "line 1" in found[6]
    assert "nested too deeply" in found[9]
    assert "too many digits" in found[10]
    assert "nothing was done" in str(caught.value)


@pytest.mark.parametrize(("content", "reason"), [(b"\n\n", "no contexts"), (b'{"prompt": "a"}\n\xff\xfe', "UTF-8")])
def test_a_file_without_contexts_says_so(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(InvalidContexts, match=reason):
        read_contexts(written(tmp_path, content), SPEC)


def test_a_file_without_an_end_is_read_no_further_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1024 * 1024)

    with pytest.raises(InvalidInput, match="more than 1 MB"):
        read_contexts(Path("/dev/zero"), SPEC)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere.jsonl can't be read: No such file or directory\. Nothing"):
        read_contexts(tmp_path / "nowhere.jsonl", SPEC)


def test_a_file_of_columns_is_read_with_quoted_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "contexts.csv"
    path.write_bytes('\ufeffprompt\r\n"Two\nlines, one cell"\r\n\r\nA bus.\r\n'.encode())

    assert read_lines(path, SPEC).lines == ((2, {"prompt": "Two\nlines, one cell"}), (5, {"prompt": "A bus."}))


@pytest.mark.parametrize(
    ("content", "findings"),
    [
        (b"text\na", {1: "columns are 'text'"}),
        (b"prompt\na,b\nnul\x00byte", {2: "2 columns instead of the first line's 1", 3: "U\\+0000"}),
        (b'prompt\n"open', {2: "not CSV"}),
        (b"prompt\n\xff\nfine", {2: "not UTF-8 text: byte 1"}),
    ],
)
def test_every_broken_row_is_named(tmp_path: Path, content: bytes, findings: dict[int, str]) -> None:
    path = tmp_path / "contexts.csv"
    path.write_bytes(content)

    with pytest.raises(InvalidContexts) as caught:
        read_lines(path, SPEC)

    found = {finding.line: finding.reason for finding in caught.value.findings}
    assert sorted(found) == sorted(findings)
    for line, reason in findings.items():
        assert re.search(reason, found[line])


def test_the_refused_value_is_shown_and_every_line_that_is_no_utf_8(tmp_path: Path) -> None:
    long = "x" * 5000
    path = written(tmp_path, b'{"prompt": "a"}\n\xff\n{"prompt": "\xfe"}\n{"prompt": "%s"}\n' % long.encode())

    with pytest.raises(InvalidContexts) as caught:
        read_contexts(path, SPEC)

    found = {finding.line: finding.reason for finding in caught.value.findings}
    assert sorted(found) == [2, 3, 4]
    assert "“xxxx" in found[4]
    assert len(found[4]) < 250
