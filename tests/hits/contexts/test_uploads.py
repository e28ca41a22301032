"""What of a file of contexts is new, and where each one came from."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.contexts.files import ContextsFile
from hits.contexts.uploads import named, retire, sort_out, store, take_back
from hits.errors import InvalidInput, NotFound
from hits.models import Context, UploadedContext
from tests.factories import NOON, make_context, make_round

TRAIN = "The train was late again, but the conductor brought us free coffee and we laughed."


def given(*texts: str) -> ContextsFile:
    return ContextsFile("f" * 64, tuple((line, {"prompt": text}) for line, text in enumerate(texts, start=1)))


def test_repeats_are_left_out_and_named(tmp_path: Path) -> None:
    found = sort_out(
        given(
            TRAIN, TRAIN.upper(), TRAIN.replace("coffee", "tea"), "A quiet museum.", "A house.", "The soup was cold."
        ),
        mine=[("round 2, aa", {"prompt": "a QUIET museum"})],
        others=[("round 1, bb", {"prompt": "The soup was cold"})],
    )

    assert [line for line, _ in found.new] == [1, 5, 6]
    assert [(one.line, one.of) for one in found.repeats] == [(2, "line 1"), (4, "round 2, aa")]
    assert [(one.line, one.of) for one in found.near] == [(3, "line 1")]
    assert 0.7 <= found.near[0].similarity < 1
    assert [(one.line, one.of, one.similarity) for one in found.elsewhere] == [(6, "round 1, bb", 1.0)]


def test_near_ones_can_be_kept_and_other_rounds_ones_left_out() -> None:
    found = sort_out(
        given(TRAIN, TRAIN.replace("coffee", "tea"), "The soup was cold."),
        mine=[],
        others=[("round 1, bb", {"prompt": "The soup was cold"})],
        keep_near=True,
        new_only=True,
    )

    assert [line for line, _ in found.new] == [1, 2]


def test_each_context_knows_its_line_and_its_source(session: Session) -> None:
    round_ = make_round(session)
    file = given("A house.", TRAIN)
    found = sort_out(file, [], [])

    upload = store(
        session, round_, file, found, file_name="a.jsonl", source=" Somebody ", licence="CC0", by="robin", now=NOON
    )

    assert (upload.source, upload.licence, upload.added, upload.repeats) == ("Somebody", "CC0", 2, 0)
    rows = session.execute(
        select(Context.fields, UploadedContext.line, UploadedContext.upload_id)
        .join(UploadedContext, UploadedContext.context_id == Context.id)
        .order_by(UploadedContext.line)
    ).all()
    assert [tuple(row) for row in rows] == [({"prompt": "A house."}, 1, upload.id), ({"prompt": TRAIN}, 2, upload.id)]


@pytest.mark.parametrize("source", ["", " \n ", "x" * 501])
def test_a_source_must_be_said(session: Session, source: str) -> None:
    file = given("A house.")
    with pytest.raises(InvalidInput, match="The source is"):
        store(
            session,
            make_round(session),
            file,
            sort_out(file, [], []),
            file_name="a",
            source=source,
            licence="CC0",
            by="robin",
            now=NOON,
        )


def test_contexts_are_retired_by_name_and_taken_back(session: Session) -> None:
    round_ = make_round(session)
    context = make_context(session, round=round_)
    name = context.digest[:8]

    assert retire(session, round_, [name, name.upper()], reason="a name", by="robin", now=NOON) == [context.digest]
    assert retire(session, round_, [name], reason="again", by="robin", now=NOON) == []
    assert take_back(session, round_, [name]) == [context.digest]
    assert take_back(session, round_, [name]) == []
    with pytest.raises(InvalidInput, match="The reason is"):
        retire(session, round_, [name], reason=" ", by="robin", now=NOON)


def test_a_name_must_be_one(session: Session) -> None:
    round_ = make_round(session)
    context = make_context(session, round=round_, digest="ab12cd34" + "0" * 56)
    make_context(session, round=round_, digest="ab12cd34" + "1" * 56)

    assert named(session, round_, "ab12cd340").id == context.id
    with pytest.raises(InvalidInput, match="several"):
        named(session, round_, "ab12cd34")
    with pytest.raises(InvalidInput, match="'ab'"):
        named(session, round_, "ab")
    with pytest.raises(NotFound, match="no context 'ffffffff'"):
        named(session, round_, "ffffffff")
