"""What a round's examples share with each other and with their contexts, and how they were written: kept and counted.

Nothing is refused, rejected or paid by any of this; a writer is told, and a requester sees the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy import bindparam, case, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from hits.duplicates import NEAR, bands_of, copied, similarity, text_of
from hits.models import Attempt, Context, Example, Likeness, Round, TextBand, Worker, Writing
from hits.rates import Rate
from hits.tasks import TaskSpec, task

#: Examples that share most bands with a text are compared with it, so many.
LOOKED_AT: Final = 5
#: Examples of one transaction.
CHUNK: Final = 200
#: Examples below the last measured one among which some may be left, since a later row can be stored first.
_BEHIND: Final = 1000
#: The most that is believed of a count; more is no measure but noise.
MOST_COUNTED: Final = 1_000_000
#: The page's fields, by the column that keeps them.
FIELDS: Final = {
    "pastes": "browser_pastes",
    "pasted_characters": "browser_pasted",
    "keystrokes": "browser_keys",
    "typing_seconds": "browser_seconds",
}


_shared = func.count().label("shared")
#: Built once, as every question to the model asks them.
_MOST_SHARED: Final = (
    select(TextBand.example_id, _shared)
    .where(TextBand.round_id == bindparam("round_id"), TextBand.band.in_(bindparam("bands", expanding=True)))
    .group_by(TextBand.example_id)
    .order_by(_shared.desc(), TextBand.example_id)
    .limit(LOOKED_AT)
)
_ANSWERS: Final = (
    select(Example.id, Attempt.answer)
    .join(Attempt, Attempt.id == Example.attempt_id)
    .where(Example.id.in_(bindparam("ids", expanding=True)))
)


@dataclass(frozen=True)
class Told:
    """What a writer is told about a text: that it is like one handed in before, that it copies the context."""

    near: bool = False
    copied: bool = False


@dataclass(frozen=True)
class Measured:
    """What the browser said about how a text was written; None for what it did not say."""

    pastes: int | None = None
    pasted_characters: int | None = None
    keystrokes: int | None = None
    typing_seconds: int | None = None


NOTHING_TOLD: Final = Told()
NOTHING_SAID: Final = Measured()


@dataclass(frozen=True)
class WriterLikeness:
    """One writer's figures; ``said`` counts the examples about whose writing a browser said something."""

    pseudonym: str
    near: Rate
    copied: Rate
    said: int
    pasted: Rate
    keystrokes: int
    typing_seconds: int


