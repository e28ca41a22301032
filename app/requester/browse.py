"""A round's examples, browsed and searched; and what there is to see of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import func, select
from sqlalchemy.orm import joinedload

from app.extensions import db
from app.models import AuditEntry
from app.requester.dashboard import round_of
from app.requester.views import VERDICT_WORDS, bp
from app.worker.answers import AttemptView, Bar, attempt_view, percent
from hits.arms import arms_of, plans
from hits.listing import IN_NO_ARM, PER_PAGE, Wanted, page_of, place_of
from hits.models import Example, Vote
from hits.states import Verdict
from hits.tasks import TaskSpec, task

TEXT_MAX_CHARACTERS = 100
#: What staff did about an example, by the name of the action in the audit trail.
ACTIONS = {
    "flag.uphold": "The flags were upheld: it is out",
    "flag.dismiss": "The flags were dismissed",
    "example.override": "Decided against the readers",
    "example.override_lifted": "The readers' votes count again",
    "example.retract": "Taken out of the data",
}


@dataclass(frozen=True)
class Line:
    """One statement in the list."""

    public_id: str
    text: str
    goal: str
    model: str
    fooled: bool
    final: str
    verdict: tuple[str, str]
    votes: int
    writer: str
    collected_at: datetime
    overridden: bool
    retracted: bool


@dataclass(frozen=True)
class Member:
    """What one model said: its label or its stretch of the passage, with its probabilities."""

    name: str
    said: str
    percent: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Event:
    """Something that happened to an example. ``who`` is a pseudonym, a member of staff, or empty."""

    at: datetime
    what: str
    who: str = ""
    words: str = ""


@bp.get("/<task_code>/<int(max=10000):number>/statements")
def statements(task_code: str, number: int) -> ResponseReturnValue:
    """List a round's examples, the newest first, as far as they fit what is looked for."""
    round_ = round_of(task_code, number)
    spec = task(round_.task_code)
    session = db.session()
    arms = list(arms_of(plans(session, round_.id)))
    wanted = _wanted(spec, arms, request.args)
    older, newer = (request.args.get(name, "") for name in ("older", "newer"))
    found = page_of(
        session,
        round_,
        spec,
        wanted,
        older_than=place_of(session, older) if older else None,
        newer_than=place_of(session, newer) if newer else None,
    )
    names = _names(place.id for place in (found.newer, found.older) if place is not None)
    return render_template(
        "requester/statements.html",
        round=round_,
        spec=spec,
        lines=_lines(spec, found.ids),
        page=found,
        per_page=PER_PAGE,
        newer=names.get(found.newer.id) if found.newer is not None else None,
        older=names.get(found.older.id) if found.older is not None else None,
        at_start=not older and not newer,
        wanted=wanted,
        arms=[*((name, name) for name in arms), (IN_NO_ARM, "in no arm")] if arms else [],
        filters=_as_arguments(wanted),
        text_max=TEXT_MAX_CHARACTERS,
        verdict_words=VERDICT_WORDS,
    )


def members_of(spec: TaskSpec, members: Sequence[Mapping[str, Any]] | None, goal: str) -> list[Member]:
    """Return what each model of an ensemble said, from Attempt.members; none for a single model."""
    found = []
    for one in members or ():
        span, confidence = one.get("span"), one.get("confidence")
        found.append(
            Member(
                name=f"{one['model_id']} at {str(one['revision'])[:12]}",
                said=f"“{span['text']}”" if span else spec.label(one["label"]).name,
                percent=percent(confidence) if confidence is not None else "",
                bars=bars_of(spec, one.get("probabilities") or {}, one["label"], goal),
            )
        )
    return found


def bars_of(spec: TaskSpec, probabilities: Mapping[str, float], top: str, goal: str = "") -> tuple[Bar, ...]:
    """Return the bars of a model's probabilities by label."""
    return tuple(
        Bar(spec.label(code).name, percent(one), f"{one * 100:.1f}", code == top, code == goal)
        for code, one in probabilities.items()
    )


