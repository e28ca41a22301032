"""Gold items: with a known label, shown among the others, they tell how well a validator reads."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.errors import Finding, InvalidAnswer, InvalidInput
from hits.models import Example, GoldItem, Lease, Round, Vote
from hits.states import Verdict
from hits.tasks import digest_of, task

#: More than any file of gold items has.
MAX_BYTES = 20 * 1024 * 1024


def gold_rows(path: Path) -> tuple[list[tuple[int, Mapping[str, object]]], list[Finding]]:
    """Return the objects of a UTF-8 JSON lines file with their line numbers, and the lines that are none.

    Raises InvalidInput when the file can't be read at all.
    """
    try:
        with path.open("rb") as file:
            written = file.read(MAX_BYTES + 1)
        text = written.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror or error}. Nothing was stored.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text. Nothing was stored.") from error
    if len(written) > MAX_BYTES:
        raise InvalidInput(f"{path} holds more than {MAX_BYTES // 1024**2} MB. Split it. Nothing was stored.")
    rows: list[tuple[int, Mapping[str, object]]] = []
    findings = []
    for number, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            row = json.loads(content)
        except (ValueError, RecursionError) as error:
            findings.append(
                Finding(number, f"not JSON: {error.msg if isinstance(error, json.JSONDecodeError) else error}")
            )
            continue
        if isinstance(row, dict):
            rows.append((number, row))
        else:
            findings.append(Finding(number, f"expected an object, not {type(row).__name__}"))
    if not rows and not findings:
        findings.append(Finding(1, "no gold items in this file"))
    return rows, findings


def add_gold(session: Session, round_: Round, row: Mapping[str, object], now: datetime) -> GoldItem | None:
    """Store a gold item from ``context``, ``answer`` and ``label``; None for one that the round has already. Flushes.

    Raises InvalidInput with what is wrong.
    """
    spec = task(round_.task_code)
    unknown = sorted(set(row) - {"context", "answer", "label"})
    if unknown:
        raise InvalidInput(f"unknown field {unknown[0]!r}; a gold item has 'context', 'answer' and 'label'")
    context = spec.check_context(row.get("context"))
    answer = row.get("answer")
    if not isinstance(answer, Mapping):
        raise InvalidAnswer("answer", f"'answer' must be an object, not {type(answer).__name__}")
    checked = spec.check_answer(answer, context)
    label = spec.label(str(row.get("label"))).code
    return _stored(session, round_, context, checked, label, None, now)


def gold_from_verified(session: Session, round_: Round, count: int, now: datetime) -> list[GoldItem]:
    """Make up to ``count`` gold items from decided examples on which all readers agreed, the oldest first. Flushes.

    Their writers and readers will not get them.
    """
    known = select(GoldItem.example_id).where(GoldItem.round_id == round_.id, GoldItem.example_id.is_not(None))
    dissent = select(Vote.id).where(
        Vote.example_id == Example.id,
        Vote.counted_at.is_not(None),
        Vote.label.is_(None) | (Vote.label != Example.final_label),
    )
    # What the requester decided without them is no agreement.
    agreed = select(Vote.id).where(
        Vote.example_id == Example.id, Vote.counted_at.is_not(None), Vote.label == Example.final_label
    )
    sound = session.scalars(
        select(Example)
        .where(Example.round_id == round_.id, Example.id.not_in(known), Example.retracted_at.is_(None))
        .where(Example.verdict.in_((Verdict.VALID_AND_MODEL_WRONG, Verdict.VALID_AND_MODEL_RIGHT)))
        .where(agreed.exists(), ~dissent.exists())
        .order_by(Example.collected_at, Example.id)
        .limit(count)
    ).all()
    made = [
        _stored(
            session,
            round_,
            example.context.fields,
            example.attempt.answer,
            example.final_label or example.goal_label,
            example.id,
            now,
        )
        for example in sound
    ]
    return [item for item in made if item is not None]


def gold_for(session: Session, round_: Round, validator_id: int, count: int, chance: random.Random) -> list[GoldItem]:
    """Return up to ``count`` gold items that this validator has never been shown, by chance."""
    if count <= 0:
        return []
    shown = select(Lease.gold_item_id).where(Lease.validator_id == validator_id, Lease.gold_item_id.is_not(None))
    wrote = select(Example.id).where(Example.writer_id == validator_id)
    read = select(Lease.example_id).where(Lease.validator_id == validator_id, Lease.example_id.is_not(None))
    fresh = session.scalars(
        select(GoldItem)
        .where(GoldItem.round_id == round_.id, GoldItem.retired_at.is_(None), GoldItem.id.not_in(shown))
        .where(GoldItem.example_id.is_(None) | (GoldItem.example_id.not_in(wrote) & GoldItem.example_id.not_in(read)))
        .order_by(GoldItem.id)
    ).all()
    return chance.sample(list(fresh), min(count, len(fresh)))


def gold_left(session: Session, round_: Round) -> int:
    """Return how many gold items the round has in use."""
    in_use = select(func.count()).select_from(GoldItem).where(GoldItem.round_id == round_.id)
    return session.scalar(in_use.where(GoldItem.retired_at.is_(None))) or 0


def retire_gold(session: Session, items: Sequence[GoldItem], now: datetime) -> None:
    """Show these no more; what was answered stays. Flushes."""
    for item in items:
        item.retired_at = item.retired_at or now
    session.flush()


def _stored(
    session: Session,
    round_: Round,
    context: Mapping[str, str],
    answer: Mapping[str, str],
    label: str,
    example_id: int | None,
    now: datetime,
) -> GoldItem | None:
    digest = digest_of({**{f"context.{name}": value for name, value in context.items()}, **answer})
    known = select(GoldItem.id).where(GoldItem.round_id == round_.id, GoldItem.digest == digest)
    if session.scalar(known) is not None:
        return None
    item = GoldItem(
        round_id=round_.id,
        # As an attempt's, so that nothing on the page tells them apart.
        public_id=secrets.token_urlsafe(18),
        context=dict(context),
        answer=dict(answer),
        digest=digest,
        label=label,
        example_id=example_id,
        created_at=now,
    )
    session.add(item)
    session.flush()
    return item
