"""The manifest: every part of the data moves its hash, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.orm import Session

from hits.errors import Refused
from hits.export.stored import StoredExample, StoredVote
from hits.manifest import Digest, SplitTerms, made_of, require_unchanged, sha256_of
from hits.states import Split, Verdict
from tests import factories as make

EXAMPLE = StoredExample(
    id=1,
    public_id="attempt-1",
    round=1,
    context={"prompt": "A train."},
    answer={"statement": "It was late."},
    goal_label="negative",
    final_label="negative",
    verdict=Verdict.VALID_AND_MODEL_WRONG,
    overridden=False,
    split=Split.DEV,
    fooled=True,
    model={"id": "embedded:sentiment", "revision": "r1", "label": "positive", "policy": "any", "members": None},
    answer_f1=None,
    attribution=None,
    goal_attribution=None,
    tries=1,
    seconds=60,
    why="",
    writer="w-1",
    asked_at=make.NOON,
    origin=None,
    published=None,
    votes=(StoredVote("w-2", "negative", None, None, None, 3.5),),
)


def digest_of(*examples: StoredExample) -> Digest:
    digest = Digest()
    for example in examples:
        digest.add(example)
    return digest


@pytest.mark.parametrize(
    "change",
    [
        {"context": {"prompt": "A tram."}},
        {"answer": {"statement": "It was late!"}},
        {"final_label": "neutral"},
        {"verdict": Verdict.INVALID},
        {"split": Split.TEST},
        {"writer": "w-3"},
        {"attribution": {"words": []}},
        {"votes": (StoredVote("w-2", "neutral", None, None, None, 3.5),)},
        {"votes": ()},
    ],
)
def test_whatever_changes_of_an_example_changes_the_hash(change: dict[str, Any]) -> None:
    assert digest_of(replace(EXAMPLE, **change)).sha256 != digest_of(EXAMPLE).sha256


def test_a_remark_and_the_place_in_the_database_are_no_part_of_it() -> None:
    assert digest_of(replace(EXAMPLE, why="Because.", id=7)).sha256 == digest_of(EXAMPLE).sha256


def test_models_members_and_policies_are_met_on_the_way() -> None:
    members = [{"model_id": "hub:a", "revision": "1"}, {"model_id": "hub:b", "revision": "2"}]
    model = (EXAMPLE.model or {}) | {"members": members}

    digest = digest_of(EXAMPLE, replace(EXAMPLE, model=model), replace(EXAMPLE, model=None))

    assert digest.models == {("embedded:sentiment", "r1"), ("hub:a", "1"), ("hub:b", "2")}
    assert (digest.policies, digest.examples, digest.votes) == ({"any"}, 3, 3)


def test_a_manifest_names_models_by_their_weights_and_no_people(session: Session) -> None:
    round_ = make.make_round(session)
    make.make_model_version(session, revision="r1", weights_sha256="b" * 64)
    make.make_batch(session, round=round_)
    make.make_batch(session, round=round_)
    make.make_context(session, round=round_)

    manifest = made_of(
        session,
        round_,
        digest_of(EXAMPLE),
        SplitTerms(exclusive_writers=("w-1",)),
        code={"git_commit": "c"},
        frozen_at=make.NOON,
    )

    assert manifest["models"][0]["weights_sha256"] == "b" * 64
    assert manifest["splits"]["exclusive_writers"] == 1
    assert manifest["contexts"]["count"] == 1
    assert len(manifest["batches"]) == 1
    assert manifest["batches"][0]["reward"] == "0.30"
    assert "w-1" not in str(manifest)
    assert sha256_of(manifest) != sha256_of(manifest | {"round": 2})


def test_other_data_than_the_manifests_are_refused(session: Session) -> None:
    digest = digest_of(EXAMPLE)
    round_ = make.make_round(session)
    round_.manifest = {"examples": {"count": 1, "sha256": digest.sha256}}

    require_unchanged(round_, digest)
    with pytest.raises(Refused, match="are not those of its manifest"):
        require_unchanged(round_, digest_of(EXAMPLE, EXAMPLE))
