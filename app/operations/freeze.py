"""Freezes a round: its splits are decided, its manifest is written, and from then on its data can't change. Commits."""

from __future__ import annotations

import platform
import re
import secrets
import subprocess
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.answer_unseen import waiting_unseen
from hits.clock import Clock
from hits.errors import HitsError, Refused
from hits.export import find_round
from hits.export.rows import settled_label
from hits.export.stored import PAGE, StoredExample, id_pages, order_of, stored_examples
from hits.frozen import is_frozen
from hits.manifest import Digest, SplitTerms, made_of, sha256_of
from hits.models import Assignment, Attempt, Example, Hit, HitBatch, Round, Worker
from hits.models.frozen import FREEZING
from hits.rounds import NotReady, move
from hits.states import AssignmentState, HitKind, HitState, PracticeState, RoundState, Split, Verdict
from hits.tasks import task

#: What the bytes of an export depend on.
PACKAGES: Final = ("dynahit", "numpy", "pyarrow", "SQLAlchemy", "torch", "transformers")
#: A worker id of MTurk's form, or an assignment's or HIT's id, as a word of a text.
LOOKALIKE: Final = re.compile(r"\bA(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{11,20}\b|\b3(?=\d*[A-Z])[A-Z0-9]{28,31}\b")
_WORD: Final = re.compile(r"[A-Z0-9]{4,64}")

Advance = Callable[[int], None]


@dataclass(frozen=True)
class FreezePlan:
    """What freezing would do: how many examples each split gets, of them verified, or what stands in the way."""

    task_code: str
    number: int
    missing: tuple[str, ...]
    examples: int
    splits: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.task_code,
            "round": self.number,
            "missing": list(self.missing),
            "examples": self.examples,
            "splits": self.splits,
        }


@dataclass(frozen=True)
class Frozen:
    """A frozen round; ``fresh`` is False when it was frozen before."""

    task_code: str
    number: int
    manifest: dict[str, Any]
    sha256: str
    fresh: bool


def plan_freeze(
    session: Session, task_code: str, number: int, terms: SplitTerms, *, advance: Advance = lambda count: None
) -> FreezePlan:
    """Return what freezing would do. Changes nothing. Raises NotFound, InvalidInput, Refused when it is frozen."""
    round_ = find_round(session, task_code, number)
    if is_frozen(round_):
        raise Refused(f"Round {number} of the {task_code} task is frozen since {round_.frozen_at:%Y-%m-%d}.")
    round_id = round_.id
    missing = [*missing_to_freeze(session, round_), *_naming(session, round_)]
    ids, codes = _splits(session, round_id, terms, advance)
    counts = Counter(codes)
    return FreezePlan(task_code, number, tuple(missing), len(ids), {one.value: counts[one] for one in Split})


def freeze_round(
    session: Session,
    clock: Clock,
    task_code: str,
    number: int,
    terms: SplitTerms,
    *,
    by: str,
    advance: Advance = lambda count: None,
) -> Frozen:
    """Freeze the round and return its manifest. Interrupted, it goes on when it is asked again; frozen, it stays.

    ``advance`` is told how many examples were read; each is read twice.
    Raises NotFound, InvalidInput, NotReady with all that stands in the way.
    """
    naming = _naming(session, find_round(session, task_code, number))
    round_ = _locked(session, task_code, number)
    if is_frozen(round_):
        found = Frozen(task_code, number, round_.manifest or {}, round_.manifest_sha256 or "", False)
        session.rollback()
        return found
    if missing := [*missing_to_freeze(session, round_), *naming]:
        session.rollback()
        raise NotReady(task_code, number, missing)
    round_id, before = round_.id, round_.frozen_at
    # A seed or shares that can't be used must not leave it half frozen.
    round_.frozen_at = before or clock.now()
    round_.frozen_by = round_.frozen_by or by[:80]
    round_.manifest_sha256 = FREEZING
    if round_.state is not RoundState.VALIDATING:
        # Nothing is open any more, or it would be missing something.
        move(session, round_, RoundState.VALIDATING, by=by, now=clock.now(), note="closed by freezing it")
    # Whoever comes last goes on alone: two that write splits by other terms would leave a mixture.
    mark = {"freezing": secrets.token_hex(8)}
    round_.manifest = mark
    session.commit()
    try:
        ids, codes = _splits(session, round_id, terms, advance)
    except HitsError:
        _thaw(session, round_id, mark)
        raise
    _store_splits(session, round_id, mark, ids, codes)
    seen = _signature(session, round_id)
    digest = Digest()
    for page in order_of(_ended(session, id_pages(session, round_id))).pages():
        for stored in stored_examples(session, page):
            digest.add(stored)
        session.rollback()
        advance(len(page))
    round_ = _still_ours(session, round_id, mark)
    if _signature(session, round_id) != seen:
        session.rollback()
        raise Refused(f"Round {number} of the {task_code} task changed while it was frozen. Freeze it again.")
    frozen_at = round_.frozen_at or clock.now()
    manifest = made_of(session, round_, digest, terms, code=code_in_use(), frozen_at=frozen_at)
    round_.manifest, round_.manifest_sha256 = manifest, sha256_of(manifest)
    move(session, round_, RoundState.FROZEN, by=by, now=clock.now(), note=f"manifest {round_.manifest_sha256}")
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by[:80],
            action="round.freeze",
            subject=f"{task_code} round {number}",
            detail={"manifest_sha256": round_.manifest_sha256, "examples": digest.examples, "votes": digest.votes},
        )
    )
    frozen = Frozen(task_code, number, manifest, round_.manifest_sha256, True)
    session.commit()
    return frozen


