"""Freezing: what stands in its way is listed, splits and manifest are stored, and nothing changes afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry
from app.operations import freeze as freezing
from app.operations import override as examples
from app.operations.freeze import LOOKALIKE, freeze_round, plan_freeze
from hits.clock import FixedClock
from hits.errors import InvalidInput, Refused
from hits.manifest import SplitTerms, require_unchanged, sha256_of
from hits.models import Attempt, Context, Example, Round, Vote
from hits.rounds import NotReady
from hits.states import AssignmentState, PracticeState, Split, Verdict
from tests import factories as make
from tests.rounds import collected, finished

#: What does not depend on the database.
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
HALVES = SplitTerms(seed=1, shares=(0.5, 0.25, 0.25))


def freeze(session: Session, clock: FixedClock, terms: SplitTerms = HALVES, **options: Any) -> freezing.Frozen:
    return freeze_round(session, clock, "sentiment", 1, terms, by="Ada", **options)


def splits(session: Session) -> dict[int, Split | None]:
    return {row[0]: row[1] for row in session.execute(select(Example.id, Example.split).order_by(Example.id))}


def test_a_frozen_round_has_splits_a_manifest_and_an_entry_in_the_audit_trail(
    session: Session, clock: FixedClock
) -> None:
    verified = collected(session, 8)
    unverified = collected(session, 4, fooled=False)
    session.commit()

    frozen = freeze(session, clock)

    round_ = session.scalars(select(Round)).one()
    assert (round_.manifest_sha256, round_.frozen_by, round_.frozen_at) == (frozen.sha256, "Ada", clock.now())
    assert sha256_of(round_.manifest or {}) == frozen.sha256
    found = splits(session)
    by_writer = {(example.writer_id, found[example.id]) for example in verified}
    assert len(by_writer) == 4
    assert {split for _, split in by_writer} == {Split.TRAIN, Split.DEV, Split.TEST}
    assert {found[example.id] for example in unverified} == {Split.TRAIN}
    manifest = frozen.manifest
    assert manifest["examples"]["count"] == 12
    assert manifest["votes"] == 16
    assert manifest["models"] == [
        {"id": "embedded:sentiment", "revision": "test", "weights_sha256": None, "labels": None, "label_map": None}
    ]
    assert manifest["splits"]["counts"] == {"dev": 2, "test": 2, "train": 8}
    assert manifest["configuration"]["max_votes"] == 3
    assert {"git_commit", "packages", "python"} <= set(manifest["code"])
    entry = session.scalars(select(AuditEntry)).one()
    assert (entry.action, entry.staff_name, entry.detail["manifest_sha256"]) == ("round.freeze", "Ada", frozen.sha256)


def test_freezing_again_changes_nothing(session: Session, clock: FixedClock) -> None:
    collected(session, 4)
    session.commit()
    first = freeze(session, clock)
    clock.advance(timedelta(days=1))

    again = freeze(session, clock, SplitTerms(seed=9))

    assert (again.sha256, again.manifest, again.fresh) == (first.sha256, first.manifest, False)
    assert session.scalar(select(func.count()).select_from(AuditEntry)) == 1


def test_all_that_is_missing_is_listed_and_nothing_is_changed(session: Session, clock: FixedClock) -> None:
    round_ = make.make_round(session)
    pending = make.make_example(session)
    flagged = make.make_example(session)
    make.make_vote(session, example=flagged, label=None, flag_reason="Private.")
    flagged.verdict = Verdict.FLAGGED
    practice = finished(session, round=round_, writer=make.make_worker(session), readers=[], fooled=False)
    practice.practice_state = PracticeState.WAITING
    named = finished(
        session,
        round=round_,
        writer=make.make_worker(session),
        readers=[make.make_worker(session) for _ in range(2)],
        answer={"statement": "Write to A2XYZ34567QWER about the soup."},
    )
    session.commit()

    with pytest.raises(NotReady) as refused:
        freeze(session, clock)

    said = str(refused.value)
    for part in ("not closed", "without a verdict", "open flag", "no reviewer has graded", named.attempt.public_id):
        assert part in said
    assert pending.attempt.public_id not in said
    session.expire_all()
    assert session.scalars(select(Round.frozen_at)).one() is None
    assert set(splits(session).values()) == {None}
    assert plan_freeze(session, "sentiment", 1, HALVES).missing == refused.value.missing


@ON_SQLITE
def test_a_round_without_examples_is_not_frozen(session: Session, clock: FixedClock) -> None:
    make.make_round(session)
    session.commit()

    with pytest.raises(NotReady, match="it has no examples"):
        freeze(session, clock)


@pytest.mark.parametrize("said", ["A1B2C3D4E5F6G", "ask A3XYZ34567QWER.", "3ABCDEFGHIJKLMNOPQRSTUVWXYZ0123"])
def test_what_looks_like_an_id_is_found(said: str) -> None:
    assert LOOKALIKE.search(said)


@pytest.mark.parametrize("said", ["ANTIDISESTABLISH", "A380", "1234567890123", "A4 paper", "AMAZING1", "300000000000"])
def test_what_is_a_word_or_a_number_is_not_taken_for_an_id(said: str) -> None:
    assert not LOOKALIKE.search(said)


@ON_SQLITE
def test_a_workers_id_in_a_text_is_found_whatever_it_looks_like(session: Session, clock: FixedClock) -> None:
    writer = make.make_worker(session, mturk_worker_id="AWRITER")
    readers = [make.make_worker(session) for _ in range(2)]
    round_ = make.make_round(session)
    finished(session, round=round_, writer=writer, readers=readers, why="I am AWRITER, by the way.")
    session.commit()

    with pytest.raises(NotReady, match="holds something like a worker's"):
        freeze(session, clock)


def test_nothing_of_a_frozen_round_can_be_changed(session: Session, clock: FixedClock) -> None:
    example = collected(session, 4)[0]
    vote = session.scalars(select(Vote).where(Vote.example_id == example.id).limit(1)).one()
    other_round = make.make_round(session, number=2)
    session.commit()
    freeze(session, clock)
    values = {c.name: getattr(vote, c.name) for c in Vote.__table__.columns if c.name != "id"}
    forbidden = [
        update(Example).where(Example.id == example.id).values(final_label="positive"),
        update(Example).where(Example.id == example.id).values(round_id=other_round.id),
        text(f"DELETE FROM vote WHERE id = {vote.id}"),
        update(Vote).where(Vote.id == vote.id).values(label="positive"),
        insert(Vote).values(**values | {"validator_id": example.writer_id}),
        update(Attempt).where(Attempt.id == example.attempt_id).values(answer={"statement": "Other."}),
        update(Context).where(Context.id == example.context_id).values(fields={"prompt": "Other."}),
        update(Round).where(Round.number == 1).values(frozen_at=None, manifest_sha256=None),
    ]

    for statement in forbidden:
        with pytest.raises(DatabaseError, match="the round is frozen"):
            session.execute(statement)
        session.rollback()


def test_the_reason_of_a_flag_may_be_erased_from_a_frozen_round(session: Session, clock: FixedClock) -> None:
    example = collected(session, 4)[0]
    vote = make.make_vote(session, example=example, label=None, flag_reason="I know her.")
    vote.assignment.hit.state = example.attempt.hit.state
    session.commit()
    frozen = freeze(session, clock)

    session.execute(update(Vote).where(Vote.id == vote.id).values(flag_reason="(erased)"))
    session.commit()

    assert freeze(session, clock).sha256 == frozen.sha256


@ON_SQLITE
def test_decisions_about_a_frozen_round_are_refused_in_words(session: Session, clock: FixedClock) -> None:
    example = collected(session, 4)[0]
    session.commit()
    freeze(session, clock)
    name = example.attempt.public_id

    for decide in (
        lambda: examples.override_example(session, clock, name, label="positive", reason="So.", by="Ada"),
        lambda: examples.retract_example(session, clock, name, reason="So.", by="Ada"),
        lambda: examples.lift_override(session, clock, name, by="Ada"),
    ):
        with pytest.raises(Refused, match="was frozen on 2026-11-15"):
            decide()
        session.rollback()


def test_an_interrupted_freeze_goes_on_and_nobody_decides_meanwhile(session: Session, clock: FixedClock) -> None:
    example = collected(session, 6)[0]
    session.commit()
    read = 0

    def killed(count: int) -> None:
        nonlocal read
        read += count
        if read > 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        freeze(session, clock, advance=killed)
    session.rollback()
    with pytest.raises(Refused, match="was frozen"):
        examples.retract_example(session, clock, example.attempt.public_id, reason="So.", by="Ada")
    session.rollback()

    frozen = freeze(session, clock)

    assert frozen.fresh
    assert session.scalars(select(Round.manifest_sha256)).one() == frozen.sha256


@ON_SQLITE
@pytest.mark.parametrize("terms", [SplitTerms(shares=(0.9, 0.2, -0.1)), SplitTerms(exclusive_writers=("w-nobody",))])
def test_terms_that_can_not_be_used_leave_it_open(session: Session, clock: FixedClock, terms: SplitTerms) -> None:
    collected(session, 4)
    session.commit()

    with pytest.raises((InvalidInput, Refused)):
        freeze(session, clock, terms)

    assert session.execute(select(Round.frozen_at, Round.manifest_sha256)).one() == (None, None)


@ON_SQLITE
def test_a_decision_in_the_middle_of_freezing_is_noticed(
    session: Session, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = collected(session, 4)[0]
    session.commit()
    hashed = freezing.Digest.add

    def add(digest: freezing.Digest, stored: Any) -> None:
        session.execute(update(Example).where(Example.id == example.id).values(decided_at=clock.now()))
        session.commit()
        hashed(digest, stored)

    monkeypatch.setattr(freezing.Digest, "add", add)
    clock.advance(timedelta(hours=1))
    with pytest.raises(Refused, match="changed while it was frozen"):
        freeze(session, clock)

    monkeypatch.undo()
    assert freeze(session, clock).fresh


def test_of_two_who_freeze_at_once_the_later_one_does_it_alone(
    session: Session, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    collected(session, 8)
    session.commit()
    others: list[freezing.Frozen] = []

    def meanwhile(count: int) -> None:
        if not others:
            with session_factory() as other:
                others.append(freeze_round(other, clock, "sentiment", 1, SplitTerms(seed=7), by="Grace"))

    with pytest.raises(Refused, match="by another process as well"):
        freeze(session, clock, advance=meanwhile)

    session.rollback()
    round_ = session.scalars(select(Round)).one()
    assert (round_.manifest_sha256, round_.manifest) == (others[0].sha256, others[0].manifest)
    digest = freezing.Digest()
    for page in freezing.order_of(freezing.id_pages(session, round_.id)).pages():
        for stored in freezing.stored_examples(session, page):
            digest.add(stored)
    require_unchanged(round_, digest)


@ON_SQLITE
def test_a_later_round_keeps_writers_where_they_are(session: Session, clock: FixedClock) -> None:
    people = [make.make_worker(session) for _ in range(8)]
    readers = [make.make_worker(session) for _ in range(2)]
    rounds = [make.make_round(session), make.make_round(session, number=2)]
    for round_ in rounds:
        for person in people:
            finished(session, round=round_, writer=person, readers=readers)
    session.commit()
    freeze(session, clock)
    first = splits(session)

    freeze_round(session, clock, "sentiment", 2, SplitTerms(seed=5, shares=(0.2, 0.4, 0.4)), by="Ada")

    found = splits(session)
    assert {one: found[one] for one, split in first.items() if split is not None} == {
        one: split for one, split in first.items() if split is not None
    }
    of_writer: dict[int, set[Split | None]] = {}
    for example in session.scalars(select(Example)):
        of_writer.setdefault(example.writer_id, set()).add(found[example.id])
    assert all(len(one - {Split.WITHHELD}) == 1 for one in of_writer.values())


@ON_SQLITE
def test_rejected_work_is_withheld(session: Session, clock: FixedClock) -> None:
    collected(session, 4)
    spam = finished(
        session,
        round=make.make_round(session),
        writer=make.make_worker(session),
        readers=[make.make_worker(session) for _ in range(2)],
        state=AssignmentState.REJECTED,
    )
    session.commit()

    freeze(session, clock)

    assert splits(session)[spam.id] is Split.WITHHELD


@ON_SQLITE
def test_a_plan_changes_nothing(session: Session) -> None:
    collected(session, 8)
    session.commit()

    plan = plan_freeze(session, "sentiment", 1, HALVES)

    assert (plan.missing, plan.examples, sum(plan.splits.values())) == ((), 8, 8)
    assert set(splits(session).values()) == {None}
    assert session.scalars(select(Round.frozen_at)).one() is None
