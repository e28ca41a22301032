"""The consent text: where it comes from and how it becomes a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.care.texts import DEFAULT_TEXT, MAX_CHARACTERS, Block, blocks, read_text, text_for_task
from app.factory import create_app
from hits.errors import InvalidInput
from hits.tasks import TASKS, task
from tests.market import settings


def test_the_text_that_comes_with_dynahit_says_what_it_must() -> None:
    for words in ("your choice", "erased", "published", "worker id", "18 or older", "bookkeeping", "contact"):
        assert words in DEFAULT_TEXT
    assert [block.lines[0] for block in blocks(DEFAULT_TEXT) if block.kind == "subheading"] == [
        "What is stored",
        "What becomes of it",
        "What you can decide",
    ]


def test_a_file_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "consent.txt"
    path.write_bytes("\ufeff# Einwilligung\r\n\r\nJa, für Forschung.\r\n".encode())

    assert read_text(path) == "# Einwilligung\n\nJa, für Forschung.\n"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "it is empty"),
        (b" \n\t\n", "it is empty"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"a\x00b", "U\\+0000"),
        (b"a\x1b[31mb", "U\\+001B"),
        (b"x" * (MAX_CHARACTERS + 1), "20,000 are the most"),
    ],
)
def test_a_file_that_can_not_be_used_stops_the_start_with_its_name(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "consent.txt"
    path.write_bytes(content)

    with pytest.raises(InvalidInput, match=rf"consent\.txt.*{fault}"):
        create_app(settings(consent_file=path))
    with pytest.raises(InvalidInput, match="No such file"):
        read_text(tmp_path / "missing.txt")


def test_a_text_is_cut_into_headings_paragraphs_and_lists() -> None:
    assert blocks("# A\n\none\ntwo\n\n## B\n- x\n- y\n  z\nthree\n\n- w\n<b>four</b>") == [
        Block("heading", ("A",)),
        Block("paragraph", ("one two",)),
        Block("subheading", ("B",)),
        Block("list", ("x", "y z three")),
        Block("list", ("w <b>four</b>",)),
    ]


def test_a_task_with_disturbing_texts_adds_to_it() -> None:
    assert text_for_task("Text.", task("sentiment")) == "Text."
    assert "hateful language" in text_for_task("Text.", task("hate"))
    for spec in TASKS.values():
        assert (spec.content_warning is None) == (spec.consent_addition is None) == (spec.content_note == "")
        assert len(spec.hit_title(spec.title)) <= 128
    assert task("hate").hit_title("Write") == "Write (contains hateful language)"
