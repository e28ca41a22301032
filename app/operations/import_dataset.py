"""Imports a published data set as a past round, with its votes. Commits, some rows at a time."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.models import AuditEntry
from hits.clock import Clock
from hits.errors import Finding, InvalidAnswer, InvalidInput, NotFound, Refused
from hits.frozen import require_open
from hits.imports.files import rows_of, sha256_of
from hits.imports.forms import FORMS, Form, Source
from hits.imports.rows import InvalidRows, LeftOut, PublishedRow, check_row
from hits.imports.store import CHUNK, Stored, batches_for, is_stored, known_origins, store_rows
from hits.models import Round
from hits.rounds import begun
from hits.states import RoundState
from hits.tasks import TaskSpec, task

#: More wrong rows than that are counted, and not kept.
_KEPT: Final = 100

Advance = Callable[[int], None]


@dataclass(frozen=True)
class ImportTerms:
    """What is imported as round ``number``; of files with several rounds, the rows of ``published_round``."""

    form: str
    files: tuple[Path, ...]
    number: int
    published_round: int | None = None
    licence: str | None = None


@dataclass(frozen=True)
class Imported:
    """What an import holds, or would hold. ``fresh`` is False when all of it was there before."""

    task_code: str
    number: int
    rows: int
    left_out: dict[str, int]
    stored: Stored = field(default_factory=Stored)
    fresh: bool = True

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.task_code,
            "round": self.number,
            "rows": self.rows,
            "left_out": self.left_out,
            "stored": self.stored.examples,
            "votes": self.stored.votes,
            "votes_differ": self.stored.differs,
            "verdicts": dict(self.stored.verdicts),
            "fresh": self.fresh,
        }


def plan_import(session: Session, terms: ImportTerms, *, advance: Advance = lambda count: None) -> Imported:
    """Read and check every row, and return what would be imported. Changes nothing. Raises as import_dataset does."""
    form, spec = _form(terms.form)
    round_ = _round(session, spec, terms.number)
    if round_ is not None:
        _require_imported(round_)
    key = _key(spec, terms)
    checked = _checked(session, form, spec, terms, round_, key, advance)
    session.rollback()
    return Imported(spec.code, terms.number, checked.rows, dict(checked.left_out))


def import_dataset(
    session: Session, clock: Clock, terms: ImportTerms, *, key: str, by: str, advance: Advance = lambda count: None
) -> Imported:
    """Import the files as a round and return what was stored. ``key`` keys the pseudonyms of named people.

    All rows are read and checked before anything is stored; then they are stored some at a time, so that others can
    work meanwhile. Interrupted, the same command goes on where it was; done, it changes nothing.
    Raises InvalidRows with all that is wrong and where, InvalidInput, NotFound for an unknown form, Refused for a round
    that was collected here or is frozen.
    """
    form, spec = _form(terms.form)
    name = _key(spec, terms)
    round_ = _round(session, spec, terms.number)
    if round_ is not None:
        _require_imported(round_)
        done = next((one for one in round_.origin or () if one["key"] == name and one.get("complete")), None)
        if done is not None:
            session.rollback()
            return Imported(spec.code, terms.number, done["rows"], done["left_out"], fresh=False)
        if round_.frozen_at is not None:
            raise Refused(f"Round {terms.number} of the {spec.code} task is frozen. Nothing was imported.")
    checked = _checked(session, form, spec, terms, round_, name, advance)
    session.rollback()
    if not checked.rows:
        raise InvalidInput("These files hold no row that can be imported. Nothing was changed.")
    round_id = _begun(session, clock, form, spec, terms, name)
    stored = Stored()
    now = clock.now()
    try:
        for position, rows in enumerate(_chunks(form, spec, terms)):
            round_ = session.get_one(Round, round_id)
            batches = batches_for(session, round_, form, name, now)
            if not is_stored(session, batches[0], position):
                stored += store_rows(session, spec, form, round_, batches, position, rows, key=key, now=now)
            session.commit()
            advance(len(rows))
    except IntegrityError as error:
        session.rollback()
        raise Refused(
            "Another import stored the same rows at this moment. Run the command again: it goes on where they are."
        ) from error
    round_ = session.get_one(Round, round_id, populate_existing=True, with_for_update=True)
    round_.origin = [
        one | {"complete": True, "rows": checked.rows, "left_out": dict(checked.left_out)}
        if one["key"] == name
        else one
        for one in round_.origin or ()
    ]
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by[:80],
            action="round.import",
            subject=f"{spec.code} round {terms.number}",
            detail={"form": form.name, "rows": checked.rows, "files": [path.name for path in terms.files]},
        )
    )
    session.commit()
    return Imported(spec.code, terms.number, checked.rows, dict(checked.left_out), stored)


@dataclass
class _Checked:
    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def _form(name: str) -> tuple[Form, TaskSpec]:
    if name not in FORMS:
        raise NotFound(f"There is no form {name[:60]!r}. The forms are {', '.join(FORMS)}.")
    return FORMS[name], task(FORMS[name].task_code)


def _round(session: Session, spec: TaskSpec, number: int) -> Round | None:
    return session.scalar(select(Round).where(Round.task_code == spec.code, Round.number == number))


def _require_imported(round_: Round) -> None:
    if round_.origin is None:
        raise Refused(
            f"Round {round_.number} of the {round_.task_code} task was collected here. Import into a round of its own."
        )


def _key(spec: TaskSpec, terms: ImportTerms) -> str:
    told = [spec.code, terms.number, terms.form, terms.published_round, sorted(sha256_of(path) for path in terms.files)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:40]


def _begun(session: Session, clock: Clock, form: Form, spec: TaskSpec, terms: ImportTerms, key: str) -> int:
    """Return the round, made or marked as one into which this import is going on."""
    entry = {
        "key": key,
        "form": form.name,
        "title": form.title,
        "licence": (terms.licence or form.licence).strip(),
        "note": form.note,
        "files": [{"name": path.name, "sha256": sha256_of(path)} for path in sorted(terms.files)],
        "complete": False,
    }
    round_ = _round(session, spec, terms.number)
    if round_ is None:
        round_ = Round(
            task_code=spec.code,
            number=terms.number,
            task_version=spec.version,
            agreeing_votes=form.agreeing_votes,
            max_votes=form.max_votes,
            origin=[entry],
            created_at=clock.now(),
            state=RoundState.VALIDATING,
        )
        session.add(round_)
        begun(session, round_, by="import", now=clock.now(), note=f"imported from {form.title}")
    else:
        round_ = session.get_one(Round, round_.id, populate_existing=True, with_for_update=True)
        require_open(session, round_.id)
        if all(one["key"] != key for one in round_.origin or ()):
            round_.origin = [*(round_.origin or ()), entry]
    session.flush()
    round_id = round_.id
    session.commit()
    return round_id


def _checked(
    session: Session,
    form: Form,
    spec: TaskSpec,
    terms: ImportTerms,
    round_: Round | None,
    key: str,
    advance: Advance,
) -> _Checked:
    """Read every row, and raise InvalidRows with all that is wrong: values, names that come twice, or are there."""
    checked, wrong, findings = _Checked(), 0, list[tuple[str, Finding]]()
    started = round_ is not None and any(one["key"] == key for one in round_.origin or ())
    round_id = round_.id if round_ is not None and not started else None
    # On the disk, so that a million names take no memory.
    with closing(sqlite3.connect("")) as names:
        names.execute("CREATE TABLE seen (name TEXT PRIMARY KEY, file TEXT, line INTEGER) WITHOUT ROWID")
        waiting: list[tuple[str, str, int]] = []
        for path, line, read in _read(form, spec, terms):
            if isinstance(read, InvalidAnswer):
                wrong += 1
                if len(findings) < _KEPT:
                    findings.append((path.name, Finding(line, str(read))))
                continue
            if isinstance(read, LeftOut):
                checked.left_out[read.reason] += 1
                continue
            checked.rows += 1
            waiting.append((read.name, path.name, line))
            if len(waiting) >= CHUNK:
                twice = _repeated(session, names, waiting, round_id)
                wrong, waiting = wrong + len(twice), []
                findings += twice[: max(0, _KEPT - len(findings))]
                advance(CHUNK)
        twice = _repeated(session, names, waiting, round_id)
        wrong += len(twice)
        findings += twice[: max(0, _KEPT - len(findings))]
    if wrong:
        raise InvalidRows(findings, wrong)
    return checked


def _repeated(
    session: Session, names: sqlite3.Connection, rows: Sequence[tuple[str, str, int]], round_id: int | None
) -> list[tuple[str, Finding]]:
    found = []
    there = known_origins(session, round_id, [name for name, _, _ in rows]) if round_id is not None else set()
    session.rollback()
    for name, file, line in rows:
        if name in there:
            found.append((file, Finding(line, f"the row {name!r} is in the round already")))
            continue
        try:
            names.execute("INSERT INTO seen VALUES (?, ?, ?)", (name, file, line))
        except sqlite3.IntegrityError:
            first = names.execute("SELECT file, line FROM seen WHERE name = ?", (name,)).fetchone()
            found.append((file, Finding(line, f"the name {name!r} stands at {first[0]}, line {first[1]} as well")))
    return found


def _chunks(form: Form, spec: TaskSpec, terms: ImportTerms) -> Iterator[list[PublishedRow]]:
    chunk: list[PublishedRow] = []
    for _, _, read in _read(form, spec, terms):
        if isinstance(read, PublishedRow):
            chunk.append(read)
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
    if chunk:
        yield chunk


def _read(
    form: Form, spec: TaskSpec, terms: ImportTerms
) -> Iterator[tuple[Path, int, PublishedRow | LeftOut | InvalidAnswer]]:
    """Yield what each row of the files is, in one order of the files whatever the order in which they were named."""
    rows_of_files, votes = _votes(form, sorted(terms.files))
    wanted = terms.published_round or terms.number
    for path in rows_of_files:
        source = Source(path, votes)
        for line, raw in rows_of(path):
            try:
                if form.round_of is not None and form.round_of(raw) != wanted:
                    continue
                read = form.read(source, raw)
                yield path, line, check_row(spec, read) if isinstance(read, PublishedRow) else read
            except InvalidAnswer as error:
                yield path, line, error
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                yield path, line, InvalidAnswer("", f"not a row of {form.title}: {type(error).__name__} {error}"[:200])


def _votes(form: Form, files: Sequence[Path]) -> tuple[list[Path], dict[str, tuple[str, ...]]]:
    """Tell the files of votes from those of rows, and return the votes by row."""
    if form.votes_of is None:
        return list(files), {}
    rows: list[Path] = []
    votes: dict[str, tuple[str, ...]] = {}
    for path in files:
        first = next(iter(rows_of(path)), None)
        if first is None or "verifier labels" not in first[1]:
            rows.append(path)
            continue
        for line, raw in rows_of(path):
            try:
                name, labels = form.votes_of(raw)
            except InvalidAnswer as error:
                raise InvalidRows([(path.name, Finding(line, str(error)))], 1) from error
            votes[name] = labels
    return rows, votes
