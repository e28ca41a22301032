"""Stores published rows as the tables hold collected ones: closed HITs without pay, of no marketplace."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from hits.imports.forms import Form
from hits.imports.rows import PublishedRow
from hits.models import Assignment, Attempt, Context, Example, Hit, HitBatch, Round, Vote, Worker
from hits.models.people import imported_id, pseudonym_of, unknown_id
from hits.states import AssignmentState, AttemptState, HitKind, HitState, Verdict
from hits.tasks import TaskSpec, digest_of
from hits.validations.verdict import Policy, outcome

#: Rows that are stored in one transaction.
CHUNK: Final = 1000
#: In the place of the marketplace's address; no client talks to it.
ENDPOINT: Final = "import:"


@dataclass
class Stored:
    """What was stored: ``differs`` counts examples whose votes say another label than the published one."""

    examples: int = 0
    votes: int = 0
    differs: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Stored) -> Stored:
        return Stored(
            self.examples + other.examples,
            self.votes + other.votes,
            self.differs + other.differs,
            self.verdicts + other.verdicts,
        )


def batches_for(session: Session, round_: Round, form: Form, key: str, now: datetime) -> tuple[HitBatch, HitBatch]:
    """Return the batches of an import, of writers and of readers; made when they are new. Flushes, never commits."""
    found = []
    for kind in (HitKind.CREATION, HitKind.VALIDATION):
        batch_key = f"import:{kind.value}:{key}"[:64]
        batch = session.scalar(select(HitBatch).where(HitBatch.key == batch_key))
        if batch is None:
            batch = HitBatch(
                round_id=round_.id,
                kind=kind,
                key=batch_key,
                endpoint=ENDPOINT,
                title=f"Imported: {form.title}"[:128],
                description=form.note,
                keywords="",
                reward=Decimal("0.00"),
                bonus=Decimal("0.00"),
                assignment_seconds=0,
                auto_approval_seconds=0,
                lifetime_seconds=0,
                created_at=now,
            )
            session.add(batch)
            session.flush()
        found.append(batch)
    return found[0], found[1]


def is_stored(session: Session, batch: HitBatch, position: int) -> bool:
    """Tell whether the rows of this chunk were stored before."""
    return session.scalar(select(Hit.id).where(Hit.batch_id == batch.id, Hit.position == position)) is not None


def known_origins(session: Session, round_id: int, names: Iterable[str]) -> set[str]:
    """Return those of the names that the round has already."""
    return {
        name
        for name in session.scalars(
            select(Example.origin).where(Example.round_id == round_id, Example.origin.in_(list(names)))
        )
        if name is not None
    }


def store_rows(
    session: Session,
    spec: TaskSpec,
    form: Form,
    round_: Round,
    batches: tuple[HitBatch, HitBatch],
    position: int,
    rows: Sequence[PublishedRow],
    *,
    key: str,
    now: datetime,
) -> Stored:
    """Store the rows of one chunk and return what they were. ``key`` keys pseudonyms. Flushes, never commits.

    Votes decide by the round's rule. Where none were published, or they don't decide, the published label stands, and
    the verdict says that nobody was asked here.
    """
    readers = max((len(row.votes) for row in rows), default=0)
    people = _people(session, form, rows, readers, key=key, now=now)
    contexts = _contexts(session, round_, rows, now)
    writing = _hit(session, batches[0], position, now)
    assignments = _assignments(session, writing, {people[_writer(form, row)] for row in rows}, now)
    attempts = _attempts(session, spec, form, round_, writing, assignments, people, rows, now)
    policy = Policy(round_.agreeing_votes, round_.max_votes, round_.split_votes, round_.senior_value)
    stored = Stored(examples=len(rows))
    examples, votes = [], []
    for row, attempt_id in zip(rows, attempts, strict=True):
        verdict, final = _decided(spec, policy, row)
        stored.differs += final is not None and final != row.label
        stored.verdicts[verdict.value] += 1
        examples.append(
            {
                "attempt_id": attempt_id,
                "round_id": round_.id,
                "context_id": contexts[digest_of(row.context)],
                "writer_id": people[_writer(form, row)],
                "goal_label": row.label,
                "model_label": row.model.label if row.model is not None else "",
                "fooled": row.model is not None and row.model.label != row.label,
                "verdict": verdict,
                "final_label": final,
                "votes_wanted": 0,
                "for_seniors": False,
                "leased": 0,
                "collected_at": now,
                "decided_at": now if row.votes else None,
                "origin": row.name,
                "published": _published(row),
            }
        )
    example_ids = _inserted(session, Example, examples)
    judging = _hit(session, batches[1], position, now)
    judges = {people[_validator(form, row, number)] for row in rows for number in range(len(row.votes))}
    reading = _assignments(session, judging, judges, now)
    for row, example_id in zip(rows, example_ids, strict=True):
        for number, vote in enumerate(row.votes):
            validator = people[_validator(form, row, number)]
            votes.append(
                {
                    "example_id": example_id,
                    "validator_id": validator,
                    "assignment_id": reading[validator],
                    "label": vote.label,
                    # In the order in which they were published.
                    "created_at": now + timedelta(milliseconds=number),
                    "counted_at": now,
                }
            )
    if votes:
        session.execute(insert(Vote), votes)
    stored.votes = len(votes)
    return stored


def _decided(spec: TaskSpec, policy: Policy, row: PublishedRow) -> tuple[Verdict, str | None]:
    if row.votes and row.model is not None:
        said = outcome(
            row.label,
            row.model.label,
            [vote.label for vote in row.votes],
            0,
            policy=policy,
            rejecting_labels=spec.rejecting_labels,
        )
        if said.verdict is not Verdict.PENDING:
            return said.verdict, said.final_label
    return Verdict.NOT_VALIDATED, row.label


def _published(row: PublishedRow) -> dict[str, Any]:
    found: dict[str, Any] = {"label": row.label}
    if row.split:
        found["split"] = row.split
    if row.family:
        found["family"] = row.family
    if row.why:
        found["why"] = row.why
    if row.details:
        found["details"] = {name: list(values) for name, values in row.details.items()}
    if row.raw:
        found["raw"] = dict(row.raw)
    return found


def _writer(form: Form, row: PublishedRow) -> str:
    return _person(form, row.writer) if row.writer is not None else unknown_id(0)


def _validator(form: Form, row: PublishedRow, number: int) -> str:
    name = row.votes[number].validator
    return _person(form, name) if name is not None else unknown_id(number + 1)


def _person(form: Form, name: str) -> str:
    person = imported_id(form.name, name)
    return person if len(person) <= 64 else imported_id(form.name, hashlib.sha256(name.encode()).hexdigest()[:32])


def _people(
    session: Session, form: Form, rows: Sequence[PublishedRow], readers: int, *, key: str, now: datetime
) -> dict[str, int]:
    wanted = {_writer(form, row) for row in rows}
    wanted |= {_validator(form, row, number) for row in rows for number in range(len(row.votes))}
    known = _known_people(session, wanted)
    new = sorted(wanted - set(known))
    if new:
        session.execute(
            insert(Worker),
            [{"mturk_worker_id": one, "pseudonym": pseudonym_of(one, key), "created_at": now} for one in new],
        )
        known |= _known_people(session, new)
    return known


def _known_people(session: Session, wanted: Iterable[str]) -> dict[str, int]:
    rows = session.execute(select(Worker.mturk_worker_id, Worker.id).where(Worker.mturk_worker_id.in_(list(wanted))))
    return {row[0]: row[1] for row in rows}


def _contexts(session: Session, round_: Round, rows: Sequence[PublishedRow], now: datetime) -> dict[str, int]:
    wanted = {digest_of(row.context): dict(row.context) for row in rows}

    def known() -> dict[str, int]:
        found = session.execute(
            select(Context.digest, Context.id).where(Context.round_id == round_.id, Context.digest.in_(list(wanted)))
        )
        return {row[0]: row[1] for row in found}

    there = known()
    new = [
        {"round_id": round_.id, "fields": fields, "digest": digest, "created_at": now}
        for digest, fields in wanted.items()
        if digest not in there
    ]
    if new:
        session.execute(insert(Context), new)
        there = known()
    return there


def _hit(session: Session, batch: HitBatch, position: int, now: datetime) -> Hit:
    name = f"import-{batch.id}-{position}"
    hit = Hit(
        batch_id=batch.id,
        position=position,
        reference=name,
        request_token=name,
        state=HitState.CLOSED,
        mturk_hit_id=name,
        max_assignments=1,
        created_at=now,
        expires_at=now,
    )
    session.add(hit)
    session.flush()
    return hit


def _assignments(session: Session, hit: Hit, workers: set[int], now: datetime) -> dict[int, int]:
    ordered = sorted(workers)
    ids = _inserted(
        session,
        Assignment,
        [
            {
                "mturk_assignment_id": f"{hit.reference}-{worker}",
                "hit_id": hit.id,
                "worker_id": worker,
                "state": AssignmentState.APPROVED,
                "why": "",
            }
            for worker in ordered
        ],
    )
    return dict(zip(ordered, ids, strict=True))


def _attempts(
    session: Session,
    spec: TaskSpec,
    form: Form,
    round_: Round,
    hit: Hit,
    assignments: Mapping[int, int],
    people: Mapping[str, int],
    rows: Sequence[PublishedRow],
    now: datetime,
) -> list[int]:
    tries: defaultdict[int, int] = defaultdict(int)
    made = []
    for row in rows:
        worker = people[_writer(form, row)]
        told = json.dumps([form.name, spec.code, round_.number, row.name])
        name = hashlib.sha256(told.encode()).hexdigest()
        fields: dict[str, Any] = dict.fromkeys(
            ("try_number", "answered_at", "model_id", "model_revision", "predicted_label", "probabilities", "fooled")
        )
        if row.model is not None:
            tries[worker] += 1
            fields |= {
                "try_number": tries[worker],
                "answered_at": now,
                "model_id": row.model.model_id,
                "model_revision": "published",
                "predicted_label": row.model.label,
                "probabilities": dict(row.model.probabilities) if row.model.probabilities else {},
                "fooled": row.model.label != row.label,
            }
        made.append(
            {
                "public_id": f"{form.name[:12]}-{name[:24]}",
                "assignment_id": assignments[worker],
                "hit_id": hit.id,
                "worker_id": worker,
                "answer": dict(row.answer),
                # Two published rows may hold the same text.
                "answer_digest": name,
                "goal_label": row.label,
                "state": AttemptState.ANSWERED if row.model is not None else AttemptState.UNANSWERED,
                "asked_at": now,
                "seconds": 0,
                "failure": None if row.model is not None else "the model's answer was not published",
                **fields,
            }
        )
    return _inserted(session, Attempt, made)


def _inserted(session: Session, table: Any, rows: list[dict[str, Any]]) -> list[int]:
    """Insert the rows and return their ids in the same order."""
    if not rows:
        return []
    return list(session.scalars(insert(table).returning(table.id, sort_by_parameter_order=True), rows))
