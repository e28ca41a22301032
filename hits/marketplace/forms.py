"""A QuestionForm as records, apart from XML and HTML: what to show, what may be answered, under which field names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MediaKind = Literal["image", "audio", "video"]
Style = Literal["radiobutton", "checkbox", "list", "dropdown", "combobox", "multichooser"]


@dataclass(frozen=True)
class Words:
    """A heading or a paragraph of plain text."""

    kind: Literal["title", "text"]
    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of plain texts."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Media:
    """An image, a sound or a video at an http(s) address, with its words for those who cannot take it in."""

    kind: MediaKind
    mime_type: str
    url: str
    alt: str
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True)
class Markup:
    """HTML of an allowed subset, checked when the form was read: safe to put into a page as it is."""

    html: str

    def __html__(self) -> str:
        """Return the HTML; template engines that escape put it in as it is."""
        return self.html


Content = Words | Bullets | Media | Markup


@dataclass(frozen=True)
class Pattern:
    """A regular expression that must occur in the answer; `error_text` is the requester's own sentence."""

    regex: str
    error_text: str | None
    ignores_case: bool


@dataclass(frozen=True)
class FreeText:
    """An answer in free words; `lines` suggests the size of its box."""

    is_numeric: bool = False
    min_value: int | None = None
    max_value: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    patterns: tuple[Pattern, ...] = ()
    default_text: str = ""
    lines: int = 1


@dataclass(frozen=True)
class Choice:
    """One selection; the identifier is the value that is sent back."""

    identifier: str
    label: Content


@dataclass(frozen=True)
class Selection:
    """An answer by choosing; `other` is a free text beside the choices."""

    minimum: int
    maximum: int
    style: Style | None
    choices: tuple[Choice, ...]
    other: FreeText | None = None


@dataclass(frozen=True)
class Overview:
    """Content between the questions."""

    content: tuple[Content, ...]


@dataclass(frozen=True)
class Question:
    """One question; the page sends its answer as the form field `field`, and "other" words as `other_field`."""

    identifier: str
    field: str
    display_name: str | None
    is_required: bool
    content: tuple[Content, ...]
    answer: FreeText | Selection

    @property
    def other_field(self) -> str:
        """The name of the field for other words."""
        return f"{self.field}-other"


@dataclass(frozen=True)
class QuestionForm:
    """Overviews and questions in the order in which they are shown."""

    parts: tuple[Overview | Question, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions alone."""
        return tuple(part for part in self.parts if isinstance(part, Question))