def code_in_use() -> dict[str, Any]:
    """Return by which code an export is made: commit, whether files differ from it, versions of what it stands on."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    commit = _git("rev-parse", "HEAD")
    return {
        "git_commit": commit,
        "modified": None if commit is None else bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "packages": versions,
    }


def _git(*arguments: str) -> str | None:
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return None
    try:
        run = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.strip()


def _locked(session: Session, task_code: str, number: int) -> Round:
    found = find_round(session, task_code, number)
    return session.get_one(Round, found.id, populate_existing=True, with_for_update=True)


def _thaw(session: Session, round_id: int, mark: dict[str, str]) -> None:
    session.rollback()
    round_ = session.get_one(Round, round_id, populate_existing=True, with_for_update=True)
    if round_.manifest == mark:
        round_.frozen_at = round_.frozen_by = round_.manifest_sha256 = round_.manifest = None
    session.commit()


def _still_ours(session: Session, round_id: int, mark: dict[str, str]) -> Round:
    """Return the round with its lock. Raises Refused when another process has begun to freeze it since."""
    round_ = session.get_one(Round, round_id, populate_existing=True, with_for_update=True)
    if round_.manifest != mark:
        number, code = round_.number, round_.task_code
        session.rollback()
        raise Refused(
            f"Round {number} of the {code} task is frozen by another process as well, which goes on with it."
            f" `dynahit round manifest {code} {number}` shows when it is done."
        )
    return round_


def _ended(session: Session, pages: Iterator[Any]) -> Iterator[Any]:
    """Yield the pages, each with its transaction ended: on SQLite an open one keeps everybody else from writing."""
    for page in pages:
        session.rollback()
        yield page


def _splits(session: Session, round_id: int, terms: SplitTerms, advance: Advance) -> tuple[array[int], list[Split]]:
    """Return the ids of the round's examples and their splits; those of earlier frozen rounds of the task stand."""
    from hits.splits import SPLITS, Candidate, Splitter

    round_ = session.get_one(Round, round_id)
    spec = task(round_.task_code)
    names = _pseudonyms(session, terms.exclusive_writers)
    rounds = session.scalars(select(Round).where(Round.task_code == spec.code, Round.id != round_id)).all()
    earlier = [one.id for one in sorted(rounds, key=lambda one: one.number) if is_frozen(one)]
    session.rollback()
    splitter, ids, own = Splitter(terms.seed), array("q"), 0
    for one in (*earlier, round_id):
        for page in _ended(session, id_pages(session, one, PAGE)):
            page_ids = [row[0] for row in page]
            rejected = _rejected(session, page_ids)
            for stored in stored_examples(session, page_ids):
                label, label_from = settled_label(stored)
                splitter.add(
                    Candidate(
                        key=stored.public_id,
                        writer=stored.writer,
                        text="\n".join(stored.answer[item.name] for item in spec.text_inputs),
                        context="\n".join(stored.context.get(field.name, "") for field in spec.context_fields),
                        label=None if stored.id in rejected else label,
                        verified=label_from not in (None, "writer"),
                        model_label=(stored.model or {}).get("label"),
                        family=(stored.published or {}).get("family"),
                        fixed=stored.split if one != round_id else None,
                    )
                )
            session.rollback()
            if one == round_id:
                ids.extend(page_ids)
                own += len(page_ids)
                advance(len(page_ids))
    codes = splitter.assign(shares=terms.shares, exclusive_writers=names, balanced=spec.goals if terms.balanced else ())
    return ids, [SPLITS[code] for code in codes[len(codes) - own :].tolist()]


def _pseudonyms(session: Session, wanted: Collection[str]) -> set[str]:
    known = set(session.scalars(select(Worker.pseudonym).where(Worker.pseudonym.in_(wanted))))
    if unknown := sorted(set(wanted) - known):
        raise Refused(f"Nobody has the pseudonym {unknown[0]!r}. `dynahit export TASK --round N` shows the writers'.")
    return known


def _rejected(session: Session, ids: Sequence[int]) -> set[int]:
    """Return the examples whose work was rejected as done in bad faith; they are of no use to a model."""
    rows = session.scalars(
        select(Example.id)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Assignment, Assignment.id == Attempt.assignment_id)
        .where(Example.id.in_(ids), Assignment.state == AssignmentState.REJECTED)
    )
    return set(rows)


