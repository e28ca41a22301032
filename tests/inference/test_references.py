"""Names of models: read, written back the same, and refused with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from hits.errors import InvalidInput
from inference.references import (
    EmbeddedReference,
    EnsembleReference,
    FolderReference,
    HubReference,
    parse_reference,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = HubReference("cross-encoder/nli-MiniLM2-L6-H768", COMMIT)
STATED = FolderReference(Path("/models/a b"), ("entailment", "neutral", "contradiction"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("embedded:nli", EmbeddedReference("nli")),
        (f" hub:cross-encoder/nli-MiniLM2-L6-H768@{COMMIT} ", HUB),
        ("hub:a/b@v1.0", HubReference("a/b", "v1.0")),
        ("hub:a/b@main?labels=no,yes", HubReference("a/b", "main", ("no", "yes"))),
        ("dir:/models/a b?labels=entailment, neutral, contradiction", STATED),
        ("dir:models/x", FolderReference(Path("models/x"))),
        (
            "ensemble:mean(embedded:nli, dir:/x)",
            EnsembleReference("mean", (EmbeddedReference("nli"), FolderReference(Path("/x")))),
        ),
        (
            f"ensemble:wrong>=2(hub:a/b@v1?labels=x,y,{HUB},dir:/z?labels=y,x)",
            EnsembleReference(
                "wrong", (HubReference("a/b", "v1", ("x", "y")), HUB, FolderReference(Path("/z"), ("y", "x"))), needed=2
            ),
        ),
        (
            "ensemble:random:7(dir:/x, dir:/y)",
            EnsembleReference("random", (FolderReference(Path("/x")), FolderReference(Path("/y"))), seed=7),
        ),
        (
            "ensemble:majority(dir:/x,dir:/y)",
            EnsembleReference("majority", (FolderReference(Path("/x")), FolderReference(Path("/y")))),
        ),
    ],
)
def test_a_name_is_read_and_written_back(text: str, expected: object) -> None:
    parsed = parse_reference(text)

    assert parsed == expected
    assert parse_reference(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no model"),
        ("gpt", "embedded:TASK"),
        ("embedded:", "names no model"),
        ("embedded:nli?labels=a,b", "names no model"),
        ("hub:bert", "names no model"),
        ("hub:a/b/c@main", "names no model"),
        ("hub:../..@v1", "names no model"),
        ("hub:a/b@../../refs", "names no model"),
        ("ensemble:random:9999999999(dir:/x, dir:/y)", "the policies are random"),
        ("hub:a/b", r"names no revision.*hub:a/b@COMMIT"),
        ("dir:", "names no model"),
        ("hub:a/b@v1?order=1", r"only \?labels="),
        ("hub:a/b@v1?labels=a,,b", "Name each once"),
        ("hub:a/b@v1?labels=a,a", "Name each once"),
        ("ensemble:best(dir:/x, dir:/y)", "the policies are random"),
        ("ensemble:mean", "is no ensemble"),
        ("ensemble:mean:3(dir:/x, dir:/y)", "is no ensemble"),
        ("ensemble:wrong(dir:/x, dir:/y)", "is no ensemble"),
        ("ensemble:random>=1(dir:/x, dir:/y)", "is no ensemble"),
        ("ensemble:mean(dir:/x)", "two or more"),
        ("ensemble:mean(dir:/x, dir:/x)", "all different"),
        ("ensemble:wrong>=3(dir:/x, dir:/y)", "3 wrong members of 2"),
        ("ensemble:wrong>=0(dir:/x, dir:/y)", "0 wrong members of 2"),
        ("ensemble:mean(dir:/x, ensemble:mean(dir:/y, dir:/z))", "inside an ensemble"),
        ("ensemble:mean(nonsense, dir:/y)", "names no model"),
    ],
)
def test_what_names_no_model_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_reference(text)
