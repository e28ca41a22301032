"""What it costs a question to the model to be compared with the texts of its round that were handed in before.

Run from a checkout, with a database of its own for each:

    .venv/bin/python benchmarks/likeness.py --examples 100000
    .venv/bin/python benchmarks/likeness.py --examples 100000 --url postgresql+psycopg://postgres@127.0.0.1/empty
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

# Beside this file lies a payments.py, which is not the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import app.models  # noqa: F401 - registers every table
from hits.db import Base, engine_for, only_reads
from hits.duplicates import BANDS, bands_of, copied, text_of
from hits.likeness import told_about
from hits.models import Assignment, Attempt, Context, Example, Hit, HitBatch, Round, TextBand, Worker
from hits.states import AssignmentState, AttemptState, HitKind, HitState, Verdict
from hits.tasks import digest_of, task

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PROMPT = "The train was late again, and nobody on the platform knew why, or when the next one would come at last."
LINE = "{:<44} {:>9.3f} ms {:>9.3f} ms {:>9.3f} ms"


def main() -> None:
    """Fill a database, then time what a question pays for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument(
        "--index-of", type=int, default=0, metavar="N", help="fill the index up with random bands to that of N examples"
    )
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--url", help="A database without tables. [default: a SQLite file that is thrown away]")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        engine = engine_for(wanted.url or f"sqlite:///{Path(folder) / 'likeness.db'}")
        Base.metadata.create_all(engine)
        chance = random.Random(1)
        words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(5000)]
        weights = list(accumulate(1 / (rank + 1) for rank in range(len(words))))

        def text() -> str:
            return " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(8, 30)))

        with Session(engine) as session:
            round_id, context, texts = _filled(session, wanted.examples, text)
            _padded(session, round_id, BANDS * (wanted.index_of - wanted.examples), chance)
            rows = session.scalar(select(func.count()).select_from(TextBand)) or 0
            print(f"{rows:,} bands in the index.")
            print(f"{wanted.examples:,} examples with {len(texts):,} distinct texts, {engine.dialect.name}.")
            print(f"load average {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors, {NOW:%Y-%m-%d}")
            print(f"{'':<44} {'CPU, median':>12} {'95 of 100':>12} {'elapsed':>12}")
            spec = task("sentiment")
            fresh = [text() for _ in range(wanted.questions)]
            again = [f"{one} {words[7]}" for one in chance.sample(texts, wanted.questions)]
            only_reads(session)
            _timed("signature of a text", fresh, bands_of)
            _timed("share copied from its context", fresh, lambda one: copied(one, text_of(context.fields)))
            for name, questions in (("all of it, a new text", fresh), ("all of it, a text nearly there before", again)):
                _timed(name, questions, lambda one: told_about(session, spec, round_id, context, {"statement": one}))
            told = [told_about(session, spec, round_id, context, {"statement": one}).near for one in again]
            print(f"Found of texts with one more word: {sum(told) / len(told):.1%}")


def _filled(session: Session, count: int, text: Callable[[], str]) -> tuple[int, Context, list[str]]:
    round_ = Round(task_code="sentiment", number=1, task_version=1, created_at=NOW)
    worker = Worker(mturk_worker_id="AWRITER", pseudonym="w1", created_at=NOW)
    session.add_all((round_, worker))
    session.flush()
    fields = {"prompt": PROMPT}
    context = Context(round_id=round_.id, fields=fields, digest=digest_of(fields), created_at=NOW)
    batch = HitBatch(
        round_id=round_.id,
        kind=HitKind.CREATION,
        key="benchmark",
        endpoint="",
        title="",
        description="",
        keywords="",
        reward=Decimal("0.30"),
        bonus=Decimal("0.30"),
        assignment_seconds=60,
        auto_approval_seconds=60,
        lifetime_seconds=60,
        created_at=NOW,
    )
    session.add_all((context, batch))
    session.flush()
    hit = Hit(
        batch_id=batch.id,
        position=1,
        reference="h",
        request_token="h",
        state=HitState.CLOSED,
        mturk_hit_id="H",
        context_id=context.id,
        goal_label="negative",
    )
    session.add(hit)
    session.flush()
    assignment = Assignment(mturk_assignment_id="A", hit_id=hit.id, worker_id=worker.id, state=AssignmentState.APPROVED)
    session.add(assignment)
    session.flush()
    texts = []
    for start in range(0, count, 1000):
        part = [text() for _ in range(min(1000, count - start))]
        texts += part
        rows = [_attempt(hit.id, assignment.id, worker.id, start + at, one) for at, one in enumerate(part)]
        ids = session.scalars(insert(Attempt).returning(Attempt.id, sort_by_parameter_order=True), rows).all()
        examples = [_example(one, round_.id, context.id, worker.id) for one in ids]
        known = session.scalars(insert(Example).returning(Example.id, sort_by_parameter_order=True), examples).all()
        session.execute(
            insert(TextBand),
            [
                {"round_id": round_.id, "band": band, "example_id": example_id}
                for example_id, one in zip(known, part, strict=True)
                for band in set(bands_of(one))
            ],
        )
    session.commit()
    return round_.id, context, texts


def _padded(session: Session, round_id: int, bands: int, chance: random.Random) -> None:
    """Add bands that no text has, of the first example, so that the index is as large as that of more examples."""
    example_id = session.scalars(select(func.min(Example.id))).one()
    for start in range(0, bands, 10_000):
        session.execute(
            insert(TextBand),
            [
                {"round_id": round_id, "band": chance.getrandbits(63), "example_id": example_id}
                for _ in range(min(10_000, bands - start))
            ],
        )
    session.commit()


def _attempt(hit: int, assignment: int, worker: int, number: int, text: str) -> dict[str, Any]:
    return {
        "public_id": f"a{number}",
        "assignment_id": assignment,
        "hit_id": hit,
        "worker_id": worker,
        "try_number": number + 1,
        "answer": {"statement": text},
        "answer_digest": f"{number:064d}",
        "goal_label": "negative",
        "state": AttemptState.ANSWERED,
        "asked_at": NOW,
        "seconds": 1,
        "predicted_label": "positive",
        "fooled": True,
    }


def _example(attempt: int, round_id: int, context: int, worker: int) -> dict[str, Any]:
    return {
        "attempt_id": attempt,
        "round_id": round_id,
        "context_id": context,
        "writer_id": worker,
        "goal_label": "negative",
        "model_label": "positive",
        "fooled": True,
        "verdict": Verdict.PENDING,
        "votes_wanted": 0,
        "for_seniors": False,
        "leased": 0,
        "collected_at": NOW,
    }


def _timed(name: str, questions: list[str], ask: Callable[[str], Any]) -> None:
    ask(questions[0])
    taken, elapsed = [], []
    for one in questions:
        begun, wall = time.process_time(), time.perf_counter()
        ask(one)
        taken.append(1000 * (time.process_time() - begun))
        elapsed.append(1000 * (time.perf_counter() - wall))
    taken.sort()
    print(LINE.format(name, statistics.median(taken), taken[int(0.95 * len(taken))], statistics.median(elapsed)))


if __name__ == "__main__":
    main()