def _store_splits(
    session: Session, round_id: int, mark: dict[str, str], ids: Sequence[int], codes: Sequence[Split]
) -> None:
    for start in range(0, len(ids), 5000):
        _still_ours(session, round_id, mark)
        by_split: dict[Split, list[int]] = {}
        for one, split in zip(ids[start : start + 5000], codes[start : start + 5000], strict=True):
            by_split.setdefault(split, []).append(one)
        for split, those in by_split.items():
            session.execute(
                update(Example)
                .where(Example.id.in_(those), Example.split.is_distinct_from(split))
                .values(split=split)
                .execution_options(synchronize_session=False)
            )
        session.commit()


def _signature(session: Session, round_id: int) -> tuple[Any, ...]:
    """Return what differs after any decision about an example."""
    row = session.execute(
        select(
            func.count(),
            func.max(Example.decided_at),
            func.max(Example.overridden_at),
            func.max(Example.moderated_at),
            func.max(Example.retracted_at),
        ).where(Example.round_id == round_id)
    ).one()
    return tuple(row)


def open_hits(session: Session, round_: Round) -> list[str]:
    """Return the round's batches with HITs that are not closed, in words with the next step. Reads only."""
    found = session.execute(
        select(HitBatch.id, HitBatch.kind, func.count())
        .join(Hit, Hit.batch_id == HitBatch.id)
        .where(HitBatch.round_id == round_.id, HitBatch.kind.in_((HitKind.CREATION, HitKind.VALIDATION)))
        .where(Hit.state != HitState.CLOSED)
        .group_by(HitBatch.id, HitBatch.kind)
        .order_by(HitBatch.id)
    )
    return [
        f"{_counted(count, 'HIT')} of {kind.value} batch {batch_id} {'is' if count == 1 else 'are'} not closed;"
        f" `dynahit hits expire {batch_id}` takes the open ones off the site, and `dynahit jobs run` closes them"
        for batch_id, kind, count in found
    ]


def missing_to_freeze(session: Session, round_: Round) -> list[str]:
    """Return what stands in the way of freezing, in words with the next step."""
    missing = []
    if round_.state in (RoundState.PILOTING, RoundState.ARCHIVED):
        name = f"{round_.task_code} {round_.number}"
        way_out = (
            f"`dynahit round close {name}` ends it here, `dynahit round release {name}` goes on"
            if round_.state is RoundState.PILOTING
            else "nothing comes after that"
        )
        missing.append(f"it is {round_.state.value}; {way_out}")
    missing += [
        f"the import of {one['files'][0]['name']} was interrupted; run the same import again"
        for one in round_.origin or ()
        if not one.get("complete")
    ]
    of_round = Example.round_id == round_.id
    live = of_round & Example.retracted_at.is_(None)
    missing += open_hits(session, round_)
    counts = session.execute(select(Example.verdict, func.count()).where(live).group_by(Example.verdict))
    verdicts = {row[0]: row[1] for row in counts}
    if count := verdicts.get(Verdict.PENDING, 0):
        missing.append(f"{_counted(count, 'example')} without a verdict yet; readers, or your override, decide")
    if count := verdicts.get(Verdict.FLAGGED, 0):
        missing.append(f"{_counted(count, 'example')} with an open flag; decide about them on the moderation page")
    waiting = session.scalar(
        select(func.count()).where(live, Example.practice_state == PracticeState.WAITING).select_from(Example)
    )
    if waiting:
        missing.append(f"{_counted(waiting, 'practice example')} that no reviewer has graded")
    if count := len(waiting_unseen(session, None, round_id=round_.id)):
        missing.append(
            f"{_counted(count, 'text')} written unseen that no model has answered; `dynahit jobs run` asks again,"
            f" `dynahit round arms {round_.task_code} {round_.number} --leave-out` asks no more"
        )
    if not sum(verdicts.values()):
        missing.append("it has no examples")
    return missing


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _naming(session: Session, round_: Round) -> list[str]:
    """Return which examples hold a known worker's id, or something of that form, in what would be published.

    The texts of an imported round are published already. Ends the transaction.
    """
    if round_.origin is not None or is_frozen(round_):
        return []
    found = []
    for page in _ended(session, id_pages(session, round_.id, PAGE)):
        rows = stored_examples(session, [row[0] for row in page])
        words = {row.public_id: set(_WORD.findall(_published_text(row))) for row in rows}
        every: set[str] = set().union(*words.values())
        known = set(session.scalars(select(Worker.mturk_worker_id).where(Worker.mturk_worker_id.in_(every))))
        found += [
            row.public_id for row in rows if words[row.public_id] & known or LOOKALIKE.search(_published_text(row))
        ]
    session.rollback()
    return [
        f"example {name} holds something like a worker's or an assignment's id; look at it, and retract it"
        f" (`dynahit round retract {name}`) if it is one"
        for name in found
    ]


def _published_text(stored: StoredExample) -> str:
    corrections = [value for vote in stored.votes for value in (vote.correction or {}).values()]
    return "\n".join([*stored.context.values(), *stored.answer.values(), stored.why, *corrections])