def seen_by_the_writer(spec: TaskSpec, example: Example) -> AttemptView:
    """Return the model's answer with its explanations as the writer saw them."""
    return attempt_view(spec, example.attempt, example.attempt.try_number or 0)


def history(example: Example, votes: Sequence[Vote]) -> list[Event]:
    """Return what happened to an example, in order."""
    attempt = example.attempt
    found = [Event(attempt.asked_at, "Written and shown to the model", example.writer.pseudonym)]
    found.append(Event(example.collected_at, "Collected"))
    found += [
        Event(
            one.created_at,
            "Flagged by a reader" if one.label is None else "Judged by a reader",
            one.validator.pseudonym,
        )
        for one in votes
    ]
    if example.decided_at is not None:
        found.append(Event(example.decided_at, f"Decided: {VERDICT_WORDS[example.verdict][0]}"))
    entries = db.session.scalars(
        select(AuditEntry).where(AuditEntry.subject == f"example {attempt.public_id}").order_by(AuditEntry.id)
    )
    found += [
        Event(one.at, ACTIONS.get(one.action, one.action), one.staff_name, str(one.detail.get("reason", "")))
        for one in entries
    ]
    return sorted(found, key=lambda event: event.at)


def _wanted(spec: TaskSpec, arms: Sequence[str], asked: Mapping[str, str]) -> Wanted:
    verdict, fooled, label, arm = (asked.get(name, "") for name in ("verdict", "fooled", "label", "arm"))
    return Wanted(
        verdict=Verdict(verdict) if verdict in set(Verdict) else None,
        fooled={"1": True, "0": False}.get(fooled),
        label=label if label in spec.label_codes else None,
        writer=asked.get("writer", "").strip()[:64] or None,
        arm=arm if arms and arm in (*arms, IN_NO_ARM) else None,
        text=asked.get("text", "").replace("\0", "").strip()[:TEXT_MAX_CHARACTERS],
    )


def _as_arguments(wanted: Wanted) -> dict[str, str]:
    found = {
        "verdict": wanted.verdict.value if wanted.verdict is not None else "",
        "fooled": "" if wanted.fooled is None else str(int(wanted.fooled)),
        "label": wanted.label or "",
        "writer": wanted.writer or "",
        "arm": wanted.arm or "",
        "text": wanted.text,
    }
    return {name: value for name, value in found.items() if value}


def _names(ids: Any) -> dict[int, str]:
    rows = db.session.execute(
        select(Example).where(Example.id.in_(list(ids))).options(joinedload(Example.attempt))
    ).scalars()
    return {one.id: one.attempt.public_id for one in rows}


def _lines(spec: TaskSpec, ids: Sequence[int]) -> list[Line]:
    counted = (
        select(func.count())
        .select_from(Vote)
        .where(Vote.example_id == Example.id, Vote.counted_at.is_not(None))
        .scalar_subquery()
    )
    rows = db.session.execute(
        select(Example, counted)
        .where(Example.id.in_(ids))
        .options(joinedload(Example.attempt), joinedload(Example.writer))
    )
    by_id = {example.id: _line(spec, example, count) for example, count in rows}
    return [by_id[one] for one in ids if one in by_id]


def _line(spec: TaskSpec, example: Example, votes: int) -> Line:
    text = " / ".join(example.attempt.answer[item.name] for item in spec.answer_fields)
    return Line(
        public_id=example.attempt.public_id,
        text="" if spec.content_warning else text,
        goal=spec.label(example.goal_label).name,
        model=spec.label(example.model_label).name,
        fooled=example.fooled,
        final=spec.label(example.final_label).name if example.final_label is not None else "",
        verdict=VERDICT_WORDS[example.verdict],
        votes=votes,
        writer=example.writer.pseudonym,
        collected_at=example.collected_at,
        overridden=example.overridden_at is not None,
        retracted=example.retracted_at is not None,
    )
