"""Uploads store all that is new of a file or nothing, also two at once; contexts are retired and taken back."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry
from app.operations.context_list import contexts_listed
from app.operations.upload_contexts import UploadTerms, plan_upload, retire_contexts, upload_contexts
from hits.clock import FixedClock
from hits.errors import InvalidContexts, InvalidInput
from hits.models import Context, ContextUpload, RetiredContext, Round, RoundMove

TEXTS = ("The train was late again.", "A quiet museum on Monday.", "The soup was cold, said the cook.")


def terms(folder: Path, *texts: str, name: str = "a.jsonl") -> UploadTerms:
    path = folder / name
    path.write_text("\n".join(json.dumps({"prompt": text}) for text in texts or TEXTS), encoding="utf-8")
    return UploadTerms("sentiment", 1, path, "Somebody, example.org", "CC0-1.0")


def test_a_new_round_gets_its_contexts_with_their_source_once(
    session: Session, clock: FixedClock, tmp_path: Path
) -> None:
    mine = terms(tmp_path, *TEXTS, TEXTS[0].upper())

    assert len(plan_upload(session, mine).found.new) == 3
    assert session.scalar(select(func.count()).select_from(Round)) == 0
    found = upload_contexts(session, clock, mine, by="robin")
    again = upload_contexts(session, clock, mine, by="robin")

    assert [one.line for one in found.found.repeats] == [4]
    assert (again.upload_id, len(again.found.repeats)) == (None, 4)
    upload = session.scalars(select(ContextUpload)).one()
    assert (upload.source, upload.licence, upload.added, upload.repeats) == (mine.source, mine.licence, 3, 1)
    assert session.scalars(select(RoundMove.by)).one() == "robin"
    assert session.scalars(select(AuditEntry.action)).all() == ["contexts.upload"]
    listed = contexts_listed(session, clock, "sentiment", 1)
    assert [(one.fields["prompt"], one.line, one.upload) for one in listed.contexts] == [
        (text, line, upload.id) for line, text in enumerate(TEXTS, start=1)
    ]
    json.dumps([listed.as_json(), found.as_json()])


def test_a_file_with_a_broken_line_stores_nothing(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    mine = terms(tmp_path)
    mine.path.write_bytes(mine.path.read_bytes() + b'\n{"prompt": "nul \\u0000"}\n\xff\n')

    with pytest.raises(InvalidContexts) as caught:
        upload_contexts(session, clock, mine, by="robin")

    assert [one.line for one in caught.value.findings] == [4, 5]
    assert session.scalar(select(func.count()).select_from(Round)) == 0


def test_two_uploads_at_once_store_no_near_repeats_of_each_other(
    session_factory: sessionmaker[Session], clock: FixedClock, tmp_path: Path
) -> None:
    files = [terms(tmp_path, *(f"{text}{end}" for text in TEXTS), name=f"{end}.jsonl") for end in ("", "!!")]
    gate, errors = threading.Barrier(2), []

    def upload(mine: UploadTerms) -> None:
        try:
            with session_factory() as session:
                gate.wait(timeout=30)
                upload_contexts(session, clock, mine, by="robin")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=upload, args=(mine,)) for mine in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    with session_factory() as session:
        assert session.scalar(select(func.count()).select_from(Context)) == 3
        assert session.scalar(select(func.count()).select_from(ContextUpload)) == 1


def test_contexts_are_retired_with_a_reason_and_taken_back(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    upload_contexts(session, clock, terms(tmp_path), by="robin")
    digest = session.scalars(select(Context.digest).order_by(Context.id)).first() or ""

    def retired(**changes: object) -> list[str]:
        given = {"reason": "a real person's name", "by": "robin", **changes}
        return retire_contexts(session, clock, "sentiment", 1, [digest[:8]], **given)  # type: ignore[arg-type]

    assert retired(plan_only=True) == [digest]
    assert session.scalar(select(func.count()).select_from(RetiredContext)) == 0
    assert retired() == [digest]
    assert retired() == []
    assert contexts_listed(session, clock, "sentiment", 1).contexts[0].known.retired
    assert retired(undo=True) == [digest]
    assert session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all() == [
        "contexts.upload",
        "contexts.retire",
        "contexts.unretire",
    ]


def test_contexts_that_several_people_retire_at_once_are_retired_once(
    session_factory: sessionmaker[Session], clock: FixedClock, tmp_path: Path
) -> None:
    with session_factory() as session:
        upload_contexts(session, clock, terms(tmp_path), by="robin")
        names = list(session.scalars(select(Context.digest)))
    gate = threading.Barrier(4)

    def retire(by: str) -> list[str]:
        with session_factory() as session:
            gate.wait(timeout=30)
            return retire_contexts(session, clock, "sentiment", 1, names, reason="a real name", by=by)

    with ThreadPoolExecutor(4) as people:
        changed = list(people.map(retire, ["robin", "kim", "alex", "sam"]))

    assert sorted(map(len, changed)) == [0, 0, 0, len(names)]
    with session_factory() as session:
        assert session.scalar(select(func.count()).select_from(RetiredContext)) == len(names)


def test_a_task_or_number_that_can_not_be_is_refused(session: Session, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not 0"):
        plan_upload(session, replace(terms(tmp_path), number=0))
