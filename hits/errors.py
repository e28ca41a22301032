"""What can go wrong with the work, in the caller's words.

HitsError
├── NotFound                 nothing by that name
├── InvalidInput             a value that can't be used; says which and why
│   ├── InvalidAnswer        a worker's answer that the task's rules refuse
│   │   └── AmbiguousAnswer  it stands at several places of the passage; carries them
│   └── InvalidContexts      a contexts file with broken lines; carries the findings
├── Refused                  the request is understood and may not be done
│   ├── NoTriesLeft
│   ├── NotYetSubmittable
│   ├── AlreadySubmitted
│   ├── OwnExample
│   ├── AlreadyVoted
│   ├── WrongWorker
│   ├── ConsentMissing
│   ├── NotWarned
│   ├── NotShown
│   └── DayIsFull
└── MTurkError               the marketplace said no or can't be reached (hits.mturk.errors)
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass


class HitsError(Exception):
    """Base of the errors of this package; its text is fit to be shown to people."""


class NotFound(HitsError):
    """Nothing by that name."""


class InvalidInput(HitsError):
    """A value that can't be used."""


class InvalidAnswer(InvalidInput):
    """A worker's answer that the task's rules refuse; ``field`` names the input."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class AmbiguousAnswer(InvalidAnswer):
    """A marked answer that stands at several places; ``places`` are (start in characters, before, answer, after)."""

    def __init__(self, field: str, message: str, places: Sequence[tuple[int, str, str, str]]) -> None:
        super().__init__(field, message)
        self.places = tuple(places)


@dataclass(frozen=True)
class Finding:
    """One thing wrong with one line of an input file."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


#: As many as a terminal can be scrolled back; the error itself carries all.
MOST_FINDINGS = 1000


class InvalidContexts(InvalidInput):
    """A contexts file that can't be used; ``findings`` lists every broken line, not only the first."""

    def __init__(self, path: str, findings: Sequence[Finding]) -> None:
        shown = "\n".join(f"  {finding}" for finding in findings[:MOST_FINDINGS])
        more = f"\n  and {len(findings) - MOST_FINDINGS} more" if len(findings) > MOST_FINDINGS else ""
        super().__init__(f"{path} can't be used, nothing was done:\n{shown}{more}\nMend these lines and run it again.")
        self.path = path
        self.findings = tuple(findings)


class Refused(HitsError):
    """The request is understood and may not be done."""


class NoTriesLeft(Refused):
    """All tries of the assignment are used."""

    def __init__(self, tries: int) -> None:
        super().__init__(
            f"All {tries} tries are used. Nothing more was sent to the model. You can submit now and are paid."
        )


class NotYetSubmittable(Refused):
    """There is nothing to submit yet."""


class AlreadySubmitted(Refused):
    """The assignment was saved or submitted and can't change any more."""

    def __init__(self) -> None:
        super().__init__("This assignment is already submitted. Nothing was changed.")


class OwnExample(Refused):
    """A validator met an own statement."""

    def __init__(self) -> None:
        super().__init__("This is your own, so you can't check it. Nothing was stored.")


class AlreadyVoted(Refused):
    """A validator judged the same statement before."""

    def __init__(self) -> None:
        super().__init__("You have already judged this. Your first judgement stands.")


class WrongWorker(Refused):
    """The assignment belongs to another worker."""

    def __init__(self) -> None:
        super().__init__(
            "This assignment belongs to somebody else. Open the HIT from your own list on the marketplace."
        )


class ConsentMissing(Refused):
    """The worker has not agreed to the consent text."""

    def __init__(self) -> None:
        super().__init__(
            "You have not agreed yet to what is stored and published, so nothing was kept. Load the page again and read"
            " it; you decide then."
        )


class NotWarned(Refused):
    """The worker has not seen the warning of a task with disturbing texts, or has not chosen to go on behind it."""

    def __init__(self) -> None:
        super().__init__(
            "This task begins with a warning that you have not seen yet, so nothing was kept. Load the page again."
        )


class NotShown(Refused):
    """A judgement about a text that the worker has not been shown."""

    def __init__(self) -> None:
        super().__init__("You have not been shown this text, so you can't judge it. Nothing was stored.")


class DayIsFull(Refused):
    """The worker has been shown as many disturbing texts as one person should see in a day."""

    def __init__(self, cap: int) -> None:
        super().__init__(
            f"You have read {cap} such {'text' if cap == 1 else 'texts'} today, and more are not good for anybody. No"
            " further one is shown before tomorrow (UTC)."
        )


def trace_of(error: BaseException) -> str:
    """Return the kinds of an error and its causes and where they arose, for a log.

    Its words are left out: libraries quote what they were given, and no worker's text may reach a log.
    """
    lines: list[str] = []
    at: BaseException | None = error
    while at is not None and len(lines) < 200:
        lines += [type(at).__name__ + "\n", *traceback.format_tb(at.__traceback__)]
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return "".join(lines).rstrip()