@dataclass(frozen=True)
class RoundLikeness:
    """A round's figures: over all examples that were measured and not retracted, and by writer, most examples first."""

    near: Rate
    copied: Rate
    said: int
    pasted: Rate
    writers: tuple[WriterLikeness, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as `dynahit round stats --json` prints them."""
        return {
            "measured": self.near.of,
            "near_duplicates": _share(self.near),
            "copies_of_the_context": _share(self.copied),
            "pasted_as_browsers_say": _share(self.pasted),
            "writers": [
                {
                    "writer": one.pseudonym,
                    "near_duplicates": _share(one.near),
                    "copies_of_the_context": _share(one.copied),
                    "pasted_as_browsers_say": _share(one.pasted),
                    "keystrokes": one.keystrokes,
                    "typing_seconds": one.typing_seconds,
                }
                for one in self.writers
            ],
        }


def written_text(spec: TaskSpec, answer: Mapping[str, object]) -> str:
    """Return what is compared of an answer: what was typed, a line for each input."""
    return "\n".join(str(answer.get(item.name, "")) for item in spec.text_inputs).strip()


def told_about(session: Session, spec: TaskSpec, round_id: int, context: Context, answer: Mapping[str, object]) -> Told:
    """Return what a writer is to be told about an answer before it is stored. Reads only, two statements at most."""
    text = written_text(spec, answer)
    if not text:
        return NOTHING_TOLD
    found = _nearest(session, spec, round_id, text, bands_of(text, _scope(spec, context.id)))
    return Told(found is not None, copied(text, text_of(context.fields)).is_copy)


def measured(form: Mapping[str, str]) -> Measured:
    """Return what the browser said; what is no count is as if it had said nothing."""
    return Measured(**{column: _count(form.get(name, "")) for column, name in FIELDS.items()})


def note_writing(session: Session, attempt_id: int, said: Measured, told: Told) -> None:
    """Keep with an attempt what the browser said and what its writer was told; the first one stays. Never commits."""
    if said == NOTHING_SAID and told == NOTHING_TOLD:
        return
    make = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    row = {"attempt_id": attempt_id, **asdict(said), "told_near": told.near, "told_copied": told.copied}
    session.execute(make(Writing).values(row).on_conflict_do_nothing())


def told_then(session: Session, attempt_id: int) -> Told:
    """Return what the writer was told about an attempt when it was asked. Reads only."""
    row = session.get(Writing, attempt_id)
    return Told(row.told_near, row.told_copied) if row is not None else NOTHING_TOLD


def measure_examples(session: Session, limit: int = CHUNK) -> int:
    """Measure the oldest examples that are not measured yet and return how many. Flushes, never commits.

    Imported rounds are left out: a published set is as it is.
    """
    rounds = {row.id: task(row.task_code) for row in session.execute(_own_rounds())}
    last = session.scalar(select(func.max(Likeness.example_id)))
    known = select(Likeness.example_id).where(Likeness.example_id == Example.id)
    rows = session.execute(
        select(Example.id, Example.round_id, Example.context_id, Attempt.answer, Context.fields)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Context, Context.id == Example.context_id)
        .where(Example.round_id.in_(list(rounds)), Example.id > (last or 0) - _BEHIND, ~known.exists())
        .order_by(Example.id)
        .limit(limit)
    ).all()
    for row in rows:
        _measure(session, rounds[row.round_id], row)
    return len(rows)


def likeness_of(session: Session, round_id: int) -> RoundLikeness:
    """Return a round's figures. Reads only, in one statement that returns a row for each writer."""
    rows = session.execute(
        select(
            Worker.pseudonym,
            func.count().label("examples"),
            _counted(Likeness.near_example_id.is_not(None)).label("near"),
            _counted(Likeness.copied).label("copied"),
            func.count(Writing.pastes).label("said"),
            _counted(Writing.pastes > 0).label("pasted"),
            func.coalesce(func.sum(Writing.keystrokes), 0).label("keystrokes"),
            func.coalesce(func.sum(Writing.typing_seconds), 0).label("seconds"),
        )
        .select_from(Likeness)
        .join(Example, Example.id == Likeness.example_id)
        .join(Worker, Worker.id == Example.writer_id)
        .outerjoin(Writing, Writing.attempt_id == Example.attempt_id)
        .where(Likeness.round_id == round_id, Example.retracted_at.is_(None))
        .group_by(Worker.id, Worker.pseudonym)
        .order_by(func.count().desc(), Worker.pseudonym)
    ).all()
    writers = tuple(
        WriterLikeness(
            row.pseudonym,
            Rate(row.near, row.examples),
            Rate(row.copied, row.examples),
            row.said,
            Rate(row.pasted, row.said),
            row.keystrokes,
            row.seconds,
        )
        for row in rows
    )
    return RoundLikeness(
        _sum([one.near for one in writers]),
        _sum([one.copied for one in writers]),
        sum(one.said for one in writers),
        _sum([one.pasted for one in writers]),
        writers,
    )


def _own_rounds() -> Any:
    return select(Round.id, Round.task_code).where(Round.origin.is_(None))


def _measure(session: Session, spec: TaskSpec, row: Any) -> None:
    text = written_text(spec, row.answer)
    bands = bands_of(text, _scope(spec, row.context_id))
    found = _nearest(session, spec, row.round_id, text, bands)
    shared = copied(text, text_of(row.fields))
    session.execute(
        insert(Likeness).values(
            example_id=row.id,
            round_id=row.round_id,
            near_example_id=found[0] if found is not None else None,
            similarity=found[1] if found is not None else None,
            copied_share=shared.share,
            longest_run=shared.longest_run,
            copied=shared.is_copy,
        )
    )
    if found is None:
        session.execute(
            insert(TextBand),
            [{"round_id": row.round_id, "band": band, "example_id": row.id} for band in sorted(set(bands))],
        )


def _nearest(
    session: Session, spec: TaskSpec, round_id: int, text: str, bands: Sequence[int]
) -> tuple[int, float] | None:
    """Return the example that is likest, and how like, among those that share most bands; None below NEAR."""
    candidates = session.execute(_MOST_SHARED, {"round_id": round_id, "bands": bands}).all()
    if not candidates:
        return None
    answers = session.execute(_ANSWERS, {"ids": [row.example_id for row in candidates]})
    scored = [(similarity(text, written_text(spec, row.answer)), -row.id) for row in answers]
    best, example_id = max(scored)
    return (-example_id, best) if best >= NEAR else None


def _scope(spec: TaskSpec, context_id: int) -> str:
    # The same question about another passage is another question.
    return str(context_id) if spec.span_input is not None else ""


def _count(written: str) -> int | None:
    if not (written.isascii() and written.isdigit() and len(written) <= 9):
        return None
    return min(int(written), MOST_COUNTED)


def _counted(condition: Any) -> Any:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _sum(rates: Sequence[Rate]) -> Rate:
    return Rate(sum(one.hits for one in rates), sum(one.of for one in rates))


def _share(rate: Rate) -> dict[str, Any]:
    bounds = rate.bounds
    return {
        "of": rate.of,
        "count": rate.hits,
        "share": rate.hits / rate.of if rate.of else None,
        "interval": list(bounds) if bounds is not None else None,
    }
