"""The text that people agree to: where it comes from, what a task adds, and how it becomes a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hits.errors import InvalidInput
from hits.tasks import TaskSpec

MAX_CHARACTERS = 20_000

DEFAULT_TEXT = """\
# What taking part means

This is paid work for research on language technology. You write short texts, judge what others wrote, or answer
questions about the rules. The page of each HIT says what exactly, about how long it takes, and what it pays.

## What is stored

- What you write, mark, choose and remark on these pages, when you did it, and what a model answered to it.
- Your worker id of the marketplace, in one place, so that you are paid. Everywhere else you have a made-up name.
- Where you write: how many keys were pressed, what amount was pasted, and how long you typed. Only counts are stored,
  and nobody's pay or work is decided by them.
- Which parts of a task you were shown, where a task counts that to protect you.
- What we decide or note about your work, such as a grade or an approval.
- Nothing else about you or your device.

## What becomes of it

- Other people read and judge what you write, under no name at all.
- Texts and judgements are published for research, under the made-up name. What is published can't be called back, so
  write nothing that tells who you or other people are.
- What you were paid is kept for as long as the law on bookkeeping asks.

## What you can decide

- Taking part is your choice. You can stop at any time and return the HIT: it costs you nothing and is held against you
  by nobody here.
- You are paid as the page says. Nobody is rejected for an opinion, or because a model was not fooled.
- You can ask to be erased, by writing to the contact below. Your worker id, your remarks and what you never handed in
  are then removed. Payments stay in the books and handed-in texts in the data, both under the made-up name.

Take part only if you are 18 or older and agree to all of this.
"""


@dataclass(frozen=True)
class Block:
    """A part of a text: kind "heading", "subheading", "paragraph" or "list" with its lines."""

    kind: str
    lines: tuple[str, ...]


def read_text(path: Path | None) -> str:
    """Return the instance's consent text, without a file the one above.

    Raises InvalidInput for a file that can't be read, is empty, too long, or holds characters that no page can show.
    """
    if path is None:
        return DEFAULT_TEXT
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(
            f"DYNAHIT_CONSENT_FILE is {str(path)!r}, which can't be read: {cause}. Mend it, or take the setting out."
        ) from error
    text = text.replace("\r\n", "\n").strip() + "\n"
    bad = next((character for character in text if character not in "\n\t" and not character.isprintable()), None)
    if not text.strip() or len(text) > MAX_CHARACTERS or bad is not None:
        fault = (
            f"it holds the character U+{ord(bad):04X}"
            if bad is not None
            else "it is empty"
            if not text.strip()
            else f"it has {len(text):,} characters, and {MAX_CHARACTERS:,} are the most"
        )
        raise InvalidInput(f"DYNAHIT_CONSENT_FILE is {str(path)!r}, which can't be used: {fault}. Mend the file.")
    return text


def text_for_task(text: str, spec: TaskSpec) -> str:
    """Return the text with what the task adds to it."""
    return text if spec.consent_addition is None else f"{text}\n## About this task\n\n{spec.consent_addition}\n"


def blocks(text: str) -> list[Block]:
    """Cut a text into its parts: lines after "# " and "## " are headings, after "- " points of a list.

    Other lines make paragraphs, which end at an empty line. No other sign means anything.
    """
    found: list[Block] = []
    open_kind = ""
    for line in text.splitlines():
        words = line.strip()
        if not words:
            open_kind = ""
        elif words.startswith(("# ", "## ")):
            kind = "heading" if words.startswith("# ") else "subheading"
            found.append(Block(kind, (words.lstrip("# "),)))
            open_kind = ""
        elif words.startswith("- "):
            if open_kind == "list":
                found[-1] = Block("list", (*found[-1].lines, words[2:]))
            else:
                found.append(Block("list", (words[2:],)))
            open_kind = "list"
        elif open_kind:
            # A line that goes on with the point or the paragraph before it.
            *before, last = found[-1].lines
            found[-1] = Block(found[-1].kind, (*before, f"{last} {words}"))
        else:
            found.append(Block("paragraph", (words,)))
            open_kind = "paragraph"
    return found
